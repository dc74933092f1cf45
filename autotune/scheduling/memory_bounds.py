"""Memory bounds: refuse configurations that need as much memory as a run that lacked it, or more than there is."""

from collections.abc import Iterable
from dataclasses import replace

from autotune.formatting import configuration_text
from autotune.records.limit import metrics_of_run
from autotune.records.measurement import Measured
from autotune.records.outcome import Outcome
from autotune.records.study import TrialRecord
from objectives.base import FailureKind, MemoryNeed
from spaces import Configuration

_GIB = 2**30


class MemoryBounds:
    """Learns from runs how much memory is too much, in the objective's own estimate (`need`)."""

    def __init__(self, need: MemoryNeed) -> None:
        """Start without any trial."""
        self._need = need
        self._worked: dict[int, tuple[float, object]] = {}
        self._failed: dict[int, tuple[float, Configuration]] = {}
        self._excess: dict[int, tuple[float, int]] = {}

    def learn(self, trial: TrialRecord) -> None:
        """Learn from a trial's runs so far."""
        need = self._need.bytes_of(trial.configuration)
        if need is None:
            return
        worked = [metrics_of_run(outcome) for outcome in trial.outcomes if outcome.complete]
        if worked:
            self._failed.pop(trial.number, None)
            self._worked[trial.number] = need, self._need.kind(trial.configuration)
            peaks = [metrics[self._need.peak] for metrics in worked if self._need.peak in metrics]
            if peaks:
                self._excess[trial.number] = max(peaks) - need, self._need.processes(trial.configuration)
        elif any(_ran_out_of_memory(outcome) for outcome in trial.outcomes):
            self._failed[trial.number] = (need, trial.configuration)

    def lacks(self, configuration: Configuration) -> str:
        """Return why a configuration is certain to lack memory; empty if it may have enough."""
        need = self._need.bytes_of(configuration)
        if need is None:
            return ""
        kind = self._need.kind(configuration)
        worked = max((most for most, of in self._worked.values() if of == kind), default=0.0)
        # If a configuration that needs more has worked, the failure had another reason, such as a busy node.
        too_much = [
            (least, number)
            for number, (least, failed) in self._failed.items()
            if worked < least <= need and self._need.kind(failed) == kind
        ]
        if too_much:
            number = min(too_much)[1]
            failed = configuration_text(self._failed[number][1])
            return f"it needs as much memory as trial {number} ({failed}), which ran out of it"
        # Each process has a share of the excess; what all share does not grow with their number.
        processes = self._need.processes(configuration)
        excess = [most * min(1.0, processes / count) for most, count in self._excess.values()]
        about = need + max(0.0, min(excess, default=self._need.excess_bytes))
        if about > self._need.room_bytes:
            room = f"a {self._need.place} has {self._need.room_bytes / _GIB:.3g} GiB"
            return f"it would need {about / _GIB:.3g} GiB, and {room}"
        return ""


def carry_over_excess(need: MemoryNeed, workload: str, known: Iterable[Measured]) -> MemoryNeed:
    """Return `need` with the excess that runs of the same workload had on other machines, whatever their size."""
    peaks = (
        (need.bytes_of(one.configuration), one.told.get(need.peak)) for one in known if one.setting.workload == workload
    )
    excess = [peak - estimate for estimate, peak in peaks if estimate is not None and peak is not None]
    return replace(need, excess_bytes=max(0.0, min(excess, default=0.0)))


def _ran_out_of_memory(outcome: Outcome) -> bool:
    return outcome.failure is FailureKind.OUT_OF_MEMORY and not outcome.over_memory_limit
