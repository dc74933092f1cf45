"""Reader of plain lines: a step, then metrics."""

import re

from objectives.base import Progress
from objectives.training.lines import ENDS, LINE_CHARACTERS, NUMBER, numbers, states

_COUNTED = r"[ \t]{0,4}[:=#]?[ \t]{0,4}[\[(]?[ \t]{0,4}"
_LOGGED = r"[^A-Za-z]{0,64}(?:(?:DEBUG|INFO)\W{1,8}(?:[\w.]{1,64}(?::| -) ?){0,4})?"
_PLAIN_STEP = re.compile(
    rf"{_LOGGED}(epoch|step|iteration|iter){_COUNTED}(\d{{1,15}})(?: ?/ ?\d{{1,15}})?{ENDS}[\])]?:?", re.IGNORECASE
)
_PLAIN_PART = re.compile(rf"(?<!\w)(?:epoch|step|batch|iteration|iter){_COUNTED}\d", re.IGNORECASE)
_PLAIN_METRIC = re.compile(
    r"(?<![^\s,;|(\[])([A-Za-z_][\w./@-]{0,99}(?: [A-Za-z_][\w./@-]{0,99}){0,3})"
    rf"[ \t]{{0,4}}[:=][ \t]{{0,4}}({NUMBER}){ENDS}",
    re.IGNORECASE,
)
_BAR = re.compile(r"%\||[━█]|it/s|s/it")


def read_plain(line: str) -> Progress | None:
    text = states(line)[-1] if len(line) <= LINE_CHARACTERS else ""
    counted = _PLAIN_STEP.match(text)
    if counted is None or _BAR.search(text):
        return None
    rest = text[counted.end() :]
    # A line with an epoch and a step is about a part of the epoch.
    if _PLAIN_PART.search(rest):
        return None
    pairs = [(match[1].replace(" ", "_"), match[2]) for match in _PLAIN_METRIC.finditer(rest)]
    return Progress(int(counted[2]), numbers(pairs)) if pairs else None
