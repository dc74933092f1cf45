"""Templates: words of a command line with the names of parameters in braces."""

import string
from collections.abc import Iterable

from spaces import Configuration, Value
from spaces.parameters.problem import Problem


def filled_in(template: str, configuration: Configuration) -> str | None:
    """Return the template with values in their places; None if a parameter in it has no value."""
    words = []
    for text, name, _, _ in string.Formatter().parse(template):
        words.append(text)
        if name is not None:
            if name not in configuration:
                return None
            words.append(written(configuration[name]))
    return "".join(words)


def written(value: Value) -> str:
    """Return a value of a parameter as a program reads it; a flag is 1 or 0."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def names_in(template: str) -> set[str]:
    """Return the names of the parameters that a template mentions."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def template_errors(templates: Iterable[tuple[str, str]]) -> list[Problem]:
    """Return what is wrong with templates, each given with its path in the study file."""
    found = []
    for path, text in templates:
        try:
            names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
        except ValueError as error:
            found.append(Problem(f"{text!r}: {error}; write {{{{ for a brace", path))
            continue
        found.extend(
            Problem(f"{text!r}: {name!r} is not the name of a parameter", path)
            for name in names
            if not name.isidentifier()
        )
    return found
