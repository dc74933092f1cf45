"""The common space and identity of several plans, of inputs or of softwares."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from objectives.base import Plan
from spaces import Constraint, Parameter, Space, SpaceError, Value
from spaces.expressions.names import names_of
from spaces.parameters.parameter import Choice, Float, Integer, describe_domain, index_of

Named = tuple[str, Plan]
"""An input or a software: its name, and its plan."""


@dataclass(frozen=True)
class JointSpace:
    """The space that the plans suggest together; `notes` say where their defaults differ."""

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    facts: Mapping[str, Value]
    notes: tuple[str, ...] = ()


def join_spaces(inputs: Sequence[Named], noun: str = "input") -> JointSpace:
    """Return the space whose configurations suit every input; messages call an input `noun`.

    A parameter has the values that all inputs allow. A fact in which the inputs differ gets the input's name as suffix
    (`kpoints_small`), also in the constraints, which are those of all inputs.

    Raises:
        SpaceError: Inputs disagree on the kind of a parameter, or have no value of it in common; all such problems at
            once.
    """
    renamed = [_with_facts_renamed(name, plan, differing_facts(inputs)) for name, plan in inputs]
    parameters = _parameters([(name, plan) for (name, _), plan in zip(inputs, renamed, strict=True)])
    constraints = _constraints([(name, plan) for (name, _), plan in zip(inputs, renamed, strict=True)], noun)
    facts: dict[str, Value] = {}
    for plan in renamed:
        facts |= plan.facts
    wanted = {parameter.name: parameter.default for parameter in parameters}
    parameters = _with_valid_default(parameters, constraints, facts)
    return JointSpace(parameters, constraints, facts, tuple(_notes(inputs, parameters, wanted, noun)))


def fact_name_of(name: str, input_name: str) -> str:
    """Return the name of a fact of one input."""
    return "_".join((name, re.sub(r"\W", "_", input_name)))


def differing_facts(inputs: Sequence[Named]) -> set[str]:
    """Return the facts in which the inputs differ, or that only some of them have."""
    names = {name for _, plan in inputs for name in plan.facts}
    return {name for name in names if len({repr(plan.facts.get(name)) for _, plan in inputs}) > 1}


def _with_facts_renamed(input_name: str, plan: Plan, differing: set[str]) -> Plan:
    new = {name: fact_name_of(name, input_name) for name in plan.facts if name in differing}
    return replace(
        plan,
        facts={new.get(name, name): value for name, value in plan.facts.items()},
        parameters=tuple(
            parameter if parameter.when is None else replace(parameter, when=_with_names(parameter.when, new))
            for parameter in plan.parameters
        ),
        constraints=tuple(replace(rule, rule=_with_names(rule.rule, new)) for rule in plan.constraints),
    )


def _with_names(rule: str, new: Mapping[str, str]) -> str:
    """Return a rule with names replaced."""
    tree = ast.parse(rule.strip(), mode="eval")
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in new]
    for node in named:
        node.id = new[node.id]
    return ast.unparse(tree) if named else rule


def _parameters(inputs: Sequence[Named]) -> tuple[Parameter, ...]:
    by_name: dict[str, list[tuple[str, Parameter]]] = defaultdict(list)
    for name, plan in inputs:
        for parameter in plan.parameters:
            by_name[parameter.name].append((name, parameter))
    errors: list[str] = []
    merged: list[Parameter] = []
    for same in by_name.values():
        try:
            merged.append(_merge(same))
        except SpaceError as error:
            errors += map(str, error.problems)
    if errors:
        raise SpaceError(errors)
    return tuple(merged)


def _merge(same: Sequence[tuple[str, Parameter]]) -> Parameter:
    """Return one parameter for those of the same name.

    Raises:
        SpaceError: No parameter suits all inputs.
    """
    first = same[0][1]
    kinds = {type(parameter) for _, parameter in same}
    if len(kinds) > 1 or len({parameter.when for _, parameter in same}) > 1:
        what = "is not of the same kind" if len(kinds) > 1 else "does not exist under the same condition"
        described = "; ".join(f"{name}: {_describe(parameter)}" for name, parameter in same)
        raise SpaceError(f"{first.name}: {what} for all inputs ({described})")
    optional = all(parameter.optional for _, parameter in same)
    defaults = list(dict.fromkeys(parameter.default for _, parameter in same))
    if isinstance(first, Integer | Choice):
        common = [value for value in first.values if all(index_of(one, value) is not None for _, one in same)]
        if not common:
            raise SpaceError(f"{first.name}: the inputs have no value in common ({_domains(same)})")
        default = _first_of(defaults, common, optional=optional)
        # mypy cannot see that the values have the type of the parameter.
        return replace(first, values=tuple(common), optional=optional, default=default)  # type: ignore[arg-type]
    if isinstance(first, Float) and any(describe_domain(one) != describe_domain(first) for _, one in same):
        raise SpaceError(f"{first.name}: the inputs have different grids ({_domains(same)})")
    return replace(first, optional=optional, default=_first_of(defaults, list(first.values), optional=optional))  # type: ignore[arg-type]


def _first_of(defaults: Sequence[Value | None], values: Sequence[Value], *, optional: bool) -> Value | None:
    """Return the first default that all inputs allow, else the first value."""
    known = [default for default in defaults if default in values or (default is None and optional)]
    return known[0] if known else values[0]


def _describe(parameter: Parameter) -> str:
    kind = type(parameter).__name__.lower()
    return kind if parameter.when is None else f"{kind} when {parameter.when}"


def _domains(same: Sequence[tuple[str, Parameter]]) -> str:
    return "; ".join(f"{name}: {describe_domain(parameter)}" for name, parameter in same)


def _constraints(inputs: Sequence[Named], noun: str) -> tuple[Constraint, ...]:
    """Return the constraints of all inputs; a constraint of some inputs names them."""
    owners: dict[Constraint, list[str]] = defaultdict(list)
    for name, plan in inputs:
        for constraint in plan.constraints:
            owners[constraint].append(name)
    return tuple(
        constraint
        if len(names) == len(inputs)
        else replace(
            constraint,
            name=f"{constraint.name} ({', '.join(names)})",
            reason=f"{noun} {', '.join(names)}: {constraint.reason}",
        )
        for constraint, names in owners.items()
    )


def _with_valid_default(
    parameters: tuple[Parameter, ...], constraints: Iterable[Constraint], facts: Mapping[str, Value]
) -> tuple[Parameter, ...]:
    """Return the parameters with defaults that are valid together, as close as possible to their own."""
    if not parameters:
        return parameters
    # Rules that name parameters of the study file or facts of the machine are checked later, when these are known.
    known = {*facts, *(parameter.name for parameter in parameters)}
    space = Space(parameters, [rule for rule in constraints if known.issuperset(names_of(rule.rule))], facts)
    try:
        space.default()
    except SpaceError:
        nearest = space.nearest({one.name: one.default for one in parameters if one.default is not None})
        return tuple(
            replace(one, default=nearest.get(one.name, one.default))  # type: ignore[arg-type]
            for one in parameters
        )
    return parameters


def _notes(
    inputs: Sequence[Named], parameters: Sequence[Parameter], wanted: Mapping[str, Value | None], noun: str
) -> list[str]:
    """Report where the common default differs from that of an input."""
    own = {name: {one.name: one for one in plan.parameters} for name, plan in inputs}
    notes = []
    for parameter in parameters:
        theirs = {name: known[parameter.name].default for name, known in own.items() if parameter.name in known}
        if set(theirs.values()) == {parameter.default}:
            continue
        defaults = ", ".join(f"{name}: {'unset' if value is None else value}" for name, value in theirs.items())
        value = "unset" if parameter.default is None else parameter.default
        suits = parameter.default == wanted[parameter.name]
        why = "the first that suits all" if suits else "as the rules of all want it"
        notes.append(f"default of {parameter.name}: {value}, {why} ({noun} {defaults})")
    return notes


def merge_by_name(
    by_name: Mapping[str, Mapping[str, str]], called: Callable[[str, str], str], missing: str | None = None
) -> dict[str, str]:
    """Return what the plans say, by key; a key whose values differ becomes one key for each plan.

    Args:
        by_name: The entries of each plan, by its name.
        called: Makes the key of one plan, from the key and the plan's name.
        missing: The value for plans that lack a key; None leaves them out.
    """
    joint: dict[str, str] = {}
    for key in dict.fromkeys(key for own in by_name.values() for key in own):
        values = {name: own.get(key, missing) for name, own in by_name.items()}
        known = {name: value for name, value in values.items() if value is not None}
        if len(known) == len(by_name) and len(set(known.values())) == 1:
            joint[key] = next(iter(known.values()))
        else:
            joint |= {called(key, name): value for name, value in known.items()}
    return joint
