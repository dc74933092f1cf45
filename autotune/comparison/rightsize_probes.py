"""Sizing: find with a few runs how many nodes, ranks and threads a study should have.

Probes run one after the other, each where the expected saving is largest for its cost. All complete runs of the study
count, whatever their purpose, except warm-ups, runs that were set aside, and those of inputs of weight 0 and of checks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from autotune.comparison.findings import standings_of
from autotune.comparison.round_table import Side
from autotune.comparison.rounds import ComparisonRounds
from autotune.coordination.run_manager import RunManager
from autotune.errors import CannotRunHereError, StudyFileError
from autotune.formatting import configuration_text
from autotune.performance.installation import with_installation_apart
from autotune.performance.measurements.dataset import measurements, setting_of
from autotune.performance.recognition import of_program, unify_names
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

_NO_ENERGY = "no energy of runs is known here, and only runs show it: allow them (--probes 6)"
_UNKNOWN = "no run times are known here: allow runs (--probes 6), or import measurements (`autotune storage import`)"
_ELSEWHERE = frozenset({SeriesKind.WARM_UP, SeriesKind.WORKLOAD, SeriesKind.WATCH, SeriesKind.ASIDE})


@dataclass(frozen=True)
class SizingRequest:
    """The options of a sizing.

    Attributes:
        limits: The limits that the size must keep, such as a deadline.
        runs: The largest number of probes.
        most_nodes: The largest number of nodes; None for all nodes of the place.
        whole_nodes: Whether runs take whole nodes.
        urls: Storages to learn from.
    """

    limits: Limits
    runs: int
    most_nodes: int | None = None
    whole_nodes: bool = False
    urls: tuple[str, ...] = ()

    def sizing(self, store: StudyStore, plan: Plan, space: Space, facts: Facts, folder: Path) -> "Sizing":
        """Return the sizing of a study on a machine with these facts; job descriptions use `folder`.

        Raises:
            CannotRunHereError: The machine gives runs fewer nodes.
        """
        setting = with_installation_apart(setting_of(store.name, store.definition))
        room = room_of(facts, self.most_nodes, self.whole_nodes)
        sizes = Sizes(space, setting, plan, room, folder)
        known = unify_names(of_program(measurements(self.urls), setting), setting)
        ran = [run.configuration for run in _sizing_runs(store) if _is_timed(run, store.definition.target)]
        candidates, times = sizes.candidates(known, ran)

        def cores_of(configuration: Configuration) -> int:
            return room.nodes_and_cores(sizes.resources(configuration))[1]

        return Sizing(store, candidates, self.limits, cores_of, times)


@dataclass(frozen=True)
class Sizing:
    """The sizing of a study.

    Attributes:
        store: The study.
        candidates: The sizes to choose from.
        limits: The limits that the size must keep.
        cores_of: Returns the number of cores that a run of a configuration takes.
        model: The model of run times.
    """

    store: StudyStore
    candidates: Candidates
    limits: Limits
    cores_of: Callable[[Configuration], int]
    model: RunTimes | None = None

    def knowledge(self) -> Knowledge:
        """Return the knowledge from the stored runs."""
        runs = _sizing_runs(self.store)
        times = [(run.configuration, self._time_s(run)) for run in runs if _is_timed(run, self._metric)]
        times_s = times_of(self.candidates, times)
        tried = times_of(self.candidates, [(run.configuration, inf) for run in runs])
        power_w = times_of(self.candidates, self._power_w(runs))
        return Knowledge(self.candidates, self.limits, times_s, frozenset(tried) - frozenset(times_s), power_w)

    def probe(self, manager: RunManager, study: StudyFile, most: int) -> None:
        """Make probes until there are `most` of them, including earlier ones, or no further probe is worth its cost.

        A size may run twice: the second run shows how much runs differ, and so how surely the size keeps the limits.
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
                tuple(Side(configuration_text(one), one) for one in sides),
                study.sampler.seed,
                SIZE.kind.label,
                f"run {number + 1} of at most {most}",
                # Without a measured default, check the answers against that of the first run.
                other_workload=standings.baseline is None,
            )
            blocks.rerun(sides.index(dict(chosen)))

    def probes(self) -> list[Run]:
        """Return the stored runs of this sizing."""
        return [run for run in self.store.runs() if run.series == SIZE]

    def right_size(self) -> RightSize:
        """Return the right size by the present knowledge, with the number and cost of the probes.

        Raises:
            CannotRunHereError: No run time is known, or energy is limited and no energy is known.
        """
        known = self.knowledge()
        right_size = known.right_size()
        if right_size is None:
            raise CannotRunHereError(_UNKNOWN)
        if self.limits.needs_energy and not known.power_w:
            raise CannotRunHereError(_NO_ENERGY)
        probes = self.probes()
        spent = sum(self.cores_of(run.configuration) * run.outcome.usage.elapsed_s for run in probes) / HOUR_S
        return replace(right_size, probes=len(probes), probe_core_hours=spent).by(self.model)

    @property
    def _metric(self) -> Metric:
        return self.store.definition.target

    def _time_s(self, run: Run) -> float:
        return run.outcome.metrics[self._metric.name]

    def _power_w(self, runs: Sequence[Run]) -> list[tuple[Configuration, float]]:
        """Return the configuration of each run whose energy is known, with the watts of each of its cores.

        Raises:
            CannotRunHereError: The energy must be known, and no run has one.
        """
        metrics = self.store.definition.metrics
        energy = next((metric for metric in metrics if metric.unit in ENERGY_UNITS), None)
        metered = [run for run in runs if ENERGY in run.outcome.metered]
        if self.limits.needs_energy and energy is None and runs and not metered:
            names = ", ".join(f"{metric.name} in {metric.unit}" if metric.unit else metric.name for metric in metrics)
            msg = (
                f"--max-energy and --least-energy need the energy of runs: study {self.store.name!r} has no metric "
                f"with the unit {', '.join(ENERGY_UNITS)} (it has {names}), and no meter measured a run; "
                "`autotune doctor` lists meters, or let the program print its energy and add a metric that reads it"
            )
            raise CannotRunHereError(msg)
        took_j = [
            (run, run.outcome.metrics[energy.name] * ENERGY_UNITS[energy.unit])
            for run in runs
            if energy is not None and energy.name in run.outcome.metrics
        ] or [(run, run.outcome.metered[ENERGY]) for run in metered]
        return [
            (run.configuration, joules / (self.cores_of(run.configuration) * self._time_s(run)))
            for run, joules in took_j
            if joules > 0.0 and _is_timed(run, self._metric)
        ]


def _sizing_runs(store: StudyStore) -> list[Run]:
    """Return the stored runs that a sizing can use."""
    return [run for run in store.runs() if run.series.kind not in _ELSEWHERE]


def _is_timed(run: Run, metric: Metric) -> bool:
    """Whether the run has a time above 0; a program may round a short time down to 0."""
    return run.outcome.complete and run.outcome.metrics[metric.name] > 0.0


def check_target_is_time(metric: Metric) -> None:
    """Check that the first metric of a study is a time in seconds, as the limits of a sizing are.

    Raises:
        StudyFileError: It is not.
    """
    if metric.kind != "time":
        msg = (
            f"the first metric of this study, {metric.name}, is not a time, but limits are times: put the metric with "
            'the time of a run first, with kind = "time"'
        )
        raise StudyFileError(msg)
    if metric.unit not in {"s", ""}:
        msg = (
            f"the first metric of this study, {metric.name}, is in {metric.unit}, but limits are in seconds: put a "
            "metric in s first"
        )
        raise StudyFileError(msg)
