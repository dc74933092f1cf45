"""Encode configurations in the form that suits Optuna's own samplers best.

An ordered value becomes its position, so that powers of two and logarithmic grids are evenly spaced. An optional word
gets a further choice for "unset"; an optional number gets a switch, and its middle value while it is unset. Every
column exists in every trial, since samplers lose the relations between parameters if some are missing at times. For
samplers that know only numbers, a word is encoded by one number for each choice, of which the greatest wins.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from autotune.search.base import Rows
from spaces import Choice, Parameter, Space
from spaces.valid_set.domain import NO_VALUE


class _Column(Protocol):
    @property
    def distributions(self) -> Mapping[str, BaseDistribution]: ...

    def encode(self, index: int) -> dict[str, Any]: ...

    def decode(self, values: Mapping[str, Any]) -> int: ...


class Codec:
    """Turns rows of value indexes, (p,), into values of `distributions`, by name, and back."""

    def __init__(self, space: Space, *, numeric: bool = False) -> None:
        """Encode the parameters of `space`; with `numeric`, without categorical distributions."""
        self._columns = [_column(parameter, numeric=numeric) for parameter in space.parameters]
        self._names = [parameter.name for parameter in space.parameters]
        self.distributions = {
            name: distribution
            for column in self._columns
            for name, distribution in column.distributions.items()
            if not distribution.single()
        }

    def columns_of(self, name: str) -> tuple[str, ...]:
        """Return the names of the distributions of a parameter."""
        return tuple(self._columns[self._names.index(name)].distributions)

    def encode(self, row: Rows) -> dict[str, Any]:
        """Return the values of a configuration that has every parameter it needs."""
        values = {
            name: value
            for column, index in zip(self._columns, row.tolist(), strict=True)
            for name, value in column.encode(index).items()
        }
        return {name: values[name] for name in self.distributions}

    def decode(self, values: Mapping[str, Any]) -> Rows:
        """Return the nearest row; it need not be valid."""
        return np.array([column.decode(values) for column in self._columns], dtype=np.int32)


class _Ordered:
    def __init__(self, parameter: Parameter) -> None:
        self._name, self._size = parameter.name, len(parameter.values)
        self._switch = f"{parameter.name} is set" if parameter.may_be_missing else ""

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        switch = {self._switch: IntDistribution(0, 1)} if self._switch else {}
        return {self._name: IntDistribution(0, self._size - 1), **switch}

    def encode(self, index: int) -> dict[str, Any]:
        position = (self._size - 1) // 2 if index == NO_VALUE else index
        return {self._name: position, self._switch: int(index != NO_VALUE)}

    def decode(self, values: Mapping[str, Any]) -> int:
        return int(values.get(self._name, 0)) if values.get(self._switch, 1) else NO_VALUE


class _Word:
    def __init__(self, parameter: Parameter) -> None:
        self._name, self._choices = parameter.name, _choices(parameter)

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        return {self._name: CategoricalDistribution(self._choices)}

    def encode(self, index: int) -> dict[str, Any]:
        return {self._name: index}

    def decode(self, values: Mapping[str, Any]) -> int:
        return int(values.get(self._name, self._choices[0]))


class _Indicators:
    def __init__(self, parameter: Parameter) -> None:
        self._names = {index: f"{parameter.name}={index}" for index in _choices(parameter)}

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        if len(self._names) == 1:
            return {}
        return {name: FloatDistribution(0.0, 1.0) for name in self._names.values()}

    def encode(self, index: int) -> dict[str, Any]:
        return {name: float(own == index) for own, name in self._names.items()}

    def decode(self, values: Mapping[str, Any]) -> int:
        return max(self._names, key=lambda index: values.get(self._names[index], 0.0))


def _column(parameter: Parameter, *, numeric: bool) -> _Column:
    if not isinstance(parameter, Choice):
        return _Ordered(parameter)
    return _Indicators(parameter) if numeric else _Word(parameter)


def _choices(parameter: Parameter) -> range:
    return range(NO_VALUE if parameter.may_be_missing else 0, len(parameter.values))
