"""The data of the training program `dna`: a folder of the user, or generated windows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dna import data, motif, refusal, settings, synthetic

from tests.studies.dna_folder import write_folder

pytestmark = pytest.mark.slow


def in_folder(folder: Path, *options: str) -> Any:
    return data.load(settings.from_command_line(["--data", str(folder), *options]))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"validation_x": None}, ["validation_x.npy cannot be read", "No such file"]),
        ({"train_x": np.zeros((4, 64, 4))}, ["train_x.npy has the shape (4, 64, 4)", "(windows, length, 5)"]),
        ({"train_y": np.zeros((4, 64))}, ["train_y.npy has the shape (4, 64)", "(windows, length, 1)"]),
        ({"train_y": np.zeros((3, 64, 1))}, ["train_y.npy has the shape (3, 64, 1)", "train_x.npy has (4, 64, 5)"]),
        ({"train_x": np.zeros((4, 60, 5))}, ["train_x.npy has the shape (4, 60, 5)", "multiple of 32"]),
        ({"train_x": np.zeros((4, 64, 5), dtype="U1")}, ["train_x.npy", "<U1"]),
        ({"train_x": np.array([{}])}, ["train_x.npy cannot be read"]),
        ({"validation_y": np.zeros((3, 64, 1))}, ["no base of the validation windows has label 1"]),
        ({"validation_y": np.full((3, 64, 1), -1.0)}, ["validation_y.npy: labels are from 0 to 1, got -1 to -1"]),
    ],
)
def test_a_folder_that_is_not_as_it_should_be(tmp_path: Path, changed: Mapping[str, Any], words: Sequence[str]) -> None:
    write_folder(tmp_path, **changed)
    with pytest.raises(refusal.RefusedError) as refused:
        in_folder(tmp_path)
    assert all(word in str(refused.value) for word in words), refused.value


def test_a_folder_is_known_by_its_content_and_may_be_used_in_part(tmp_path: Path) -> None:
    for name, changed in {"a": {}, "b": {}, "c": {"train_x": np.ones((4, 64, 5))}}.items():
        (tmp_path / name).mkdir()
        write_folder(tmp_path / name, **changed)
    a, b, c = (in_folder(tmp_path / name) for name in "abc")
    assert a.identity == b.identity != c.identity
    inputs, labels = a.train.batch(np.array([3, 0]))
    assert (inputs.shape, labels.shape, inputs.dtype, labels.dtype) == ((2, 64, 5), (2, 64, 1), np.float32, np.float32)
    assert len(in_folder(tmp_path / "a", "--windows", "2").train) == 2
    with pytest.raises(refusal.RefusedError, match="has 4 windows, 5 were asked for"):
        in_folder(tmp_path / "a", "--windows", "5")


@pytest.mark.parametrize(
    "wrong",
    ["--batch-size 0", "--learning-rate nan", "--length 100", "--data x --length 64", "--batch-norm-momentum 1.5"],
)
def test_options_out_of_range_are_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        settings.from_command_line(wrong.split())
    assert refused.value.code == 2
    assert wrong.split()[-2] in capsys.readouterr().err


def test_generated_windows_are_the_same_each_time_and_in_one_split_only() -> None:
    train, again, other = (synthetic.generate("train", 600, 64, seed) for seed in (1, 1, 2))
    validation = synthetic.generate("validation", 600, 64, 1)
    for one, two in zip(train.batch(slice(None)), again.batch(slice(None)), strict=True):
        assert (one == two).all()
    kept = [{window.tobytes() for window in split.bases} for split in (train, validation, other)]
    assert [len(windows) for windows in kept] == [600, 600, 600]
    assert len(set.union(*kept)) == 1800


def test_sites_are_motifs_in_open_chromatin_and_neither_is_enough() -> None:
    made = synthetic.generate("train", 300, 512, 1)
    inputs, _ = made.batch(slice(None))
    assert inputs.shape == (300, 512, 5)
    assert (inputs[..., :4].sum(axis=-1) == 1).all()
    edges = np.diff(np.pad(made.labels, ((0, 0), (1, 1))).astype(int), axis=1)
    runs = [e - b for row in edges for b, e in zip(np.flatnonzero(row > 0), np.flatnonzero(row < 0), strict=True)]
    assert set(runs) <= {19, 38}
    assert 100 < len(runs) < 300
    windows = np.lib.stride_tricks.sliding_window_view(made.bases, 19, axis=1)
    odds = np.log2([[(motif.CTCF[b][i] + 1) / 917 * 4 for b in motif.BASES] for i in range(19)])
    either = [odds[np.arange(19), strand].sum(axis=-1) for strand in (windows, windows[..., ::-1] ^ 1)]
    motif_here = np.maximum(*either) > 10
    site = made.labels[:, 9:-9] > 0
    open_here = made.signal[:, 9:-9] > 0.5
    assert np.count_nonzero(motif_here & site & open_here) > 100
    assert np.count_nonzero(motif_here & ~site & ~open_here) > 50  # in closed chromatin
    far = np.ones_like(site)
    far[np.any(made.labels, axis=1)] = False
    assert np.count_nonzero((open_here & far).any(axis=1) & ~(motif_here & far).any(axis=1)) > 20


def test_pairs_of_bases_are_as_frequent_as_in_a_genome() -> None:
    bases = motif.background(np.random.default_rng(1), 200, 1000).astype(int)
    pairs = np.bincount((bases[:, :-1] * 4 + bases[:, 1:]).ravel(), minlength=16).reshape(4, 4) / (200 * 999)
    expected = np.array([[motif.PAIRS[a][b] for b in motif.BASES] for a in motif.BASES]) / 1000
    assert np.abs(pairs - expected).max() < 0.003
    strand = expected[[1, 0, 3, 2]][:, [1, 0, 3, 2]].T  # the same pairs, as the other strand has them
    assert np.allclose(expected, strand)
