"""Command lines of a study file: templates, and groups of templates that are left out together."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from launchers.secret import mask_inner, mask_secrets, placeholder_variables
from objectives.mentions.templates import fill_in, names_in
from spaces import Value


def _variable_name(given: str) -> str:
    if not given.isascii() or not given.isidentifier():
        msg = "the name of a variable has only letters, digits and _, and begins with no digit"
        raise ValueError(msg)
    return given


VariableName = Annotated[str, AfterValidator(_variable_name)]
"""The name of an environment variable that a shell can set, as the winner's script does."""


def _word(given: object) -> object:
    if isinstance(given, str):
        return given
    if isinstance(given, list) and given and all(isinstance(word, str) for word in given):
        return given
    msg = 'must be a word, or a group of words that are left out together, ["--size", "{size}"]'
    raise ValueError(msg)


Word = Annotated[str | list[str], BeforeValidator(_word)]
"""A template, or a group of templates."""


def _command_line(given: list[Word]) -> list[Word]:
    if given and not isinstance(given[0], str):
        msg = "the program comes first, as a word of its own"
        raise ValueError(msg)
    return given


CommandLine = Annotated[list[Word], AfterValidator(_command_line)]
"""A program and its arguments."""


def program_of(words: Sequence[Word]) -> str:
    """Return the program of a command line."""
    return str(words[0])


def missing_program(program: str) -> str | None:
    """Return why this machine cannot start a program; None if it can."""
    if shutil.which(program) is not None:
        return None
    if "/" not in program:
        return f"program {program!r} was not found; give its full path, or `module load` it"
    if is_file(program):
        return f"{program} is no program: it is not executable"
    return f"there is no file {program}"


def is_file(word: str) -> bool:
    """Whether a word is the path of an existing file; False if it is too long for a path."""
    try:
        return Path(word).is_file()
    except OSError:
        return False


def flatten(words: Sequence[Word]) -> list[str]:
    """Return the words without their groups."""
    return [word for group in words for word in ([group] if isinstance(group, str) else group)]


def as_text(words: Sequence[Word]) -> str:
    """Return a command line as one text, with groups in brackets and secrets masked."""
    shown = mask_inner(words)
    return " ".join(group if isinstance(group, str) else f"[{' '.join(group)}]" for group in shown)


def word_places(words: Sequence[Word], path: str) -> Iterator[tuple[str, str]]:
    """Yield each word with its path in the study file."""
    for i, group in enumerate(words):
        if isinstance(group, str):
            yield f"{path}.{i}", group
        else:
            yield from ((f"{path}.{i}.{k}", word) for k, word in enumerate(group))


def map_words(words: Sequence[Word], change: Callable[[str], str]) -> list[Word]:
    """Return the words in the same groups, with `change` applied to each."""
    return [change(group) if isinstance(group, str) else [change(word) for word in group] for group in words]


def fill_in_words(words: Sequence[Word], values: Mapping[str, Value]) -> tuple[str, ...]:
    """Return a command line with values in place of names; a word or group that lacks a value is left out."""
    line: list[str] = []
    for group in words:
        filled = [fill_in(word, values) for word in ([group] if isinstance(group, str) else group)]
        if None not in filled:
            line += [word for word in filled if word is not None]
    return tuple(line)


def find_dangling_options(words: Sequence[Word], unset: Set[str]) -> Iterator[str]:
    """Yield a sentence for each option that loses its value while one of `unset` has none."""
    for option, value in pairwise(words):
        if not (isinstance(option, str) and isinstance(value, str)):
            continue
        missing = sorted(names_in(value) & unset)
        if missing and option.startswith("-") and "=" not in option and not names_in(option):
            yield (
                f'{option} stands without a value where {missing[0]} has none; write ["{option}", "{value}"] for words '
                "that are left out together"
            )


def environment_text(environment: Mapping[str, str]) -> str:
    """Return variables as one sorted line without the values of secrets; "none" for no variables."""
    return (
        ", ".join(
            f"{name}={text}"
            for name, text in sorted(mask_secrets(environment, placeholder_variables(environment)).items())
        )
        or "none"
    )
