"""Reader of plain lines: a step, then metrics, after what a logger puts first."""

import re

from objectives.base import Progress
from objectives.training.direction import direction_of
from objectives.training.lines import ENDS, LINE_CHARACTERS, NUMBER, finite, states

# What loggers put before a message: `[INFO]`, `[Rank 0]`, dates, times, `mmdet - INFO - `, `INFO:root:`, ` * `, and
# `I0304 10:11:12.123456 140123 train.py:17] ` of glog and absl.
_LOGGED = re.compile(
    r"\s{0,20}(?:"
    r"[IWE]\d{4} [\d:.]{1,20} {1,8}\d{1,15} [\w./-]{1,100}:\d{1,9}\]"
    r"|"
    r"\[(?!\s{0,4}(?:epoch|step|iter))[^\[\]]{0,120}\]:?"
    r"|\d{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,4})?(?:[T,]|(?=\s))"
    r"|\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,9})?(?:Z|[-+]\d{2}:?\d{2})?(?!\S)"
    r"|(?:[\w.]{1,64} - ){0,3}(?:DEBUG|INFO)\W{1,8}"
    r"(?:(?!(?:epoch|step|iter|train|val|test|eval)[a-z]{0,8}: )[\w.]{1,64}(?::| -) ?){0,4}"
    r"|[-|>#=*~]{1,40}"
    r")",
    re.IGNORECASE,
)
_MOST_PREFIXES = 12

_SET = r"(?:train|val|test|eval|dev)[a-z]{0,8}"
_COUNTED = r"[ \t]{0,4}[:=#]?[ \t]{0,20}[\[(]?[ \t]{0,20}"
# `Epoch: 3`, `Train Epoch 3`, `Epoch(val) [3]`, `steps: 10`, `validation loss at iteration 1000`
_STEP = re.compile(
    rf"[^A-Za-z]{{0,64}}(?:{_SET}(?: loss| results)?[ \t:|,-]{{1,8}}(?:(?:at|for|after) )?)?(?:end of )?"
    rf"(?P<word>epoch|step|iteration|iter)s?(?:\((?P<set>{_SET})\))?"
    rf"{_COUNTED}(?P<step>\d{{1,15}})(?:[ \t]{{0,20}}/[ \t]{{0,20}}\d{{1,15}}| of \d{{1,15}})?{ENDS}[\])]?:?",
    re.IGNORECASE,
)
# XGBoost and LightGBM: `[10]`, CatBoost: `10:`, with a tab behind; and CLU's writer, whose file is named before it.
_TABBED = re.compile(r"(?:\[(?P<step>\d{1,15})\]|(?P<other>\d{1,15}):)\t")
_WRITTEN = re.compile(r".{1,80} logging_writer\.py:\d{1,9}\] \[(?P<step>\d{1,15})\] ")
# Pairs before the step: `loss = 2.3, step = 100`, `eta: 0:10:12  iter: 19  total_loss: 2.1`
_PAIRS = re.compile(
    r"(?:[A-Za-z_][\w./@-]{0,99} ?[:=] {0,4}[^\s,;|]{1,60}[\s,;|]{1,8}){1,40}"
    rf"(?P<word>epoch|(?:global_)?step|iteration|iter) ?[:=] {{0,20}}(?P<step>\d{{1,15}}){ENDS}",
    re.IGNORECASE,
)
# timm: `Train: 3 [  50/1251 (  4%)]`
_TRAIN_PART = re.compile(r"train:[ \t]{1,8}(?P<step>\d{1,15})[ \t]{1,8}(?=\[)", re.IGNORECASE)
# A line of results without a step: `Test set: ...`, `val Loss: ...`, and ` * Acc@1 75.1` of torchvision's scripts.
_RESULTS = re.compile(rf"{_SET}(?![A-Za-z])", re.IGNORECASE)
# JAX's examples: `Epoch 0 in 1.23 sec`, with the results below; PyTorch's: `Test Error:`, with them in the next line.
_TIMED = re.compile(r"[\s:,]{0,8}(?:in|took) \d")
_HEADING = re.compile(rf"{_SET}(?: [a-z]{{1,20}}){{0,2}}:", re.IGNORECASE)
_STARRED = re.compile(r"\s{0,8}\*\s{1,8}[A-Za-z]")

# A part of an epoch: `[10/5005]`, `12/938`, `[640/60000 (1%)]`, `[45%]` or `[50]` behind the epoch, `batch 20`.
_BEHIND = r"[\s,:;|)\]-]{0,20}"
_AT = r"(?P<at>\d{1,15})"
_OF = r"[ \t]{0,8}/[ \t]{0,8}(?P<of>\d{1,15})"
_PART = re.compile(rf"{_BEHIND}(?:[A-Za-z]{{1,20}}[ \t:]{{1,8}})?[\[(]?[ \t]{{0,20}}{_AT}{_OF}")
_PART_BRACKET = re.compile(rf"(?<![:=])(?<![:=]\s)[\[(][ \t]{{0,20}}{_AT}{_OF}")
_PART_PERCENT = re.compile(rf"{_BEHIND}[\[(]?[ \t]{{0,8}}(?P<at>\d{{1,3}}(?:\.\d{{0,4}})?)[ \t]?%(?P<of>)")
_PART_WORD = re.compile(rf"(?<!\w)(?:epoch|step|batch|iteration|iter){_COUNTED}{_AT}(?:{_OF})?", re.IGNORECASE)
_PART_NUMBER = re.compile(r"[\])]?[ \t]{0,4}\[[ \t]{0,20}\d{1,15}[ \t]{0,20}\]")

_NAME = r"[A-Za-z_](?:[\w./@-]|'s){0,99}"
_NAMES = rf"(?<![^\s,;|(\[{{'\"])({_NAME}(?: {_NAME}){{0,3}})"
_METRIC = re.compile(rf"{_NAMES}['\"]?[ \t]{{0,4}}[:=][ \t]{{0,20}}({NUMBER}){ENDS}", re.IGNORECASE)
# Without `:` or `=` only names that show their direction are metrics: `val loss 3.2`, but not `took 5`.
_BARE_METRIC = re.compile(rf"{_NAMES}[ \t]{{1,4}}({NUMBER}){ENDS}", re.IGNORECASE)
# Behind a value: its mean so far, `2.3 (2.5)`, or what it is a part of, `9843/10000 (98%)`.
_MEAN = re.compile(rf"[ \t]{{0,4}}\([ \t]{{0,4}}({NUMBER})[ \t]{{0,4}}\)", re.IGNORECASE)
_OF_ALL = re.compile(r"/(\d{1,15})[ \t]{1,4}\([ \t]{0,4}\d{1,3}(?:\.\d{0,6})?[ \t]{0,2}%\)")
_BAR = re.compile(r"%\||[━█]|it/s|s/it")


class Plain:
    """Reads lines with a step and metrics, and lines of results that follow the lines of their epoch.

    Lines about a part of an epoch are not read, except the last one, which says so: `[938/938]`.
    """

    def __init__(self) -> None:
        """Begin before the first line."""
        self._step: int | None = None
        self._is_below_heading = False

    def read(self, line: str) -> Progress | None:
        """Read the next line."""
        text = states(line)[-1] if len(line) <= LINE_CHARACTERS else ""
        if _BAR.search(text):
            return None
        message = without_prefix(text)
        counted = _STEP.match(message) or _TRAIN_PART.match(message)
        if counted is None and (row := _TABBED.match(text) or _WRITTEN.match(text) or _PAIRS.match(message)):
            return _read_row(row)
        if counted is None or _is_of_a_set_alone(counted):
            return self._read_results(message, is_starred=_STARRED.match(text) is not None)
        rest = message[counted.end() :]
        is_validation = counted.groupdict().get("set") is not None and not counted["set"].lower().startswith("train")
        if _is_part(rest, of_steps=not is_validation):
            self._step = int(counted["step"])
            return None
        metrics = metrics_in(rest)
        if metrics is None and rest.strip() and not _TIMED.match(rest):
            return None
        self._step = int(counted["step"])
        return None if metrics is None else Progress(self._step, metrics)

    def _read_results(self, message: str, *, is_starred: bool) -> Progress | None:
        is_below, self._is_below_heading = self._is_below_heading, _HEADING.fullmatch(message.rstrip()) is not None
        is_result = is_starred or is_below or _RESULTS.match(message) is not None
        if self._step is None or not is_result or _is_part(message, of_steps=True):
            return None
        metrics = metrics_in(message)
        return None if metrics is None else Progress(self._step, metrics)


def without_prefix(text: str) -> str:
    """Return a line without what a logger put before the message."""
    for _ in range(_MOST_PREFIXES):
        prefix = _LOGGED.match(text)
        if prefix is None:
            return text.lstrip()
        text = text[prefix.end() :]
    return text.lstrip()


def _read_row(row: re.Match[str]) -> Progress | None:
    """Read a line that is complete by itself, and whose step is not the first word."""
    rest = row.string[row.end() :]
    before = row.string[: row.start("word")] if row.re is _PAIRS else ""
    metrics = None if row.re is _PAIRS and _is_part(rest, of_steps=True) else metrics_in(before + rest)
    return None if metrics is None else Progress(int(row[row.lastgroup or "step"]), metrics)


def _is_of_a_set_alone(counted: re.Match[str]) -> bool:
    """Whether a line counts the iterations of a validation, which are no steps: `Iter(val) [500/500]`."""
    named = counted.groupdict()
    of_set = named.get("set")
    return of_set is not None and not of_set.lower().startswith("train") and named["word"].lower() != "epoch"


def _is_part(rest: str, *, of_steps: bool) -> bool:
    """Whether a line is about a part of an epoch.

    Args:
        rest: The line behind the number of the epoch.
        of_steps: Whether a second number in brackets counts steps of the training.
    """
    found = [*_PART_BRACKET.finditer(rest), *_PART_WORD.finditer(rest)]
    found += [match for pattern in (_PART, _PART_PERCENT) if (match := pattern.match(rest))]
    if any(_is_unfinished(match) for match in found):
        return True
    return of_steps and _PART_NUMBER.match(rest) is not None


def _is_unfinished(part: re.Match[str]) -> bool:
    if part.re is _PART_PERCENT:
        return float(part["at"]) < 100.0
    return part["of"] is None or int(part["at"]) < int(part["of"])


def metrics_in(text: str) -> dict[str, float] | None:
    """Return the metrics in a text; None if it has none."""
    bare = [match for match in _BARE_METRIC.finditer(text) if direction_of(match[1]) is not None]
    found = {match[1].replace(" ", "_"): _value(match, text) for match in [*bare, *_METRIC.finditer(text)]}
    return finite(found) if found else None


def _value(match: re.Match[str], text: str) -> float:
    behind = text[match.end() : match.end() + 60]
    if mean := _MEAN.match(behind):
        return float(mean[1])
    if (whole := _OF_ALL.match(behind)) and int(whole[1]):
        return float(match[2]) / int(whole[1])
    return float(match[2])
