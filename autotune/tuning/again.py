"""Tuning again: trials that were measured on what was another machine in effect begin anew, on the one that is now.

The pace of the machine is that of the default configuration. Its runs that stand close together in time, in a block of
tuning or in a comparison, are a stretch; the last stretch with a few of them says how fast the machine is now. What was
measured in a stretch of another pace, beyond the noise, says little of it, and neither does a run that others have
disturbed. Such runs are set aside, all at once; whoever opens the study next makes their trials anew. Where nodes are
chosen for runs, each node has a pace of its own: another node is no other time.
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
from autotune.storage.amendment import Amendment
from autotune.storage.readable import ABLATION, OUTLOOK, VERDICT, VERIFIED_INPUTS
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind, Metric
from spaces import Configuration

_KINDS = frozenset({SeriesKind.TUNING, SeriesKind.SELECT, SeriesKind.VERDICT})
# So many values of the default say how fast the machine is now; it has as many before any other trial runs.
_LEAST_VALUES = 3
_CONCLUSIONS = (VERDICT, ABLATION, VERIFIED_INPUTS, OUTLOOK)

_Stretch = tuple[Series, int, str]


@dataclass(frozen=True)
class Doubt:
    """Why a run says little of the machine as it is now: `moved` is by what logarithm its pace was another one, or 0.

    A run that others have disturbed has the `words` of that.
    """

    moved: float = 0.0
    words: str = ""

    @property
    def code(self) -> str:
        """What the run is marked with."""
        return ANOTHER_PACE if self.moved else DISTURBED

    @property
    def message(self) -> str:
        """Say it."""
        if not self.moved:
            return f"was disturbed: {self.words}; its trial begins anew"
        return f"the machine was {pace(self.moved)} than it is now: what it measured then does not count"


def begin_doubtful_anew(store: StudyStore, say: Callable[[str], None]) -> bool:
    """Set aside what was measured on another machine in effect; return whether there was anything of the kind."""
    trials, metric, runs = store.trials(), store.definition.target, store.keyed_runs()
    default = trials[0].configuration if trials else {}
    found = doubts(runs, default, metric)
    anew = {runs[key].trial: doubt for key, doubt in found.items() if runs[key].series.is_tuning}
    compared = {runs[key].series: doubt for key, doubt in found.items() if not runs[key].series.is_tuning}
    # A trial begins anew as a whole: its runs are named by their number.
    again = {
        key: anew[run.trial] if run.series.is_tuning else compared[run.series]
        for key, run in runs.items()
        if (run.series.is_tuning and run.trial in anew) or run.series in compared
    }
    reopened = {number for number in anew if number is not None}
    if not again:
        why = "the machine was as it is now, and nobody disturbed the runs that count"
        say(f"no trial is made again: {why if metric.is_pace else f'{metric.name} does not depend on how fast it is'}")
        return False
    store.amend(
        Amendment(
            outcomes={key: runs[key].outcome.set_aside(doubt.code, doubt.message) for key, doubt in again.items()},
            aside=list(again),
            reopened=sorted(reopened),
            attributes=dict.fromkeys(_CONCLUSIONS),
        )
    )
    say(_sentence([(runs[key], doubt) for key, doubt in again.items()], len(reopened), len(trials)))
    return True


def doubts(runs: Mapping[int, Run], default: Configuration, metric: Metric) -> dict[int, Doubt]:
    """Return which runs that count for the ranking or the verdict say little of the machine as it is now, by key."""
    if not metric.is_pace:
        return {}
    judge = Disturbances(metric)
    judge.know(runs.values())
    moved = _moved(runs, default, judge)
    found = {}
    for key, run in runs.items():
        outcome = run.outcome
        if run.series.kind not in _KINDS or run.steps is not None:
            continue
        if outcome.failure not in {None, FailureKind.TIMED_OUT}:
            continue
        if by := moved[_stretch(run)]:
            found[key] = Doubt(by)
        elif judge.is_disturbed(outcome):
            found[key] = Doubt(words=outcome.disturbance.describe())
    return found


def _moved(runs: Mapping[int, Run], default: Configuration, judge: Disturbances) -> dict[_Stretch, float]:
    """Return by what logarithm the machine was slower in each stretch than in the last, in the order of the runs."""
    stretches: dict[_Stretch, list[float]] = {}
    for _, run in sorted(runs.items()):
        if run.series.before.kind not in _KINDS:
            continue
        values = stretches.setdefault(_stretch(run), [])
        value = run.outcome.measured.get(judge.metric.name)
        # What was set aside for its pace says what that was; others who came and went are no pace of the machine.
        is_told = run.outcome.code in {"", ANOTHER_PACE} and not judge.is_disturbed(run.outcome)
        if value and is_told and dict(run.configuration) == dict(default):
            values.append(value)
    # By node, the last stretch that says how fast it is now.
    now = {node: values for (_, _, node), values in stretches.items() if len(values) >= _LEAST_VALUES}
    moved, last = defaultdict[_Stretch, float](float), defaultdict[str, float](float)
    for stretch, values in stretches.items():
        node = stretch[-1]
        if values and node in now:
            last[node] = judge.metric.cost(shift(now[node], values))
        # Without a value of the default, the machine was as it was before.
        moved[stretch] = last[node]
    return moved


def _stretch(run: Run) -> _Stretch:
    """Return the stretch of a run. What was set aside is one of its own: what was made instead may have its block."""
    hosts = run.job.get("resources", {}).get("hosts") or [""]
    return run.series, run.block if run.series.before.is_tuning else 0, str(hosts[0])


def _sentence(again: Sequence[tuple[Run, Doubt]], trials: int, of: int) -> str:
    tuning = [(run, doubt) for run, doubt in again if run.series.is_tuning]
    paced = [doubt.moved for _, doubt in tuning if doubt.moved]
    others = len({run.trial for run, doubt in tuning if not doubt.moved})
    why = [f"the machine was {pace(max(paced, key=abs))} than it is now"] if paced else []
    why += [f"others have disturbed {others} of them"] if others else []
    if not tuning:
        return f"the comparison of the best is made again: {again[0][1].message}"
    left_s = sum(run.outcome.usage.elapsed_s * exp(-doubt.moved) for run, doubt in tuning)
    return f"{trials} of {of} trials are made again, about {duration(left_s)} of runs: {', and '.join(why)}"
