"""The stored results of comparisons; reading them imports nothing that makes runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from autotune.formatting import value_text
from autotune.records.series import SeriesKind
from autotune.records.stored import Stored
from autotune.statistics.kept_limits import KeptLimits
from autotune.statistics.mixed_model import Statistic
from autotune.statistics.ratio_words import Interval
from autotune.statistics.speed_up import SpeedUp
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.readable_study import ABLATION, VERIFIED_INPUTS, ReadableStudy, stored_verdict
from autotune.studyfile.limits import limits_of
from objectives.base import Metric
from spaces import Configuration

# Lists name at most this many options and count the others.
_FEW = 3
_OF_VARIANTS = frozenset({SeriesKind.ABLATE, SeriesKind.SIMPLIFY})


def alongside(names: Sequence[str]) -> str:
    """Return the words for options that were changed together with another; empty without any."""
    said = ", ".join(names) if len(names) <= _FEW else f"{len(names)} other options"
    return f"with {said}" if names else ""


class Worth(StrEnum):
    """The conclusion from the interval of an option's worth, in the words of tables and reports."""

    HELPS = "helps"
    HARMS = "does harm"
    NOTHING = "does nothing that could be seen"
    NO_EFFECT = "has no effect"
    UNKNOWN = "not measured"


@dataclass(frozen=True)
class OptionEffect:
    """The effect of a changed option, or of several that the rules allow only together.

    Attributes:
        parameters: The options.
        default: Their values in the default; an unset option has no entry.
        value: Their values in the winner, likewise.
        alone: How many times better the default is with them; None if not measured.
        within: How many times better the winner is than without them; None if not measured.
        alone_with: Further options that the rules required on the default.
        within_with: Further options that the rules required to set back in the winner.
        why: Why a result is missing.
        unused: Whether the program itself reports that they have no effect in the winner.
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
        """The names of the options."""
        return ", ".join(self.parameters)

    @property
    def values(self) -> str:
        """The options with their values in the winner, shortened for narrow places."""
        shown = [
            f"{name}={value_text(self.value[name])}" if name in self.value else f"{name} unset"
            for name in self.parameters[:_FEW]
        ]
        more = len(self.parameters) - _FEW
        return " ".join([*shown, *([f"and {more} more"] if more > 0 else [])])

    @property
    def without(self) -> tuple[str, ...]:
        """All options that were set back to the default in the winner."""
        return (*self.parameters, *self.within_with)

    @property
    def worth(self) -> Worth:
        """The conclusion for the winner; if it is not known there, for the default."""
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
    """The ablation of a winner, or of a point of a trade-off's front.

    Attributes:
        winner: The number of its trial.
        confidence: The confidence of all intervals.
        rounds: The number of rounds.
        effects: The effect of each option.
        baseline: The default's median value, in the metric's unit.
        combined: The winner's speed-up over the default.
        dropped: The options that the winner is no worse without.
        simplified: The winner without these; None if no option was dropped.
        over_default: The speed-up of the simplified configuration over the default.
        over_winner: Its speed-up over the winner.
        breaks: The limits that it breaks.
        metric: The metric of all values.
        further: For a point of a front: the same runs in the other metrics of the trade-off.
        worse: For a point of a front: the metrics in which the simplified configuration is worse than the point.
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
        """The ablation in each metric, the optimised one first."""
        return (self, *self.further)

    @property
    def rows(self) -> list[tuple[OptionEffect, ...]]:
        """For each effect, its values in all metrics."""
        return list(zip(*(one.effects for one in self.by_metric), strict=True))

    @property
    def subject(self) -> str:
        """The name of the examined configuration: a point of a front is not called winner."""
        return f"trial {self.winner}" if self.further else "the winner"

    def readings(self, target: Metric, metrics: Sequence[Metric]) -> "list[tuple[Metric, Ablation]]":
        """Return the ablation in each metric, with that metric; `target` is the optimised one."""
        known = {metric.name: metric for metric in metrics}
        return [(target, self), *((known[one.metric], one) for one in self.further)]

    @property
    def options(self) -> list[str]:
        """The options of the winner."""
        return list(dict.fromkeys(name for effect in self.effects for name in effect.parameters))

    @property
    def simplified_speed_up(self) -> SpeedUp | None:
        """The speed-up of the simplified configuration over the default; None if it was not measured."""
        if self.over_default is None:
            return None
        ratio, low, high = self.over_default
        return SpeedUp(ratio, (low, high))

    @property
    def is_accepted(self) -> bool:
        """Whether the simplified configuration keeps the limits and is significantly worse in no metric.

        If the winner is better than the default in these runs, the simplified configuration must be so, too: otherwise
        too few runs, which show no difference, would be enough to accept it.
        """
        if self.over_winner is None or self.over_winner[2] < 1.0 or self.breaks or self.worse:
            return False
        gains = self.combined is not None and self.combined[1] > 1.0
        return not gains or (self.over_default is not None and self.over_default[1] > 1.0)


@dataclass(frozen=True)
class InputComparison(Stored):
    """The comparison of the winner with the default on an input of weight 0.

    Attributes:
        name: The name of the input.
        digest: The digest of the input at that time.
        facts: The facts of the input.
        verdict: The verdict on it.
        why: Why they could not be compared; empty if they could.
    """

    name: str
    digest: str
    facts: Mapping[str, Any]
    verdict: Verdict
    why: str = ""

    def sentence(self, metric: Metric) -> str:
        """Return the result as one sentence."""
        return f"cannot be compared: {self.why}" if self.why else self.verdict.sentence(metric)


def kept_limits(store: ReadableStudy, statistic: Statistic) -> KeptLimits:
    """Return the limits of the newest session's study file, judged by the runs of comparisons."""
    limits = limits_of(store.definition.study_file.limits, store.definition.metrics)
    return KeptLimits(limits, statistic, store.runs() if limits else ())


def standings_of(store: ReadableStudy, statistic: Statistic) -> Standings:
    """Return the standings of a study, with its verdict if there is one."""
    limits = kept_limits(store, statistic)
    return Standings.of(store.trials(), store.definition.target, statistic, stored_verdict(store), limits)


def present_verdict(store: ReadableStudy, standings: Standings) -> Verdict | None:
    """Return the stored verdict; None without a verdict, or if another trial has become the best since."""
    stored = stored_verdict(store)
    return stored if stored is not None and is_about(stored, standings) else None


def is_about(verdict: Verdict, standings: Standings) -> bool:
    """Whether the best trial was a candidate of the verdict, and the winner still keeps the limits.

    Otherwise the verdict is out of date. The best trial is the best of those that keep the limits.
    """
    best = standings.ranking[0] if standings.ranking else None
    return best is not None and best.number in verdict.candidates and standings.limits.keeps(verdict.winner)


def stored_ablation(store: ReadableStudy) -> Ablation | None:
    """Return the stored ablation, also of an earlier winner, judged by the limits of the newest session."""
    stored = store.attribute(ABLATION)
    if not stored:
        return None
    ablation = Ablation.from_dict(stored)
    statistic = store.definition.study_file.repeats.statistic
    broken = broken_by_variant(store, kept_limits(store, statistic), ablation.simplified)
    first, *others = (replace(one, breaks=broken) for one in ablation.by_metric)
    return replace(first, further=tuple(others))


def broken_by_variant(store: ReadableStudy, limits: KeptLimits, configuration: Configuration | None) -> tuple[str, ...]:
    """Return the limits that a configuration breaks in its ablation runs; empty if it has none."""
    if not limits.limits or configuration is None:
        return ()
    wanted = dict(configuration)
    runs = (run for run in store.runs() if run.series.kind in _OF_VARIANTS and dict(run.configuration) == wanted)
    return tuple(map(str, limits.breaches_in(runs)))


def stored_input_comparisons(store: ReadableStudy) -> tuple[InputComparison, ...]:
    """Return the stored comparisons, also of an earlier winner, with the confidence that is asked for now."""
    stored = store.attribute(VERIFIED_INPUTS) or {}
    if not stored:
        return ()
    study = store.definition.study
    found = (InputComparison.from_dict(one) for one in stored.values())
    return tuple(replace(one, verdict=one.verdict.with_settings_of(study)) for one in found)


def changes(configuration: Configuration, default: Configuration) -> list[str]:
    """Return the parameters in which a configuration differs from the default."""
    names = [*configuration, *(name for name in default if name not in configuration)]
    return [name for name in names if configuration.get(name) != default.get(name)]
