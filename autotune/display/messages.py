"""The lines that a session prints about runs and trials."""

from collections import Counter
from dataclasses import dataclass

from autotune.execution.segments import curve_of
from autotune.formatting import configuration_text, output_folder, quantity
from autotune.records.limit import breaches, breaks, metrics_of_run
from autotune.records.outcome import DISTURBED, Outcome
from autotune.records.study import STOPPED, Run, TrialRecord
from autotune.statistics.standings import Standings
from launchers.noise.disturbance import NOTABLE_SHARE
from objectives.base import Metric


@dataclass(frozen=True)
class Messages:
    """Lines on the runs and trials of a study.

    Attributes:
        standings: The trials with their values.
        compares: Whether trials are compared with the default.
        others: The further metrics of a trade-off. They are shown too, but no speed-up, since there is no single one.
    """

    standings: Standings
    compares: bool = True
    others: tuple[Metric, ...] = ()

    def run_ended(self, trial: TrialRecord, outcome: Outcome) -> str:
        """Return a line on the end of the newest run of a trial."""
        again = f", run {len(trial.runs)}" if len(trial.runs) > 1 else ""
        text = f"trial {trial.number}{again}: {self._outcome_text(outcome)}"
        if outcome.complete and self.standings.default is trial:
            text += " (the default configuration)"
        elif trial.complete:
            text += self._times(trial)
        broken = breaches(self.standings.limits.limits, metrics_of_run(outcome)) if outcome.complete else ()
        if broken:
            text += f", {breaks(broken)}"
        if outcome.complete and self.standings.metric.is_pace:
            text += _taken(outcome)
        if len(trial.runs) == 1:
            text += f"  {configuration_text(trial.configuration)}"
        return text if outcome.failure is None else _with_folder(text, trial)

    def is_news(self, trial: TrialRecord, outcome: Outcome) -> bool:
        """Whether the log shows the end of a run although it is no new best.

        It shows failures, runs that had lost or that break a limit, and the first value of the
        default; of a training also its last one.
        """
        if not outcome.complete or breaches(self.standings.limits.limits, metrics_of_run(outcome)):
            return True
        is_first = len(trial.runs) == 1 and (trial.complete or not trial.earlier)
        return self.standings.default is trial and is_first

    def uncounted_run(self, run: Run) -> str:
        """Return a line on the end of a run that does not count for the value of a trial: a warm-up."""
        return f"{run.series}: {self._outcome_text(run.outcome)}, does not count"

    def _outcome_text(self, outcome: Outcome) -> str:
        """Return the outcome of a run as text."""
        if outcome.failure is not None:
            return f"{outcome.failure.value}: {outcome.message}"
        if outcome.capped:
            return f"capped: {outcome.message}"
        curve = curve_of(outcome)
        at = f" at step {curve[-1][0]}" if curve else ""
        stopped = ", stopped" if STOPPED in outcome.details else ""
        metric = self.standings.metric
        others = [other for other in self.others if other.name in outcome.metrics]
        told = "".join(f", {other.name} {quantity(outcome.metrics[other.name], other)}" for other in others)
        remark = f" ({outcome.remark})" if outcome.remark else ""
        return f"{quantity(outcome.metrics[metric.name], metric)}{told}{at}{stopped}{remark}"

    def value(self, trial: TrialRecord) -> str:
        """Return the value of a complete trial, with its speed-up, as text."""
        standings = self.standings
        runs = len(trial.measured(standings.metric.name))
        value = quantity(standings.value(trial), standings.metric)
        remark = f" ({trial.outcomes[-1].remark})" if trial.outcomes[-1].remark else ""
        return value + (f", {standings.statistic} of {runs}" if runs > 1 else "") + self._times(trial) + remark

    def _times(self, trial: TrialRecord) -> str:
        speed_up = self.standings.speed_up(trial) if self.compares and not self.others else None
        return "" if speed_up is None else f", {speed_up.text()}"


def _taken(outcome: Outcome) -> str:
    """Return the share of a run's time that other processes took, if it was notable."""
    share = outcome.disturbance.taken_share
    return f", taken {share:.0%}" if share is not None and share >= NOTABLE_SHARE else ""


def retry_reason(outcome: Outcome) -> str:
    """Return why a run is made again, in short if others disturbed it: on a shared machine many are."""
    return f"set aside{_taken(outcome)}" if outcome.code == DISTURBED else outcome.message


def failure_summary(ended: list[TrialRecord]) -> str:
    """Return the reasons why every run failed: each reason once, the most frequent first."""
    reasons = Counter(trial.message for trial in ended)
    last = {trial.message: trial for trial in ended}
    lines = [_with_folder(f"  {count} times: {message}", last[message]) for message, count in reasons.most_common(5)]
    return "\n".join([f"every trial failed, {len(ended)} of {len(ended)}:", *lines])


def _with_folder(text: str, trial: TrialRecord) -> str:
    folder = output_folder(trial.job)
    return f"{text}  ({folder})" if folder else text
