"""Reading options as the schedulers' commands do: what they do not know, they refuse."""

import re
from collections.abc import Mapping, Sequence


class RefusedError(Exception):
    """A command refuses what it was given: its exit code, and what it says."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def long_options(
    words: Sequence[str], values: Mapping[str, str], flags: Mapping[str, str], unknown: RefusedError
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the options that were given, by their long names, and the other words.

    `values` and `flags` give, by long name, the letter for it, or nothing. `unknown` is raised with the option's name.
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
    """Return options of one letter, and the other words, which follow them as with getopt(3)."""
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
    """Return what stands after a prefix in the lines before a script's first command."""
    found = []
    for line in script.splitlines()[1:]:
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith(prefix):
            found.append(line.removeprefix(prefix).strip())
    return found


def seconds(text: str) -> float:
    """Read a time: minutes, `minutes:seconds`, `hours:minutes:seconds`, or days before any of them.

    Raises:
        ValueError: it is none of these.
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
