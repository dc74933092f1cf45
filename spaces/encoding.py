"""Configurations as rows of value indexes, and as rows of numbers for models."""

from collections.abc import Mapping, Sequence

import numpy as np

from spaces.explain import plain
from spaces.expressions.node import Array
from spaces.parameters.errors import SpaceError, did_you_mean
from spaces.parameters.parameter import Choice, Configuration, Flag, Value, describe_domain, index_of, is_number
from spaces.valid_set.domain import NO_VALUE, Domain, FloatArray, scale_value
from spaces.valid_set.valid_set import Indices


def feature_names(domains: Sequence[Domain]) -> tuple[str, ...]:
    """Return the names of the columns of `encoded`."""
    return tuple(name for domain in domains for name in domain.feature_names)


def encode(domains: Sequence[Domain], indices: Indices) -> FloatArray:
    """Return the encoding (n, d) of rows of value indexes (n, p)."""
    if not domains:
        return np.zeros((len(indices), 0))
    return np.hstack([domain.features[indices[:, domain.position]] for domain in domains])


def indices_of(domains: Sequence[Domain], configurations: Sequence[Configuration]) -> Indices:
    """Return the value indexes (n, p) of configurations, -1 for "no value".

    Raises:
        SpaceError: A name is unknown, or a value is outside its domain.
    """
    errors: list[str] = []
    rows = np.full((len(configurations), len(domains)), NO_VALUE, dtype=np.int32)
    by_name = {domain.parameter.name: domain for domain in domains}
    known: dict[tuple[str, type, object], int | None] = {}  # values repeat from row to row
    for row, configuration in zip(rows, configurations, strict=True):
        for name, value in configuration.items():
            domain = by_name.get(name)
            if domain is None:
                errors.append(f"unknown parameter {name!r}{did_you_mean(str(name), by_name)}")
                continue
            key = (name, type(value), value if isinstance(value, int | float | str) else repr(value))
            if key not in known:
                known[key] = index_of(domain.parameter, plain(value))
            index = known[key]
            if index is None:
                errors.append(f"{name}: {value!r} is not one of its values: {describe_domain(domain.parameter)}")
            else:
                row[domain.position] = index
    if errors:
        raise SpaceError(dict.fromkeys(errors))
    return rows


def fitting(domains: Sequence[Domain], configurations: Sequence[Configuration]) -> tuple[Indices, Array]:
    """Return the value indexes (n, p) of configurations, and a mask (n,) of those without unknown names or values."""
    rows = np.full((len(configurations), len(domains)), NO_VALUE, dtype=np.int32)
    fits = np.ones(len(configurations), dtype=bool)
    by_name = {domain.parameter.name: domain for domain in domains}
    known: dict[tuple[str, type, object], int | None] = {}
    for place, configuration in enumerate(configurations):
        for name, value in configuration.items():
            domain = by_name.get(name)
            key = (name, type(value), value)
            if domain is not None and key not in known:
                known[key] = index_of(domain.parameter, plain(value))
            index = known.get(key)
            if domain is None or index is None:
                fits[place] = False
            else:
                rows[place, domain.position] = index
    return rows, fits


def decode(domains: Sequence[Domain], indices: Indices) -> list[Configuration]:
    """Return the configurations of rows of value indexes (n, p)."""
    names = [domain.parameter.name for domain in domains]
    columns = [_values(domain, indices[:, domain.position]) for domain in domains]
    if not columns:
        return [{} for _ in indices]
    rows = zip(*columns, strict=True)
    if not any(domain.may_be_missing for domain in domains):
        return [dict(zip(names, row, strict=True)) for row in rows]
    return [{n: value for n, value in zip(names, row, strict=True) if value is not None} for row in rows]


def _values(domain: Domain, column: Array) -> list[Value]:
    values = np.empty(len(domain.values) + 1, dtype=object)  # Python's own values; the last is that of index -1
    values[:-1] = domain.values
    column_of_values: list[Value] = values[column].tolist()
    return column_of_values


def costs(domains: Sequence[Domain], configuration: Configuration) -> Mapping[int, FloatArray]:
    """Return, for every parameter, the squared encoded distance of each of its indexes from `configuration`'s value.

    A missing required value counts as its default; without a default, all values are equally near.
    """
    return {domain.position: _cost(domain, configuration) for domain in domains}


def _cost(domain: Domain, configuration: Configuration) -> FloatArray:
    parameter = domain.parameter
    value = plain(configuration.get(parameter.name))
    if value is None and not domain.may_be_missing:
        value = parameter.default
        if value is None:
            return np.zeros(len(domain.features))
    distance: FloatArray = np.sum((domain.features - _target(domain, value)) ** 2, axis=1)
    return distance


def _target(domain: Domain, value: object) -> FloatArray:
    """Return the features of a value that need not be in the domain."""
    if value is None:
        return _features(domain, -1)
    index = index_of(domain.parameter, value)
    if index is not None:
        return _features(domain, index)
    target = np.zeros(domain.features.shape[1])
    if is_number(value) and not isinstance(domain.parameter, Choice | Flag):
        target[0] = scale_value(domain, float(value))  # type: ignore[arg-type]  # a number: checked above
    return target


def _features(domain: Domain, index: int) -> FloatArray:
    row: FloatArray = domain.features[index]
    return row
