"""Scaling: the configuration to use with one process, two, and so on.

Strong scaling: the same work, shared by more processes; weak scaling: the work grows with them. All run in interleaved
rounds. Speed-up and efficiency are those of the textbook (Hager & Wellein, Introduction to High Performance Computing
for Scientists and Engineers, 2010, chapter 5), against the fewest processes that were measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from autotune.comparison.blocks import Blocks, BlockTable, Side
from autotune.comparison.findings import standings_of
from autotune.coordination.run_manager import RunManager
from autotune.errors import CannotRunHereError, StudyFileError
from autotune.formatting import shown
from autotune.records.series import Series
from autotune.storage.study_store import StudyStore
from autotune.studyfile import ScalingSection, StudyFile
from launchers.software.digest import text_digest
from objectives.base import Metric
from spaces import Configuration, Space
from spaces.parameters.problem import Problem

Kind = Literal["strong", "weak"]


@dataclass(frozen=True)
class ScalingPoint:
    """A number of processes, with the medians of all metrics over `runs` runs.

    `speed_up` is against the fewest processes; `efficiency` is what each process is worth, 1 is ideal.
    """

    kind: Kind
    processes: int
    configuration: Configuration
    runs: int
    value: float
    speed_up: float
    efficiency: float
    others: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {**vars(self), "configuration": dict(self.configuration), "others": dict(self.others)}


def variants(base: Configuration, space: Space, section: ScalingSection) -> list[tuple[Kind, int, Configuration]]:
    """Return the valid configurations that differ from `base` in processes, and in work for weak scaling.

    Raises:
        StudyFileError: the space has no such parameters, or these have no numbers.
    """
    known = {parameter.name: parameter for parameter in space.parameters}
    missing = [name for name in (section.processes, section.work) if name and (name not in known or name not in base)]
    if missing:
        msg = f"the space has no {', '.join(map(repr, missing))} that is always set"
        raise StudyFileError(Problem(msg, "scaling"))
    names = [name for name in (section.processes, section.work) if name]
    no_numbers = [name for name in names if not all(type(value) is int for value in known[name].values)]
    if no_numbers:
        msg = f"{', '.join(no_numbers)} must be a whole number to be scaled"
        raise StudyFileError(Problem(msg, "scaling"))
    scaled: list[tuple[Kind, int, Configuration]] = []
    for count in sorted(map(int, known[section.processes].values)):
        strong = {**base, section.processes: count}
        if space.contains(strong):
            scaled.append(("strong", count, strong))
        if section.work is None:
            continue
        work, rest = divmod(int(base[section.work]) * count, int(base[section.processes]))
        weak = {**strong, section.work: work}
        if not rest and space.contains(weak):
            scaled.append(("weak", count, weak))
    return scaled


def scale(  # noqa: PLR0913  by keyword
    store: StudyStore,
    manager: RunManager,
    space: Space,
    study: StudyFile,
    *,
    base: Configuration | None,
    rounds: int,
) -> list[ScalingPoint]:
    """Scale the configuration to use, `base`, in `rounds` rounds, those of an earlier call included.

    Raises:
        StudyFileError: the study file does not say what counts processes.
        CannotRunHereError: there is no configuration to use yet.
    """
    if study.scaling is None:
        msg = 'the study file does not say which parameter counts processes: [scaling] processes = "np"'
        raise StudyFileError(Problem(msg, "scaling"))
    if base is None:
        msg = "no configuration of this study has worked yet: there is nothing to scale"
        raise CannotRunHereError(msg)
    wanted = variants(base, space, study.scaling)
    configurations: list[Configuration] = []
    for _, _, configuration in wanted:
        if dict(configuration) not in map(dict, configurations):
            configurations.append(configuration)
    sides = tuple(Side(f"{number}", configuration) for number, configuration in enumerate(configurations))
    series = Series.scaling(text_digest(repr(sorted(base.items()))))
    standings = standings_of(store, study.repeats.statistic)
    subject = f"scaling {shown(base)}"
    table = Blocks(store, manager, standings, series, sides, study.sampler.seed, series.kind.label, subject).until(
        rounds
    )
    for index, side in enumerate(sides):
        for failure in table.failures(index)[:1]:
            manager.display.line(f"not in the tables, {shown(side.configuration)}: {failure}")
        for remark in table.remarks(index):
            manager.display.line(f"{shown(side.configuration)}: {remark}")
    metrics = store.definition.metrics
    return [
        point
        for kind in ("strong", "weak")
        for point in _points(kind, [variant for variant in wanted if variant[0] == kind], table, metrics)
    ]


def _points(
    kind: Kind, wanted: list[tuple[Kind, int, Configuration]], table: BlockTable, metrics: tuple[Metric, ...]
) -> list[ScalingPoint]:
    measured = []
    for _, count, configuration in wanted:
        side = table.place(configuration)
        if side is not None and table.values(side):
            measured.append((count, configuration, len(table.values(side)), table.medians(side)))
    if not measured:
        return []
    target, (fewest, _, _, first) = metrics[0], measured[0]
    return [
        ScalingPoint(
            kind,
            count,
            configuration,
            runs,
            medians[target.name],
            *_gain(kind, target, first[target.name], medians[target.name], count / fewest),
            {metric.name: medians[metric.name] for metric in metrics[1:] if metric.name in medians},
        )
        for count, configuration, runs, medians in measured
    ]


def _gain(kind: Kind, target: Metric, first: float, value: float, more: float) -> tuple[float, float]:
    """Return speed-up and efficiency. A rate counts the work that is done; a time is that of a run's work."""
    if target.direction == "maximize":
        return value / first, value / first / more
    # With weak scaling a run has `more` times the work.
    speed_up = first / value * (more if kind == "weak" else 1.0)
    return speed_up, speed_up / more
