"""Rules of a study file that forbid nothing: usually a mistake in them, or in the values of a parameter."""

from collections.abc import Iterator, Mapping
from typing import Any

from autotune.studyfile.model import SpaceSection
from spaces import Constraint, Listed, Space, SpaceError
from spaces.expressions.node import Node

_MOST_RULES = 40
_MOST_COMBINATIONS = 10**7  # the sizes of a few spaces must be known at once


def idle_rules(space: Space, section: SpaceSection) -> Iterator[str]:
    """Yield a sentence for each rule of the study file that no configuration breaks, whatever the machine is.

    Rules that mention facts are left out, and those over parameters whose values depend on facts: they may forbid
    something on another machine.
    """
    own = {constraint["name"] for constraint in section.constraints}
    fixed = {name for name, table in section.parameters.items() if not _depends_on_facts(table)}
    independent = [one for one in space.constraints if _is_independent(space, one, fixed)]
    if len(independent) > _MOST_RULES or space.raw_size > _MOST_COMBINATIONS:
        return
    for rule in independent:
        if rule.name in own and (why := _why(space, rule, [one for one in independent if one != rule])):
            yield f"constraint {rule.name!r} forbids nothing: {why}"


def _why(space: Space, rule: Constraint, others: list[Constraint]) -> str | None:
    """Return why a rule is false nowhere; None where it is false somewhere."""
    alone, beside = _size(space, []), _size(space, others)
    opposite = Constraint("its opposite", f"not ({rule.rule})")
    if _size(space, [*others, rule]) < beside:
        return None
    if _size(space, [*others, opposite]) == beside:
        return "it is unknown wherever the other rules hold: a parameter in it has no value there (is_set asks)"
    if _size(space, [rule]) < alone:
        return "where it is false, other rules forbid the configuration already"
    if _size(space, [opposite]) > 0:
        return "it is true or unknown for all values of its parameters; is_set asks whether one has a value"
    return "it is true for all values of its parameters"


def _size(space: Space, constraints: list[Constraint]) -> int:
    """Return how many configurations the values, conditions and `constraints` allow."""
    try:
        return Space(space.parameters, constraints, space.facts, space.derived).size.value
    except SpaceError:
        return 0


def _is_independent(space: Space, constraint: Constraint, fixed: set[str]) -> bool:
    if isinstance(constraint, Listed):
        return False
    node = space.expression(constraint.rule)
    names = {space.parameters[position].name for position in node.positions}
    return names <= fixed and not _mentions_facts(node)


def _mentions_facts(node: Node) -> bool:
    return any(part.op == "fact" for part in node.parts())


def _depends_on_facts(table: Mapping[str, Any]) -> bool:
    given = [table.get(key) for key in ("low", "high", "step")]
    values = table.get("values") if table.get("type") == "integer" else None
    return any(isinstance(one, str) for one in [*given, *(values if isinstance(values, list) else [])])
