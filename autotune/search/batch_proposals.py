"""Plan: what to propose next and next after that, from one look at the data, while many runs are in flight.

To fit a model for each of a thousand workers would take longer than their runs. A plan keeps the most promising
candidates of one model, and takes note of each that is proposed as the model would: a run in flight is believed at the
model's mean (kriging believer), so that its mean stays as it is and only its doubt gets less, near what was proposed.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from autotune.records.limit import Limits
from autotune.search.acquisition import Weighed, log_expected_improvement
from autotune.search.base import History, Rows, keys
from autotune.statistics.gaussian_process import JITTER, Array, Factor

CROWD = 20
"""The least number of runs in flight for a plan; with fewer, every proposal has a model of its own."""

# A plan is good until that share of the runs in flight has ended, or of those that it was made from.
_OF_FLIGHTS = 10
_OF_ENDED = 5
# Where somebody waits it is good until that share is new of all that is known: a model of many takes seconds.
_OF_KNOWN = 50
# A plan that another process makes serves on while the next one is made, until that share has ended since of the runs
# in flight, or of those that it was made from: with so many more workers the search would know as little.
_OF_FLIGHTS_MEANWHILE = 2
_OF_ENDED_MEANWHILE = 10
# The most promising candidates, and others by chance: what was proposed may have used up the region of the first.
_PROMISING = 700
_OTHERS = 300
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class PlanOrder:
    """Make a plan from what is known of the trials; so many are `waiting` for a proposal, and `rng` decides ties."""

    history: History
    limits: Limits
    waiting: int
    rng: np.random.Generator


class PlanMaker(Protocol):
    """Makes plans, one at a time, while the caller does something else."""

    is_warm: bool
    is_lost: bool

    def begin(self, order: PlanOrder) -> bool:
        """Order a plan; False if one is being made."""

    def finished(self) -> "BatchProposals | None":
        """Return the plan that was ordered, if it is made and was not returned yet."""

    def wait(self) -> "BatchProposals | None":
        """Wait for the plan that was ordered, if one was; None if nothing can be made of the order."""


class BatchProposals:
    """The candidates of one model, as they look when those that were proposed since are running."""

    def __init__(
        self, weighed: Weighed, rows: Rows, rng: np.random.Generator, waiting: int = 0, *, ahead: bool = False
    ) -> None:
        """Choose among what was weighed without the runs in flight; `rows`, (n, p), are all trials by now.

        So many are `waiting` for a proposal: they are in flight soon. A plan that is made `ahead` may have to last
        until the next one is made.
        """
        model, evidence = weighed.model, weighed.evidence
        order = weighed.order
        chosen = np.concatenate([order[:_PROMISING], rng.permutation(order[_PROMISING:])[:_OTHERS]])
        self._candidates: Rows = weighed.candidates[chosen]
        self._places = {key: position for position, key in enumerate(keys(self._candidates))}
        self._known = len(rows)
        self._ended = int((~evidence.pending).sum())
        flights = int(evidence.pending.sum()) + waiting
        least = self._ended // _OF_KNOWN if waiting else 0
        self._good_for = max(1, min(max(flights // _OF_FLIGHTS, least), self._ended // _OF_ENDED))
        meanwhile = min(flights // _OF_FLIGHTS_MEANWHILE, self._ended // _OF_ENDED_MEANWHILE) if ahead else 0
        self._lasts_for = max(self._good_for, meanwhile)
        self._best = model.best
        surrogate = model.surrogate
        self._kernel, self._scale = surrogate.kernel, surrogate.scale
        self._noise = self._kernel.noise + JITTER
        self._traits = model.space.traits_of(self._candidates)
        self._mean = model.leaning.of(self._candidates) + surrogate.predict(self._traits)[0]
        self._weights = model.weight(self._candidates, self._traits)
        roots = _conditioned(weighed, model.space.traits_of(rows[evidence.pending]), self._traits)
        self._variance = self._kernel.signal - np.einsum("ij,ij->j", roots, roots)
        self._roots = np.empty((len(roots) + 2 * self._lasts_for, len(chosen)))
        self._roots[: len(roots)] = roots
        self._count = len(roots)

    @property
    def _full(self) -> bool:
        return self._count == len(self._roots)

    def serves(self, rows: Rows, ended: int) -> bool:
        """Whether it is still good when the trials are `rows`, (n, p), and `ended` of them have ended."""
        return len(rows) >= self._known and ended - self._ended < self._good_for and not self._full

    def lasts(self, rows: Rows, ended: int) -> bool:
        """Whether it may serve while the next one is made, as in `serves`."""
        return len(rows) >= self._known and ended - self._ended <= self._lasts_for and not self._full

    def best(self, rows: Rows, count: int) -> Rows:
        """Return the most promising that are not in `rows`, (n, p), which has all that it had before; none at last."""
        for key in keys(rows[self._known :]):
            position = self._places.get(key)
            if position is None:
                continue
            if not self._full:
                self._believe(position)
            self._weights[position] = -np.inf
        self._known = len(rows)
        deviation = self._scale * np.sqrt(np.maximum(self._variance, _LEAST_VARIANCE))
        promise = log_expected_improvement(self._mean, deviation, self._best) + self._weights
        order = np.argsort(-promise, kind="stable")
        promising: Rows = self._candidates[order[np.isfinite(promise[order])][:count]]
        return promising

    def _believe(self, position: int) -> None:
        roots = self._roots[: self._count]
        shared = (
            self._kernel.between(self._traits[position : position + 1], self._traits)[0] - roots[:, position] @ roots
        )
        root = shared / np.sqrt(max(self._variance[position], _LEAST_VARIANCE) + self._noise)
        self._roots[self._count] = root
        self._count += 1
        self._variance -= root**2


def _conditioned(weighed: Weighed, pending: Array, traits: Array) -> Array:
    """Return rows, (k, m), whose squares add up to what is known of candidates with `traits`, (m, d).

    Known are the points of the process, and those of `pending`, (l, d), believed at its mean.
    """
    surrogate = weighed.model.surrogate
    kernel = surrogate.kernel
    known = surrogate.roots(np.concatenate([traits, pending]))
    candidates, running = known[:, : len(traits)], known[:, len(traits) :]
    covariance = kernel.between(pending, pending) - running.T @ running
    factor = Factor.of(covariance, np.full(len(pending), kernel.noise))
    shared = kernel.between(pending, traits) - running.T @ candidates
    return np.concatenate([candidates, factor.roots(shared)])
