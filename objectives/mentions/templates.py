"""Templates: words of a command line with names of parameters, or expressions over them, in braces.

`{?name}` is replaced by nothing. It ties a text to a parameter: without a value the text is left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from spaces import Value
from spaces.mention import Mention, key_of
from spaces.parameters.problem import Problem

_TIE = "?"
_PART = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<mention>[^{}]*)\}|[{}]")


def fill_in(template: str, values: Mapping[str, Value]) -> str | None:
    """Return the template with values in place of its names; None if one of them has no value."""
    words = []
    for text, mention in _parts(template):
        words.append(text)
        if mention is not None:
            key = key_of(_text(mention))
            if key not in values:
                return None
            words.append("" if mention.startswith(_TIE) else value_text(values[key]))
    return "".join(words)


def value_text(value: Value) -> str:
    """Return the value of a parameter as a program reads it; a flag is 1 or 0."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def mentions_in(template: str, path: str = "") -> list[Mention]:
    """Return what a template mentions; `path` is that of the template in the study file."""
    return [Mention(_text(mention), path) for _, mention in _parts(template) if mention is not None]


def names_in(template: str) -> set[str]:
    """Return the names that a template mentions."""
    return {name for mention in mentions_in(template) for name in mention.names}


def has_placeholder(text: str) -> bool:
    """Whether a text has a placeholder, even if other braces in it are mistakes."""
    mentions = (part["mention"] for part in _PART.finditer(text))
    return any(one is not None and (one.startswith("=") or one.removeprefix(_TIE).isidentifier()) for one in mentions)


def template_errors(templates: Iterable[tuple[str, str]]) -> list[Problem]:
    """Return what is wrong with templates, each given with its path in the study file."""
    found = []
    for path, text in templates:
        try:
            mentions = [mention for _, mention in _parts(text) if mention is not None]
        except ValueError as error:
            found.append(Problem(f"{text!r}: {error}; write {{{{ or }}}} for a brace", path))
            continue
        found.extend(
            Problem(f"{text!r}: {name!r} is not the name of a parameter (an expression is written {{= ...}})", path)
            for name in mentions
            if not name.startswith("=") and not name.removeprefix(_TIE).isidentifier()
        )
    return found


def _text(mention: str) -> str:
    return mention[1:].strip() if mention.startswith("=") else mention.removeprefix(_TIE)


def _parts(template: str) -> Iterator[tuple[str, str | None]]:
    """Yield pieces of text, each with the content of the braces after it: a name, or an expression after "=".

    Raises:
        ValueError: A brace has no partner.
    """
    end, before = 0, ""
    for part in _PART.finditer(template):
        before += template[end : part.start()]
        end = part.end()
        if part["brace"]:
            before += part["brace"][0]
        elif part["mention"] is not None:
            yield before, part["mention"]
            before = ""
        else:
            msg = f"the {part[0]!r} at character {part.start() + 1} stands alone"
            raise ValueError(msg)
    yield before + template[end:], None
