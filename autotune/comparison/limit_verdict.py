"""The verdict on limits: in how many pairs the winner kept them, and whether the default keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autotune.comparison.findings import is_about
from autotune.records.limit import Breach, Limits, breaches, breaks, metrics_of_run
from autotune.records.series import Series
from autotune.records.study import Run
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from objectives.base import Metric


@dataclass(frozen=True)
class LimitVerdict:
    """The verdict on limits.

    Attributes:
        limits: The limits of the study.
        kept: The number of pairs of fresh runs in which the winner kept all limits.
        pairs: The number of pairs.
        default_breaks: The limits that the default breaks.
    """

    limits: Limits = ()
    kept: int = 0
    pairs: int = 0
    default_breaks: tuple[Breach, ...] = ()

    def sentence(self, verdict: Verdict, metric: Metric) -> str:
        """Return the verdict as one sentence, including the limits."""
        if not self.limits or not verdict.known:
            return verdict.sentence(metric)
        said = f"; {self.limits_text('the winner')}"
        if not self.default_breaks:
            return verdict.sentence(metric) + said
        apart = f"; the default {breaks(self.default_breaks)}, so the two are not comparable"
        fails = f"; it fails too often to be used: {verdict.failure_text()}" if verdict.unreliable else ""
        return f"{verdict.comparison(metric)}{apart}{said}{fails}"

    def limits_text(self, trial: str) -> str:
        """Return in words in how many pairs a trial kept the limits."""
        return f"{trial} kept {', '.join(map(str, self.limits))} in {self.kept} of {self.pairs} pairs"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {"kept": self.kept, "pairs": self.pairs, "default_breaks": list(map(str, self.default_breaks))}


NO_LIMITS = LimitVerdict()


def limit_verdict(runs: Sequence[Run], standings: Standings) -> LimitVerdict:
    """Return the verdict on limits; without a present verdict it has no pairs."""
    limits, verdict, default = standings.limits.limits, standings.verdict, standings.baseline
    if not limits:
        return NO_LIMITS
    default_breaks = standings.limits.breaches(default.number) if default is not None else ()
    if verdict is None or not is_about(verdict, standings):
        return LimitVerdict(limits, default_breaks=default_breaks)
    return limits_in_pairs(runs, standings, verdict.series, verdict.winner)


def limits_in_pairs(runs: Sequence[Run], standings: Standings, series: Series, trial: int) -> LimitVerdict:
    """Return in how many pairs of a series a trial kept the limits, and which limits the default breaks."""
    limits, default = standings.limits.limits, standings.baseline
    if not limits:
        return NO_LIMITS
    default_breaks = standings.limits.breaches(default.number) if default is not None else ()
    complete = [run for run in runs if run.series == series and run.outcome.complete]
    beside = {run.round for run in complete if run.trial != trial}
    paired = [run for run in complete if run.trial == trial and run.round in beside]
    kept = sum(not breaches(limits, metrics_of_run(run.outcome)) for run in paired)
    return LimitVerdict(limits, kept, len(paired), default_breaks)
