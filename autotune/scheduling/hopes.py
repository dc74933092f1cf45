"""Hopes: what short runs tell of the trials that have no whole run, with what pairs of both have shown.

Short runs are to save time, or to cost little. How long they take is set against how long whole runs take here, caps
included: where that is too large a share no more are made, from the default's own on. Nor are they where they do not
rank, or where too many trials need a whole run as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, hypot, log, sqrt
from statistics import median, stdev

import numpy as np

from autotune.records.short_runs import all_short_runs, short_runs
from autotune.records.study import Run, State, TrialRecord
from autotune.scheduling.own_starts import OwnStarts, Values, values_of
from autotune.scheduling.paces import Paces
from autotune.statistics.racing import RaceRules
from autotune.statistics.rank_correlation import bounded_rank_correlation
from autotune.statistics.standings import Standings
from autotune.studyfile.fidelity import FidelitySection
from spaces import Space

# So many trials are run whole to learn from.
PAIRS = 5
# After so many pairs that do not show that short runs rank as whole ones do, no more short ones are made.
_DOUBTED = 12
# Until they are known to rank, short runs may take this share of the time of whole ones: if one trial in three then
# needs a whole run as well, a dozen trials pay back what learning has cost.
_DEAR = 1.0 / 3.0
# How long a whole run takes is that of so many of the newest trials.
_NEWEST = 5
# That many more trials are thought to need no whole run, so that the first few say little.
_LEFT = 2
_LEAST_WEIGHT = 0.01
# Short runs of the default that differ by so many times the noise of a run show a drift.
_DRIFTING = 2.0


@dataclass(frozen=True)
class Hopes:
    """What short runs tell of trials without whole ones, by number.

    `short` are their values; those in `failed` gave none. Once that can be said, there is the `chance` to beat the
    incumbent, the expected improvement (`gain`), and what the sampler is `told`; short runs are `ranked` if they are
    known to rank as whole ones do. All trials in `tried` had a short run;
    that many `pairs` have both. `unknown` are the values that no pair has. The default had `repeats` short runs, and
    `since` the last of them were others; they differ by `drift` (standard deviation of logarithms). A short run takes
    `short_s` seconds, the median.
    """

    short: dict[int, float] = field(default_factory=dict)
    failed: frozenset[int] = frozenset()
    tried: frozenset[int] = frozenset()
    pairs: int = 0
    unknown: dict[int, Values] = field(default_factory=dict)
    repeats: int = 0
    since: int = 0
    drift: float = 0.0
    short_s: float = 0.0
    pays: bool = True
    known: bool = False
    ranked: bool = False
    chance: dict[int, float] = field(default_factory=dict)
    gain: dict[int, float] = field(default_factory=dict)
    told: dict[int, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Hoping:
    """What hopes follow from, beside the runs: the lengths of runs, the space, the rules of races, and paces.

    Only where whole runs have `caps` are they stopped by their paces.
    """

    section: FidelitySection
    space: Space
    rules: RaceRules
    paces: Paces
    caps: bool

    def of(self, runs: Sequence[Run], standings: Standings) -> Hopes:
        """Return what the short runs among `runs` tell."""
        made = short_runs(runs, self.section.low, self.section.high)
        name = standings.metric.name
        values = {
            number: standings.to_log(run.outcome.metrics[name]) for number, run in made.items() if run.outcome.complete
        }
        failed = frozenset(made.keys() - values.keys())
        bare = {
            number: value
            for number, value in values.items()
            if number in standings.trials and standings.trials[number].state in {State.RUNNING, State.SHORT}
        }
        pairs = [number for number in values if number in standings.trials and standings.trials[number].complete]
        having = self._values([*bare, *pairs], standings)
        covered: Values = frozenset().union(*(having[number] for number in pairs))
        unknown = {number: having[number] - covered for number in bare}
        short_s = median(made[number].outcome.usage.elapsed_s for number in values) if values else 0.0
        hopes = Hopes(bare, failed, frozenset(made), len(pairs), unknown, *self._drift(runs, standings), short_s)
        hopes = self._judged(hopes, pairs, values, standings)
        if self.caps and standings.default is not None and self.paces.judge(standings.default, standings):
            # Whole runs are stopped by their paces, and go on where they promise something: nothing is run twice.
            return replace(hopes, pays=False)
        return replace(hopes, pays=hopes.pays and self._pays(hopes, standings))

    def _values(self, numbers: Sequence[int], standings: Standings) -> dict[int, Values]:
        return values_of(self.space, {number: standings.trials[number].configuration for number in numbers})

    def _drift(self, runs: Sequence[Run], standings: Standings) -> tuple[int, int, float]:
        """Return how many short runs the default had, how many others had one since, and how far its own differ."""
        default = standings.default
        every = all_short_runs(runs, self.section.low, self.section.high)
        mine = every.get(default.number, []) if default is not None else []
        if not mine:
            return 0, 0, 0.0
        since = sum(
            run.trial != mine[-1].trial for run in runs[runs.index(mine[-1]) :] if run.series == mine[-1].series
        )
        name = standings.metric.name
        values = [standings.to_log(run.outcome.metrics[name]) for run in mine if run.outcome.complete]
        return len(mine), since, stdev(values) if len(values) > 1 else 0.0

    def _judged(
        self,
        hopes: Hopes,
        pairs: Sequence[int],
        values: dict[int, float],
        standings: Standings,
    ) -> Hopes:
        """Add what pairs of short and whole runs tell of the trials without whole runs."""
        # They import SciPy, and a study without short runs needs none of it.
        from scipy.special import ndtr, stdtr  # noqa: PLC0415

        from autotune.scheduling.whole_runs import WholeRuns  # noqa: PLC0415

        incumbent = standings.incumbent
        if len(pairs) < PAIRS or incumbent is None:
            return hopes
        effects, numbers = standings.effects, list(hopes.short)
        whole = np.array([effects.center(number) for number in pairs])
        # A capped run is no pair to foretell from; but it is known what it is slower than, and that is a rank.
        lost = [number for number in values if _is_capped(standings.trials.get(number))]
        bounds = [standings.to_log(standings.bound(standings.trials[number])) for number in lost]
        ranks = bounded_rank_correlation(
            [values[number] for number in [*pairs, *lost]],
            [*whole.tolist(), *bounds],
            [False] * len(pairs) + [True] * len(lost),
        )
        if ranks is None or ranks.low <= 0.0:
            every = dict.fromkeys(numbers, 1.0)
            doubted = len(pairs) + len(lost) >= _DOUBTED
            return replace(hopes, pays=not doubted, known=True, chance=every, gain=every)
        hopes = replace(hopes, ranked=True)
        if not hopes.short:
            return hopes
        model = WholeRuns.of(self._traits(pairs, standings), np.array([values[number] for number in pairs]), whole)
        forecast = model.forecast(self._traits(numbers, standings), np.array([values[number] for number in numbers]))
        # Short and whole runs of a trial may be far apart in time, and the incumbent's value is not exact either.
        around = 2.0 * max(effects.drift, hopes.drift) ** 2 + effects.variance(effects.count(incumbent.number))
        spread = np.sqrt(forecast.spread**2 + around)
        ahead = effects.center(incumbent.number) - log(1.0 + self.rules.min_gain) - forecast.mean
        z = ahead / spread
        chance = dict(zip(numbers, stdtr(forecast.degrees, z).tolist(), strict=True))
        own = self._with_own_start(hopes, pairs, values, standings)
        chance |= {number: max(chance[number], self.rules.error_rate) for number in own}
        gain = ahead * ndtr(z) + spread * np.exp(-0.5 * z * z) / sqrt(2 * np.pi)
        weight = np.clip(effects.noise**2 / forecast.spread**2, _LEAST_WEIGHT, 1.0)
        told = zip(forecast.mean.tolist(), weight.tolist(), strict=True)
        return replace(
            hopes,
            known=True,
            chance=chance,
            gain=dict(zip(numbers, gain.tolist(), strict=True)),
            told=dict(zip(numbers, told, strict=True)),
        )

    def _with_own_start(
        self, hopes: Hopes, pairs: Sequence[int], values: dict[int, float], standings: Standings
    ) -> set[int]:
        """Return the trials that would beat the incumbent if one of their values had a start of its own."""
        best = standings.incumbent
        if best is None:
            return set()
        effects, metric = standings.effects, standings.metric
        starts = OwnStarts(
            self._values([*hopes.short, *pairs], standings),
            {number: exp(values[number]) for number in [*hopes.short, *pairs]},
            {number: exp(effects.center(number)) for number in pairs},
            self.section.high / self.section.low if metric.direction == "minimize" else 1.0,
            hypot(effects.noise, hopes.drift),
        )
        least = exp(effects.center(best.number)) / (1.0 + self.rules.min_gain)
        return {number for number in hopes.short if starts.may_reach(number, least)}

    def _pays(self, hopes: Hopes, standings: Standings) -> bool:
        """Whether a short run of every trial, and whole ones of those that need one, take less than whole ones.

        Those that were made whole after the pairs needed one, too.
        """
        share = self._share(hopes, standings)
        if not hopes.ranked:
            return share <= _DEAR
        more = max(0, len(hopes.tried) - len(hopes.short) - len(hopes.failed) - PAIRS - 1)
        unsure = sum(one >= self.rules.error_rate for one in hopes.chance.values())
        return share + (unsure + more) / (len(hopes.short) + more + _LEFT) < 1.0

    def _share(self, hopes: Hopes, standings: Standings) -> float:
        """Return what a short run takes of the time of the newest trials' whole ones, which may have been capped."""
        ended = (trial for trial in standings.trials.values() if trial.complete or _is_capped(trial))
        ran = [trial.runs[-1].outcome.usage.elapsed_s for trial in ended]
        usual_s = median(ran[-_NEWEST:]) if ran else 0.0
        return hopes.short_s / usual_s if usual_s > 0.0 else 0.0

    def _traits(self, numbers: Sequence[int], standings: Standings) -> np.ndarray:
        configurations = [standings.trials[number].configuration for number in numbers]
        return self.space.traits_of(self.space.indices(configurations))


def drifts(hopes: Hopes, standings: Standings) -> bool:
    """Whether short runs of the default differ by more than whole runs explain."""
    return hopes.drift > max(_DRIFTING * standings.effects.noise, standings.effects.drift)


def _is_capped(trial: TrialRecord | None) -> bool:
    return trial is not None and trial.state is State.CAPPED
