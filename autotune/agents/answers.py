"""Answers to an agent: structured, of bounded length, rounded, and with the texts from other sources named.

The output of a program, the description in a study file and the reasons of hints are data. A model may mistake such a
text for an instruction, so each answer says which of its fields have such texts.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from autotune.formatting import plain
from autotune.service.json_values import json_value

UNTRUSTED = "untrusted"
"""The field that names the fields with texts of others."""
MOST_BYTES = 60_000
_MOST_TEXT = 2_000
_MOST_ITEMS = 200
_MOST_DEPTH = 20
_DIGITS = 4
_EMPTY: tuple[Any, ...] = (None, "", [], {})
# Fields with texts from programs, from authors of study files, or from others who give hints.
_OF_OTHERS = frozenset(
    {
        "stdout",
        "stderr",
        "message",
        "trouble",
        "description",
        "why",
        "reason",
        "waits",
        "noise",
        "grounds",
        "doubts",
        "reasons",
        "commands",
        "mistakes",
        "names",
        "help",
        "log",
    }
)
# Fields whose values an agent may send back: they are neither rounded nor left out.
_EXACT = frozenset({"configuration", "lease"})


class Answer(BaseModel):
    """The base of all answers, for their schemas. A field that is empty is left out."""

    model_config = ConfigDict(extra="allow")


class Value(Answer):
    """A configuration with its value, in the metric's unit."""

    configuration: dict[str, Any]
    trial: int | None = None
    value: float | None = None


class Study(Answer):
    """A study. Without an `interval`, `best` and `speed_up` are of tuning, not confirmed; with one, of fresh runs."""

    name: str
    state: str
    trials: int
    budget: int | None = None
    metric: str | None = None
    best: float | None = None
    speed_up: float | None = None
    interval: list[float | None] | None = None
    verdict: str | None = None


class Studies(Answer):
    """Studies, the newest first; `left_out` counts the others."""

    studies: list[Study] | None = None
    left_out: int | None = None


class Status(Study):
    """The state of a study, and what to do next."""

    default: float | None = None
    incumbent: Value | None = None
    front_points: list[Value | str] | None = None
    running: int | None = None
    left_s: float | None = None
    failures: dict[str, int] | None = None
    next: str | None = None


class Trial(Value):
    """A trial; `bound` is what the value of a stopped one is worse than."""

    state: str
    bound: float | None = None
    speed_up: float | None = None


class Trials(Answer):
    """Some trials, and how many there are in all."""

    trials: list[Trial] | None = None
    total: int


class Result(Answer):
    """The best trial, and the verdict: its comparison with the default in fresh runs; or what to use where."""

    best: Value | None = None
    verdict: dict[str, Any] | None = None
    decisions: dict[str, Any] | None = None


class Explanation(Answer):
    """Why a trial was made, and its newest runs."""

    trial: int
    proposed: str
    runs: list[dict[str, Any]] | None = None


class Items(Answer):
    """A list; a text at its end says how many more there are."""

    items: list[dict[str, Any] | str] | None = None


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a model in few words: an agent reads all schemas before its first call."""
    schema: dict[str, Any] = _short_schema(model.model_json_schema())
    return schema


def _short_schema(schema: Any) -> Any:  # noqa: ANN401  JSON
    """Return a schema without titles, and without fields that are null: empty fields are left out."""
    if isinstance(schema, list):
        return [_short_schema(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: value for key, value in schema.items() if key != "title" and value is not True}
    for key in {"properties", "$defs"} & kept.keys():
        kept[key] = {name: _short_schema(_not_null(one)) for name, one in schema[key].items()}
    return {key: value if key in {"properties", "$defs"} else _short_schema(value) for key, value in kept.items()}


def _not_null(field: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = [one for one in field.get("anyOf", ()) if one != {"type": "null"}]
    left_out = {"anyOf"} | ({"default"} if field.get("default", "") is None else set())
    kept = {key: value for key, value in field.items() if key not in left_out}
    return kept | ({"anyOf": choices} if len(choices) > 1 else choices[0] if choices else {})


def structured(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer as a client may have it; an error instead if it would be too long."""
    found: set[str] = set()
    answer: dict[str, Any] = _shorten(json_value(value), found)
    if found:
        answer[UNTRUSTED] = sorted(found)
    size = len(as_text(answer))
    if size > MOST_BYTES:
        return {"error": f"the answer has {size} characters, more than {MOST_BYTES}: ask for less"}
    return answer


def as_text(answer: Mapping[str, Any]) -> str:
    """Return an answer as text, for clients that do not read structure."""
    return json.dumps(answer, ensure_ascii=True, separators=(",", ":"))


def shorten(text: str) -> str:
    """Return a text without invisible characters, shortened in the middle if it is long."""
    seen = plain(text)
    if len(seen) <= _MOST_TEXT:
        return seen
    half = _MOST_TEXT // 2
    return f"{seen[:half]}\n[... {len(seen) - 2 * half} characters left out ...]\n{seen[-half:]}"


def _shorten(value: Any, found: set[str], name: str = "", depth: int = 0, *, exact: bool = False) -> Any:  # noqa: ANN401
    """Return a value of JSON, shortened; add the names of fields with texts of others to `found`."""
    if depth > _MOST_DEPTH:
        return "..."
    exact = exact or name in _EXACT
    if isinstance(value, str):
        if value and name in _OF_OTHERS:
            found.add(name)
        return shorten(value)
    if isinstance(value, float):
        return value if exact else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {
            shorten(str(key)): _shorten(item, found, str(key), depth + 1, exact=exact)
            for key, item in value.items()
            if exact or key in _EXACT or item not in _EMPTY
        }
    if isinstance(value, list | tuple):
        kept = [_shorten(item, found, name, depth + 1, exact=exact) for item in value[:_MOST_ITEMS]]
        left = len(value) - len(kept)
        return [*kept, f"... and {left} more"] if left else kept
    return value
