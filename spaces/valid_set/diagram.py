"""The valid set of a few parameters as a layered decision diagram: counted, listed and sampled without trial and error.

Parameters are bound one after another. After each, a partial assignment is reduced to what unfinished rules still need
of it (the frontier); equal ones are merged into one node, and a rule is checked as soon as it is bound. Paths from the
root to the end are the valid configurations: counting them backwards gives the exact size, and following a path by its
rank gives exactly uniform samples.

Sources: the frontier method, D. E. Knuth, The Art of Computer Programming 4A, 7.1.4; decision diagrams for constraints,
H. R. Andersen et al., A Constraint Store Based on Multivalued Decision Diagrams, CP 2007; its width is that of bucket
elimination, R. Dechter, Artificial Intelligence 113 (1999).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spaces.expressions.node import Array
from spaces.valid_set.domain import Domain, FloatArray
from spaces.valid_set.rule import ListedRule, Rule

Ids = npt.NDArray[np.int64]

MAX_STATES = 4_000_000  # nodes of one level; some tens of bytes each
MAX_EDGES = 20_000_000  # of all levels; 12 bytes each
MAX_CELLS = 200_000_000  # partial assignments checked in all: seconds to tens of seconds
CHUNK_CELLS = 2_000_000  # checked at once: bounds the memory of the check, and stays near the caches
FITS_INT64 = 2**62


class TooWideError(Exception):
    """The diagram would exceed its limits."""


class EmptyError(Exception):
    """Nothing is valid; `rules` are those that were checked before the last partial assignment was excluded."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        super().__init__("no valid configuration")
        self.rules = tuple(rules)


@dataclass(frozen=True, eq=False)
class Level:
    """The edges that bind the parameter at `position`, sorted by the node that they leave.

    Those of node k are `start[k] : start[k + 1]`; `value` is the value index, `child` the node of the next
    level. `paths[k]` counts the valid completions from node k (int64, or Python integers where that could
    overflow).
    """

    position: int
    start: Ids
    value: npt.NDArray[np.int32]
    child: Ids
    paths: Array


@dataclass(frozen=True, eq=False)
class Diagram:
    """The valid assignments of some parameters; `levels` in the order of binding, with no dead ends."""

    levels: tuple[Level, ...]

    @property
    def size(self) -> int:
        """The number of valid assignments."""
        return int(self.levels[0].paths[0])

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the parameters, in the order of binding."""
        return tuple(level.position for level in self.levels)

    def unrank(self, ranks: Ids) -> dict[int, Array]:
        """Return the assignments with the given ranks (each in [0, size), size < 2**62), as columns by position."""
        node: Ids = np.zeros(len(ranks), dtype=np.int64)
        rank = ranks.astype(np.int64)
        columns: dict[int, Array] = {}
        for level, following in zip(self.levels, [*self.levels[1:], None], strict=True):
            weights = np.ones(len(level.value), dtype=np.int64) if following is None else following.paths[level.child]
            before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(weights)])
            rank = rank + before[level.start[node]]
            edge = np.searchsorted(before, rank, side="right") - 1
            rank = rank - before[edge]
            columns[level.position] = level.value[edge]
            node = level.child[edge]
        return columns

    def draw(self, rng: np.random.Generator, n: int) -> dict[int, Array]:
        """Return `n` independent uniform assignments, as columns by position.

        Exactly uniform below 2**62 assignments; beyond, to about 1e-9, the rounding of the branch
        probabilities.
        """
        if self.size < FITS_INT64:
            return self.unrank(rng.integers(self.size, size=n))
        node: Ids = np.zeros(n, dtype=np.int64)
        columns: dict[int, Array] = {}
        for level, following in zip(self.levels, [*self.levels[1:], None], strict=True):
            weights = np.ones(len(level.value)) if following is None else following.paths[level.child]
            parent = np.repeat(np.arange(len(level.paths)), np.diff(level.start))
            share = np.asarray(weights / level.paths[parent], dtype=float)  # adds up to 1 for every node
            edge = np.searchsorted(np.cumsum(share), rng.random(n) + node, side="right")
            edge = np.clip(edge, level.start[node], level.start[node + 1] - 1)  # whatever the rounding
            columns[level.position] = level.value[edge]
            node = level.child[edge]
        return columns

    def ranks_of_all(self, digits: Mapping[int, Array]) -> Ids:
        """Return, for every valid assignment, the sum of `digits[position][index]` (-1: the last one), unsorted."""
        node: Ids = np.zeros(1, dtype=np.int64)
        total: Ids = np.zeros(1, dtype=np.int64)
        for level in self.levels:
            digit = digits[level.position][level.value]
            if len(level.paths) == 1:
                total = (total[:, None] + digit[None, :]).ravel()
                node = np.tile(level.child, len(node))
                continue
            first = level.start[node]
            degree = level.start[node + 1] - first
            ends = np.cumsum(degree)
            edge = np.arange(ends[-1]) + np.repeat(first - ends + degree, degree)
            total = np.repeat(total, degree) + digit[edge]
            node = level.child[edge]
        return total

    def cheapest(self, costs: Mapping[int, FloatArray]) -> dict[int, int]:
        """Return the valid assignment with the least sum of `costs[position][index]`: a shortest path.

        An infinite cost forbids an index; if nothing is left, the result's cost is infinite.
        """
        best = np.zeros(1)
        weights: list[FloatArray] = []
        for level in reversed(self.levels):
            weight = costs[level.position][level.value] + best[level.child]
            weights.append(weight)
            best = np.minimum.reduceat(weight, level.start[:-1])
        node = 0
        chosen: dict[int, int] = {}
        for level, weight in zip(self.levels, reversed(weights), strict=True):
            first, end = int(level.start[node]), int(level.start[node + 1])
            edge = first + int(np.argmin(weight[first:end]))
            chosen[level.position] = int(level.value[edge])
            node = int(level.child[edge])
        return chosen


@dataclass(frozen=True, eq=False)
class _Layer:
    """A level as it is built: edges with their parents, and how many nodes there are before and after."""

    position: int
    nodes: int
    parent: Ids
    value: npt.NDArray[np.int32]
    child: Ids
    children: int


def build(order: Sequence[Domain], rules: Sequence[Rule]) -> Diagram:
    """Return the diagram of the assignments to `order` (bound in this order) that satisfy `rules`.

    Raises:
        TooWideError: a limit of size would be exceeded.
        EmptyError: nothing satisfies the rules.
    """
    due = _due(order, rules)
    layers: list[_Layer] = []
    frontier: dict[int, Array] = {}
    nodes, cells, edges = 1, 0, 0
    for depth, domain in enumerate(order):
        cells += nodes * domain.radix
        if cells > MAX_CELLS:
            raise TooWideError
        parent, value = _extend(nodes, frontier, domain, due[depth], MAX_EDGES - edges)
        edges += len(parent)
        if not len(parent):
            raise EmptyError([rule for group in due[: depth + 1] for rule in group])
        kept = _still_needed(due[depth + 1 :], {*frontier, domain.position})
        columns = {p: value if p == domain.position else frontier[p][parent] for p in kept}
        if len(kept) == len(frontier) + 1:
            child, children = np.arange(len(parent)), len(parent)
            frontier = columns
        else:
            child, children, frontier = _merge(columns, {d.position: d for d in order}, len(parent))
        if children > MAX_STATES:
            raise TooWideError
        layers.append(_Layer(domain.position, nodes, parent, value, child, children))
        nodes = children
    return _without_dead_ends(layers, math.prod(domain.radix for domain in order))


def free(domain: Domain) -> Diagram:
    """Return the diagram of a parameter without rules."""
    start = np.array([0, domain.radix])
    child = np.zeros(domain.radix, dtype=np.int64)
    return Diagram((Level(domain.position, start, domain.indexes, child, np.array([domain.radix])),))


def _due(order: Sequence[Domain], rules: Sequence[Rule]) -> list[list[Rule]]:
    place = {domain.position: depth for depth, domain in enumerate(order)}
    due: list[list[Rule]] = [[] for _ in order]
    for rule in rules:
        if isinstance(rule, ListedRule):
            # Project the list on its first few parameters, so that the width stays at most the length of the list.
            for depth in sorted(place[position] for position in rule.positions):
                due[depth].append(rule.project({domain.position for domain in order[: depth + 1]}))
            continue
        due[max(place[position] for position in rule.positions)].append(rule)
    return due


def _still_needed(groups: Sequence[Sequence[Rule]], bound: set[int]) -> list[int]:
    needed = {position for group in groups for rule in group for position in rule.positions}
    return sorted(needed & bound)


def _extend(
    nodes: int, frontier: Mapping[int, Array], domain: Domain, rules: Sequence[Rule], most: int
) -> tuple[Ids, npt.NDArray[np.int32]]:
    """Return parent and value of every allowed extension of the nodes, sorted by parent; at most `most`."""
    radix = domain.radix
    if not rules:
        if nodes * radix > most:
            raise TooWideError
        return np.repeat(np.arange(nodes), radix), np.tile(domain.indexes, nodes)
    narrow_first = sorted(rules, key=lambda rule: len(rule.positions))
    step = max(1, CHUNK_CELLS // radix)
    parents, values = [], []
    for first in range(0, nodes, step):
        columns = {position: column[first : first + step] for position, column in frontier.items()}
        parent, value = _check_pairs(narrow_first, columns, domain, min(step, nodes - first))
        most -= len(parent)
        if most < 0:
            raise TooWideError
        parents.append(parent + first)
        values.append(value)
    if len(parents) == 1:
        return parents[0], values[0]
    return np.concatenate(parents), np.concatenate(values)


def _check_pairs(
    rules: Sequence[Rule], columns: Mapping[int, Array], domain: Domain, nodes: int
) -> tuple[Ids, npt.NDArray[np.int32]]:
    """Check all pairs of a node and a value while most remain, then only the remaining ones."""
    grid = {position: column[:, None] for position, column in columns.items()}
    grid[domain.position] = domain.indexes[None, :]
    allowed = np.broadcast_to(rules[0].mask(grid), (nodes, domain.radix))
    done = 1
    while done < len(rules) and 4 * np.count_nonzero(allowed) > allowed.size:
        allowed = allowed & rules[done].mask(grid)
        done += 1
    parent, pick = np.nonzero(allowed)
    value = domain.indexes[pick]
    for rule in rules[done:]:
        at = {p: value if p == domain.position else columns[p][parent] for p in rule.positions}
        kept = np.flatnonzero(rule.mask(at))
        parent, value = parent[kept], value[kept]
    return parent, value


def _merge(
    columns: Mapping[int, Array], domains: Mapping[int, Domain], edges: int
) -> tuple[Ids, int, dict[int, Array]]:
    """Return the node to which each edge leads, the number of nodes, and their columns."""
    if not columns:
        return np.zeros(edges, dtype=np.int64), 1, {}
    key: Ids = np.zeros(edges, dtype=np.int64)
    reach = 1
    for position, column in columns.items():
        domain = domains[position]
        if reach * domain.radix >= FITS_INT64:
            key = np.unique(key, return_inverse=True)[1]
            reach = edges
        key = key * domain.radix + (column - domain.indexes[0])
        reach *= domain.radix
    child, first = _number_keys(key, reach, edges)
    return child, len(first), {position: column[first] for position, column in columns.items()}


def _number_keys(key: Ids, reach: int, edges: int) -> tuple[Ids, Ids]:
    """Give equal keys equal numbers; return each key's number and where each number occurs."""
    if reach > max(4 * edges, 1 << 16):
        _, first, child = np.unique(key, return_index=True, return_inverse=True)
        return child, first
    where = np.full(reach, -1, dtype=np.int64)  # counting instead of sorting: the keys are dense
    where[key] = np.arange(edges)
    used = np.flatnonzero(where >= 0)
    first = where[used]
    where[used] = np.arange(len(used))
    return where[key], first


def _without_dead_ends(layers: Sequence[_Layer], raw: int) -> Diagram:
    """Count paths backwards and remove edges that lead nowhere."""
    paths: Array = np.ones(1, dtype=np.int64 if raw < FITS_INT64 else object)
    number: Ids = np.zeros(1, dtype=np.int64)
    levels: list[Level] = []
    for layer in reversed(layers):
        live = np.flatnonzero(number[layer.child] >= 0) if number.min() < 0 else slice(None)
        parent, value, child = layer.parent[live], layer.value[live], number[layer.child[live]]
        degree = np.bincount(parent, minlength=layer.nodes)
        alive = degree > 0
        start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(degree[alive])])
        paths = np.add.reduceat(paths[child], start[:-1])
        number = np.where(alive, np.cumsum(alive) - 1, -1)
        levels.append(Level(layer.position, start, value, child, paths))
    return Diagram(tuple(_narrow(level) for level in reversed(levels)))


def _narrow(level: Level) -> Level:
    if level.paths.dtype == object and max(level.paths) < FITS_INT64:
        return Level(level.position, level.start, level.value, level.child, level.paths.astype(np.int64))
    return level
