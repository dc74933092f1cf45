"""Readers of the progress that training scripts print: lines in, steps with metrics out. They never raise.

If one step is reported several times, the last report counts: results of the validation are often printed after those
of the training. Every part of a pattern matches a bounded number of characters, so the work grows linearly with a
line's length.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

from objectives.base import Progress, ProgressReader
from objectives.training.bars import Keras, Lightning
from objectives.training.lines import LINE_CHARACTERS, MOST_STEPS, finite, states
from objectives.training.plain import read_plain

ReaderKind = Literal["auto", "json", "keras", "lightning", "plain"]
KINDS: tuple[ReaderKind, ...] = get_args(ReaderKind)


def make_reader(kind: ReaderKind = "auto") -> ProgressReader:
    """Return a reader for the live output of one run.

    Numbers that are not finite are left out.

    Args:
        kind: The form of the progress lines. `json`: an object on a line of its own with `step`, or `epoch` if there is
            no `step`. `keras`: `Epoch 3/27` and the final line of that epoch's bar. `lightning`: full bars; epochs are
            counted from 1. `plain`: `epoch 3 val_auc=0.51` and the like. `auto`: the first of these four, in this
            order, that reads a line is used from then on; a JSON line is read at any time.

    Raises:
        ValueError: There is no such kind.
    """
    readers: dict[str, Callable[[], ProgressReader]] = {
        "auto": lambda: _Auto().read,
        "json": lambda: _json,
        "keras": lambda: Keras().read,
        "lightning": lambda: Lightning().read,
        "plain": lambda: read_plain,
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
    def __init__(self) -> None:
        self._others: list[ProgressReader] = [Keras().read, Lightning().read, read_plain]

    def read(self, line: str) -> Progress | None:
        progress = _json(line)
        if progress is not None:
            self._others = []
            return progress
        for read in self._others:
            progress = read(line)
            if progress is not None:
                self._others = [read]
                return progress
        return None


def _json(line: str) -> Progress | None:
    text = states(line)[-1] if len(line) <= LINE_CHARACTERS else ""
    if not text.startswith("{"):
        return None
    try:
        # Read integers as floats: one with a million digits is then infinite instead of an error.
        fields = json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        return None
    numbers = {name: value for name, value in fields.items() if isinstance(value, float)}
    step = numbers.pop("step", None)
    epoch = numbers.pop("epoch", None)
    counted = epoch if "step" not in fields else step
    if counted is None or not 0 <= counted < MOST_STEPS or not counted.is_integer():
        return None
    return Progress(int(counted), finite(numbers))
