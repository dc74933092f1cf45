"""Tables (interface first)."""

from collections.abc import Mapping, Sequence
from typing import Any

from spaces.constraint import Constraint
from spaces.parameter import Parameter, Value
from spaces.space import Space


def parameters_from_tables(tables: Mapping[str, Any], facts: Mapping[str, Value], path: str = "space") -> tuple[Parameter, ...]:
    raise NotImplementedError


def constraints_from_tables(tables: Sequence[Mapping[str, Any]], path: str = "space") -> tuple[Constraint, ...]:
    raise NotImplementedError


def space_from_tables(parameters: Mapping[str, Any], constraints: Sequence[Mapping[str, Any]], facts: Mapping[str, Value]) -> Space:
    raise NotImplementedError
