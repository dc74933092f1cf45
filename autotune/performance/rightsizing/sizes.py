"""Sizes: the configurations of a space that differ in nodes and cores, and in parameters that depend on these."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from autotune.errors import CannotRunHereError
from autotune.performance.regression.table import DesignMatrix
from autotune.performance.rightsizing.candidates import Candidates
from autotune.performance.run_times.model import RunTimes
from autotune.performance.validity import Validity
from autotune.records.measurement import Facts, Measured, Setting
from launchers import Job, Resources
from objectives.base import Context, Plan
from spaces import Configuration, Space
from spaces.expressions.quantities import FloatArray
from spaces.valid_set.valid_set import Indices

Column = np.ndarray[tuple[int], np.dtype[np.intp]]
Taken = np.ndarray[tuple[int, int], np.dtype[np.intp]]
"""The nodes, the cores and the threads of each rank of configurations, (n, 3)."""

_LISTED = 200_000
_SAMPLED = 20_000
_NEIGHBOURS = 200
# A parameter that cannot change alone in the default is varied from this many other configurations.
_ORIGINS = 4
# Keep this many candidates with the same number of cores, those that should be fastest.
_ALIKE = 4
# Keep this many numbers of cores, spread evenly by logarithm.
_CORE_COUNTS = 250


@dataclass(frozen=True)
class Room:
    """The nodes and cores per node that a run may use; with `whole_nodes`, runs do not share nodes."""

    nodes: int
    cores_per_node: int
    whole_nodes: bool = False

    def nodes_and_cores(self, resources: Resources) -> tuple[int, int]:
        """Return the number of nodes and cores that a run occupies."""
        nodes = max(resources.nodes, -(-resources.cores // self.cores_per_node))
        return nodes, nodes * self.cores_per_node if self.whole_nodes else resources.cores


def room_of(facts: Facts, most_nodes: int | None, whole_nodes: bool) -> Room:
    """Return the nodes and cores that a run may use on a machine.

    Args:
        facts: The facts of the machine.
        most_nodes: The most nodes of a run; None for all.
        whole_nodes: Whether a run occupies whole nodes.

    Raises:
        CannotRunHereError: The machine has fewer nodes.
    """
    nodes = int(facts.get("nodes", 1))
    if most_nodes is not None and most_nodes > nodes:
        msg = (
            f"--max-nodes {most_nodes}: runs of this study get at most {nodes} node{'s' * (nodes != 1)} where it runs; "
            "name a site with more (--set launcher.site=NAME, `nodes` in its file), or predict for a described "
            "machine: --machine NAME"
        )
        raise CannotRunHereError(msg)
    cores = int(facts.get("cores", 1))
    return Room(most_nodes or nodes, int(facts.get("cores_per_node", max(1, cores // nodes))), whole_nodes)


@dataclass(frozen=True)
class Sizes:
    """A program prepared for a setting, with its space; the files of its jobs are made in `folder`."""

    space: Space
    setting: Setting
    plan: Plan
    room: Room
    folder: Path

    def candidates(
        self, measured: Sequence[Measured], ran: Iterable[Configuration] = ()
    ) -> tuple[Candidates, RunTimes | None]:
        """Return the candidates, and the model of their expected times, if there is one.

        All measurements help to select the candidates. The model of the expected times leaves out those that `ran`
        here: their distance from the expectation shows how far other candidates may be off, and a model fitted to them
        would hide it.
        """
        times = self._fit(measured)
        rows, taken = self._candidates(_able(times), measured)
        nodes, cores, threads = (column.tolist() for column in taken.T)
        made = Candidates.of(self.space.decode(rows), nodes, cores, threads=threads)
        own = {_key(one) for one in ran} & {_key(one) for one in made.configurations}
        others = [row for row in measured if not (_is_here(row, self.setting) and _key(row.configuration) in own)]
        if len(others) < len(measured):
            times = self._fit(others)
        model = _able(times)
        if model is None:
            return made, times
        cases = self._cases(rows, taken[:, 0])
        return replace(made, expected=model.estimate(cases), off=model.off(cases)), times

    def _fit(self, measured: Sequence[Measured]) -> RunTimes | None:
        rules = (*(constraint.rule for constraint in self.space.constraints), *self.space.derived.values())
        return RunTimes.fit(measured, rules, self.setting, self.plan.shape)

    def _candidates(self, model: RunTimes | None, measured: Sequence[Measured]) -> tuple[Indices, Taken]:
        """Return the value indexes of candidates, (n, p), nearest to the default's division first."""
        sizing = self._sizing()
        rows = self._rows(sizing | (model.varied if model is not None else frozenset()))
        rows = rows[~Validity.of(self.space, self.setting, measured).fails(rows)]
        taken = self._taken(rows, sizing)
        fits = taken[:, 0] <= self.room.nodes
        apart = np.abs(np.log(taken[:, 2] / _threads(self._job(self.space.default()))))
        near = np.argsort(apart, kind="stable")
        near = near[fits[near]]
        rows, taken, apart = rows[near], taken[near], apart[near]
        order = np.arange(len(rows))
        if model is not None:
            order = np.argsort(model.estimate(self._cases(rows, taken[:, 0])).mean, kind="stable")
        kept = _thin(taken[:, 1], apart, order)
        return rows[kept], taken[kept]

    def resources(self, configuration: Configuration) -> Resources:
        """Return the resources that a run of a configuration occupies."""
        return self._job(configuration).resources

    def _job(self, configuration: Configuration) -> Job:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.plan.objective.job(configuration, Context(self.folder))

    def _sizing(self) -> frozenset[str]:
        """Return the parameters that change the resources of a run, or their division into ranks and threads."""
        default = self.space.default()
        found, free = self._sizing_at(default)
        origins: dict[frozenset[str], int] = defaultdict(int)
        for other in self.space.neighbours(default):
            # A parameter that can only change together with others is tried where those have changed.
            bound = _parameters_that_differ(default, other) - free
            origins[bound] += 1
            if bound and origins[bound] <= _ORIGINS:
                more, tried = self._sizing_at(other)
                found, free = found | more, free | tried
                if not bound & found and self._size_of(other) != self._size_of(default):
                    found |= bound
        return found

    def _sizing_at(self, origin: Configuration) -> tuple[frozenset[str], frozenset[str]]:
        """Return the parameters that change the resources of `origin` alone, and all that can change alone there."""
        own = self._size_of(origin)
        found: set[str] = set()
        seen: dict[str, int] = defaultdict(int)
        for other in self.space.neighbours(origin):
            changed = _parameters_that_differ(origin, other)
            if len(changed) == 1:
                (name,) = changed
                seen[name] += 1
                if seen[name] <= _NEIGHBOURS and name not in found and self._size_of(other) != own:
                    found.add(name)
        return frozenset(found), frozenset(seen)

    def _size_of(self, configuration: Configuration) -> tuple[int, int, int]:
        job = self._job(configuration)
        return job.resources.nodes, job.resources.cores, _threads(job)

    def _rows(self, varied: frozenset[str]) -> Indices:
        """Return value indexes, (n, p), that differ from the default only in `varied` parameters, the default first."""
        space = self.space
        default = space.indices([space.default()])
        others = [column for column, parameter in enumerate(space.parameters) if parameter.name not in varied]
        if space.listable and space.size.value <= _LISTED:
            rows = space.all_indices()
            rows = rows[(rows[:, others] == default[:, others]).all(axis=1)]
        else:
            rows = space.sample_indices(np.random.default_rng(0), _SAMPLED)
            rows[:, others] = default[0, others]
            rows = np.unique(rows, axis=0)
            rows = rows[space.valid_indices(rows)]
        rest = rows[(rows != default).any(axis=1)]
        return np.ascontiguousarray(np.concatenate([default, rest]))

    def _taken(self, rows: Indices, sizing: frozenset[str]) -> Taken:
        """Return what the runs of value indexes take, (n, 3)."""
        columns = [column for column, parameter in enumerate(self.space.parameters) if parameter.name in sizing]
        if not columns:
            columns = [0]
        _, first, places = np.unique(rows[:, columns], axis=0, return_index=True, return_inverse=True)
        jobs = [self._job(one) for one in self.space.decode(rows[first])]
        each = [(*self.room.nodes_and_cores(job.resources), _threads(job)) for job in jobs]
        return np.array(each, dtype=np.intp)[places.reshape(-1)]

    def _cases(self, rows: Indices, nodes: Column) -> DesignMatrix:
        cases = DesignMatrix.candidates(self.space, rows, self.setting)
        own = {"nodes": nodes.astype(float), "cores": (nodes * self.room.cores_per_node).astype(float)}
        known = {name: column for name, column in own.items() if name in cases.machine}
        return DesignMatrix(cases.configuration, cases.workload, {**cases.machine, **known})


def measured_here(setting: Setting, measured: Iterable[Measured]) -> Iterator[tuple[Configuration, float]]:
    """Yield the configurations measured in a setting, on any number of nodes, with their times."""
    for row in measured:
        if _is_here(row, setting) and row.value is not None:
            yield row.configuration, row.value


def times_of(candidates: Candidates, runs: Iterable[tuple[Configuration, float]]) -> dict[int, list[float]]:
    """Return the times of each candidate that ran, by index; `runs` are configurations with their times."""
    places = {_key(configuration): place for place, configuration in enumerate(candidates.configurations)}
    times: dict[int, list[float]] = defaultdict(list)
    for configuration, time_s in runs:
        if _key(configuration) in places:
            times[places[_key(configuration)]].append(time_s)
    return dict(times)


def _threads(job: Job) -> int:
    """Return the threads of each rank; 1 without ranks, where the cores tell all."""
    if job.mpi is None:
        return 1
    return max(1, round(job.resources.cores * job.resources.threads_per_core / job.mpi.ranks))


def _able(times: RunTimes | None) -> RunTimes | None:
    """Return the model, or None if it abstains."""
    return times if times is not None and not times.abstains else None


def _is_here(row: Measured, setting: Setting) -> bool:
    """Return whether a measurement is a time in a setting, on any number of nodes."""
    same = (row.setting.program, row.setting.machine, row.setting.workload)
    is_there = same == (setting.program, setting.machine, setting.workload) and row.setting.may_be_identical(setting)
    return is_there and row.setting.metric.compares_with(setting.metric) and (row.value or 0.0) > 0.0


def _parameters_that_differ(one: Configuration, other: Configuration) -> frozenset[str]:
    return frozenset(name for name in {**one, **other} if one.get(name) != other.get(name))


def _key(configuration: Configuration) -> frozenset[tuple[str, object]]:
    return frozenset(configuration.items())


def _thin(cores: Column, apart: FloatArray, order: Column) -> list[int]:
    """Return indexes of rows: the default's, and a few of each of some numbers of cores.

    Those are the one whose division into ranks and threads is least `apart` from the default's, (n,), and the first in
    `order`.
    """
    counts = np.unique(cores)
    if len(counts) > _CORE_COUNTS:
        wanted = np.geomspace(counts[0], counts[-1], _CORE_COUNTS)
        counts = np.unique(counts[np.abs(np.log(counts[None, :] / wanted[:, None])).argmin(axis=1)])
    nearest = order[np.argsort(apart[order], kind="stable")]
    usual = {int(cores[place]): place for place in nearest[::-1].tolist()}
    chosen = {int(count): 0 for count in counts}
    kept = {0: None}
    for place in (*usual.values(), *order.tolist()):
        count = int(cores[place])
        if place not in kept and chosen.get(count, _ALIKE) < _ALIKE:
            chosen[count] += 1
            kept[place] = None
    return list(kept)
