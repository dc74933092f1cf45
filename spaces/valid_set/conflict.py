"""Why a space is empty: a minimal set of constraints that cannot hold together."""

from collections.abc import Callable, Sequence

from spaces.valid_set.diagram import EmptyError, TooWideError, build
from spaces.valid_set.domain import Domain
from spaces.valid_set.order import good_order, independent_groups
from spaces.valid_set.rule import ConstraintRule, Rule


def minimal_conflict(
    domains: Sequence[Domain], suspects: Sequence[ConstraintRule], background: Sequence[Rule]
) -> tuple[ConstraintRule, ...]:
    """Return conflicting constraints from `suspects`; without any one of them the rest would not conflict.

    `background` always holds (when parameters exist). QuickXplain: U. Junker, Preferred Explanations and Relaxations
    for Over-Constrained Problems, AAAI 2004.
    """

    def clash(rules: Sequence[Rule]) -> bool:
        return not _satisfiable(domains, [*background, *rules])

    return tuple(_explain([], [], list(suspects), clash))


def _explain(
    holding: list[ConstraintRule],
    added: list[ConstraintRule],
    suspects: list[ConstraintRule],
    clash: Callable[[Sequence[Rule]], bool],
) -> list[ConstraintRule]:
    if added and clash(holding):
        return []
    if len(suspects) == 1:
        return suspects
    half = len(suspects) // 2
    first, second = suspects[:half], suspects[half:]
    from_second = _explain([*holding, *first], first, second, clash)
    from_first = _explain([*holding, *from_second], from_second, first, clash)
    return from_first + from_second


def _satisfiable(domains: Sequence[Domain], rules: Sequence[Rule]) -> bool:
    for group in independent_groups(domains, rules):
        try:
            build(good_order(group), group.rules)
        except EmptyError:
            return False
        except TooWideError:
            continue  # unknown: taken as satisfiable, so that a conflict is never claimed wrongly
    return True
