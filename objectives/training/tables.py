"""Reader of tables whose first column counts epochs or steps, as fastai and Ultralytics print them."""

import re

from objectives.base import Progress
from objectives.training.lines import LINE_CHARACTERS, NUMBER, numbers, states

_HEAD = re.compile(r"[|\s]{0,8}(?:epoch|step|iter|iteration)s?(?=[\s,;|])", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s,;|]{1,200}")
_WIDE = re.compile(r"\t|\s{2,200}|\s{0,200}[,;|]\s{0,200}")
_COLUMN = re.compile(r"[A-Za-z_][\w./%@()-]{0,99}")
_ROW = re.compile(r"(\d{1,15})(/\d{1,15})?")
_VALUE = re.compile(rf"({NUMBER})%?", re.IGNORECASE)
_MOST_COLUMNS = 100
# Ultralytics prints the validation of an epoch as a table of its own, with the mean over all classes first.
_CLASSES, _ALL = "Class", "all"
_ENDED = re.compile(r"\d{1,15} epochs completed")


class Table:
    """Reads one step for each row. If the first row is number 0, steps are counted from there."""

    def __init__(self) -> None:
        """Begin before the first line."""
        self._heads: list[list[str]] = []
        self._classes: list[str] = []
        self._first: int | None = None
        self._step: int | None = None

    def read(self, line: str) -> Progress | None:
        """Read the next line."""
        text = states(line)[-1] if len(line) <= LINE_CHARACTERS else ""
        words = [word for word in _BETWEEN.split(text, maxsplit=_MOST_COLUMNS) if word]
        if not words:
            return None
        if _HEAD.match(text):
            # A name may be of several words, `Training Loss`: whether it is, only the number of values in a row shows.
            wide = [word.strip().replace(" ", "_") for word in _WIDE.split(text) if word.strip()]
            self._heads = [_names(words), _names(wide)]
        elif _ENDED.match(text):
            self._step = None  # what follows is about the best epoch
        elif words[0] == _CLASSES:
            self._classes = [name.removeprefix("Box(") for name in _names(words)]
        elif words[0] == _ALL and self._step is not None:
            metrics = _metrics(self._classes, words)
            return Progress(self._step, metrics) if metrics else None
        elif (row := _ROW.fullmatch(words[0])) and (
            metrics := next((found for names in self._heads if (found := _metrics(names, words))), {})
        ):
            self._first = int(row[1]) if self._first is None else self._first
            self._step = int(row[1]) + (1 if self._first == 0 else 0)
            return Progress(self._step, metrics)
        return None


def _metrics(columns: list[str], words: list[str]) -> dict[str, float]:
    """Return the numbers of a row behind its first column; none if it has not the columns of the table."""
    # A bar may follow the last column, which then ends with a colon.
    if not columns or len(words) < len(columns):
        return {}
    if len(words) > len(columns) and not words[len(columns) - 1].endswith(":"):
        return {}
    cells = zip(columns[1:], words[1:], strict=False)
    return numbers((name, value[1]) for name, word in cells if (value := _VALUE.fullmatch(word.rstrip(":"))))


def _names(words: list[str]) -> list[str]:
    """Return the names of columns; none if the words are a sentence with numbers or values."""
    names = []
    for word in words:
        if not _COLUMN.fullmatch(word.removesuffix(":")):
            return []
        names.append(word.removesuffix(":").removesuffix(")"))
        if word.endswith(":"):
            break
    return names if len(names) > 1 else []
