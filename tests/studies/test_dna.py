"""The training program `dna`, with a Python that has torch."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.studies.dna_folder import write_folder
from tests.support import warm_torch
from tests.support.processes import command_line, living
from tests.support.waiting import wait_for
from tests.support.warm_torch import PROGRAMS, PYTHON

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not PYTHON.is_file(), reason="no Python with torch here: AUTOTUNE_TORCH_PYTHON"),
]

TINY = ("--length", "64", "--windows", "8", "--validation-windows", "16", "--batch-size", "4", "--filters", "4")
FIGURES = {"val_auc", "val_loss", "val_dice", "val_iou", "val_site_iou", "train_loss", "train_auc"}
STEP = {"step", *FIGURES, "elapsed_s"}
SHARES = ("val_auc", "val_dice", "val_iou", "val_site_iou", "train_auc")


class Program:
    """The program with a checkpoint folder."""

    def __init__(self, folder: Path, options: Sequence[str] = TINY) -> None:
        self.folder, self.options = folder, options

    def start(self, *options: str) -> "subprocess.Popen[str]":
        """Start it as a study does, in a session of its own: each of its processes imports torch."""
        argv, pipe = [PYTHON, "-P", "-m", "dna", *self.options, *options], subprocess.PIPE
        return subprocess.Popen(
            argv, env=self._environment(None), stdout=pipe, stderr=pipe, text=True, start_new_session=True
        )

    def run(self, *options: str, steps: int | None = None, code: int = 0) -> tuple[list[dict[str, Any]], str]:
        """Return its lines and its standard error."""
        words = ("-m", "dna", *self.options, *options)
        exit_code, stdout, stderr = warm_torch.python(PROGRAMS, *words, environment=self._environment(steps))
        assert exit_code == code, stderr
        return [json.loads(line) for line in stdout.splitlines()], stderr

    def _environment(self, steps: int | None) -> dict[str, str]:
        environment = {**os.environ, "PYTHONPATH": str(PROGRAMS), "AUTOTUNE_CHECKPOINT": str(self.folder)}
        environment.pop("AUTOTUNE_STEPS", None)
        return environment | ({"AUTOTUNE_STEPS": str(steps)} if steps else {})


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "checkpoint")


@dataclass(frozen=True)
class Trained:
    """The output of four epochs in one training, and of two epochs of another one, which is incomplete."""

    whole: list[dict[str, Any]]
    half: list[dict[str, Any]]
    halved: Program


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("trained")
    halved = Program(folder / "halved")
    return Trained(Program(folder / "whole").run(steps=4)[0], halved.run(steps=2)[0], halved)


def figures(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: line[name] for name in line if name != "elapsed_s"} for line in lines if "val_loss" in line]


def test_it_has_the_parameters_of_the_published_network() -> None:
    # Keras counts the moving statistics of batch normalisation as parameters, too.
    code = (
        "from dna.network import Shape, UNet; net = UNet(Shape()); "
        "print(sum(values.numel() for values in net.parameters()), "
        "sum(values.numel() for name, values in net.named_buffers() if 'running_' in name), Shape().down, Shape().up)"
    )
    _, stdout, stderr = warm_torch.python(PROGRAMS, "-c", code, environment=os.environ)
    assert stderr == ""
    assert stdout == "474017 1952 (15, 22, 33, 49, 73, 109) (72, 48, 32, 21, 14)\n"
    assert 474_017 + 1_952 == 475_969


def test_each_epoch_has_its_line_and_the_end_names_the_best(trained: Trained) -> None:
    *steps, end = trained.whole
    assert [line["step"] for line in steps] == [1, 2, 3, 4]
    assert all(set(line) == STEP for line in steps)
    assert all(0 <= line[name] <= 1 for line in steps for name in SHARES)
    assert all(0 < one["elapsed_s"] < two["elapsed_s"] for one, two in pairwise(steps))
    assert end == {"best": min(steps, key=lambda line: line["val_loss"])}


def test_a_checkpoint_of_other_settings_or_a_damaged_one_is_refused(trained: Trained, program: Program) -> None:
    program.folder.mkdir()
    (program.folder / "checkpoint.pt").write_bytes(b"half a checkp")
    lines, stderr = trained.halved.run("--learning-rate", "0.5", "--batch-size", "8", "--data-seed", "2", code=2)
    assert lines == []
    assert "batch size 4 there, 8 here" in stderr
    assert "learning rate 0.001 there, 0.5 here" in stderr
    assert "data synthetic, seed 1" in stderr
    assert str(trained.halved.folder / "checkpoint.pt") in stderr
    lines, stderr = program.run(code=2)
    assert lines == []
    assert "checkpoint.pt cannot be read" in stderr
    assert "Traceback" not in stderr


def test_an_interrupted_training_gives_the_same_figures(trained: Trained) -> None:
    rest, _ = trained.halved.run(steps=4)
    assert figures([*trained.half, *rest]) == figures(trained.whole)
    assert rest[0]["elapsed_s"] > trained.half[1]["elapsed_s"]


def test_it_stops_when_the_validation_loss_gets_no_better(program: Program) -> None:
    options = ("--patience", "2", "--epochs", "200", "--learning-rate", "0.1")
    lines, _ = program.run(*options)
    *steps, best, end = lines
    assert end == {"stopped": "early", "step": len(steps)}
    assert best["best"]["step"] == len(steps) - 2
    assert program.run(*options)[0] == lines[-3:]  # complete: another start prints the last figures


def test_a_loss_that_is_no_number_ends_it(program: Program) -> None:
    lines, stderr = program.run("--learning-rate", "1e30", code=3)
    assert lines == []
    assert stderr in {f"diverged: the {name} loss is nan at step 1\n" for name in ("training", "validation")}


def test_memory_that_runs_out_depends_on_the_batch(program: Program, tmp_path: Path) -> None:
    options = ("--windows", "512", "--length", "2048", "--memory-limit-bytes", "600000000")
    lines, stderr = program.run(*options, "--batch-size", "512", code=12)
    assert lines == []
    assert stderr == "out of memory: batch size 512 needs more than 600000000 bytes\n"
    assert Program(tmp_path / "small").run(*options, "--windows", "16", steps=1)[0][0]["step"] == 1


def test_a_request_to_stop_leaves_whole_epochs(program: Program, tmp_path: Path) -> None:
    process = program.start("--epochs", "100000", "--patience", "100000", "--checkpoint-every", "100000")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    end = json.loads(list(process.stdout)[-1])  # communicate loses lines that readline has read ahead
    _, stderr = process.communicate()
    assert (process.returncode, stderr) == (0, "")
    assert end["stopped"] == "asked"
    after, uninterrupted = (
        figures(one.run("--patience", "100000", steps=end["step"] + 1)[0])
        for one in (program, Program(tmp_path / "uninterrupted"))
    )
    assert after == uninterrupted[-1:]


@pytest.mark.parametrize("way", ["recompute", "host"])
def test_activations_that_are_computed_again_or_kept_elsewhere_change_nothing(
    way: str, trained: Trained, program: Program
) -> None:
    lines, _ = program.run("--activations", way, steps=2)
    for seen, expected in zip(figures(lines), figures(trained.half), strict=True):
        assert seen == pytest.approx(expected, rel=1e-5)


def test_ranks_learn_as_one_does_from_all_their_windows(tmp_path: Path) -> None:
    # Alike windows: a rank's share of a batch has the same mean and variance as all of it. Of five windows the last is
    # one rank's alone; the rates are the same.
    window, sites = np.random.default_rng(2).random((1, 512, 5)), np.zeros((1, 512, 1), dtype=np.float32)
    sites[:, 200:240] = 1.0
    alike = {"train_x": window.repeat(5, 0), "train_y": sites.repeat(5, 0)}
    others = {"validation_x": np.random.default_rng(3).random((3, 512, 5)), "validation_y": sites.repeat(3, 0)}
    write_folder(tmp_path, **alike, **others)

    def train(folder: str, steps: int, *options: str) -> list[dict[str, Any]]:
        program = Program(tmp_path / folder, ("--data", str(tmp_path), "--filters", "4"))
        return figures(program.run(*options, steps=steps)[0])

    one = ("--batch-size", "4", "--learning-rate", "0.02")
    expected, parts = train("alone", 2, *one), train("parts", 2, *one, "--micro-batches", "3")
    two = ("--ranks", "2", "--batch-size", "2", "--learning-rate", "0.01", "--rate-scaling", "linear")
    seen = train("two", 1, *two)
    seen += train("two", 2, *two)  # from the checkpoint
    assert [line["step"] for line in seen] == [1, 2]
    for name in ("train_loss", "train_auc"):
        assert [line[name] for line in seen] == pytest.approx([line[name] for line in expected], rel=1e-3)
    assert [line["train_loss"] for line in parts] == pytest.approx([line["train_loss"] for line in seen], rel=1e-3)
    # The moving variances are of fewer bases at once.
    assert [line["val_loss"] for line in seen] == pytest.approx([line["val_loss"] for line in expected], rel=0.05)


@pytest.mark.parametrize("ending", ["asked", "rank killed", "first killed"])
def test_ranks_end_together(tmp_path: Path, ending: str) -> None:
    options = ("--ranks", "2", "--epochs", "100000", "--patience", "100000", "--checkpoint-every", "100000")
    process = Program(tmp_path / "kept").start(*options)
    assert process.stdout is not None
    process.stdout.readline()
    children = psutil.Process(process.pid).children()
    [rank] = living(lambda child: "spawn_main" in command_line(child), children)
    if ending == "asked":
        os.killpg(process.pid, signal.SIGTERM)  # as a batch system does: all processes of the job
    else:
        (rank if ending == "rank killed" else process).kill()
    lines = list(process.stdout)
    _, stderr = process.communicate()
    if ending == "asked":
        assert (process.returncode, stderr) == (0, "")
        assert json.loads(lines[-1])["stopped"] == "asked"
        assert (tmp_path / "kept/checkpoint.pt").is_file()
    elif ending == "rank killed":
        assert process.returncode == 1
        assert stderr.startswith(f"rank 1 (process {rank.pid}) has been killed by SIGKILL; ")
        assert stderr.count("\n") == 1
    wait_for(lambda: not living(lambda one: os.getsid(one.pid) == process.pid), "the ranks to end")


def test_it_trains_on_a_folder(tmp_path: Path) -> None:
    write_folder(tmp_path)
    options = ("--data", str(tmp_path), "--precision", "bfloat16", "--auc-thresholds", "1001", "--threads", "2")
    lines, _ = Program(tmp_path / "checkpoint", options).run(steps=1)
    assert set(lines[0]) == STEP
