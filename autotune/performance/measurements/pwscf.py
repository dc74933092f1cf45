"""Read outputs of a user's old pw.x runs as measurements, with the parameters of a study of pw.x.

A complete run gives its wall and its CPU time. So does a run that its input stopped after some iterations, as
benchmarks do; runs with the same limit are a workload of their own. A run that pw.x, MPI or the system refused is a
failure, with their message; a run that stopped at a time limit of its input is a bound. Outputs are left out that break
off, whose times cannot be right, that failed through the machine's fault, which says nothing about the configuration,
or with a lower limit on iterations than others of their workload needed.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isqrt
from pathlib import Path

from autotune.performance.measurements.imported import FindMachine, ImportedMeasurements, summarise_reasons
from autotune.performance.measurements.repeats import RepeatedMeasurement, aggregate
from autotune.records.measurement import Setting
from launchers import EndReason, JobState, JobStatus
from objectives.base import FailureKind, Metric, Output
from objectives.qe.deck import FEW_ITERATIONS
from objectives.qe.failures import find_failure
from objectives.qe.objective import METRICS
from objectives.qe.output import PwOutput, parse
from spaces import Value

PROGRAM = "qe"
WALL, CPU = METRICS[:2]
SIGN = "Program PWSCF"
"""A text near the beginning of every output of pw.x."""

_STARTS = re.compile(r"^(?=[ \t]*Program PWSCF)", re.MULTILINE)
_SERIAL = "a serial algorithm will be used"
_LEAST_RANKS = 4  # with fewer in a group there is no choice how the subspace problem is solved: see spaces.qe
_LIBRARIES = frozenset({"scalapack", "elpa"})
_ENDED = JobStatus(JobState.ENDED, EndReason.EXITED)
# The facts that identify a workload.
_SIZES = ("atoms", "electrons", "bands", "kpoints", "cutoff_ry", "density_cutoff_ry", "fft_dense_x", "fft_smooth_x")

_NO_SIZES = "it failed before it said how large its problem is"
_NO_SUCH_RUN = "it failed, and no run of its problem ended well"
_SEVERAL = "it failed, and several workloads have its sizes"
_IS_LONG = "its time cannot be right: it is far longer than the other times that it prints"
_IS_SHORT = "it prints less time for the whole program than for a part of it"
_NO_ENERGY = "it ended well, but is no self-consistent calculation with an energy"


@dataclass(frozen=True)
class OutputFile:
    """The output of pw.x, and the error output of its ranks if it was stored."""

    name: str
    stdout: str
    stderr: str = ""


@dataclass(frozen=True)
class _Run:
    """One run of pw.x and its facts."""

    name: str
    configuration: Mapping[str, Value]
    nodes: int | None
    shares: bool
    facts: Mapping[str, Value]
    samples: Mapping[str, RepeatedMeasurement]
    limit: int | None = None
    iterations: int = 0
    is_short: bool = False

    @property
    def failed(self) -> bool:
        """Whether the run gave neither a time nor a bound."""
        return all(sample.failed for sample in self.samples.values())


def read_outputs(
    files: Iterable[OutputFile], given: Mapping[str, str | None], place: FindMachine
) -> ImportedMeasurements:
    """Return the measurements of outputs of pw.x; a file may contain several outputs in a row.

    Args:
        files: The outputs.
        given: `machine` and `source` of the runs; `workload`, put before the name that is made from the problem's
            sizes; `program`, by default `qe`; `nodes`, the number for outputs that do not print it.
        place: Returns the facts of a machine.
    """
    left_out: list[tuple[str, str]] = []
    runs: list[_Run] = []
    seen: set[str] = set()
    for file in files:
        for text in _split(file.stdout):
            digest = hashlib.sha256(text[max(0, text.find(SIGN)) :].encode(errors="replace")).hexdigest()
            if digest in seen:
                left_out.append(("a copy of another run", file.name))
                continue
            seen.add(digest)
            result = _run(OutputFile(file.name, text, file.stderr))
            if isinstance(result, _Run):
                runs.append(result)
            else:
                left_out.append((result, file.name))
    return _Gathering(given, place, left_out).measurements(runs)


def _split(text: str) -> list[str]:
    starts = [match.start() for match in _STARTS.finditer(text)]
    bounds = [0, *starts[1:], len(text)]
    return [text[begin:end] for begin, end in pairwise(bounds)]


def _run(file: OutputFile) -> _Run | str:
    """Return a run, or the reason to leave it out."""
    parsed = parse(file.stdout)
    samples = _samples(file, parsed)
    if isinstance(samples, str):
        return samples
    layout = parsed.layout
    return _Run(
        file.name,
        _configuration(parsed, serial=_SERIAL in file.stdout),
        layout.nodes,
        _shares(parsed),
        _facts(parsed),
        samples,
        _limit(parsed),
        parsed.converged_after or parsed.not_converged_after or 0,
        parsed.is_too_short,
    )


def _limit(parsed: PwOutput) -> int | None:
    """Return the iterations after which the input stopped the run on purpose; None if it did not."""
    limit = parsed.limited_to
    is_on_purpose = limit is not None and (parsed.not_converged_after is None or limit < FEW_ITERATIONS)
    return limit if is_on_purpose else None


def _samples(file: OutputFile, parsed: PwOutput) -> dict[str, RepeatedMeasurement] | str:
    failure = find_failure(Output(file.stdout, file.stderr, _ENDED, Path()), parsed, _limit(parsed))
    total = parsed.total
    if failure is None:
        return _times(parsed)
    if failure.kind is FailureKind.TIMED_OUT and total is not None:
        bounds = {WALL.name: RepeatedMeasurement(bound=total.wall_s), CPU.name: RepeatedMeasurement(bound=total.cpu_s)}
        return _IS_LONG if parsed.is_too_long else bounds
    if failure.code == "qe.incomplete":
        return _NO_ENERGY if parsed.job_done else "it breaks off, and does not say why"
    if failure.kind is FailureKind.INFRASTRUCTURE_ERROR:
        return f"the machine's fault ({failure.code})"
    words = f"{failure.kind.value}: {failure}"
    return {WALL.name: RepeatedMeasurement(failure=words), CPU.name: RepeatedMeasurement(failure=words)}


def _times(parsed: PwOutput) -> dict[str, RepeatedMeasurement] | str:
    """Return the times of a complete run, or the reason to leave it out."""
    total = parsed.total
    if parsed.is_band_structure:
        return _NO_ENERGY
    if parsed.is_too_long:
        return _IS_LONG
    if total is None or total.wall_s <= 0:
        return "its time is too short for pw.x's clock"
    times = {WALL.name: total.wall_s, CPU.name: total.cpu_s}
    return {name: RepeatedMeasurement(time_s, parts=parsed.parts) for name, time_s in times.items()}


def _configuration(parsed: PwOutput, *, serial: bool) -> dict[str, Value]:
    """Return the configuration of a run, with the names of `spaces.qe`."""
    layout = parsed.layout
    configuration: dict[str, Value] = {
        "np": max(1, layout.ranks),
        "npool": layout.pools,
        "nbgrp": layout.band_groups,
        "ntg": layout.task_groups,
        "threads": layout.threads,
    }
    in_group = layout.ranks // max(1, layout.pools) // max(1, layout.band_groups)
    if layout.diagonalization_grid > 1:
        # This is what such a build chooses by itself, so leave it unset, as a study's default does.
        is_automatic = _shares(parsed) and layout.diagonalization_grid == isqrt(in_group)
        return configuration if is_automatic else configuration | {"ndiag": layout.diagonalization_grid**2}
    has_choice = in_group >= _LEAST_RANKS
    return configuration | {"ndiag": 1} if serial and has_choice else configuration


def _shares(parsed: PwOutput) -> bool:
    """Return whether this build shares the subspace problem between ranks by default, through ScaLAPACK or ELPA."""
    return parsed.layout.diagonalization.lower() in _LIBRARIES


def _facts(parsed: PwOutput) -> dict[str, Value]:
    size = parsed.workload
    facts: dict[str, Value] = {"openmp": parsed.openmp, **size.sizes}
    if parsed.version is not None:
        facts["pw_version"] = parsed.version
    if size.kpoints is not None:
        facts["kpoints"] = size.kpoints
    if size.smooth_grid is not None:
        facts["planes"] = size.smooth_grid[2]
    if parsed.layout.diagonalization_grid > 1:
        facts["scalapack"] = True
    limit = _limit(parsed)
    if parsed.energies_ry or limit is not None:
        facts["scf_cycles"] = max(1, len(parsed.energies_ry))
    if limit is not None:
        facts["scf_iterations"] = limit
    return facts


@dataclass
class _Gathering:
    """Groups runs by workload, and repeats by configuration."""

    given: Mapping[str, str | None]
    place: FindMachine
    left_out: list[tuple[str, str]]
    _workloads: dict[str, dict[str, Value]] = field(default_factory=dict)
    _needed: dict[str, int] = field(default_factory=dict)

    def measurements(self, runs: Sequence[_Run]) -> ImportedMeasurements:
        """Return the measurements of all runs."""
        samples: dict[tuple[object, ...], list[RepeatedMeasurement]] = {}
        about: dict[tuple[object, ...], tuple[str, int | None, Mapping[str, Value]]] = {}
        sharing = {self._name(run.facts) for run in runs if run.shares and not run.failed}
        silent = 0
        # Read complete runs first, since they define the workloads: a run that failed early does not print all sizes,
        # and whether a run could have converged in its iterations is known from those that did.
        for each in sorted(runs, key=lambda run: (run.failed, run.limit is not None)):
            run = self._failed_if_others_converged(each)
            fitting = self._workloads_of(run)
            if len(fitting) != 1:
                no_run = _NO_SUCH_RUN if "kpoints" in run.facts else _NO_SIZES
                self.left_out.append((_SEVERAL if fitting else no_run, run.name))
                continue
            (workload,) = fitting
            if run.failed and 0 < run.iterations < self._needed.get(workload, 1):
                self.left_out.append(("it was allowed fewer iterations than others needed", run.name))
                continue
            nodes = self._nodes(run)
            silent += nodes is None
            configuration: dict[str, Value] = dict(run.configuration)
            if configuration.get("ndiag") == 1 and workload not in sharing:
                del configuration["ndiag"]  # builds that do not share the problem have no such choice
            for metric, sample in run.samples.items():
                key: tuple[object, ...] = (metric, workload, nodes, *sorted(configuration.items()))
                samples.setdefault(key, []).append(sample)
                about[key] = (workload, nodes, configuration)
        measured = []
        for key, repeats in samples.items():
            workload, nodes, ran = about[key]
            setting = self._setting(WALL if key[0] == WALL.name else CPU, workload, nodes)
            aggregated = aggregate(repeats, setting.metric)
            measured.append(aggregated.measurement_of(setting, ran))
        notes = [f"{silent} runs do not say on how many nodes: {_STATE_NODES}"] if silent else []
        short = [(_IS_SHORT, run.name) for run in runs if run.is_short and not run.failed]
        notes.extend(f"doubt: {words}" for words in summarise_reasons(short))
        return ImportedMeasurements("outputs of pw.x", tuple(measured), summarise_reasons(self.left_out), tuple(notes))

    def _failed_if_others_converged(self, run: _Run) -> _Run:
        """Return a run that did not converge in as many iterations as other runs of its problem took as a failure."""
        if run.limit is None or run.failed:
            return run
        facts = {name: value for name, value in run.facts.items() if name != "scf_iterations"}
        needed = self._needed.get(self._name(facts))
        if needed is None or run.limit < needed:
            return run
        failure = RepeatedMeasurement(failure=f"convergence NOT achieved after {run.limit} iterations")
        return replace(run, facts=facts, samples=dict.fromkeys(run.samples, failure), limit=None)

    def _workloads_of(self, run: _Run) -> list[str]:
        """Return the name of a run's workload; for a failed run those that fit its facts."""
        facts = dict(run.facts)
        if not run.failed:
            name = self._name(facts)
            self._needed[name] = max(run.iterations, self._needed.get(name, 0))
            known = self._workloads.setdefault(name, facts)
            known |= facts  # only some runs print that they shared the subspace problem
            return [name]
        sizes = {name: facts[name] for name in (*_SIZES, "pw_version", "openmp") if name in facts}
        return [
            name
            for name, known in self._workloads.items()
            if "kpoints" in sizes and all(known.get(fact) == value for fact, value in sizes.items())
        ]

    def _name(self, facts: Mapping[str, Value]) -> str:
        grid = "x".join(str(facts.get(f"fft_dense_{axis}", "?")) for axis in "xyz")
        cycles, iterations = facts.get("scf_cycles", 1), facts.get("scf_iterations")
        parts = [
            self.given.get("workload") or "",
            *(f"{_short(facts.get(name))} {words}" for name, words in _WORDS.items()),
            f"{_short(facts.get('cutoff_ry'))}/{_short(facts.get('density_cutoff_ry'))} Ry",
            f"grid {grid}",
            "" if cycles == 1 else f"{cycles} SCF cycles",
            f"{iterations} iterations" if iterations else "",
            f"pw.x {facts.get('pw_version', '?')}{' with OpenMP' if facts.get('openmp') else ''}",
        ]
        return ", ".join(part for part in parts if part)

    def _nodes(self, run: _Run) -> int | None:
        """Return the printed or given number of nodes, or None: ranks do not show it, since nodes may be half full."""
        stated = self.given.get("nodes")
        return run.nodes or (int(stated) if stated else None) or (1 if run.configuration["np"] == 1 else None)

    def _setting(self, metric: Metric, workload: str, nodes: int | None) -> Setting:
        machine, facts = self.place(self.given.get("machine") or "", nodes)
        return Setting(
            program=self.given.get("program") or PROGRAM,
            machine=machine,
            workload=workload,
            metric=metric,
            machine_facts=facts,
            workload_facts=self._workloads[workload],
            source=self.given.get("source") or "",
            nodes_known=nodes is not None,
        )


_STATE_NODES = "state it with --nodes N, or they stay apart from what ran on a known number"
_WORDS = {"atoms": "atoms", "electrons": "electrons", "bands": "bands", "kpoints": "k-points"}


def _short(value: Value | None) -> str:
    return "?" if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)
