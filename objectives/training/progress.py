"""Readers of the progress that training scripts print: lines in, steps with metrics out. They never raise.

If one step is reported several times, the last report counts: results of the validation are often printed after those
of the training. Every part of a pattern matches a bounded number of characters, so the work grows linearly with a
line's length.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

from objectives.base import Progress, ProgressReader
from objectives.training.bars import Bars, Keras
from objectives.training.lines import LINE_CHARACTERS, MOST_STEPS, NUMBER, finite, states
from objectives.training.plain import Plain, without_prefix
from objectives.training.tables import Table

ReaderKind = Literal["auto", "json", "keras", "lightning", "tqdm", "table", "plain"]
KINDS: tuple[ReaderKind, ...] = get_args(ReaderKind)


def make_reader(kind: ReaderKind = "auto", metric: str | None = None) -> ProgressReader:
    """Return a reader for the live output of one run.

    Numbers that are not finite are left out.

    Args:
        kind: The form of the progress lines. `json`: an object, or a dictionary of Python, on a line of its own with
            `step`, or `epoch` if there is no `step`. `keras`: `Epoch 3/27` and the final line of that epoch's bar.
            `lightning`: full bars; epochs are counted from 1. `tqdm`: full bars that begin with their epoch. `table`:
            rows below names that begin with `epoch`. `plain`: `epoch 3 val_auc=0.51` and the like. `auto`: the first
            of these, in this order, that reads a line with `metric`; an object is read at any time.
        metric: The metric that is looked for; without it any line decides the form.

    Raises:
        ValueError: There is no such kind.
    """
    readers: dict[str, Callable[[], ProgressReader]] = {
        "auto": lambda: _Auto(metric).read,
        "json": lambda: read_object,
        "keras": lambda: Keras().read,
        "lightning": lambda: Bars(is_lightning=True).read,
        "tqdm": lambda: Bars(is_lightning=False).read,
        "table": lambda: Table().read,
        "plain": lambda: Plain().read,
    }
    if kind not in readers:
        msg = f"no reader of progress is called {kind!r}; known: {', '.join(KINDS)}"
        raise ValueError(msg)
    return readers[kind]()


def shift_steps(first: int, read: ProgressReader) -> ProgressReader:
    """Return a reader with steps counted from 1, for one with steps counted from `first`."""

    def read_shifted(line: str) -> Progress | None:
        progress = read(line)
        return None if progress is None else replace(progress, step=progress.step + 1 - first)

    return read if first == 1 else read_shifted


class _Auto:
    def __init__(self, metric: str | None) -> None:
        self._metric = metric
        self._others: list[ProgressReader] = [Keras().read, Bars().read, Table().read, Plain().read]

    def read(self, line: str) -> Progress | None:
        progress = read_object(line)
        if progress is not None:
            self._keep([], progress)
            return progress
        for read in self._others:
            progress = read(line)
            if progress is not None:
                self._keep([read], progress)
                return progress
        return None

    def _keep(self, readers: list[ProgressReader], progress: Progress) -> None:
        """Keep to the form that has read a line, if the line decides it."""
        if self._metric is None or self._metric in progress.metrics:
            self._others = readers


# `{'loss': 0.5, 'learning_rate': 5e-05, 'epoch': 0.32}`, with numbers in quotes or of NumPy, too
_ITEM = re.compile(
    rf"[{{,]\s{{0,8}}'([^']{{1,200}})':\s{{0,8}}(?:[A-Za-z][\w.]{{0,40}}\()?'?({NUMBER})'?(?=\s{{0,8}}[,}})])",
    re.IGNORECASE,
)
# With accumulated gradients the epochs of a Trainer end a little before whole numbers: 0.99, 1.98.
_NEARLY = 0.03


_COUNTERS = ("step", "epoch")
_QUOTED = re.compile(NUMBER)
# What may stand before an object: a full bar, or a logger and the name of the set, `... | INFO | valid | {...}`.
_BAR = re.compile(r"[^|{]{0,80}\d{1,3}%\|[^|{]{0,1000}\| {0,8}\d{1,15}/\d{1,15} \[[^\]{]{0,400}\]")
_SET = re.compile(r"[\s|:]{0,8}(?:train|val|test|eval)[a-z]{0,12}[\s|:]{1,8}(?=\{)", re.IGNORECASE)


def read_object(line: str) -> Progress | None:
    """Read a line that is a JSON object or a dictionary of Python."""
    text = states(line)[-1] if len(line) <= LINE_CHARACTERS else ""
    if text.endswith("}") and not text.startswith("{"):
        message = without_prefix(_BAR.sub("", text, count=1))
        text = _SET.sub("", message, count=1)
    if not text.startswith("{"):
        return None
    try:
        # Read integers as floats: one with a million digits is then infinite instead of an error.
        fields = json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        fields = {name: float(number) for name, number in _ITEM.findall(text)} if text.endswith("}") else {}
    numbers = {name: value for name, value in fields.items() if isinstance(value, float)}
    # fairseq quotes its metrics: {"epoch": 1, "valid_loss": "9.12"}.
    quoted = {name: value for name, value in fields.items() if isinstance(value, str) and name not in _COUNTERS}
    numbers |= {name: float(value) for name, value in quoted.items() if _QUOTED.fullmatch(value)}
    step = numbers.pop("step", None)
    epoch = numbers.pop("epoch", None)
    counted = _whole(epoch) if "step" not in fields else step
    if counted is None or not 0 <= counted < MOST_STEPS or not counted.is_integer():
        return None
    return Progress(int(counted), finite(numbers))


def _whole(epoch: float | None) -> float | None:
    """Return an epoch that has ended; None for a part of one, or for no epoch."""
    if epoch is None or not math.isfinite(epoch):
        return None
    nearest = float(round(epoch))
    return nearest if 0.0 <= nearest - epoch < _NEARLY + 1e-9 else None
