"""Invalid fields: sentences on what was given for a field of a request, and what it must be."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from autotune.studyfile import NAME
from autotune.supervision import CORES
from objectives.validation import rule_of

_KINDS = {
    "dict_type": "an object",
    "model_attributes_type": "an object",
    "string_too_long": "at most {max_length} characters long",
    "too_long": "at most {max_length} of them",
    "string_pattern_mismatch": "of the form {pattern}",
}
_FORMS = {
    NAME: "a name of letters, digits and . _ -, which begins with a letter or a digit",
    CORES: "a list of cores, such as 0-3,8",
}
# Places of a field in a request, which pydantic puts before its name.
_PLACES = frozenset({"body", "path", "query", "header"})
_LONGEST = 60
_NAMED = 20


def field_errors(errors: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return a sentence for each of the first invalid fields, from pydantic's errors, in their order.

    pydantic has an error for each kind that a field could be; the sentence names all of these kinds.
    """
    by_field: dict[str, list[Mapping[str, Any]]] = {}
    for error in errors:
        place = [part for part in error["loc"] if isinstance(part, str) and part not in _PLACES]
        found = by_field.setdefault(place[0] if place else "the request", [])
        if len(found) < _NAMED:
            found.append(error)
    sentences = {field: _sentence(found) for field, found in islice(by_field.items(), _NAMED)}
    more = len(by_field) - len(sentences)
    return sentences | ({f"{more} more": "they are wrong, too"} if more else {})


def _sentence(errors: list[Mapping[str, Any]]) -> str:
    kinds = {error["type"] for error in errors}
    if "missing" in kinds:
        return "it is missing"
    if "extra_forbidden" in kinds:
        return "there is no such field"
    rules = dict.fromkeys(_rule(error) for error in errors)
    if None in rules:
        return "; ".join(dict.fromkeys(str(error["msg"]) for error in errors))
    return f"{_given_text(errors[0].get('input'))} was given; it must be {' or '.join(filter(None, rules))}"


def _rule(error: Mapping[str, Any]) -> str | None:
    context = error.get("ctx", {})
    if context.get("pattern") in _FORMS:
        return _FORMS[context["pattern"]]
    kind = _KINDS.get(error["type"])
    return rule_of(error) if kind is None else kind.format(**context)


def _given_text(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
