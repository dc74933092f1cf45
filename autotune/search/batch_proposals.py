"""Plans: several proposals from one fitted model, while many runs are in flight.

Fitting a model for each of a thousand workers would take longer than their runs. A plan keeps the most promising
candidates of one model, and updates the model for each proposal: a run in flight counts as measured at the model's mean
(kriging believer). So the mean stays, and only the uncertainty near the proposal decreases.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from autotune.records.limit import Limits
from autotune.search.acquisition import ScoredCandidates, log_expected_improvement
from autotune.search.base import History, Rows, keys
from autotune.statistics.gaussian_process import JITTER, Array, Factor

CROWD = 20
"""The least number of runs in flight for a plan; with fewer, each proposal gets a model of its own."""

# A plan is valid until one in _OF_FLIGHTS of the runs in flight, or one in _OF_ENDED of the ended runs that it was made
# from, has ended since.
_OF_FLIGHTS = 10
_OF_ENDED = 5
# While requests wait, it stays valid until one in this many results is new: fitting a model to many takes seconds.
_OF_KNOWN = 50
# A plan from another process stays in use while the next one is made, until one in _OF_FLIGHTS_MEANWHILE of the runs in
# flight, or one in _OF_ENDED_MEANWHILE of the ended runs, has ended: a search with that many more workers would know as
# little.
_OF_FLIGHTS_MEANWHILE = 2
_OF_ENDED_MEANWHILE = 10
# The most promising candidates, and random others, since proposals may use up the region of the promising ones.
_PROMISING = 700
_OTHERS = 300
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class PlanOrder:
    """A request for a plan.

    Attributes:
        history: The known trials.
        limits: The limits that a winner must keep.
        waiting: The number of requests that wait for a proposal.
        rng: The random numbers for the plan.
    """

    history: History
    limits: Limits
    waiting: int
    rng: np.random.Generator


class PlanMaker(Protocol):
    """Makes plans, one at a time, while the caller does other work.

    Attributes:
        is_warm: Whether it has made a plan already.
        is_lost: Whether it has failed and makes no more plans.
    """

    is_warm: bool
    is_lost: bool

    def begin(self, order: PlanOrder) -> bool:
        """Order a plan; return False if another is being made."""

    def take_finished_plan(self) -> "BatchProposals | None":
        """Return the ordered plan once, when it is made."""

    def wait(self) -> "BatchProposals | None":
        """Wait for the ordered plan; None if none is ordered, or no model can be fitted."""


class BatchProposals:
    """A plan: the candidates of one model, updated for each proposal since."""

    def __init__(
        self, scored: ScoredCandidates, rows: Rows, rng: np.random.Generator, waiting: int = 0, *, ahead: bool = False
    ) -> None:
        """Choose the candidates of a plan.

        Args:
            scored: The candidates, scored by a model without the runs in flight.
            rows: All trials, value indexes (n, p).
            rng: Chooses the random candidates.
            waiting: The number of requests that wait for a proposal, and will be in flight soon.
            ahead: Whether the plan may have to last until the next one is made.
        """
        model, evidence = scored.model, scored.evidence
        order = scored.order
        chosen = np.concatenate([order[:_PROMISING], rng.permutation(order[_PROMISING:])[:_OTHERS]])
        self._candidates: Rows = scored.candidates[chosen]
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
        self._mean = model.prior_weights.of(self._candidates) + surrogate.predict(self._traits)[0]
        self._weights = model.weight(self._candidates, self._traits)
        roots = _condition_on(scored, model.space.traits_of(rows[evidence.pending]), self._traits)
        self._variance = self._kernel.signal - np.einsum("ij,ij->j", roots, roots)
        self._roots = np.empty((len(roots) + 2 * self._lasts_for, len(chosen)))
        self._roots[: len(roots)] = roots
        self._count = len(roots)

    @property
    def _full(self) -> bool:
        return self._count == len(self._roots)

    def serves(self, rows: Rows, ended: int) -> bool:
        """Return whether the plan is still valid when the trials are `rows`, (n, p), and `ended` of them have ended."""
        return len(rows) >= self._known and ended - self._ended < self._good_for and not self._full

    def lasts(self, rows: Rows, ended: int) -> bool:
        """Return whether the plan may be used while the next one is made; arguments as in `serves`."""
        return len(rows) >= self._known and ended - self._ended <= self._lasts_for and not self._full

    def best(self, rows: Rows, count: int) -> Rows:
        """Return the most promising candidates that are not in `rows`, (n, p); empty if all have been proposed.

        `rows` must begin with the trials of the previous call.
        """
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


def _condition_on(scored: ScoredCandidates, pending: Array, traits: Array) -> Array:
    """Return roots, (k, m), whose squares add up to the variance of candidates that the known points remove.

    Known are the points of the process, and the running ones, which count as measured at its mean.

    Args:
        scored: The model with its process.
        pending: The traits of running trials, (l, d).
        traits: The traits of the candidates, (m, d).
    """
    surrogate = scored.model.surrogate
    kernel = surrogate.kernel
    known = surrogate.roots(np.concatenate([traits, pending]))
    candidates, running = known[:, : len(traits)], known[:, len(traits) :]
    covariance = kernel.between(pending, pending) - running.T @ running
    factor = Factor.of(covariance, np.full(len(pending), kernel.noise))
    shared = kernel.between(pending, traits) - running.T @ candidates
    return np.concatenate([candidates, factor.roots(shared)])
