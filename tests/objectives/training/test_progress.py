import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.base import Progress
from objectives.training.lines import LINE_CHARACTERS
from objectives.training.progress import ReaderKind, make_reader

KINDS = get_args(ReaderKind)
PAGE = (Path(__file__).parents[3] / "docs" / "training.md").read_text(encoding="utf-8")

KERAS_2 = """\
Epoch 9/100
66/67 [============================>.] - ETA: 0s - loss: 0.0990 - accuracy: 0.9630
67/67 [==============================] - ETA: 0s - loss: 0.0985 - accuracy: 0.9633
Epoch 9: val_loss did not improve from 0.10675
67/67 [==============================] - 54s 805ms/step - loss: 0.0985 - accuracy: 0.9633 - val_loss: 0.1365 - \
val_accuracy: 0.9461
Epoch 10/100
67/67 [==============================] - 50s 748ms/step - loss: 4.4855 - accuracy: 0.0000e+00 - val_loss: nan
"""
KERAS_2_SHORT = """\
Epoch 1/20
25/25 - 2s - loss: 0.4808 - accuracy: 0.7715 - val_loss: 0.3570 - val_accuracy: 0.8882 - 2s/epoch - 69ms/step
Epoch 2/20
2022-12-05 15:53:56.324282: I tensorflow/core/grappler/optimizers: Plugin optimizer for device_type GPU is enabled.
25/25 - 0s - loss: 0.3634 - accuracy: 0.8777 - val_loss: 0.3116 - val_accuracy: 0.9145 - 139ms/epoch - 6ms/step
"""
KERAS_3_SHORT = """\
Epoch 1/20
103/103 - 1s - 6ms/step - accuracy: 0.8844 - loss: 0.3453 - val_accuracy: 0.9114 - val_loss: 0.2612
Epoch 2/20
103/103 - 0s - 2ms/step - accuracy: 0.8974 - loss: 0.3010 - val_accuracy: 0.9078 - val_loss: 0.2641
333/333 - 1s - 2ms/step - accuracy: 0.9588 - loss: 0.1843
"""


def keras_3_state(done: int, text: str) -> str:
    bar = f"\x1b[32m{'━' * done}\x1b[0m" if done else ""
    return f"\x1b[1m{done:2d}/20\x1b[0m {bar}\x1b[37m{'━' * (20 - done)}\x1b[0m \x1b[1m{text}"


def keras_3_line(states: list[str]) -> str:
    return "".join("\b" * 60 + "\r" + state for state in states)


def tqdm_state(epoch: int, done: int, results: str) -> str:
    return (
        f"\rEpoch {epoch}: {4 * done:3d}%|{'#' * (done * 10 // 25):10s}| {done}/25 [00:01<00:00, 20.1it/s, {results}]"
    )


SANITY = (
    "\rSanity Checking: 0it [00:00, ?it/s]\rSanity Checking DataLoader 0: 100%|##########| 2/2 [00:00<00:00, 18.0it/s]"
)
VALIDATION = "\rValidation DataLoader 0: 100%|##########| 2/2 [00:00<00:00, 11.5it/s]\x1b[A"
# What Lightning's calls of tqdm write into a file: two epochs, a validation after each.
LIGHTNING = [
    f"{SANITY}\r            \r\rTraining: 0it [00:00, ?it/s]\rEpoch 0:   0%|          | 0/25 [00:00<?, ?it/s] "
    + tqdm_state(0, 24, "v_num=0, train_loss=0.690")
    + tqdm_state(0, 25, "v_num=0, train_loss=0.690")
    + tqdm_state(0, 25, "v_num=0, train_loss=0.680"),
    "\rValidation: 0it [00:00, ?it/s]\x1b[A",
    VALIDATION + tqdm_state(0, 25, "v_num=0, train_loss=0.680, val_auc=0.510"),
    "\r                        \x1b[A"
    + tqdm_state(0, 25, "v_num=0, train_loss=0.680, val_auc=0.510, epoch_loss=0.700")
    + tqdm_state(0, 0, "v_num=0, train_loss=0.680, val_auc=0.510, epoch_loss=0.700")
    + tqdm_state(1, 0, "v_num=0, train_loss=0.680, val_auc=0.510, epoch_loss=0.700")
    + tqdm_state(1, 25, "v_num=0, train_loss=0.580, val_auc=0.510, epoch_loss=0.700"),
    "\rValidation: 0it [00:00, ?it/s]\x1b[A",
    VALIDATION + tqdm_state(1, 25, "v_num=0, train_loss=0.580, val_auc=0.610, epoch_loss=0.700"),
    "\r                        \x1b[A"
    + tqdm_state(1, 25, "v_num=0, train_loss=0.580, val_auc=0.610, epoch_loss=0.600"),
]
RICH = """\
`Trainer.fit` stopped: `max_epochs=5` reached.
Epoch 4/4  ━━━━━━━━━━━━━━━━━ 25/25 0:00:48 • 0:00:00 0.48it/s v_num: 2.000      \n\
                                                              train_loss: 0.430 \n\
                                                              val/loss: 0.007   \n\
                                                              val/acc:          \n\
                                                              0.934             \n\
2024-10-20 09:43:29.158 | INFO     | __main__:train:52 - Model training completed.
                                                              test_acc: 0.999   \n\
Testing ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 7/7 0:00:04 • 0:00:00 1.50it/s \n"""


def read(kind: ReaderKind, lines: list[str]) -> list[Progress]:
    read_line = make_reader(kind)
    return [progress for line in lines if (progress := read_line(line))]


def last(progresses: list[Progress]) -> dict[int, dict[str, float]]:
    return {progress.step: dict(progress.metrics) for progress in progresses}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"step": 3, "val_auc": 0.51, "loss": 0.2}', Progress(3, {"val_auc": 0.51, "loss": 0.2})),
        ('  {"epoch": 3, "loss": 1}\r', Progress(3, {"loss": 1.0})),
        ('{"epoch": 3, "step": 1200, "loss": 1}', Progress(1200, {"loss": 1.0})),
        ('{"step": 3.0}', Progress(3)),
        ('{"step": 0, "diverged": true, "note": "x", "more": {"loss": 1}, "all": [1.5]}', Progress(0)),
        ('{"step": 3, "loss": NaN, "low": -Infinity, "high": 1e999, "auc": 0.5}', Progress(3, {"auc": 0.5})),
        ('\r 40%|####  | 10/25\r{"step": 3}', Progress(3)),
        ('{"step": 3, "parameters": 1' + "0" * 5000 + "}", Progress(3)),
        ('{"step": true, "epoch": 3}', None),
        ('{"step": -1}', None),
        ('{"step": 2.5}', None),
        ('{"step": NaN}', None),
        ('{"step": 1e300}', None),
        ('{"step": "3"}', None),
        ('{"loss": 0.2}', None),
        ('[{"step": 3}]', None),
        ('{"step": 3', None),
        ('read {"step": 3}', None),
        ("", None),
    ],
)
def test_json(line, expected):
    assert make_reader("json")(line) == expected
    assert make_reader("auto")(line) == expected


def test_a_json_line_has_a_greatest_length():
    line = '{"step": 3, "note": "%s"}'
    fits = LINE_CHARACTERS - len(line % "")
    assert make_reader("json")(line % ("x" * fits)) == Progress(3)
    assert make_reader("json")(line % ("x" * (fits + 1))) is None


@pytest.mark.parametrize("opening", ['{"step":', '{"step": 3, "a": [' + "[" * 100, "{" * 1000])
def test_deep_json_is_no_error(opening):
    assert make_reader("json")((opening * LINE_CHARACTERS)[:LINE_CHARACTERS]) is None
    assert make_reader("json")("[" * LINE_CHARACTERS) is None
    assert make_reader("json")('{"step": 3, "a": ' + "[" * 30000 + "]" * 30000 + "}") in (None, Progress(3))


@pytest.mark.parametrize("kind", ["keras", "auto"])
def test_keras_2_says_an_epoch_once(kind):
    first, second = read(kind, KERAS_2.split("\n"))
    assert first == Progress(9, {"loss": 0.0985, "accuracy": 0.9633, "val_loss": 0.1365, "val_accuracy": 0.9461})
    assert second == Progress(10, {"loss": 4.4855, "accuracy": 0.0})


@pytest.mark.parametrize("kind", ["keras", "auto"])
def test_keras_of_one_line_an_epoch(kind):
    assert [(p.step, p.metrics["val_accuracy"]) for p in read(kind, KERAS_2_SHORT.split("\n"))] == [
        (1, 0.8882),
        (2, 0.9145),
    ]
    # The last line is evaluate's, of the test data.
    assert [(p.step, p.metrics["accuracy"]) for p in read(kind, KERAS_3_SHORT.split("\n"))] == [
        (1, 0.8844),
        (2, 0.8974),
    ]


@pytest.mark.parametrize("kind", ["keras", "auto"])
def test_keras_3_counts_the_last_state_of_the_bar(kind):
    states = [keras_3_state(n, f"{20 - n}s\x1b[0m 38ms/step - AUC: 0.4{n:02d} - loss: 0.7") for n in (0, 7, 20)]
    final = keras_3_state(20, "1s\x1b[0m 38ms/step - AUC: 0.5120 - loss: 6.9e-01 - val_AUC: 0.5300 - val_loss: 0.6")
    lines = ["Epoch 3/27", keras_3_line([*states, final]), "Epoch 4/27", keras_3_line(states[:2])]
    expected = {"AUC": 0.512, "loss": 0.69, "val_AUC": 0.53, "val_loss": 0.6}
    assert read(kind, lines) == [Progress(3, expected)]
    # Each state on a line of its own, as a checkpoint callback brings about.
    assert last(read(kind, ["Epoch 3/27", *states, "Epoch 3: val_loss improved from None to 0.6", final])) == {
        3: expected
    }


def test_a_single_epoch_of_keras_has_no_heading():
    final = "25/25 ━━━━━━━━━━━━━━━━━━━━ 1s 38ms/step - AUC: 0.5 - loss: 0.69"
    predict = "1/1 ━━━━━━━━━━━━━━━━━━━━ 0s 22ms/step"
    assert read("auto", [predict, final, final]) == [Progress(1, {"AUC": 0.5, "loss": 0.69})]


@pytest.mark.parametrize("kind", ["lightning", "auto"])
def test_lightning_counts_after_the_validation(kind):
    progresses = read(kind, LIGHTNING)
    assert last(progresses) == {
        1: {"train_loss": 0.68, "val_auc": 0.51, "epoch_loss": 0.7},
        2: {"train_loss": 0.58, "val_auc": 0.61, "epoch_loss": 0.6},
    }
    # In the second epoch's first full bar stands the first epoch's result.
    assert {(p.step, p.metrics["val_auc"]) for p in progresses} == {(1, 0.51), (2, 0.61)}


def test_lightning_is_the_same_with_each_state_on_a_line():
    assert last(read("lightning", "\n".join(LIGHTNING).splitlines())) == last(read("lightning", LIGHTNING))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "Epoch 0: 100%|█████| 25/25 [01:54<00:00,  0.22it/s, v_num=0, loss_step=1.310, val/acc=1.2e-05]Epoch 0, gl",
            Progress(1, {"loss_step": 1.31, "val/acc": 1.2e-5}),
        ),
        (  # cut at the terminal's width: the last number may not be whole
            "Epoch 49: 100%|█| 12/12 [00:03<00:00,  3.90it/s, v_num=0, train_loss=0.197, val_loss=0.1",
            Progress(50, {"train_loss": 0.197}),
        ),
        (
            "Epoch 3: 100%|███| 25/25 [00:01<00:00, 9it/s, v_num=515e, loss=nan.0, lr=0.10, n=3., auc=1.000]",
            Progress(4, {"lr": 0.1, "n": 3.0, "auc": 1.0}),
        ),
        ("Epoch 3: 100%|██████████| 999/1000 [00:01<00:00, 20.1it/s, v_num=0, loss=0.2]", None),
        ("Epoch 3:  40%|████      | 10/25 [00:01<00:00, 20.1it/s, v_num=0, loss=0.2]", None),
        ("Testing DataLoader 0: 100%|██████████| 1/1 [00:00<00:00, 149.32it/s]", None),
        ("Epoch 0    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 0/98 0:00:00 • -:--:-- 0.00it/s loss: nan v_num: 0", None),
        (
            "Epoch 0    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 98/98 0:00:09 • 0:00:00 9.00it/s loss: 0.5 v_num: 0",
            Progress(1, {"loss": 0.5}),
        ),
    ],
)
def test_a_bar_of_lightning(line, expected):
    assert make_reader("lightning")(line) == expected
    assert make_reader("auto")(line) == expected


@pytest.mark.parametrize("kind", ["lightning", "auto"])
def test_lightnings_rich_bar_goes_on_below(kind):
    assert last(read(kind, RICH.split("\n"))) == {5: {"train_loss": 0.43, "val/loss": 0.007, "val/acc": 0.934}}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("epoch 3 val_auc=0.51", Progress(3, {"val_auc": 0.51})),
        ("Epoch [3/27], Loss: 0.69, val_auc: 0.51", Progress(3, {"Loss": 0.69, "val_auc": 0.51})),
        ("step=3 loss=7e-1", Progress(3, {"loss": 0.7})),
        ("Step #3: loss = -.5E+2; lr=1.", Progress(3, {"loss": -50.0, "lr": 1.0})),
        ("Epoch 003:loss=1", Progress(3, {"loss": 1.0})),
        ("iteration 12 | train/loss: 0.5 | top-5: 0.9", Progress(12, {"train/loss": 0.5, "top-5": 0.9})),
        ("Epoch 3/27 - loss: 0.69 - val_loss: 0.7.", Progress(3, {"loss": 0.69, "val_loss": 0.7})),
        ("Epoch: 3 Train Loss: 0.5 Acc: 75.73%", Progress(3, {"Train_Loss": 0.5, "Acc": 75.73})),
        ("2026-01-02 09:39:20,377 [INFO] epoch 3 loss=0.2", Progress(3, {"loss": 0.2})),
        ("INFO:root:epoch 3 loss=0.2", Progress(3, {"loss": 0.2})),
        ("2026-01-02 09:39:20.377 | INFO     | __main__:train:46 - Epoch 3 loss=0.2", Progress(3, {"loss": 0.2})),
        ("epoch 3 loss=NaN", Progress(3)),
        ("epoch 3 took=5.2s n=1,234 loss=0.2", Progress(3, {"loss": 0.2})),
        # Of a part of an epoch.
        ("Epoch [34/200], Step [201/391], Loss: 0.6439, Acc: 75.47%", None),
        ("epoch 3 batch 20 loss=0.5", None),
        ("Epoch 3:  40%|####      | 10/25 [00:01<00:00, 20.1it/s, loss=0.2]", None),
        # No results, or no step.
        ("Epoch 3/27", None),
        ("Step 1: download the data", None),
        ("Epoch 00001: val_acc improved from -inf to 0.91916, saving model to /m/epoch=04-val_loss=0.01.ckpt", None),
        ("[3] loss: 0.7", None),
        ("[1,  2000] loss: 2.229", None),
        ("epoch 1,000 loss=0.5", None),
        ("epoch 0.5 loss=0.5", None),
        ("epoch -1 loss=0.5", None),
        ("best epoch 3 loss=0.5", None),
        ("val_auc=0.51", None),
    ],
)  # fmt: skip
def test_plain(line, expected):
    assert make_reader("plain")(line) == expected
    assert make_reader("auto")(line) == expected


def test_auto_stays_with_the_first_kind():
    stray = "step 900 loss=0.1"
    assert [p.step for p in read("auto", [*KERAS_2.split("\n"), stray])] == [9, 10]
    assert [p.step for p in read("auto", [stray, *KERAS_2.split("\n"), *LIGHTNING])] == [900]


def test_json_goes_before_every_other_kind():
    final = "25/25 - 1s - loss: 0.69"
    lines = ["Epoch 1/3", final, '{"step": 1}', "Epoch 2/3", final, "epoch 2 loss=1", '{"step": 2}']
    assert [p.step for p in read("auto", lines)] == [1, 1, 2]


def test_an_unknown_kind_is_an_error():
    with pytest.raises(ValueError, match=r"'kreas'; known: auto, json, keras, lightning, tqdm, table, plain"):
        make_reader("kreas")


@pytest.mark.parametrize("kind", KINDS)
def test_runs_share_nothing(kind):
    lines = [*KERAS_2.split("\n"), *LIGHTNING, *RICH.split("\n"), "epoch 1 loss=2", '{"step": 3}']
    first, second = make_reader(kind), make_reader(kind)
    assert [first(line) for line in lines] == [second(line) for line in lines]


PIECES = [
    "Epoch 3/27", "Epoch 3: 100%|",
    "| 25/25 [", "25/25 [====", "25/25 ━━━", "] - 1s 38ms/step - ", "loss: ", "loss=",
    "0.5", "1e", "nan", "-", " ", "\t", ",", "\r", "\b", "\x1b[", "9", "a", "━", "=", "[", "]", "{", '"step":',
    "epoch ", "Validation", "0:00:01 • 0:00:00 1.0it/s ", "v_num=0, ", "INFO:", " " * 20, "\\", "0", "é", "\u0665",
]  # fmt: skip
texts = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))


@pytest.mark.parametrize("kind", KINDS)
@given(lines=st.lists(texts, max_size=12))
def test_any_text_is_read_without_an_error(kind, lines):
    for progress in read(kind, lines):
        assert isinstance(progress.step, int)
        assert 0 <= progress.step < 2**53
        assert all(isinstance(value, float) and abs(value) < float("inf") for value in progress.metrics.values())


HEADS = [
    "", "epoch 3 ", "Train Epoch 3 [1/2] ", "{'a': ", "Epoch 3: 100%|", "Epoch 3: 100%|#| 25/25 [",
    "25/25 - 1s - ", "25/25 [", '{"step": ', "INFO:",
]  # fmt: skip
LONG = [
    "a", "a ", "a.", "a=", "a:", "a a: ", "1", "1.", "1e", "9.9", " ", "\t", "-", "- ", " - ", "━", "=", "|", ",",
    "a=1,", ": 1", "[", "\r", "\r1", "\b", "\x1b", "\x1b[0;", "a: 1 - ", "\\u", "1/1 ", "epoch", "epoch ",
    "Epoch 3/27\r", "x:", "[1/2", "[1/2] ", "(", " loss 1", "* ", "[a] ",
    "{'a': 1, ", "Train: 1 [", "100%|", "a=" + "1" * 40 + "." + "1" * 40 + "x ", "INFO " * 9,
]  # fmt: skip


GOOD = {
    "auto": ['{"step": 7}'],
    "json": ['{"step": 7}'],
    "keras": ["Epoch 7/9", "25/25 - 1s - loss: 0.5"],
    "lightning": ["Epoch 6: 100%|#| 25/25 [00:01<00:00, 20.1it/s, loss=0.5]"],
    "tqdm": ["Epoch 7: 100%|#| 25/25 [00:01<00:00, 20.1it/s, loss=0.5]"],
    "table": ["epoch  loss", "7  0.5"],
    "plain": ["step 7 loss=0.5"],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", HEADS)
def test_long_lines_are_read_to_their_end(kind, head):
    # With a pattern that tries every way to divide a line, one of these would not come back.
    size = 60_000
    read_line = make_reader(kind)
    for piece in LONG:
        for end in ("", "!", " epoch 1"):
            read_line((head + piece * size)[:size] + end)
    assert [read_line(line) for line in GOOD[kind]][-1].step == 7


def test_the_page_is_true(tmp_path):
    """The page's example without the helper resumes from its checkpoint, and its other lines are read."""
    (program,) = [text for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "state.json" in text]
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"AUTOTUNE_STEPS": asked, "AUTOTUNE_CHECKPOINT": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        for asked in ("3", "5")
    ]
    assert [[p.step for p in read("auto", run.stdout.split("\n"))] for run in runs] == [[1, 2, 3], [4, 5]]
    (shown,) = re.findall(r"^    (\{.*)", PAGE, re.MULTILINE)
    assert make_reader("auto")(shown) == Progress(3, {"val_auc": 0.51, "loss": 0.69})
    for form in ("epoch 3 val_auc=0.51", "Epoch [3/27], Loss: 0.69", "step=3 loss: 7e-1"):
        assert f"`{form}`" in PAGE
        assert make_reader("plain")(form).step == 3


def test_the_pages_shell_script_says_how_the_program_ended(tmp_path):
    (script,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    program = tmp_path / "train"
    program.write_text('#!/bin/sh\necho "begin $2"; echo "pass 3: 250 of 1000 wrong"; exit 3\n', encoding="utf-8")
    program.chmod(0o755)
    ended = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, read("auto", ended.stdout.split("\n"))) == (3, [Progress(3, {"error": 0.25})])


finite = st.floats(allow_nan=False, allow_infinity=False)
steps = st.integers(0, 10**15 - 1)
names = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,40}\Z").filter(
    lambda name: name.lower() not in {"step", "epoch", "batch", "iter", "iteration"}
)


@given(step=steps, metrics=st.dictionaries(st.text().filter(lambda name: name not in {"step", "epoch"}), finite))
def test_json_says_what_was_printed(step, metrics):
    line = json.dumps({"step": step, **metrics})
    assert make_reader("json")(line) == make_reader("auto")(line) == Progress(step, metrics)


@given(
    step=steps, metrics=st.dictionaries(names, finite, min_size=1), head=st.sampled_from(["epoch ", "Step=", "epoch: "])
)
def test_plain_says_what_was_printed(step, metrics, head):
    for form in ("{}={!r}", "{}: {!r}"):
        line = f"{head}{step} " + " ".join(form.format(name, value) for name, value in metrics.items())
        assert make_reader("plain")(line) == make_reader("auto")(line) == Progress(step, metrics)
