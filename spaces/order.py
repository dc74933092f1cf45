"""In which order parameters are bound: independent groups apart, and within a group the narrowest frontier
first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spaces.domain import Domain
from spaces.rule import Rule

_WORTH_A_SEARCH = math.log(200_000)  # below this many cells, looking for a better order costs more than it saves


@dataclass(frozen=True, eq=False)
class Group:
    """Parameters that rules tie together, directly or through others, and those rules."""

    domains: tuple[Domain, ...]
    rules: tuple[Rule, ...]


def independent_groups(domains: Sequence[Domain], rules: Sequence[Rule]) -> list[Group]:
    """Split the space where no rule ties it together: the valid set is the product of the groups' valid sets."""
    leader = list(range(len(domains)))

    def find(position: int) -> int:
        while leader[position] != position:
            position = leader[position]
        return position

    for rule in rules:
        first, *others = rule.positions
        for other in others:
            leader[find(other)] = find(first)
    members: dict[int, list[Domain]] = {}
    for domain in domains:
        members.setdefault(find(domain.position), []).append(domain)
    tied: dict[int, list[Rule]] = {}
    for rule in rules:
        tied.setdefault(find(rule.positions[0]), []).append(rule)
    return [Group(tuple(group), tuple(tied.get(key, ()))) for key, group in members.items()]


def good_order(group: Group) -> list[Domain]:
    """Return an order of binding that keeps the frontier narrow: greedily, and from every start if that is
    costly.

    The cost of an order is the number of cells to check if no rule excluded anything: an upper bound.
    """
    if len(group.domains) < 2:
        return list(group.domains)
    scopes = [frozenset(rule.positions) for rule in group.rules]
    weight = {domain.position: math.log(domain.radix) for domain in group.domains}
    order, cost = _greedy(weight, scopes, None)
    if cost > _WORTH_A_SEARCH:
        starts = [_greedy(weight, scopes, start) for start in weight]
        order, cost = min([(order, cost), *starts], key=lambda plan: plan[1])
    by_position = {domain.position: domain for domain in group.domains}
    return [by_position[position] for position in order]


def _greedy(weight: dict[int, float], scopes: Sequence[frozenset[int]], start: int | None) -> tuple[list[int], float]:
    """Return an order, and the logarithm of its cost."""
    order: list[int] = []
    bound: set[int] = set()
    frontier: frozenset[int] = frozenset()
    left = list(scopes)
    cost = 0.0
    while len(order) < len(weight):
        candidates = [start] if start is not None and not order else [p for p in weight if p not in bound]
        steps = [_step(position, frontier, bound, left, weight) for position in candidates]
        _, width, position, following = min(steps, key=lambda step: step[:3])
        order.append(position)
        bound.add(position)
        frontier = following
        left = [scope for scope in left if not scope <= bound]
        cost += math.exp(min(width, 600.0))
    return order, math.log(cost)


def _step(
    position: int,
    frontier: frozenset[int],
    bound: set[int],
    left: Sequence[frozenset[int]],
    weight: dict[int, float],
) -> tuple[float, float, int, frozenset[int]]:
    """Return (width after, width while binding, position, frontier after) of binding `position` next."""
    now = bound | {position}
    pending = frozenset[int]().union(*(scope for scope in left if not scope <= now))
    following = pending & now
    width = sum(weight[p] for p in frontier) + weight[position]
    return sum(weight[p] for p in following), width, position, following
