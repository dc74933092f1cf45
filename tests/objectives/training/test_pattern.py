"""Progress by regular expressions of one's own."""

import re

import pytest

from objectives.base import Progress
from objectives.training.pattern import pattern_errors, pattern_reader
from objectives.training.progress import KINDS, shift_steps

METRICS = ["val-loss", "val-acc"]
OWN = r"\[ep (\d+)/\d+\].*val-loss = (\S+)"


def read(patterns, lines, metrics=("val_loss", "val_acc")):
    reader = pattern_reader(patterns, metrics)
    return [found for line in lines if (found := reader(line)) is not None]


def test_groups_without_names_are_the_step_then_the_metrics():
    lines = ["epochs: 27", "[ep 003/027] lr = 0.1 | val-loss = 0.345", "[ep 004/027] lr = 0.1 | val-loss = 3.1e-1"]
    expected = [Progress(3, {"val-loss": 0.345}), Progress(4, {"val-loss": 0.31})]
    assert read([OWN], lines, METRICS) == expected


def test_groups_with_names_come_in_any_order():
    pattern = r"acc (?P<val_acc>\S+) (?:it )?(?P<step>\d+)(?: lr (?P<lr>\S+))?"
    found = read([pattern], ["acc 0.5 it 7 lr 1e-3", "acc 0.6 8"])
    assert found == [Progress(7, {"val_acc": 0.5, "lr": 1e-3}), Progress(8, {"val_acc": 0.6})]


def test_a_step_may_be_told_on_several_lines():
    patterns = [r"^Epoch (?P<step>\d+)", r"train (?P<train>\S+)", r"val (?P<val_loss>\S+)"]
    lines = ["val 9", "Epoch 1/3", "  train 0.9", "  val 0.8", "Epoch 2/3", "  val 0.7"]
    found = read(patterns, lines)
    assert found == [
        Progress(1),
        Progress(1, {"train": 0.9}),
        Progress(1, {"train": 0.9, "val_loss": 0.8}),
        Progress(2),
        Progress(2, {"val_loss": 0.7}),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.5,", 0.5), ("51%", 51.0), ("0.5)", 0.5), ("5.2s", None), ("1,234", None), ("nan", None), ("oops", None)],
)
def test_a_group_may_hold_more_than_its_number_and_never_another_number(text, value):
    [found] = read([r"ep (\d+) (.*)"], [f"ep 3 {text}"])
    assert found == Progress(3, {} if value is None else {"val_loss": value})


def test_states_of_a_live_bar_and_colours_are_no_obstacle():
    [found] = read([r"^ep (\d+) loss (\S+)"], ["\x1b[32mep 1 loss 0.9\rep 1 loss 0.8\x1b[0m\r"])
    assert found == Progress(1, {"val_loss": 0.8})


def test_what_is_no_step_is_not_read():
    assert read([r"ep (\S+) (\S+)"], ["ep x 0.5", "ep 1.5 0.5", "ep -1 0.5"]) == []


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        ([r"ep (\d+"], "is not a regular expression"),
        (["(a{99999999999})"], "is not a regular expression"),
        ([f"{'(' * 3000}a{')' * 3000}"], "is not a regular expression"),
        (["kears"], "did you mean 'keras'"),
        (["lots"], "has no groups"),
        ([r"ep (\d+)"], "in this order: step, val_loss, val_acc"),
        ([r"(\d+) (\d+) (\d+) (\d+)"], "has 4 groups"),
        ([r"(?P<step>\d+) (\S+)"], "with and without names"),
        ([r"(?P<step>\d+)"], r"no group is called 'val_loss'.*\(\?P<val_loss>"),
        ([r"(?P<val_loss>\d+)"], r"no group is called 'step'"),
    ],
)
def test_mistakes_are_said_at_once(patterns, words):
    [(index, message)] = pattern_errors(patterns, ["val_loss", "val_acc"], KINDS)
    assert index == 0
    assert re.search(words, message)


def test_steps_may_be_counted_from_0():
    read_one = shift_steps(0, pattern_reader([OWN], METRICS))
    assert read_one("[ep 0/3] val-loss = 1") == Progress(1, {"val-loss": 1.0})
