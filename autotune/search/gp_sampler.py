"""Our sampler: Bayesian optimisation with a Gaussian process over the valid set of a space.

The first proposal is the default configuration, the next few spread over the valid set, and the others maximise the
expected improvement of a Gaussian process on the traits of configurations (`spaces.traits`). The candidates are the
whole valid set if it is small, or else a sample of it and the neighbours of the best.

- A value of several runs has the weight of several.
- The value of a capped trial lies somewhere above its bound.
- A failed trial counts as a standard deviation worse than the worst, and the expected improvement is multiplied by the
  chance that a run works (`feasibility`) and keeps the limits (`limit_models`).
- A running trial counts as measured at the model's mean (kriging believer: Ginsbourger, Le Riche & Carraro 2010).
- The values of an earlier study of the same program are points of the process (`guidance.earlier_values`).
- Measurements in other settings are the mean function of the process (`guidance.prior_mean`). If its predictions were
  tried first, no trials spread over the valid set.
- While many runs are in flight, several proposals come from one model (`batch_proposals`), if possible fitted in a
  process of its own (`plan_process`). Only with fewer runs does a proposal depend on the seed and the stored trials
  alone.

The reasons and measurements are in docs/search.md.
"""

from collections.abc import Callable
from operator import attrgetter

import numpy as np
from optuna.study import StudyDirection

from autotune.search import initial_design
from autotune.search.acquisition import LEAST_VALUES, Posterior, ScoredCandidates, fit_model, fit_prior_weights
from autotune.search.base import PASSED_OVER, History, Proposer, Rows, fresh, keys, unseen
from autotune.search.batch_proposals import CROWD, BatchProposals, PlanMaker, PlanOrder
from autotune.search.guidance.earlier_values import EarlierValues
from autotune.search.guidance.held_cores import HeldCores
from autotune.search.guidance.hint_prior import HintPrior, have_paid
from autotune.search.guidance.prior_candidates import neighbours_of, prior_candidates
from autotune.search.guidance.prior_mean import NO_PRIOR, PriorMean
from autotune.search.training_data import TrainingData, are_ratios, training_data_of
from autotune.statistics.gaussian_process import Array
from spaces import Space

# A valid set up to this size is scored as a whole; of a larger one a sample of one of these sizes.
_SCORED = 5_000
_SAMPLED = 2_000
_FEWER = 1_000
# In a larger one, the neighbours of this many of the best measured and of the most promising candidates are scored too,
# the latter in this many steps, so that the search can refine where the sample is thin.
_REFINED = 5
_CLIMBS = 3
# A prior mean whose weights add up to less than this cannot replace the initial design.
_LEAST_SAY = 0.1
# The initial design is chosen from this number of draws.
_DESIGNED = 500
_IS_PENDING = attrgetter("pending")


class ValidSetSampler(Proposer):
    """Proposes `startup` trials by the initial design, and the others by the model; without a model, all at random."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        startup: int = 6,
        model: bool = True,
        waiting: Callable[[], int] = lambda: 0,
    ) -> None:
        """Set up the sampler.

        Args:
            space: The space to search.
            seed: The seed of the random numbers.
            startup: The number of trials of the initial design, after the default.
            model: Whether to use a model at all.
            waiting: Returns the number of unanswered requests for a proposal, which count as runs in flight.
        """
        super().__init__(space, seed=seed)
        self._waiting = waiting
        self._startup = startup
        self._model = model
        self._prior: PriorMean = NO_PRIOR
        self._leads = False
        self._earlier: EarlierValues | None = None
        self._hint_prior: PriorMean = NO_PRIOR
        self._prior_candidates: Rows | None = None
        self._cores: HeldCores | None = None
        self._plan: BatchProposals | None = None
        # The best trial at the times when the current plan, and the one in work, were ordered.
        self._plan_best_trial = self._ordered_best_trial = -1
        self._plan_maker: PlanMaker | None = None

    @property
    def startup_trials(self) -> int | None:
        """The number of trials after the default that do not depend on measurements; None without a model."""
        return self._startup if self._model else None

    def set_prior_mean(self, prior: PriorMean | None, *, leads: bool = False) -> None:
        """Set the prior mean. It is used only while values are compared by ratio, so not in a trade-off."""
        self._prior = prior or NO_PRIOR
        self._leads = leads
        self._prior_candidates = None
        self._plan = None

    def set_earlier_values(self, earlier: EarlierValues) -> None:
        """Learn also from the values of an earlier study, while values are compared by ratio."""
        self._earlier = earlier
        self._plan = None

    def set_hints(self, hints: Rows) -> None:
        """Use the hints as prior mean if no other is set; its weight depends on the study's own values."""
        if isinstance(self._hint_prior, HintPrior) and np.array_equal(self._hint_prior.hints, hints):
            return
        self._hint_prior = HintPrior(self.space, hints) if len(hints) else NO_PRIOR
        self._prior_candidates = None

    def follows_hints(self, history: History) -> bool:
        """Return whether the hints are the prior mean; the model then also chooses among them."""
        return self._hint_prior is not NO_PRIOR and self._prior_of(history) is self._hint_prior

    def set_held_cores(self, cores: HeldCores | None) -> None:
        """Weigh the expected improvement of a run against the cores that it holds."""
        self._cores = cores
        self._plan = None

    def set_plan_maker(self, maker: PlanMaker) -> None:
        """Let `maker` make the plans, while this process continues."""
        self._plan_maker = maker

    def rank(self, history: History, rng: np.random.Generator) -> Rows:
        """Return candidates that no trial has, the most promising first."""
        seen = history.rows
        if not self._model:
            return self.draw(rng, seen)
        if len(seen) <= self._startup and not self._is_led(history, rng):
            return self._design(seen, rng)
        running = sum(map(_IS_PENDING, history.observations))
        if running + self._waiting() >= CROWD:
            return self._plan_proposals(history, running, rng)
        self._plan = None
        scored = self.score_candidates(history, rng)
        if scored is None:
            return self.draw(rng, seen)
        best: Rows = scored.candidates[scored.order[:PASSED_OVER]]
        return best

    def _plan_proposals(self, history: History, running: int, rng: np.random.Generator) -> Rows:
        """Return the best candidates of the current plan if it is still valid, or else of a new one."""
        seen, ended = history.rows, len(history.rows) - running
        valued = sum(one.value is not None for one in history.observations)
        # Another process makes the plans, without what is known from outside the study.
        alone = self._prior_of(history) is NO_PRIOR and self._earlier is None
        maker = self._plan_maker if valued >= LEAST_VALUES and alone else None
        if maker is None or maker.is_lost:
            plan = self._plan if self._plan is not None and self._plan.serves(seen, ended) else None
        else:
            plan = self._plan_from_maker(maker, history, ended, rng)
        if plan is not None:
            best = plan.best(seen, PASSED_OVER)
            if len(best):
                return best
        self._plan = self.new_plan(history, rng, self._waiting())
        self._plan_best_trial = best_trial(history)
        return self.draw(rng, seen) if self._plan is None else self._plan.best(seen, PASSED_OVER)

    def _plan_from_maker(
        self, maker: PlanMaker, history: History, ended: int, rng: np.random.Generator
    ) -> BatchProposals | None:
        """Return the newest plan, and order the next one; None if no plan is valid.

        A plan is dropped when another trial has become the best, or when too many runs have ended since.
        """
        seen, leader = history.rows, best_trial(history)

        def order() -> None:
            if maker.begin(PlanOrder(history, self._limits, self._waiting(), rng)):
                self._ordered_best_trial = leader

        def lasting() -> BatchProposals | None:
            plan = self._plan
            return plan if plan is not None and self._plan_best_trial == leader and plan.lasts(seen, ended) else None

        self._take(maker.take_finished_plan())
        plan = lasting()
        if plan is None or not plan.serves(seen, ended):
            order()
        # The plan in work may have been ordered before another trial became the best; then wait for the next one.
        for _ in range(2):
            if plan is not None or not maker.is_warm:
                break
            order()
            self._take(maker.wait())
            plan = lasting()
        return plan

    def _take(self, plan: BatchProposals | None) -> None:
        if plan is not None:
            self._plan, self._plan_best_trial = plan, self._ordered_best_trial

    def new_plan(
        self, history: History, rng: np.random.Generator, waiting: int, *, ahead: bool = False
    ) -> BatchProposals | None:
        """Return a plan from all known trials; None if no model can be fitted."""
        scored = self.score_candidates(history, rng, believing=False)
        return None if scored is None else BatchProposals(scored, history.rows, rng, waiting, ahead=ahead)

    def score_candidates(
        self, history: History, rng: np.random.Generator, *, believing: bool = True
    ) -> ScoredCandidates | None:
        """Return the candidates with their scores; None if no model can be fitted.

        Args:
            history: The known trials.
            rng: The random numbers.
            believing: Whether running trials count as measured, as for `fit_model`.

        Raises:
            SpaceExhaustedError: all configurations have been proposed.
        """
        evidence = training_data_of(history.observations, history.direction, rng, self._limits)
        prior = self._prior_of(history)
        if prior is self._hint_prior is not NO_PRIOR and not self._has_weight(prior, evidence, history.rows):
            prior = NO_PRIOR
        earlier = self._earlier if are_ratios(history.observations) else None
        model = fit_model(
            self.space, history.rows, evidence, prior, believing=believing, cores=self._cores, earlier=earlier
        )
        return (
            ScoredCandidates(model, evidence, *self._score_candidates(model, history.rows, evidence, rng))
            if model
            else None
        )

    def _prior_of(self, history: History) -> PriorMean:
        # Hints often are winners of an earlier study; beside its values they would count twice.
        if not are_ratios(history.observations) or self._earlier is not None:
            return NO_PRIOR
        if self._prior is not NO_PRIOR:
            return self._prior
        # Another process makes the plans, without a prior mean.
        running = sum(map(_IS_PENDING, history.observations))
        if not isinstance(self._hint_prior, HintPrior) or running + self._waiting() >= CROWD:
            return NO_PRIOR
        evidence = training_data_of(history.observations, history.direction, np.random.default_rng(0), self._limits)
        costs = np.where(evidence.feasible | evidence.pending, evidence.values, np.inf)
        known = set(keys(self._hint_prior.hints))
        hinted = np.array([key in known for key in keys(history.rows)], dtype=np.bool_)
        return self._hint_prior if have_paid(hinted, costs) else NO_PRIOR

    def _is_led(self, history: History, rng: np.random.Generator) -> bool:
        """Return whether what is known from outside the study replaces the initial design.

        It does if it leads or if predictions were tried first, as long as it has not lost its weight. So do the values
        of an earlier study whose winner has held.
        """
        if self._earlier is not None and are_ratios(history.observations):
            evidence = training_data_of(history.observations, history.direction, rng)
            return bool(evidence.valued.any()) and self._earlier.has_held(history.rows, evidence.values)
        prior = self._prior_of(history)
        if prior is NO_PRIOR or not (self._leads or len(self._predicted) or prior is self._hint_prior):
            return False
        return self._has_weight(prior, training_data_of(history.observations, history.direction, rng), history.rows)

    @staticmethod
    def _has_weight(prior: PriorMean, evidence: TrainingData, rows: Rows) -> bool:
        return bool(evidence.valued.any()) and fit_prior_weights(evidence, prior, rows).total_weight >= _LEAST_SAY

    def _design(self, seen: Rows, rng: np.random.Generator) -> Rows:
        candidates = unseen(self.space.sample_indices(rng, len(seen) + _DESIGNED), seen)
        order = initial_design.rank(self.space.traits_of(candidates), self.space.traits_of(seen))
        chosen: Rows = candidates[order[:PASSED_OVER]]
        return chosen

    def _score_candidates(
        self, model: Posterior, seen: Rows, evidence: TrainingData, rng: np.random.Generator
    ) -> tuple[Rows, Array]:
        """Return candidates, (m, p), and their weighted expected improvement, (m,)."""
        if self.space.listable and self.space.size.value <= _SCORED:
            candidates = unseen(rng.permutation(self.space.all_indices()), seen)
            return candidates, model.promise(candidates)
        if evidence.ranked:
            # A neighbour is nearly the same training again; with neighbours, half of the proposals were near the best.
            candidates = fresh(self.space.sample_indices(rng, _FEWER), seen)
            candidates = candidates if len(candidates) else self.draw(rng, seen)
            return candidates, model.promise(candidates)
        best = seen[np.lexsort((evidence.values, ~evidence.feasible))[:_REFINED]]
        # Draws are expensive where they are simulated (their number is an estimate), and so is a prior mean for each.
        prior = model.prior_weights.prior
        count = _SAMPLED if self.space.size.exact and prior in {NO_PRIOR, self._hint_prior} else _FEWER
        drawn = [self.space.sample_indices(rng, count), self._near(best), self._likely_good(prior)]
        if isinstance(prior, HintPrior):
            drawn.append(prior.hints)
        candidates = fresh(np.concatenate(drawn), seen)
        if not len(candidates):
            candidates = self.draw(rng, seen)
        promise = model.promise(candidates)
        for _ in range(_CLIMBS):
            top = np.argsort(-promise, kind="stable")[:_REFINED]
            climbers = fresh(self._near(candidates[top]), np.concatenate([seen, candidates]))
            if not len(climbers):
                break
            candidates = np.concatenate([candidates, climbers])
            reached = model.promise(climbers)
            climbed = reached.max() > promise[top[0]]
            promise = np.concatenate([promise, reached])
            if not climbed:
                break
        return candidates, promise

    def _likely_good(self, prior: PriorMean) -> Rows:
        if prior is NO_PRIOR:
            return np.empty((0, len(self.space.parameters)), dtype=np.int32)
        if self._prior_candidates is None:
            self._prior_candidates = prior_candidates(self.space, prior)
        return self._prior_candidates

    def _near(self, rows: Rows) -> Rows:
        return neighbours_of(self.space, rows)


def best_trial(history: History) -> int:
    """Return the position of the best trial in `history`; -1 without any value."""
    sign = -1.0 if history.direction == StudyDirection.MAXIMIZE else 1.0
    whole = ((one.value, place) for place, one in enumerate(history.observations) if not one.partial)
    return min(((sign * value, place) for value, place in whole if value is not None), default=(0.0, -1))[1]
