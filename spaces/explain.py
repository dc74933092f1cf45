"""Why a configuration is invalid, in sentences that name the rule, the reason and the values."""

from collections.abc import Mapping

import numpy as np

from spaces.expressions.node import Array
from spaces.parameters.errors import did_you_mean
from spaces.parameters.parameter import Configuration, Value, describe_domain, index_of
from spaces.valid_set.compiled import Compiled
from spaces.valid_set.domain import NO_VALUE, Domain
from spaces.valid_set.rule import ConstraintRule, ExistenceRule
from spaces.values import values_in


def violations(space: Compiled, configuration: Configuration, facts: Mapping[str, Value]) -> list[str]:
    """Return everything that makes `configuration` invalid, one sentence each; nothing if it is valid."""
    found = _unknown_names(space, configuration)
    columns: dict[int, Array] = {}
    for domain in space.domains:
        name = domain.parameter.name
        index = NO_VALUE
        if name in configuration:
            place = index_of(domain.parameter, plain(configuration[name]))
            if place is None:
                given, allowed = configuration[name], describe_domain(domain.parameter)
                found.append(f"{name}: {given!r} is not one of its values: {allowed}")
                continue
            index = place
        column = np.array([index], dtype=np.int32)
        rule = space.existence.get(domain.position)
        sentence = _existence(rule, domain, column, columns, configuration.get(name))
        if sentence:
            found.append(sentence)
        if index != NO_VALUE or domain.may_be_missing:
            columns[domain.position] = column
    for constraint in space.constraints:
        known = columns.keys() >= set(constraint.positions)
        if known and not bool(np.all(constraint.mask(columns))):
            found.append(violation_text(constraint, space, configuration, facts))
    return found


def plain(value: object) -> object:
    """Return a number of numpy as a Python number, and anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def violation_text(
    rule: ConstraintRule, space: Compiled, configuration: Configuration, facts: Mapping[str, Value]
) -> str:
    """Return the sentence for a constraint that `configuration` breaks."""
    names = [space.domains[position].parameter.name for position in rule.positions]
    values = [f"{name}={configuration[name]!r}" for name in names if name in configuration]
    values += [f"{name} is unset" for name in names if name not in configuration]
    derived = {name: space.derived[name] for name in rule.derived}
    values += [f"{name}={value!r}" for name, value in values_in(space, derived, configuration).items()]
    values += [f"{name}={facts[name]!r}" for name in rule.facts if name in facts]
    at = f" with {', '.join(values)}" if values else ""
    return f"{constraint_text(rule)}: not so{at}"


def constraint_text(rule: ConstraintRule) -> str:
    """Return the name, the rule and the reason of a constraint."""
    constraint = rule.constraint
    reason = f" ({constraint.reason})" if constraint.reason else ""
    return f"{constraint.name}: {' '.join(constraint.rule.split())}{reason}"


def _unknown_names(space: Compiled, configuration: Configuration) -> list[str]:
    known = [domain.parameter.name for domain in space.domains]
    unknown = [name for name in configuration if name not in set(known)]
    return [f"unknown parameter {name!r}{did_you_mean(str(name), known)}" for name in unknown]


def _existence(
    rule: ExistenceRule | None, domain: Domain, column: Array, columns: Mapping[int, Array], value: Value | None
) -> str:
    """Return a sentence if a parameter has a value although it must not, or lacks one that it must have."""
    name, absent = domain.parameter.name, bool(column[0] == NO_VALUE)
    if rule is None:
        missing = absent and not domain.parameter.optional
        return f"{name}: has no value; values: {describe_domain(domain.parameter)}" if missing else ""
    if not columns.keys() >= rule.node.positions:
        return ""  # a parameter that it depends on is itself wrong
    exists = bool(np.all(rule.active(columns)))
    if exists and absent and not domain.parameter.optional:
        return f"{name}: has no value, but exists here since {domain.parameter.when}"
    if not exists and not absent:
        return f"{name}: has the value {value!r}, but exists only when {domain.parameter.when}"
    return ""
