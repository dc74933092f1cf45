"""The space as people write it in TOML.

    [space.parameters.np]          # the name of the parameter
    type = "integer"               # integer, float, choice or flag; not needed with values
    low = 1                        # integer: low, high and step; or values = [1, 2, 4]; powers_of_two = true
    high = "cores"                 # numbers may be expressions over facts, in quotes
    default = "=cores // 2"        # a value; or, after "=", an expression over facts
    optional = true                # unset ("leave it to the program") is a value of its own
    when = "gpu"                   # exists only where this holds
    help = "number of ranks"

    [[space.constraints]]
    name = "pools_divide"
    rule = "np % npool == 0"
    reason = "pools are of equal size"

    [space.derived]
    cores_used = "ranks * threads" # a name for an expression, for rules, conditions and options

A float has `low`, `high`, `log` and `points`, or `values`; a choice has `values`; a flag has nothing more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spaces.expressions.constant import constant_value
from spaces.parameters.constraint import Constraint
from spaces.parameters.errors import ExpressionError, SpaceError, did_you_mean, unknown_key
from spaces.parameters.parameter import DEFAULT_POINTS, Choice, Flag, Float, Integer, Parameter, Value
from spaces.parameters.problem import ExpressionProblem, Problem
from spaces.space import Space

_COMMON = ("type", "default", "optional", "when", "help")
_OWN_KEYS: dict[str, tuple[str, ...]] = {
    "integer": ("low", "high", "step", "values", "powers_of_two"),
    "float": ("low", "high", "log", "points", "values"),
    "choice": ("values",),
    "flag": (),
}
_MISSING = object()


def parameters_from_tables(
    tables: Mapping[str, Any], facts: Mapping[str, Value], path: str = "space"
) -> tuple[Parameter, ...]:
    """Return the parameters of `[space.parameters.<name>]` tables, in their order.

    Raises:
        SpaceError: All mistakes, each with its place: `required field missing @ space.parameters.np.high`.
    """
    errors: list[Problem] = []
    parameters: list[Parameter] = []
    for name, table in tables.items():
        where = f"{path}.parameters.{name}"
        if not isinstance(table, Mapping):
            errors.append(Problem(f"must be a table, not {table!r}", where))
            continue
        reader = _Reader(table, facts, where)
        parameter = reader.parameter(name)
        errors += reader.errors
        if parameter is not None:
            parameters.append(parameter)
    if errors:
        raise SpaceError(errors)
    return tuple(parameters)


def constraints_from_tables(tables: Sequence[Any], path: str = "space") -> tuple[Constraint, ...]:
    """Return the constraints of `[[space.constraints]]` tables; creating the space parses their rules.

    Raises:
        SpaceError: All mistakes, each with its place.
    """
    errors: list[Problem] = []
    constraints: list[Constraint] = []
    for number, table in enumerate(tables):
        where = f"{path}.constraints[{number}]"
        if not isinstance(table, Mapping):
            errors.append(Problem(f"must be a table, not {table!r}", where))
            continue
        reader = _Reader(table, {}, where)
        reader.refuse_unknown(("name", "rule", "reason"))
        name, rule, reason = reader.text("name"), reader.text("rule"), reader.text("reason", "")
        errors += reader.errors
        if not reader.errors:
            constraints.append(Constraint(name, rule, reason))
    if errors:
        raise SpaceError(errors)
    return tuple(constraints)


def space_from_tables(
    parameters: Mapping[str, Any],
    constraints: Sequence[Any] = (),
    facts: Mapping[str, Value] | None = None,
    path: str = "space",
) -> Space:
    """Return the space of the tables `parameters` and `constraints`.

    Raises:
        SpaceError: All mistakes in the tables, or, if they are well formed, in the space.
    """
    errors: list[Problem] = []
    read_parameters: tuple[Parameter, ...] = ()
    read_constraints: tuple[Constraint, ...] = ()
    try:
        read_parameters = parameters_from_tables(parameters, facts or {}, path)
    except SpaceError as error:
        errors += error.problems
    try:
        read_constraints = constraints_from_tables(constraints, path)
    except SpaceError as error:
        errors += error.problems
    if errors:
        raise SpaceError(errors)
    return Space(read_parameters, read_constraints, facts or {})


@dataclass
class _Reader:
    """Parses one table and collects its mistakes."""

    table: Mapping[str, Any]
    facts: Mapping[str, Value]
    where: str
    errors: list[Problem] = field(default_factory=list)

    def parameter(self, name: str) -> Parameter | None:
        kind = (None if "type" in self.table else self.kind_of_values()) or self.text("type")
        if kind not in _OWN_KEYS:
            if "type" in self.table and not self.errors:
                close = did_you_mean(kind, _OWN_KEYS)
                self.fail(f"type must be one of {', '.join(_OWN_KEYS)}, not {kind!r}{close}", "type")
            return None
        self.refuse_unknown(_COMMON + _OWN_KEYS[kind] + (("values",) if "type" not in self.table else ()))
        common = self.common(kind)
        own = {"integer": self.as_integer, "float": self.as_float, "choice": self.as_choice, "flag": self.as_flag}[kind]
        make = own(name)
        if self.errors:
            return None
        try:
            return make(**common)
        except SpaceError as error:
            self.errors += [replace(problem, path=self.where) for problem in error.problems]
            return None

    def kind_of_values(self) -> str | None:
        """Return the type that the values have: numbers, of which some may be expressions, words, or true and false."""
        values = self.table.get("values")
        if not isinstance(values, list | tuple) or not values:
            return None
        if all(isinstance(value, bool) for value in values):
            return "flag" if {*values} == {True, False} else None
        if all(isinstance(value, str) for value in values):
            return "choice"
        if any(isinstance(value, bool) or not isinstance(value, int | float | str) for value in values):
            return None
        return "float" if any(isinstance(value, float) for value in values) else "integer"

    def common(self, kind: str) -> dict[str, Any]:
        when = self.table.get("when")
        if when is not None and not isinstance(when, str):
            self.fail(f"must be an expression in quotes, not {when!r}", "when")
        return {
            "default": self.default(kind),
            "optional": self.boolean("optional"),
            "when": when,
            "help": self.text("help", ""),
        }

    def default(self, kind: str) -> Value | None:
        default: Value | None = self.table.get("default")
        if isinstance(default, str) and default.startswith("="):
            default = self.evaluate(default[1:], "default")
        if kind == "integer" and isinstance(default, float) and default.is_integer():
            return int(default)
        return default

    def as_integer(self, name: str) -> Callable[..., Parameter]:
        powers = self.boolean("powers_of_two")
        if "values" in self.table:
            self.refuse_range("low", "high", "step", "powers_of_two")
            values = tuple(self.whole(value, f"values[{k}]") for k, value in enumerate(self.read_values()))
            return lambda **common: Integer(name, values, **common)
        low, high = self.whole(self.require("low"), "low"), self.whole(self.require("high"), "high")
        step = self.whole(self.table.get("step", 1), "step")
        if powers and "step" in self.table:
            self.fail("powers_of_two has no step", "step")
        if powers:
            return lambda **common: Integer.powers_of_two(name, low, high, **common)
        return lambda **common: Integer.range(name, low, high, step, **common)

    def as_float(self, name: str) -> Callable[..., Parameter]:
        if "values" in self.table:
            self.refuse_range("low", "high", "log", "points")
            values = tuple(self.number(value, f"values[{k}]") for k, value in enumerate(self.read_values()))
            return lambda **common: Float.of_values(name, values, **common)
        low, high = self.number(self.require("low"), "low"), self.number(self.require("high"), "high")
        points = self.whole(self.table.get("points", DEFAULT_POINTS), "points")
        log = self.boolean("log")
        return lambda **common: Float(name, low, high, log, points, **common)

    def refuse_range(self, *keys: str) -> None:
        """Refuse the keys of a range beside `values`."""
        extra = [key for key in keys if key in self.table]
        if extra:
            self.fail(f"give either values or {', '.join(extra)}, not both", "values")

    def as_choice(self, name: str) -> Callable[..., Parameter]:
        values = tuple(self.read_values())
        return lambda **common: Choice(name, values, **common)

    def as_flag(self, name: str) -> Callable[..., Parameter]:
        return lambda **common: Flag(name, **common)

    def fail(self, problem: str, key: str) -> None:
        self.errors.append(Problem(problem, f"{self.where}.{key}"))

    def refuse_unknown(self, known: Sequence[str]) -> None:
        for key in self.table:
            if key not in known:
                self.errors.append(unknown_key(self.where, str(key), known))

    def require(self, key: str) -> object:
        if key not in self.table:
            self.fail("required field missing", key)
        return self.table.get(key, _MISSING)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.require(key) if default is None else self.table.get(key, default)
        if value is _MISSING:
            return ""
        if not isinstance(value, str) or (default is None and not value.strip()):
            self.fail(f"must be a string with something in it, not {value!r}", key)
            return ""
        return value

    def boolean(self, key: str) -> bool:
        value = self.table.get(key, False)
        if not isinstance(value, bool):
            self.fail(f"must be true or false, not {value!r}", key)
        return value is True

    def read_values(self) -> list[Any]:
        value = self.require("values")
        if isinstance(value, list | tuple):
            return list(value)
        if value is not _MISSING:
            self.fail(f"must be a list, not {value!r}", "values")
        return []

    def whole(self, given: object, key: str) -> int:
        value = self.evaluate(given, key) if isinstance(given, str) else given
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if value is not None and value is not _MISSING:
            self.fail(f"must be a whole number, not {value!r}", key)
        return 1

    def number(self, given: object, key: str) -> float:
        value = self.evaluate(given, key) if isinstance(given, str) else given
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if value is not None and value is not _MISSING:
            self.fail(f"must be a number, not {value!r}", key)
        return 1.0

    def evaluate(self, text: str, key: str) -> Value | None:
        """Return the value of an expression over facts, or None if it has no value."""
        try:
            return constant_value(text.removeprefix("="), self.facts)
        except ExpressionError as error:
            self.errors.append(ExpressionProblem(str(error), f"{self.where}.{key}", unknown=error.unknown))
            return None
