"""The sampler over the valid set: an Optuna sampler that proposes only valid configurations not measured before.

The first proposal is the default configuration, the next few spread over the valid set, the rest maximise the expected
improvement of a Gaussian process on the traits of configurations (`spaces.traits`), over the valid set itself where it
is small, or over a sample of it and the neighbours of the best where it is not. A value of several runs weighs as much;
a capped trial counts as somewhere above its bound; a failed one as a standard deviation worse than the worst, and near
it an improvement is expected only as far as a run is expected to work; running trials are believed at the model's mean
(kriging believer: Ginsbourger, Le Riche & Carraro 2010). What measurements elsewhere say of configurations is the mean
function of the process (`guide`); where predictions were tried first, it makes up for spreading over the valid set.
While many runs are in flight, several proposals are made from one model (`plan`), by a process of its own where there
is one (`apart`); what is proposed depends on the seed and the stored trials alone only with fewer of them. What is
known to be the same in effect as a measured configuration is passed over. Where metrics have limits, the chance to keep
them counts (`limit_beliefs`). Why so, and what was measured: docs/search.md.
"""

from collections.abc import Callable
from operator import attrgetter

import numpy as np
from optuna.study import StudyDirection

from autotune.search import initial_design
from autotune.search.acquisition import LEAST_VALUES, Posterior, Weighed, leaning_of, model_of
from autotune.search.base import PASSED_OVER, History, Proposer, Rows, fresh, keys, unseen
from autotune.search.batch_proposals import CROWD, BatchProposals, PlanMaker, PlanOrder
from autotune.search.guidance.favourites import favourites, neighbours_of
from autotune.search.guidance.held_cores import HeldCores
from autotune.search.guidance.hint_prior import HintPrior, are_worth
from autotune.search.guidance.prior_mean import UNGUIDED, PriorMean
from autotune.search.training_data import TrainingData, are_ratios, evidence_of
from autotune.statistics.gaussian_process import Array
from spaces import Space

# All of a valid set up to this size is scored; of a larger one a sample of this size.
_SCORED = 5_000
_FEWER = 1_000
# Of a larger one the neighbours of that many of the best measured and of the most promising are scored, too, the
# latter so often: the search can refine where the sample is thin.
_REFINED = 5
_CLIMBS = 3
# A guide whose fields have come to weigh less than that, together, cannot make up for a design.
_LEAST_SAY = 0.1
# A design is chosen from this number of draws.
_DESIGNED = 500
_IS_PENDING = attrgetter("pending")


class ValidSetSampler(Proposer):
    """Proposes `startup` trials by initial_design, then guided by a model; or at random for ever without one."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        startup: int = 6,
        model: bool = True,
        waiting: Callable[[], int] = lambda: 0,
    ) -> None:
        """`waiting` tells how many requests for a proposal are unanswered: those are as good as in flight."""
        super().__init__(space, seed=seed)
        self._waiting = waiting
        self._startup = startup
        self._model = model
        self._guide: PriorMean = UNGUIDED
        self._leads = False
        self._hinted: PriorMean = UNGUIDED
        self._favourites: Rows | None = None
        self._cores: HeldCores | None = None
        self._plan: BatchProposals | None = None
        # The best trial when the plan, and the one that is being made, were ordered.
        self._plan_led_by = self._ordered_led_by = -1
        self._apart: PlanMaker | None = None

    @property
    def blind(self) -> int | None:
        """How many trials after the default do not depend on measurements."""
        return self._startup if self._model else None

    def guide_by(self, guide: PriorMean | None, *, leads: bool = False) -> None:
        """Heed what is known of configurations, where values are compared by ratio: without a trade-off."""
        self._guide = guide or UNGUIDED
        self._leads = leads
        self._favourites = None
        self._plan = None

    def heed(self, hints: Rows) -> None:
        """Take hints as a guide where there is no other; it is followed as far as the study's own values agree."""
        if isinstance(self._hinted, HintPrior) and np.array_equal(self._hinted.hints, hints):
            return
        self._hinted = HintPrior(self.space, hints) if len(hints) else UNGUIDED
        self._favourites = None

    def follows_hints(self, history: History) -> bool:
        """Whether hints guide it: then the model chooses among them, too."""
        return self._hinted is not UNGUIDED and self._guide_of(history) is self._hinted

    def weigh_by(self, cores: HeldCores | None) -> None:
        """Weigh the improvement that a run may bring against the cores that it holds."""
        self._cores = cores
        self._plan = None

    def plan_apart(self, maker: PlanMaker) -> None:
        """Let plans be made elsewhere, while this process goes on."""
        self._apart = maker

    def ranked(self, history: History, rng: np.random.Generator) -> Rows:
        """Return candidates that no trial has, the most promising first."""
        seen = history.rows
        if not self._model:
            return self.drawn(rng, seen)
        if len(seen) <= self._startup and not self._is_led(history, rng):
            return self._designed(seen, rng)
        running = sum(map(_IS_PENDING, history.observations))
        if running + self._waiting() >= CROWD:
            return self._planned(history, running, rng)
        self._plan = None
        weighed = self.weighed(history, rng)
        if weighed is None:
            return self.drawn(rng, seen)
        best: Rows = weighed.candidates[weighed.order[:PASSED_OVER]]
        return best

    def _planned(self, history: History, running: int, rng: np.random.Generator) -> Rows:
        """Return the best of a plan that has served before, if it is still good."""
        seen, ended = history.rows, len(history.rows) - running
        valued = sum(one.value is not None for one in history.observations)
        maker = self._apart if valued >= LEAST_VALUES and self._guide_of(history) is UNGUIDED else None
        if maker is None or maker.is_lost:
            plan = self._plan if self._plan is not None and self._plan.serves(seen, ended) else None
        else:
            plan = self._planned_apart(maker, history, ended, rng)
        if plan is not None:
            best = plan.best(seen, PASSED_OVER)
            if len(best):
                return best
        self._plan = self.new_plan(history, rng, self._waiting())
        self._plan_led_by = led_by(history)
        return self.drawn(rng, seen) if self._plan is None else self._plan.best(seen, PASSED_OVER)

    def _planned_apart(
        self, maker: PlanMaker, history: History, ended: int, rng: np.random.Generator
    ) -> BatchProposals | None:
        """Return the newest plan, and order the next one; None if none may serve.

        A plan is thrown away when another trial has become the best, or when too many runs have ended since.
        """
        seen, leader = history.rows, led_by(history)

        def order() -> None:
            if maker.begin(PlanOrder(history, self._limits, self._waiting(), rng)):
                self._ordered_led_by = leader

        def lasting() -> BatchProposals | None:
            plan = self._plan
            return plan if plan is not None and self._plan_led_by == leader and plan.lasts(seen, ended) else None

        self._take(maker.finished())
        plan = lasting()
        if plan is None or not plan.serves(seen, ended):
            order()
        # The one in work may have been ordered before another trial became the best: then the next is waited for.
        for _ in range(2):
            if plan is not None or not maker.is_warm:
                break
            order()
            self._take(maker.wait())
            plan = lasting()
        return plan

    def _take(self, plan: BatchProposals | None) -> None:
        if plan is not None:
            self._plan, self._plan_led_by = plan, self._ordered_led_by

    def new_plan(
        self, history: History, rng: np.random.Generator, waiting: int, *, ahead: bool = False
    ) -> BatchProposals | None:
        """Return a plan from all that is known; None without a model."""
        weighed = self.weighed(history, rng, believing=False)
        return None if weighed is None else BatchProposals(weighed, history.rows, rng, waiting, ahead=ahead)

    def weighed(self, history: History, rng: np.random.Generator, *, believing: bool = True) -> Weighed | None:
        """Return the candidates with what is expected of them, `believing` as for a model; None without a model.

        Raises:
            SpaceExhaustedError: there is none left.
        """
        evidence = evidence_of(history.observations, history.direction, rng, self._limits)
        guide = self._guide_of(history)
        if guide is self._hinted is not UNGUIDED and not self._has_say(guide, evidence, history.rows):
            guide = UNGUIDED
        model = model_of(self.space, history.rows, evidence, guide, believing=believing, cores=self._cores)
        return Weighed(model, evidence, *self._scored(model, history.rows, evidence, rng)) if model else None

    def _guide_of(self, history: History) -> PriorMean:
        if not are_ratios(history.observations):
            return UNGUIDED
        if self._guide is not UNGUIDED:
            return self._guide
        # Plans are made elsewhere, without a guide.
        running = sum(map(_IS_PENDING, history.observations))
        if not isinstance(self._hinted, HintPrior) or running + self._waiting() >= CROWD:
            return UNGUIDED
        evidence = evidence_of(history.observations, history.direction, np.random.default_rng(0), self._limits)
        costs = np.where(evidence.feasible | evidence.pending, evidence.values, np.inf)
        known = set(keys(self._hinted.hints))
        hinted = np.array([key in known for key in keys(history.rows)], dtype=np.bool_)
        return self._hinted if are_worth(hinted, costs) else UNGUIDED

    def _is_led(self, history: History, rng: np.random.Generator) -> bool:
        """Whether the guide makes up for a design: it leads, or predictions were tried, and it has not lost its say."""
        guide = self._guide_of(history)
        if guide is UNGUIDED or not (self._leads or len(self._predicted) or guide is self._hinted):
            return False
        return self._has_say(guide, evidence_of(history.observations, history.direction, rng), history.rows)

    @staticmethod
    def _has_say(guide: PriorMean, evidence: TrainingData, rows: Rows) -> bool:
        return bool(evidence.valued.any()) and leaning_of(evidence, guide, rows).say >= _LEAST_SAY

    def _designed(self, seen: Rows, rng: np.random.Generator) -> Rows:
        candidates = unseen(self.space.sample_indices(rng, len(seen) + _DESIGNED), seen)
        order = initial_design.ranked(self.space.traits_of(candidates), self.space.traits_of(seen))
        chosen: Rows = candidates[order[:PASSED_OVER]]
        return chosen

    def _scored(
        self, model: Posterior, seen: Rows, evidence: TrainingData, rng: np.random.Generator
    ) -> tuple[Rows, Array]:
        """Return candidates, (m, p), and their promise, (m,)."""
        if self.space.listable and self.space.size.value <= _SCORED:
            candidates = unseen(rng.permutation(self.space.all_indices()), seen)
            return candidates, model.promise(candidates)
        best = seen[np.lexsort((evidence.values, ~evidence.feasible))[:_REFINED]]
        # Where draws are simulated (their number is an estimate) they are dear, and so is what a guide says of each.
        guide = model.leaning.guide
        count = _SCORED if self.space.size.exact and guide in {UNGUIDED, self._hinted} else _FEWER
        drawn = [self.space.sample_indices(rng, count), self._near(best), self._favoured(guide)]
        if isinstance(guide, HintPrior):
            drawn.append(guide.hints)
        candidates = fresh(np.concatenate(drawn), seen)
        if not len(candidates):
            candidates = self.drawn(rng, seen)
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

    def _favoured(self, guide: PriorMean) -> Rows:
        if guide is UNGUIDED:
            return np.empty((0, len(self.space.parameters)), dtype=np.int32)
        if self._favourites is None:
            self._favourites = favourites(self.space, guide)
        return self._favourites

    def _near(self, rows: Rows) -> Rows:
        return neighbours_of(self.space, rows)


def led_by(history: History) -> int:
    """Return the place of the best trial in `history`; -1 while there is none."""
    sign = -1.0 if history.direction == StudyDirection.MAXIMIZE else 1.0
    whole = ((one.value, place) for place, one in enumerate(history.observations) if not one.partial)
    return min(((sign * value, place) for value, place in whole if value is not None), default=(0.0, -1))[1]
