"""The valid set of a group of parameters that is too connected for a diagram: estimated, and sampled nearly uniformly.

Many partial assignments ("particles") are extended side by side, each by one of its allowed values at random, weighted
by the number of these, and resampled when few carry most of the weight. The product of the mean weights is an unbiased
estimate of the size. Then Gibbs steps move every particle, which leaves the uniform distribution unchanged.

Sources: D. E. Knuth, Estimating the Efficiency of Backtrack Programs, Mathematics of Computation 29 (1975), for the
estimate; P. Del Moral, A. Doucet, A. Jasra, Sequential Monte Carlo Samplers, J. R. Statist. Soc. B 68 (2006), for
resampling and moves.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from spaces.expressions.node import Array
from spaces.valid_set.domain import Domain, FloatArray
from spaces.valid_set.rule import Rule

PARTICLES = 4096
MORE = 8  # factor of particles if the first estimates differ widely or nothing is found
RUNS = 8  # independent estimates: their spread gives the error
SWEEPS = 3  # of Gibbs steps over all parameters
_LEAST = 256
_MOST_CELLS = 2**24  # particles times values of a parameter, as far as the least number of particles allows
_CELLS = 1_000_000  # changes considered side by side; pairs with more are not changed together
_FORBIDDEN = 1e300  # what an infinite cost counts as: still better than an invalid value
_TOO_VAGUE = 0.1
_SEED = 75  # the estimate of a space's size must not change from call to call


class NoneFoundError(Exception):
    """No particle survived: the space may be empty, or its valid assignments too rare to be found."""


@dataclass(frozen=True, eq=False)
class Particles:
    """A group of parameters that can be sampled but not counted.

    Attributes:
        order: The parameters, in the order of binding.
        rules: The rules of the group.
        estimate: The estimated number of valid assignments.
        relative_error: Its standard error, relative to it.
        pool: Some valid assignments, as columns by position.
    """

    order: tuple[Domain, ...]
    rules: tuple[Rule, ...]
    estimate: float
    relative_error: float
    pool: Mapping[int, Array]

    @property
    def size(self) -> int:
        """The estimated number of valid assignments."""
        return round(self.estimate)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the parameters, in the order of binding."""
        return tuple(domain.position for domain in self.order)

    def draw(self, rng: np.random.Generator, n: int) -> dict[int, Array]:
        """Return `n` nearly uniform assignments, as columns by position.

        If valid ones are too rare to be found each time, known ones are moved.
        """
        count = max(_particles(self.order), 4 * n)
        columns, _ = _attempt(self.order, self.rules, rng, count)
        if columns is not None:
            pick = rng.permutation(count)[:n]
            return {position: column[pick] for position, column in columns.items()}
        pick = rng.integers(len(self.pool[self.order[0].position]), size=n)
        known = {position: column[pick] for position, column in self.pool.items()}
        return _move(self.order, self.rules, _move_in_pairs(self.order, self.rules, known, rng), rng)

    def cheapest(self, costs: Mapping[int, FloatArray]) -> dict[int, int]:
        """Return a valid assignment whose sum of `costs[position][index]` no change of one parameter lowers."""
        columns = {position: column.copy() for position, column in self.pool.items()}
        total = _total(columns, costs)
        while True:
            for domain in self.order:
                cost = np.minimum(costs[domain.position][domain.indexes], _FORBIDDEN)
                least = [
                    np.argmin(np.where(allowed, cost, np.inf), axis=1)
                    for allowed in _blocks(domain, self.rules, columns)
                ]
                columns[domain.position] = domain.indexes[np.concatenate(least)]
            lower = _total(columns, costs)
            if not np.any(lower < total):
                break
            total = lower
        best = int(np.argmin(total))
        return {position: int(column[best]) for position, column in columns.items()}


def estimate_particles(order: Sequence[Domain], rules: Sequence[Rule]) -> Particles:
    """Return the particles of the group, with an estimate of its size from independent runs.

    If the estimates differ widely, the runs are repeated once with more particles.

    Raises:
        NoneFoundError: No run found a valid assignment.
    """
    found = _estimate(order, rules, _particles(order))
    if found is None or found.relative_error > _TOO_VAGUE:
        found = _estimate(order, rules, MORE * _particles(order))
    if found is None:
        raise NoneFoundError
    return found


def _particles(order: Sequence[Domain]) -> int:
    """Return the number of particles to extend side by side: fewer if a parameter has very many values."""
    return max(_LEAST, min(PARTICLES, _MOST_CELLS // max(domain.radix for domain in order)))


def _estimate(order: Sequence[Domain], rules: Sequence[Rule], n: int) -> Particles | None:
    rng = np.random.default_rng(_SEED)
    runs = [_attempt(order, rules, rng, n) for _ in range(RUNS)]
    pool = next((columns for columns, _ in runs if columns is not None), None)
    if pool is None:
        return None
    log_sizes = np.array([log_size for _, log_size in runs])
    scale = log_sizes.max()
    mean = float(np.mean(np.exp(log_sizes - scale)))
    error = float(np.std(np.exp(log_sizes - scale), ddof=1)) / math.sqrt(RUNS) / mean
    estimate = math.exp(min(scale + math.log(mean), 700.0))
    return Particles(tuple(order), tuple(rules), estimate, error, pool)


def _attempt(
    order: Sequence[Domain], rules: Sequence[Rule], rng: np.random.Generator, n: int
) -> tuple[dict[int, Array] | None, float]:
    try:
        return _run(order, rules, rng, n)
    except NoneFoundError:
        return None, -math.inf


def _run(
    order: Sequence[Domain], rules: Sequence[Rule], rng: np.random.Generator, n: int
) -> tuple[dict[int, Array], float]:
    """Return `n` assignments of about equal weight, and the logarithm of the estimated size."""
    columns: dict[int, Array] = {}
    log_size = 0.0
    weights = np.ones(n)
    for domain in order:
        bound = {*columns, domain.position}
        due = [rule for rule in rules if domain.position in rule.positions and bound.issuperset(rule.positions)]
        columns[domain.position] = np.broadcast_to(domain.indexes[:1], n)
        columns[domain.position], choices = _draw(domain, due, columns, rng)
        weights = weights * choices
        if not weights.any():
            raise NoneFoundError
        if weights.sum() ** 2 < 0.5 * n * (weights**2).sum():
            log_size += math.log(weights.mean())
            columns, weights = _resample(columns, weights, rng), np.ones(n)
    log_size += math.log(weights.mean())
    columns = _resample(columns, weights, rng)
    return _move(order, rules, columns, rng), log_size


def _resample(columns: Mapping[int, Array], weights: FloatArray, rng: np.random.Generator) -> dict[int, Array]:
    n = len(weights)
    reach = np.cumsum(weights)
    teeth = (np.arange(n) + rng.random()) / n * reach[-1]  # systematic resampling: one offset for all
    keep = np.minimum(np.searchsorted(reach, teeth, side="right"), n - 1)
    return {position: column[keep] for position, column in columns.items()}


def _move(
    order: Sequence[Domain], rules: Sequence[Rule], columns: dict[int, Array], rng: np.random.Generator
) -> dict[int, Array]:
    for _ in range(SWEEPS):
        for domain in order:
            columns[domain.position], _ = _draw(domain, rules, columns, rng)
    return columns


def _draw(
    domain: Domain, rules: Sequence[Rule], columns: Mapping[int, Array], rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return a random one of the values that each assignment allows, (n,), and their number."""
    picked, choices = [], []
    for allowed in _blocks(domain, rules, columns):
        choices.append(allowed.sum(axis=1))
        picked.append(_pick(allowed, choices[-1], rng))
    return domain.indexes[np.concatenate(picked)], np.concatenate(choices)


def _blocks(domain: Domain, rules: Sequence[Rule], columns: Mapping[int, Array]) -> Iterator[Array]:
    """Yield the values of a parameter that the assignments allow, in blocks that fit into memory."""
    step = max(1, _CELLS // domain.radix)
    for start in range(0, len(columns[domain.position]), step):
        some = {position: column[start : start + step] for position, column in columns.items()}
        yield _which_are_allowed({domain.position: domain.indexes}, rules, some)


def _move_in_pairs(
    order: Sequence[Domain], rules: Sequence[Rule], columns: dict[int, Array], rng: np.random.Generator
) -> dict[int, Array]:
    """Change two parameters at a time, since a given product or sum allows no change of one alone."""
    tied = [
        (first, second)
        for first, second in combinations(order, 2)
        if first.radix * second.radix <= _CELLS
        and any({first.position, second.position}.issubset(rule.positions) for rule in rules)
    ]
    for place in rng.integers(len(tied), size=len(order)) if tied else ():
        first, second = tied[place]
        both = {
            first.position: np.repeat(first.indexes, second.radix),
            second.position: np.tile(second.indexes, first.radix),
        }
        step = _CELLS // (first.radix * second.radix)
        for start in range(0, len(columns[first.position]), step):
            some = {position: column[start : start + step] for position, column in columns.items()}
            allowed = _which_are_allowed(both, rules, some)
            picked = _pick(allowed, allowed.sum(axis=1), rng)
            for position, values in both.items():
                columns[position][start : start + step] = values[picked]
    return columns


def _which_are_allowed(own: Mapping[int, Array], rules: Sequence[Rule], columns: Mapping[int, Array]) -> Array:
    """Return which of a parameter's `own` values, (k,), each assignment allows, (n, k), other parameters unchanged.

    Several parameters change together.
    """
    (n,), (k,) = (next(iter(some.values())).shape for some in (columns, own))
    allowed: Array = np.ones((n, k), dtype=bool)
    for rule in rules:
        if not own.keys().isdisjoint(rule.positions):
            at = {position: columns[position][:, None] for position in rule.positions}
            at |= {position: values[None, :] for position, values in own.items() if position in rule.positions}
            allowed &= rule.mask(at)
    return allowed


def _pick(allowed: Array, choices: Array, rng: np.random.Generator) -> Array:
    """Return the place of a random allowed value of each assignment, (n,)."""
    nth = np.floor(rng.random(len(choices)) * choices)
    picked: Array = np.argmax(np.cumsum(allowed, axis=1) > nth[:, None], axis=1)
    return picked


def _total(columns: Mapping[int, Array], costs: Mapping[int, FloatArray]) -> FloatArray:
    total: FloatArray = np.sum([costs[position][column] for position, column in columns.items()], axis=0)
    return total
