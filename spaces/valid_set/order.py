"""The order in which parameters are bound: by independent groups, and within a group by the narrowest frontier."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spaces.valid_set.domain import Domain
from spaces.valid_set.rule import Rule

_WORTH_A_SEARCH = math.log(50_000)  # below this many cells, looking for a better order costs more than it saves
_PROBES = 1000
_HUGE = 600.0  # exponents beyond it overflow


@dataclass(frozen=True, eq=False)
class Group:
    """Parameters that rules tie together, directly or through others, and those rules."""

    domains: tuple[Domain, ...]
    rules: tuple[Rule, ...]


def independent_groups(domains: Sequence[Domain], rules: Sequence[Rule]) -> list[Group]:
    """Split the space into groups that no rule connects; the valid set is the product of theirs."""
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
    """Return an order that keeps the frontier narrow: greedy, and from every start if that is expensive.

    The cost of an order is the estimated number of cells to check. How much a rule excludes is measured on random
    cells; otherwise an order that binds closely connected parameters first would not look better.
    """
    if len(group.domains) < 2:
        return list(group.domains)
    weight = {domain.position: math.log(domain.radix) for domain in group.domains}
    scopes = [_Scope(frozenset(rule.positions), 0.0) for rule in group.rules]
    order, cost = _greedy(weight, scopes, None)
    if cost > _WORTH_A_SEARCH:
        by_position = {domain.position: domain for domain in group.domains}
        scopes = [_Scope(frozenset(rule.positions), _log_share(rule, by_position)) for rule in group.rules]
        order, _ = min((_greedy(weight, scopes, start) for start in weight), key=lambda plan: plan[1])
    return sorted(group.domains, key=lambda domain: order.index(domain.position))


@dataclass(frozen=True)
class _Scope:
    """The parameters of a rule, and the logarithm of the share of their combinations that it allows."""

    positions: frozenset[int]
    log_share: float


def _log_share(rule: Rule, domains: Mapping[int, Domain]) -> float:
    rng = np.random.default_rng(len(rule.positions))  # any fixed seed: the same space is built alike every time
    columns = {p: rng.choice(domains[p].indexes, _PROBES) for p in rule.positions}
    allowed = int(np.count_nonzero(np.broadcast_to(rule.mask(columns), _PROBES)))
    return math.log(max(allowed, 0.5) / _PROBES)


def _greedy(weight: Mapping[int, float], scopes: Sequence[_Scope], start: int | None) -> tuple[list[int], float]:
    """Return an order, and the logarithm of its cost."""
    order: list[int] = []
    bound: set[int] = set()
    width, cost = 0.0, 0.0
    while len(order) < len(weight):
        candidates = [start] if start is not None and not order else [p for p in weight if p not in bound]
        steps = [(_log_nodes(bound | {p}, scopes, weight), p) for p in candidates]
        following, position = min(steps, key=lambda step: (step[0], weight[step[1]], step[1]))
        cost += math.exp(min(width + weight[position], _HUGE))
        width = following
        order.append(position)
        bound.add(position)
    return order, math.log(cost)


def _log_nodes(bound: set[int], scopes: Sequence[_Scope], weight: Mapping[int, float]) -> float:
    """Return the logarithm of the estimated number of nodes once `bound` are bound."""
    pending = [scope.positions for scope in scopes if not scope.positions <= bound]
    frontier = frozenset[int]().union(*pending) & bound
    width = sum(weight[position] for position in frontier)
    width += sum(scope.log_share for scope in scopes if scope.positions <= frontier)
    return max(width, 0.0)
