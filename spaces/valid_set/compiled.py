"""A space prepared for computing: its names checked, its expressions parsed, all mistakes found at once."""

import keyword
import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from spaces.expressions.derived import DerivedValues
from spaces.expressions.fact import fact_symbol
from spaces.expressions.functions import FUNCTIONS
from spaces.expressions.node import Node, Scope
from spaces.expressions.syntax import MAX_BITS, parse_condition
from spaces.parameters.constraint import Constraint
from spaces.parameters.errors import ExpressionError, SpaceError
from spaces.parameters.listed import Listed
from spaces.parameters.parameter import Parameter, Value, index_of
from spaces.parameters.problem import ConditionProblem, ConstraintProblem, Problem
from spaces.valid_set.domain import NO_VALUE, Domain, domain_of, symbol_of
from spaces.valid_set.rule import ConstraintRule, ExistenceRule, ListedRule, Rule


@dataclass(frozen=True, eq=False)
class Compiled:
    """The domains by position, the conditions by the position of their parameter, and the constraints.

    `derived` are the derived values, in the order of dependence; `scope` are the names that expressions may use.
    """

    domains: tuple[Domain, ...]
    existence: Mapping[int, ExistenceRule]
    constraints: tuple[ConstraintRule, ...]
    derived: Mapping[str, Node]
    scope: Scope

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules about at least one parameter."""
        return (*self.existence.values(), *(rule for rule in self.constraints if rule.positions))

    @property
    def constants(self) -> tuple[ConstraintRule, ...]:
        """The constraints that mention only facts, and so hold everywhere or nowhere."""
        return tuple(rule for rule in self.constraints if not rule.positions)


def compile_space(
    parameters: Sequence[Parameter],
    constraints: Sequence[Constraint],
    facts: Mapping[str, Value],
    derived_texts: Mapping[str, str],
) -> Compiled:
    """Check and compile a space.

    Raises:
        SpaceError: All mistakes in it.
    """
    errors = _name_errors(parameters, constraints, facts, derived_texts)
    if errors:
        raise SpaceError(errors)
    scope = Scope({}, {})
    for name, value in facts.items():
        scope.symbols[name] = fact_symbol(value, scope)
    derived = DerivedValues(dict(derived_texts))
    derived.define(scope)
    domains: list[Domain] = []
    existence: dict[int, ExistenceRule] = {}
    for position, parameter in enumerate(parameters):
        if parameter.when is not None:
            later = [*_later(parameters, position), *derived.waiting]
            node = _condition(parameter, scope, errors, later)
            if node is not None:
                existence[position] = ExistenceRule(position, parameter.optional, node)
        domain = domain_of(parameter, position, scope)
        domains.append(domain)
        scope.symbols[parameter.name] = symbol_of(domain)
        derived.define(scope)
    derived.finish(scope)
    errors += derived.problems
    rules: list[ConstraintRule] = []
    for constraint in constraints:
        if isinstance(constraint, Listed):
            listed = _list_rule(constraint, domains, errors)
            rules += [listed] if listed else []
            continue
        node = _rule(constraint, scope, errors, derived_texts.keys() - derived.nodes.keys())
        if node is not None:
            rules.append(ConstraintRule(constraint, node))
    if errors:
        raise SpaceError(errors)
    return Compiled(tuple(domains), existence, tuple(rules), derived.nodes, scope)


def _list_rule(constraint: Listed, domains: Sequence[Domain], errors: list[Problem]) -> ListedRule | None:
    by_name = {domain.parameter.name: domain for domain in domains}
    wrong = [f"unknown parameter {name!r}" for name in constraint.parameters if name not in by_name]
    if not (constraint.parameters and constraint.rows):
        wrong.append("it lists nothing")
    tables = []
    for name, values in zip(constraint.parameters, constraint.columns, strict=True):
        if name not in by_name:
            continue
        places = [index_of(by_name[name].parameter, value) for value in values]
        wrong += [f"{name} is never {value!r}" for value, place in zip(values, places, strict=True) if place is None]
        # The last one belongs to index -1: no value.
        tables.append(np.array([*(place or 0 for place in places), NO_VALUE]))
    if wrong:
        errors += [_of_constraint(constraint.name, f": {problem}") for problem in wrong]
        return None
    named = [by_name[name] for name in constraint.parameters]
    rows = np.array(constraint.rows, dtype=np.int64)
    indexes = np.column_stack([table[column] for table, column in zip(tables, rows.T, strict=True)])
    everything = Node("constant", "bool", (), 0, 1, value=True)
    radices = tuple(len(domain.values) + 1 for domain in named)
    return ListedRule(constraint, everything, tuple(domain.position for domain in named), radices, indexes)


def _of_constraint(name: str, wrong: str) -> Problem:
    return ConstraintProblem(f"constraint {name!r}{wrong}", constraint=name)


def _rule(constraint: Constraint, scope: Scope, errors: list[Problem], wrong: Set[str]) -> Node | None:
    """Parse a rule; `wrong` are derived values with mistakes of their own, which are reported elsewhere."""
    try:
        return parse_condition(constraint.rule, scope)
    except ExpressionError as error:
        if error.unknown in wrong:
            return None
        errors.append(_of_constraint(constraint.name, f": {error}"))
        return None


def _condition(parameter: Parameter, scope: Scope, errors: list[Problem], later: Sequence[str]) -> Node | None:
    try:
        return parse_condition(parameter.when or "", scope)
    except ExpressionError as error:
        remark = ""
        if error.unknown in later:
            remark = (
                "\n(a condition may only mention parameters that are declared before it, and derived values of these)"
            )
        errors.append(ConditionProblem(f"when of {parameter.name}: {error}{remark}", parameter=parameter.name))
        return None


def _later(parameters: Sequence[Parameter], position: int) -> list[str]:
    return [parameter.name for parameter in parameters[position:]]


def _name_errors(
    parameters: Sequence[Parameter],
    constraints: Sequence[Constraint],
    facts: Mapping[str, Value],
    derived: Mapping[str, str],
) -> list[Problem]:
    names = [parameter.name for parameter in parameters]
    errors = [f"parameter {name!r} is declared twice" for name in _repetitions(names)]
    errors += [f"{name!r} is both a parameter and a fact; rename one" for name in names if name in facts]
    errors += [f"{name!r} is the name of a function in rules; choose another" for name in names if name in FUNCTIONS]
    repeated = _repetitions([constraint.name for constraint in constraints])
    return [
        *map(Problem, errors),
        *(_of_constraint(name, " is declared twice") for name in repeated),
        *(Problem(error) for name, value in facts.items() for error in _fact_errors(name, value)),
        *(
            Problem(f"{name!r} {wrong}", f"space.derived.{name}")
            for name in derived
            if (wrong := _error_of_derived_name(name, names, facts))
        ),
    ]


def _error_of_derived_name(name: str, parameters: Sequence[str], facts: Mapping[str, Value]) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        return "is not a name: letters, digits and _, not a digit first"
    if name in FUNCTIONS:
        return "is the name of a function in rules; choose another"
    if name in parameters or name in facts:
        return f"is a {'parameter' if name in parameters else 'fact'}, too; rename the derived value"
    return ""


def _repetitions(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _fact_errors(name: str, value: object) -> list[str]:
    if not isinstance(value, bool | int | float | str):
        return [f"fact {name!r} must be a number, a string, True or False, not {value!r}"]
    if isinstance(value, float) and not math.isfinite(value):
        return [f"fact {name!r} must be finite, not {value!r}"]
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return [f"fact {name!r} is larger than 2**{MAX_BITS}"]
    return []
