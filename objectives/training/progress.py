"""Readers of the progress that training scripts print: lines in, steps with metrics out. They never raise.

A line is the text between two newlines. It may hold many states of a live bar, separated by carriage returns; states
that come as lines of their own work as well. If one step is reported several times, the last report counts: results of
the validation are often printed after those of the training.

Every part of a pattern matches a bounded number of characters, so the work grows linearly with a line's length.

Formats: keras/src/utils/progbar.py of Keras 2 and 3; pytorch/callbacks/progress/{tqdm,rich}_progress.py of Lightning.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal, get_args

from objectives.base import Progress, ProgressReader

ReaderKind = Literal["auto", "json", "keras", "lightning", "plain"]
KINDS: tuple[ReaderKind, ...] = get_args(ReaderKind)

LINE_CHARACTERS = 2**16
"""Longer lines are not read as JSON or plain progress; a line of live bars may have any length."""

MOST_STEPS = 2**53
"""Beyond this a float cannot count by one."""

_NUMBER = r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}|nan|inf(?:inity)?)(?:[eE][-+]?\d{1,4})?"
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[@-~]")
_ENDS = r"(?!\w|\.\w|,\d)"  # after a number: no unit, and no thousands separator
_LEADING = re.compile(rf"\s*({_NUMBER}){_ENDS}", re.IGNORECASE)


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
        "keras": lambda: _Keras().read,
        "lightning": lambda: _Lightning().read,
        "plain": lambda: _plain,
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
        self._others: list[ProgressReader] = [_Keras().read, _Lightning().read, _plain]

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


# `25/25 [====] - 1s 38ms/step - loss: 0.69`, `25/25 ━━━━ 1s 38ms/step - loss: 0.69`, `25/25 - 1s - loss: 0.69`
_KERAS_EPOCH = re.compile(r"Epoch (\d{1,15})/\d{1,15}")
_KERAS_FINAL = re.compile(
    r"(\d{1,15})/(\d{1,15}) (?:\[={1,500}\] -|━{1,500}|-) \d{1,15}s(?: \d{1,15}[mu]?s/[a-z]{1,20})? - "
)
_KERAS_METRIC = re.compile(rf"([^:]{{1,200}}): ({_NUMBER})")


class _Keras:
    """Reads one step for each epoch.

    Keras prints no `Epoch 1/1` for a single epoch, so the first final line may come without. `evaluate` prints lines
    like the final ones. A later line of the epoch counts only if it has all of its metrics and more: Keras 3 with a
    checkpoint callback prints the full bar twice, without and with the validation.
    """

    def __init__(self) -> None:
        self._epoch = 1
        self._said: frozenset[str] = frozenset()

    def read(self, line: str) -> Progress | None:
        state = states(line)[-1]
        if begun := _KERAS_EPOCH.fullmatch(state):
            self._epoch, self._said = int(begun[1]), frozenset()
            return None
        final = _KERAS_FINAL.match(state)
        if final is None or int(final[1]) != int(final[2]):
            return None
        parts = state[final.end() :].split(" - ")
        pairs = [match.groups() for part in parts if (match := _KERAS_METRIC.fullmatch(part.strip()))]
        names = frozenset(name for name, _ in pairs)
        if not names > self._said:
            return None
        self._said = names
        return Progress(self._epoch, _numbers(pairs))


# `Epoch 3: 100%|██████████| 25/25 [00:01<00:00, 20.1it/s, v_num=0, val_auc=0.51]`; cut at the terminal's width, if any
_TQDM = re.compile(r"Epoch (\d{1,15}):\s{1,3}\d{1,3}%\|[^|]{0,1000}\| (\d{1,15})/(\d{1,15}) \[([^\]]{0,8000})(\]?)")
_TQDM_METRIC = re.compile(rf"([^=\s]{{1,200}})=({_NUMBER})(?:\.0?)?")  # it also pads words: `nan.0`
# `Epoch 4/4  ━━━━━ 25/25 0:00:48 • 0:00:00 0.48it/s v_num: 2.000 val_auc: 0.51`; what is too long continues below
_RICH = re.compile(
    r"Epoch (\d{1,15})(?:/\d{1,15})?\s{1,20}[━╸╺-]{1,1000} (\d{1,15})/(\d{1,15})\s{1,20}"
    r"[\d:-]{1,20} • [\d:-]{1,20}\s{1,20}[\d.]{1,20}it/s(?!\S)"
)
_RICH_METRIC = re.compile(rf"(?<!\S)(\S{{1,200}}):\s{{1,400}}({_NUMBER})(?!\S)")
_RICH_BELOW = re.compile(r"\s{10}")
_RICH_CHARACTERS = 8000
_VERSION = "v_num"  # Lightning's number of the run, not a metric


class _Lightning:
    """Reads Lightning's bars. Lightning counts epochs from 0; the step is the number of finished epochs.

    Until an epoch's validation is over, a full bar shows the validation of the epoch before. So if a run validates (it
    begins with a sanity check), only bars after the validation count.
    """

    def __init__(self) -> None:
        self._epoch = -1
        self._validates = False
        self._validated = False
        self._rich: tuple[int, str] | None = None

    def read(self, line: str) -> Progress | None:
        if self._rich is not None and _RICH_BELOW.match(line):
            return self._read_rich(self._rich[0], f"{self._rich[1]} {_ANSI.sub('', line)}")
        self._rich = None
        newest = None
        for state in states(line):
            newest = self._read_state(state) or newest
        return newest

    def _read_state(self, state: str) -> Progress | None:
        if state.startswith(("Validati", "Validate", "Sanity")):
            self._validates = self._validated = True
        elif bar := _TQDM.match(state):
            return self._read_tqdm(bar)
        elif (bar := _RICH.match(state)) and bar[2] == bar[3]:
            # Rich bars are printed when they are stopped, after the validation.
            return self._read_rich(int(bar[1]) + 1, state[bar.end() :])
        return None

    def _read_tqdm(self, bar: re.Match[str]) -> Progress | None:
        epoch = int(bar[1])
        if epoch != self._epoch:
            self._epoch, self._validated = epoch, False
        # 100% may be a rounded 99.7%.
        if bar[2] != bar[3] or (self._validates and not self._validated):
            return None
        items = bar[4].split(",")
        complete = items if bar[5] else items[:-1]
        matches = [_TQDM_METRIC.fullmatch(item.strip()) for item in complete]
        return Progress(epoch + 1, _numbers(match.groups() for match in matches if match and match[1] != _VERSION))

    def _read_rich(self, step: int, text: str) -> Progress | None:
        known = text[:_RICH_CHARACTERS]
        self._rich = (step, known)
        pairs = [match.groups() for match in _RICH_METRIC.finditer(known) if match[1] != _VERSION]
        return Progress(step, _numbers(pairs)) if pairs else None


_COUNTED = r"[ \t]{0,4}[:=#]?[ \t]{0,4}[\[(]?[ \t]{0,4}"
_LOGGED = r"[^A-Za-z]{0,64}(?:(?:DEBUG|INFO)\W{1,8}(?:[\w.]{1,64}(?::| -) ?){0,4})?"
_PLAIN_STEP = re.compile(
    rf"{_LOGGED}(epoch|step|iteration|iter){_COUNTED}(\d{{1,15}})(?: ?/ ?\d{{1,15}})?{_ENDS}[\])]?:?", re.IGNORECASE
)
_PLAIN_PART = re.compile(rf"(?<!\w)(?:epoch|step|batch|iteration|iter){_COUNTED}\d", re.IGNORECASE)
_PLAIN_METRIC = re.compile(
    r"(?<![^\s,;|(\[])([A-Za-z_][\w./@-]{0,99}(?: [A-Za-z_][\w./@-]{0,99}){0,3})"
    rf"[ \t]{{0,4}}[:=][ \t]{{0,4}}({_NUMBER}){_ENDS}",
    re.IGNORECASE,
)
_BAR = re.compile(r"%\||[━█]|it/s|s/it")


def _plain(line: str) -> Progress | None:
    text = states(line)[-1] if len(line) <= LINE_CHARACTERS else ""
    counted = _PLAIN_STEP.match(text)
    if counted is None or _BAR.search(text):
        return None
    rest = text[counted.end() :]
    # A line with an epoch and a step is about a part of the epoch.
    if _PLAIN_PART.search(rest):
        return None
    pairs = [(match[1].replace(" ", "_"), match[2]) for match in _PLAIN_METRIC.finditer(rest)]
    return Progress(int(counted[2]), _numbers(pairs)) if pairs else None


def leading_number(text: str) -> float | None:
    """Return the number at the start of a text; None without a number, or if a unit follows it without a blank."""
    match = _LEADING.match(text)
    return float(match[1]) if match else None


def states(line: str) -> list[str]:
    """Return the states of a live line without colours and cursor movements; at least one, which may be empty."""
    bare = _ANSI.sub("", line).replace("\b", "")
    return [state.strip() for state in bare.split("\r") if state.strip()] or [""]


def _numbers(pairs: Iterable[tuple[str, ...]]) -> dict[str, float]:
    return finite({name: float(text) for name, text in pairs})


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics whose values are finite."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}
