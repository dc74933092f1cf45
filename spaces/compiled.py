"""A space made ready for computing: its names checked, its expressions read, all mistakes found at once."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spaces.constraint import Constraint
from spaces.domain import Domain, domain_of, symbol_of
from spaces.errors import ExpressionError, SpaceError
from spaces.fact import fact_symbol
from spaces.functions import FUNCTIONS
from spaces.node import Node, Scope
from spaces.parameter import Parameter, Value
from spaces.rule import ConstraintRule, ExistenceRule, Rule
from spaces.syntax import MAX_BITS, parse_condition


@dataclass(frozen=True, eq=False)
class Compiled:
    """The domains by position, the conditions by the position of their parameter, and the constraints."""

    domains: tuple[Domain, ...]
    existence: Mapping[int, ExistenceRule]
    constraints: tuple[ConstraintRule, ...]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules about at least one parameter."""
        return (*self.existence.values(), *(rule for rule in self.constraints if rule.positions))

    @property
    def constants(self) -> tuple[ConstraintRule, ...]:
        """The constraints that mention facts only: they hold everywhere or nowhere."""
        return tuple(rule for rule in self.constraints if not rule.positions)


def compiled(
    parameters: Sequence[Parameter], constraints: Sequence[Constraint], facts: Mapping[str, Value]
) -> Compiled:
    """Check and compile a space.

    Raises:
        SpaceError: all that is wrong with it.
    """
    errors = _name_errors(parameters, constraints, facts)
    if errors:
        raise SpaceError(errors)
    scope = Scope({}, {})
    for name, value in facts.items():
        scope.symbols[name] = fact_symbol(value, scope)
    domains: list[Domain] = []
    existence: dict[int, ExistenceRule] = {}
    for position, parameter in enumerate(parameters):
        if parameter.when is not None:
            node = _read(parameter.when, scope, f"when of {parameter.name}", errors, _later(parameters, position))
            if node is not None:
                existence[position] = ExistenceRule(position, parameter.optional, node, _missable(node, domains))
        domain = domain_of(parameter, position, scope)
        domains.append(domain)
        scope.symbols[parameter.name] = symbol_of(domain)
    rules = []
    for constraint in constraints:
        node = _read(constraint.rule, scope, f"constraint {constraint.name!r}", errors)
        if node is not None:
            rules.append(ConstraintRule(constraint, node, _missable(node, domains)))
    if errors:
        raise SpaceError(errors)
    return Compiled(tuple(domains), existence, tuple(rules))


def _read(text: str, scope: Scope, where: str, errors: list[str], later: Sequence[str] = ()) -> Node | None:
    try:
        return parse_condition(text, scope)
    except ExpressionError as error:
        remark = ""
        if any(name in error.problem for name in (f"{name!r}" for name in later)):
            remark = "\n(a condition may only mention parameters that are declared before it)"
        errors.append(f"{where}: {error}{remark}")
        return None


def _later(parameters: Sequence[Parameter], position: int) -> list[str]:
    return [parameter.name for parameter in parameters[position:]]


def _missable(node: Node, domains: Sequence[Domain]) -> tuple[int, ...]:
    return tuple(sorted(position for position in node.needs if domains[position].may_be_missing))


def _name_errors(
    parameters: Sequence[Parameter], constraints: Sequence[Constraint], facts: Mapping[str, Value]
) -> list[str]:
    names = [parameter.name for parameter in parameters]
    errors = [f"parameter {name!r} is declared twice" for name in _repeated(names)]
    errors += [f"{name!r} is both a parameter and a fact; rename one" for name in names if name in facts]
    errors += [f"{name!r} is the name of a function in rules; choose another" for name in names if name in FUNCTIONS]
    repeated = _repeated([constraint.name for constraint in constraints])
    errors += [f"constraint {name!r} is declared twice" for name in repeated]
    for name, value in facts.items():
        errors += _fact_errors(name, value)
    return errors


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _fact_errors(name: str, value: object) -> list[str]:
    if not isinstance(value, bool | int | float | str):
        return [f"fact {name!r} must be a number, a string, True or False, not {value!r}"]
    if isinstance(value, float) and not math.isfinite(value):
        return [f"fact {name!r} must be finite, not {value!r}"]
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return [f"fact {name!r} is larger than 2**{MAX_BITS}"]
    return []
