"""Find the runs that no longer show how fast the machine is, and set them aside (`--tune-again`).

The default configuration measures the machine's pace. Its runs that are close together in time, in a block of tuning or
in a comparison, form a stretch. The last stretch with enough of them shows the present pace. Runs of a stretch whose
pace differed by more than the noise are unreliable, and so are runs that other processes disturbed. They are all set
aside together, and the next session repeats their trials. Where runs are placed on chosen nodes, each node has its own
pace.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp

from autotune.coordination.disturbances import Disturbances
from autotune.display.console import duration
from autotune.records.outcome import ANOTHER_PACE, DISTURBED
from autotune.records.series import Series, SeriesKind
from autotune.records.study import Run
from autotune.statistics.verdict import pace, shift
from autotune.storage.readable_study import CONCLUSIONS
from autotune.storage.run_corrections import RunCorrections
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind, Metric
from spaces import Configuration

_KINDS = frozenset({SeriesKind.TUNING, SeriesKind.SELECT, SeriesKind.VERDICT})
# The default needs this many values to show the pace. It has as many before any other trial runs.
_LEAST_VALUES = 3

_Stretch = tuple[Series, int, str]


@dataclass(frozen=True)
class RerunReason:
    """Why a run is unreliable.

    Attributes:
        moved: Logarithm of the machine's pace during the run relative to now; 0 if the pace is the same.
        words: What disturbed the run; empty if its pace is the reason.
    """

    moved: float = 0.0
    words: str = ""

    @property
    def code(self) -> str:
        """The code with which the run is set aside."""
        return ANOTHER_PACE if self.moved else DISTURBED

    @property
    def message(self) -> str:
        """The reason in words."""
        if not self.moved:
            return f"was disturbed: {self.words}; its trial runs again"
        return f"the machine was {pace(self.moved)} than it is now, so the run does not count"


def set_unreliable_aside(store: StudyStore, say: Callable[[str], None]) -> bool:
    """Set aside the unreliable runs, so that their trials run again; return whether there were any."""
    trials, metric, runs = store.trials(), store.definition.target, store.runs_by_key()
    default = trials[0].configuration if trials else {}
    found = find_unreliable(runs, default, metric)
    trials_again = {runs[key].trial: reason for key, reason in found.items() if runs[key].series.is_tuning}
    compared = {runs[key].series: reason for key, reason in found.items() if not runs[key].series.is_tuning}
    # All runs of a trial are set aside: a run is named by its number, so a gap would give a new run the name of an old
    # one.
    again = {
        key: trials_again[run.trial] if run.series.is_tuning else compared[run.series]
        for key, run in runs.items()
        if (run.series.is_tuning and run.trial in trials_again) or run.series in compared
    }
    reopened = {number for number in trials_again if number is not None}
    if not again:
        why = "the machine was as fast as now, and no run that counts was disturbed"
        say(f"no trial runs again: {why if metric.is_pace else f'{metric.name} does not depend on the speed'}")
        return False
    store.correct_runs(
        RunCorrections(
            outcomes={key: runs[key].outcome.set_aside(reason.code, reason.message) for key, reason in again.items()},
            aside=list(again),
            reopened=sorted(reopened),
            attributes=dict.fromkeys(CONCLUSIONS),
        )
    )
    say(_sentence([(runs[key], reason) for key, reason in again.items()], len(reopened), len(trials)))
    return True


def find_unreliable(runs: Mapping[int, Run], default: Configuration, metric: Metric) -> dict[int, RerunReason]:
    """Return the runs of the ranking and the verdict that are unreliable, by key, each with the reason."""
    if not metric.is_pace:
        return {}
    judge = Disturbances(metric)
    judge.add(runs.values())
    moved = _pace_shifts(runs, default, judge)
    found = {}
    for key, run in runs.items():
        outcome = run.outcome
        if run.series.kind not in _KINDS or run.steps is not None:
            continue
        if outcome.failure not in {None, FailureKind.TIMED_OUT}:
            continue
        if by := moved[_stretch(run)]:
            found[key] = RerunReason(by)
        elif judge.is_disturbed(outcome):
            found[key] = RerunReason(words=outcome.disturbance.describe())
    return found


def _pace_shifts(runs: Mapping[int, Run], default: Configuration, judge: Disturbances) -> dict[_Stretch, float]:
    """Return the log pace of each stretch relative to the last stretch on its node, in the order of the runs."""
    stretches: dict[_Stretch, list[float]] = {}
    for _, run in sorted(runs.items()):
        if run.series.before.kind not in _KINDS:
            continue
        values = stretches.setdefault(_stretch(run), [])
        value = run.outcome.measured.get(judge.metric.name)
        # A run that was set aside for its pace still shows the pace of its stretch. A disturbed run shows no pace.
        is_known = run.outcome.code in {"", ANOTHER_PACE} and not judge.is_disturbed(run.outcome)
        if value and is_known and dict(run.configuration) == dict(default):
            values.append(value)
    # For each node, the values of the last stretch with enough of them: the present pace.
    now = {node: values for (_, _, node), values in stretches.items() if len(values) >= _LEAST_VALUES}
    moved, last = defaultdict[_Stretch, float](float), defaultdict[str, float](float)
    for stretch, values in stretches.items():
        node = stretch[-1]
        if values and node in now:
            last[node] = judge.metric.cost(shift(now[node], values))
        # A block of tuning without a run of the default has the pace of the stretch before it. Candidates that compete
        # without the default are compared within rounds, whatever the pace.
        moved[stretch] = last[node] if values or stretch[0].before.is_tuning else 0.0
    return moved


def _stretch(run: Run) -> _Stretch:
    """Return the stretch of a run: its series, its block of tuning, and its node.

    Runs that were set aside are a series of their own, because the runs that replaced them may have the same block.
    """
    hosts = run.job.get("resources", {}).get("hosts") or [""]
    return run.series, run.block if run.series.before.is_tuning else 0, str(hosts[0])


def _sentence(again: Sequence[tuple[Run, RerunReason]], trials: int, of: int) -> str:
    tuning = [(run, reason) for run, reason in again if run.series.is_tuning]
    paced = [reason.moved for _, reason in tuning if reason.moved]
    others = len({run.trial for run, reason in tuning if not reason.moved})
    why = [f"the machine was {pace(max(paced, key=abs))} than it is now"] if paced else []
    why += [f"other processes disturbed {others} of them"] if others else []
    if not tuning:
        return f"the best trials are compared again: {again[0][1].message}"
    left_s = sum(run.outcome.usage.elapsed_s * exp(-reason.moved) for run, reason in tuning)
    return f"{trials} of {of} trials run again, about {duration(left_s)} of runs: {', and '.join(why)}"
