"""Sizing: a few runs of a study that tell how many nodes, ranks and threads it should have.

One run after the other, each where it is expected to spare most for what it costs. All complete runs of the study
count, whatever they were made for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import median

from autotune.comparison.findings import standings_of
from autotune.comparison.rounds import ComparisonRounds, Side
from autotune.coordination.run_manager import RunManager
from autotune.errors import CannotRunHereError, StudyFileError
from autotune.formatting import shown
from autotune.performance.installation import with_installation_apart
from autotune.performance.measurements.dataset import measurements, setting_of
from autotune.performance.recognition import recognised
from autotune.performance.rightsizing.candidates import Candidates
from autotune.performance.rightsizing.limits import ENERGY_UNITS, HOUR_S, Limits
from autotune.performance.rightsizing.right_size import Knowledge, RightSize
from autotune.performance.rightsizing.sizes import Sizes, room_of, times_of
from autotune.performance.run_times.model import RunTimes
from autotune.records.measurement import Facts
from autotune.records.series import SIZE, SeriesKind
from autotune.records.study import Run
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile
from launchers.meters.figures import ENERGY
from objectives.base import Metric, Plan
from spaces import Configuration, Space

_UNKNOWN = "nothing is known of what runs take here: allow some (--probes 6), or `autotune storage import` measurements"
_ELSEWHERE = frozenset({SeriesKind.WARM_UP, SeriesKind.WORKLOAD, SeriesKind.WATCH, SeriesKind.ASIDE})


@dataclass(frozen=True)
class SizingRequest:
    """What is asked: the size under `limits` on at most `most_nodes` of the place's nodes, from at most so many `runs`.

    `urls` are storages to learn from.
    """

    limits: Limits
    runs: int
    most_nodes: int | None = None
    whole_nodes: bool = False
    urls: tuple[str, ...] = ()

    def sizing(self, store: StudyStore, plan: Plan, space: Space, facts: Facts, folder: Path) -> "Sizing":
        """Return the sizing of a study on a machine with these facts; jobs are described in `folder`.

        Raises:
            CannotRunHereError: runs get fewer nodes there.
        """
        setting = with_installation_apart(setting_of(store.name, store.definition))
        room = room_of(facts, self.most_nodes, self.whole_nodes)
        sizes = Sizes(space, setting, plan, room, folder)
        known = recognised(measurements(self.urls, setting.program), setting)
        ran = [run.configuration for run in _sizing_runs(store) if _is_timed(run, store.definition.target)]
        candidates, times = sizes.candidates(known, ran)

        def cores_of(configuration: Configuration) -> int:
            return room.taken(sizes.resources(configuration))[1]

        return Sizing(store, candidates, self.limits, cores_of, times)


@dataclass(frozen=True)
class Sizing:
    """The sizing of a study among candidates: `cores_of` says what a run of a configuration takes."""

    store: StudyStore
    candidates: Candidates
    limits: Limits
    cores_of: Callable[[Configuration], int]
    model: RunTimes | None = None

    def knowledge(self) -> Knowledge:
        """Return what the stored runs tell."""
        runs = _sizing_runs(self.store)
        times = [(run.configuration, self._time_s(run)) for run in runs if _is_timed(run, self._metric)]
        times_s = times_of(self.candidates, times)
        tried = times_of(self.candidates, [(run.configuration, inf) for run in runs])
        return Knowledge(self.candidates, self._limits(runs), times_s, frozenset(tried) - frozenset(times_s))

    def probe(self, manager: RunManager, study: StudyFile, most: int) -> None:
        """Make runs until there were `most` of them, those of earlier calls included, or no other is worth it.

        What ran may run again: a second run tells how far runs differ, and so whether it keeps the limits.
        """
        standings = standings_of(self.store, study.repeats.statistic)
        for number in range(len(self.probes()), most):
            chosen = self.knowledge().next()
            if chosen is None:
                return
            ran = [dict(run.configuration) for run in self.probes()]
            sides = [one for place, one in enumerate([*ran, dict(chosen)]) if one not in ran[:place]]
            blocks = ComparisonRounds(
                self.store,
                manager,
                standings,
                SIZE,
                tuple(Side(shown(one), one) for one in sides),
                study.sampler.seed,
                SIZE.kind.label,
                f"run {number + 1} of at most {most}",
                # Without a measured default, the first run's answer is the one that the others must agree with.
                other_workload=standings.baseline is None,
            )
            blocks.rerun(sides.index(dict(chosen)))

    def probes(self) -> list[Run]:
        """Return the stored runs that were made for this."""
        return [run for run in self.store.runs() if run.series == SIZE]

    def right_size(self) -> RightSize:
        """Return the right size by what is known, with what was spent on it.

        Raises:
            CannotRunHereError: nothing is known of times, or of energy where that is limited.
        """
        known = self.knowledge()
        right_size = known.right_size()
        if right_size is None or (known.limits.energy_j < inf and known.limits.power_w is None):
            raise CannotRunHereError(_UNKNOWN)
        probes = self.probes()
        spent = sum(self.cores_of(run.configuration) * run.outcome.usage.elapsed_s for run in probes) / HOUR_S
        return replace(right_size, probes=len(probes), probe_core_hours=spent).by(self.model)

    @property
    def _metric(self) -> Metric:
        return self.store.definition.target

    def _time_s(self, run: Run) -> float:
        return run.outcome.metrics[self._metric.name]

    def _limits(self, runs: Sequence[Run]) -> Limits:
        metrics = self.store.definition.metrics
        energy = next((metric for metric in metrics if metric.unit in ENERGY_UNITS), None)
        if self.limits.energy_j == inf:
            return self.limits
        metered = [run for run in runs if ENERGY in run.outcome.metered]
        if energy is None and runs and not metered:
            names = ", ".join(f"{metric.name} in {metric.unit}" if metric.unit else metric.name for metric in metrics)
            msg = (
                f"--max-energy: no metric of study {self.store.name!r} is an energy, with the unit "
                f"{', '.join(ENERGY_UNITS)} (there are: {names}), and no meter told that of a run: `autotune doctor` "
                "lists meters; or let the program print it, and read it with a metric"
            )
            raise CannotRunHereError(msg)
        took_j = [
            (run, run.outcome.metrics[energy.name] * ENERGY_UNITS[energy.unit])
            for run in runs
            if energy is not None and energy.name in run.outcome.metrics
        ] or [(run, run.outcome.metered[ENERGY]) for run in metered]
        drawn = [
            joules / (self.cores_of(run.configuration) * self._time_s(run))
            for run, joules in took_j
            if _is_timed(run, self._metric)
        ]
        return replace(self.limits, power_w=median(drawn)) if drawn else self.limits


def _sizing_runs(store: StudyStore) -> list[Run]:
    """Return the stored runs that tell of sizes."""
    return [run for run in store.runs() if run.series.kind not in _ELSEWHERE]


def _is_timed(run: Run, metric: Metric) -> bool:
    """Whether the run has a time; a program that rounds one down to 0 tells none."""
    return run.outcome.complete and run.outcome.metrics[metric.name] > 0.0


def check_target_is_time(metric: Metric) -> None:
    """Refuse a study whose first metric is no time in seconds, which limits are in.

    Raises:
        StudyFileError: it is not.
    """
    if metric.kind != "time":
        msg = (
            f"{metric.name}, the first metric of this study, is no time: put the metric first that is the time of a "
            'run, with kind = "time"'
        )
        raise StudyFileError(msg)
    if metric.unit not in {"s", ""}:
        msg = (
            f"{metric.name}, the first metric of this study, is in {metric.unit}, and limits are in seconds: put a "
            "metric first that is in s"
        )
        raise StudyFileError(msg)
