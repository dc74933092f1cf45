"""What comparisons found, as it is stored: read without anything that makes runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from autotune.formatting import written
from autotune.records.series import SeriesKind
from autotune.records.stored import Stored
from autotune.statistics.kept_limits import KeptLimits
from autotune.statistics.mixed_model import Statistic
from autotune.statistics.ratio_words import Interval
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.readable import ABLATION, VERIFIED_INPUTS, ReadableStudy, stored_verdict
from autotune.studyfile.limits import limits_of
from autotune.studyfile.stored import study_of
from objectives.base import Metric
from spaces import Configuration

# How many names are said before the others are only counted.
_FEW = 3
_OF_VARIANTS = frozenset({SeriesKind.ABLATE, SeriesKind.SIMPLIFY})


def alongside(names: Sequence[str]) -> str:
    """Say which options were changed together with another; nothing if none was."""
    said = ", ".join(names) if len(names) <= _FEW else f"{len(names)} other options"
    return f"with {said}" if names else ""


class Worth(StrEnum):
    """What the interval of an option's worth says of it, in the words that tables and reports have."""

    HELPS = "helps"
    HARMS = "does harm"
    NOTHING = "does nothing that could be seen"
    NO_EFFECT = "has no effect"
    UNKNOWN = "not measured"


@dataclass(frozen=True)
class OptionEffect:
    """A changed option, or several that only go together: how much better the default is with it, the winner for it.

    `default` and `value` are by parameter; one that is not there is unset. Where the rules of the space leave a variant
    no other way, further options were changed with it: `alone_with` in the default, `within_with` in the winner. Each
    result is a ratio with its interval, or None where that variant gave no values: `why` says why. `unused` means that
    the option has no effect in the winner by the program's own word.
    """

    parameters: tuple[str, ...]
    default: Configuration
    value: Configuration
    alone: Interval | None
    within: Interval | None
    alone_with: tuple[str, ...] = ()
    within_with: tuple[str, ...] = ()
    why: str = ""
    unused: bool = False

    @property
    def name(self) -> str:
        """The options that go together."""
        return ", ".join(self.parameters)

    @property
    def values(self) -> str:
        """The options with their values in the winner, for a narrow place."""
        shown = [
            f"{name}={written(self.value[name])}" if name in self.value else f"{name} unset"
            for name in self.parameters[:_FEW]
        ]
        more = len(self.parameters) - _FEW
        return " ".join([*shown, *([f"and {more} more"] if more > 0 else [])])

    @property
    def without(self) -> tuple[str, ...]:
        """All options that went back to the default in the winner."""
        return (*self.parameters, *self.within_with)

    @property
    def worth(self) -> Worth:
        """What the option is worth in the winner; where that is not known, on the default."""
        decisive = self.within or self.alone
        if self.unused:
            return Worth.NO_EFFECT
        if decisive is None:
            return Worth.UNKNOWN
        if decisive[1] > 1.0:
            return Worth.HELPS
        return Worth.HARMS if decisive[2] < 1.0 else Worth.NOTHING

    @property
    def is_dispensable(self) -> bool:
        """Whether the winner is not significantly worse without it."""
        return self.worth in {Worth.HARMS, Worth.NOTHING, Worth.NO_EFFECT}


@dataclass(frozen=True)
class Ablation(Stored):
    """The winner taken apart. `simplified` is the winner without the `dropped` options.

    `baseline` is the default's median value in the metric's unit, `combined` the winner's speed-up over it.
    `over_default` and `over_winner` are the simplified configuration's speed-ups; None while nothing was dropped.
    `breaks` are the limits that it breaks.

    Of a point of a trade-off's front `further` is what the same runs say in the other metrics, and `worse` are all
    metrics in which the simplified configuration is worse than the point.
    """

    winner: int
    confidence: float
    rounds: int
    effects: tuple[OptionEffect, ...]
    baseline: float | None = None
    combined: Interval | None = None
    dropped: tuple[str, ...] = ()
    simplified: Configuration | None = None
    over_default: Interval | None = None
    over_winner: Interval | None = None
    breaks: tuple[str, ...] = ()
    metric: str = ""
    further: "tuple[Ablation, ...]" = ()
    worse: tuple[str, ...] = ()

    @property
    def by_metric(self) -> "tuple[Ablation, ...]":
        """What it says in each metric, the optimised one first."""
        return (self, *self.further)

    @property
    def rows(self) -> list[tuple[OptionEffect, ...]]:
        """The effects of each row of options, in each metric."""
        return list(zip(*(one.effects for one in self.by_metric), strict=True))

    @property
    def subject(self) -> str:
        """What was taken apart, for reading: a point of a front is no winner."""
        return f"trial {self.winner}" if self.further else "the winner"

    def readings(self, target: Metric, metrics: Sequence[Metric]) -> "list[tuple[Metric, Ablation]]":
        """Return what it says in each metric, with that metric; `target` is the optimised one."""
        known = {metric.name: metric for metric in metrics}
        return [(target, self), *((known[one.metric], one) for one in self.further)]

    @property
    def options(self) -> list[str]:
        """The options of the winner."""
        return list(dict.fromkeys(name for effect in self.effects for name in effect.parameters))

    @property
    def accepted(self) -> bool:
        """Whether the simplified configuration is in no metric significantly worse, and keeps the limits.

        Of a winner that is better than the default in these runs it must be, too: few runs see no difference anywhere.
        """
        if self.over_winner is None or self.over_winner[2] < 1.0 or self.breaks or self.worse:
            return False
        gains = self.combined is not None and self.combined[1] > 1.0
        return not gains or (self.over_default is not None and self.over_default[1] > 1.0)


@dataclass(frozen=True)
class InputComparison(Stored):
    """The winner on an input of weight 0: the verdict there, or `why` there can be none.

    `digest` is that of the input as it was then, `facts` are its own.
    """

    name: str
    digest: str
    facts: Mapping[str, Any]
    verdict: Verdict
    why: str = ""

    def sentence(self, metric: Metric) -> str:
        """Say it in one sentence."""
        return f"cannot be compared: {self.why}" if self.why else self.verdict.sentence(metric)


def kept_limits(store: ReadableStudy, statistic: Statistic) -> KeptLimits:
    """Return the limits that the newest session's study file sets, and what runs of comparisons say of them."""
    limits = limits_of(study_of(store.definition).limits, store.definition.metrics)
    return KeptLimits(limits, statistic, store.runs() if limits else ())


def standings_of(store: ReadableStudy, statistic: Statistic) -> Standings:
    """Return how the trials of a study stand, with the verdict on one of them if there is one."""
    limits = kept_limits(store, statistic)
    return Standings.of(store.trials(), store.definition.target, statistic, stored_verdict(store), limits)


def present_verdict(store: ReadableStudy, standings: Standings) -> Verdict | None:
    """Return the verdict that was stored, unless there is a new best since."""
    stored = stored_verdict(store)
    return stored if stored is not None and is_about(stored, standings) else None


def is_about(verdict: Verdict, standings: Standings) -> bool:
    """Whether the best trial of tuning was among the candidates of a verdict: else there is a new best.

    That is the best of those that keep the limits, and so must the winner.
    """
    best = standings.ranking[0] if standings.ranking else None
    return best is not None and best.number in verdict.candidates and standings.limits.keeps(verdict.winner)


def stored_ablation(store: ReadableStudy) -> Ablation | None:
    """Return the ablation that was stored, of whatever winner, judged by the limits of the newest session."""
    stored = store.attribute(ABLATION)
    if not stored:
        return None
    ablation = Ablation.from_dict(stored)
    statistic = study_of(store.definition).repeats.statistic
    broken = broken_by_variant(store, kept_limits(store, statistic), ablation.simplified)
    first, *others = (replace(one, breaks=broken) for one in ablation.by_metric)
    return replace(first, further=tuple(others))


def broken_by_variant(store: ReadableStudy, limits: KeptLimits, configuration: Configuration | None) -> tuple[str, ...]:
    """Say which limits a configuration breaks in the runs of ablations; nothing if it has none there."""
    if not limits.limits or configuration is None:
        return ()
    wanted = dict(configuration)
    runs = (run for run in store.runs() if run.series.kind in _OF_VARIANTS and dict(run.configuration) == wanted)
    return tuple(map(str, limits.broken_in(runs)))


def stored_input_comparisons(store: ReadableStudy) -> tuple[InputComparison, ...]:
    """Return what was stored, on whatever winner, with the confidence that is asked for now."""
    stored = store.attribute(VERIFIED_INPUTS) or {}
    if not stored:
        return ()
    study = store.definition.study
    found = (InputComparison.from_dict(one) for one in stored.values())
    return tuple(replace(one, verdict=one.verdict.asked_now(study)) for one in found)


def changes(configuration: Configuration, default: Configuration) -> list[str]:
    """Return the parameters in which a configuration differs from the default."""
    names = [*configuration, *(name for name in default if name not in configuration)]
    return [name for name in names if configuration.get(name) != default.get(name)]
