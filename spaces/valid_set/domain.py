"""A parameter prepared for computing: its values as a column, and its encoding for models."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spaces.expressions.node import Array, Scope, Symbol
from spaces.parameters.parameter import Choice, Flag, Float, Parameter

FloatArray = npt.NDArray[np.float64]

NO_VALUE = -1  # the value index of a parameter that is unset or inactive
MIDDLE = 0.5  # where an ordered parameter without a value is put: nearest to all


@dataclass(frozen=True, eq=False)
class Domain:
    """The values of the parameter at `position`, by index.

    `indexes` are the possible ones, -1 ("no value") first where the parameter may be without one. `table`
    holds the values (codes of words) and, for index -1, a filler at the end. `features` is (values + 1,
    columns): how each index is encoded, the last row being that of -1.
    """

    parameter: Parameter
    position: int
    values: tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | tuple[bool, ...]
    indexes: npt.NDArray[np.int32]
    table: Array
    features: FloatArray
    feature_names: tuple[str, ...]

    @property
    def may_be_missing(self) -> bool:
        """Whether "no value" is possible: the parameter is optional or conditional."""
        return self.parameter.may_be_missing

    @property
    def radix(self) -> int:
        """How many states the parameter has, "no value" included."""
        return len(self.indexes)

    @property
    def ordered(self) -> bool:
        """Whether the values have an order, and so next and previous ones."""
        return not isinstance(self.parameter, Choice)


def domain_of(parameter: Parameter, position: int, scope: Scope) -> Domain:
    """Return the domain of `parameter`; the words of a choice get their codes in `scope`."""
    values = parameter.values
    may_be_missing = parameter.may_be_missing
    codes = [scope.code(word) for word in parameter.values] if isinstance(parameter, Choice) else list(values)
    table = np.array([*codes, codes[0]])
    features, names = _features(parameter, values, may_be_missing=may_be_missing)
    indexes = np.arange(-1 if may_be_missing else 0, len(values), dtype=np.int32)
    return Domain(parameter, position, values, indexes, table, features, names)


def symbol_of(domain: Domain) -> Symbol:
    """Return what the parameter's name means in expressions."""
    parameter = domain.parameter
    common: dict[str, Any] = {"position": domain.position, "table": domain.table}
    common["may_be_missing"] = domain.may_be_missing
    if isinstance(parameter, Choice):
        return Symbol("str", words=frozenset(parameter.values), **common)
    if isinstance(parameter, Flag):
        return Symbol("bool", 0, 1, **common)
    return Symbol(
        "float" if isinstance(parameter, Float) else "int", parameter.values[0], parameter.values[-1], **common
    )


def scale_value(domain: Domain, value: float) -> float:
    """Return the place of a number, in the domain or not, on the parameter's scale from 0 to 1."""
    grid = [float(v) for v in domain.values]
    return float(np.interp(value, grid, domain.features[:-1, 0]))


def _features(
    parameter: Parameter, values: tuple[object, ...], *, may_be_missing: bool
) -> tuple[FloatArray, tuple[str, ...]]:
    name = parameter.name
    if isinstance(parameter, Choice):
        columns = np.vstack([np.eye(len(values)), np.zeros(len(values))])
        names = tuple(f"{name}={value}" for value in values)
    else:
        log = parameter.log if isinstance(parameter, Float) else None
        scale = _scale(np.array(values, dtype=float), log=log)
        columns = np.append(scale, MIDDLE if may_be_missing else 0.0)[:, None]
        names = (name,)
    if may_be_missing:
        absent = np.zeros((len(columns), 1))
        absent[-1] = 1.0
        columns, names = np.hstack([columns, absent]), (*names, f"{name} is unset")
    return columns, names


def _scale(values: FloatArray, *, log: bool | None) -> FloatArray:
    """Put increasing values on [0, 1], by logarithm if `log` is true.

    Without `log`: linearly if evenly spaced, else by logarithm if positive, else by rank.
    """
    if len(values) == 1:
        return np.zeros(1)
    steps = np.diff(values)
    even = log is False or math.isclose(steps.min(), steps.max(), rel_tol=1e-6)
    if log or (not even and values[0] > 0):
        values = np.log(values)
    elif not even:
        values = np.arange(len(values), dtype=float)
    scale: FloatArray = (values - values[0]) / (values[-1] - values[0])
    return scale
