"""Parse options as the schedulers' commands do, refusing unknown ones."""

import re
from collections.abc import Mapping, Sequence


class RefusedError(Exception):
    """A command refuses its arguments, with an exit code and a message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def long_options(
    words: Sequence[str], values: Mapping[str, str], flags: Mapping[str, str], unknown: RefusedError
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the given options by their long names, and the other words.

    `values` and `flags` give the letter for each long name, or nothing. `unknown` makes the error for an unknown
    option.
    """
    letters = {letter: name for table in (values, flags) for name, letter in table.items() if letter}
    found: list[tuple[str, str]] = []
    others: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return found, others + rest
        if not word.startswith("-") or word == "-":
            others.append(word)
            continue
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
        else:
            name, value = letters.get(word[1], ""), word[2:]
            equals = value
        if name in flags and not equals:
            found.append((name, ""))
        elif name in values and (equals or rest):
            found.append((name, value if equals else rest.pop(0)))
        else:
            raise RefusedError(unknown.code, str(unknown).format(word))
    return found, others


def letters(
    words: Sequence[str], values: str, flags: str, unknown: RefusedError
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return one-letter options, and the other words, which follow them as with getopt(3)."""
    found: list[tuple[str, str]] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        letter, value = word[1:2], word[2:]
        if letter and letter in values and (value or rest):
            found.append((letter, value or rest.pop(0)))
        elif letter and letter in flags and not value:
            found.append((letter, ""))
        else:
            raise RefusedError(unknown.code, str(unknown).format(letter))
    return found, rest


def directives(script: str, prefix: str) -> list[str]:
    """Return the rest of the lines with a prefix before a script's first command."""
    found = []
    for line in script.splitlines()[1:]:
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith(prefix):
            found.append(line.removeprefix(prefix).strip())
    return found


def seconds(text: str) -> float:
    """Parse a time: minutes, `minutes:seconds`, `hours:minutes:seconds`, or any of these after days.

    Raises:
        ValueError: The text has another form.
    """
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if match is None:
        raise ValueError(text)
    days, *parts = match.groups()
    numbers = [int(part) for part in parts if part is not None]
    if days is None and len(numbers) < 3:
        numbers.insert(0, 0)
    hours, minutes, rest = [*numbers, 0, 0][:3]
    return 86400 * int(days or 0) + 3600 * hours + 60 * minutes + rest
