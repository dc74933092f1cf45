"""pw.x as an objective: a configuration becomes a job, an output a measurement.

If ions move, the number of their steps may differ by rounding, so runs are compared by the time of a step.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import count
from statistics import fmean

from launchers import Job, MpiStart, Resources
from objectives.base import (
    CYCLES,
    PARTS,
    Answer,
    Context,
    InvalidResult,
    Measurement,
    Metric,
    Output,
    Progress,
    ProgressReader,
)
from objectives.qe.deck import Deck, Value
from objectives.qe.failures import find_failure
from objectives.qe.output import IterationReader, Layout, PwOutput, parse
from objectives.qe.saved import BAND_STRUCTURES, OUTPUT_FOLDER, Saved
from spaces import Configuration

INPUT_NAME = "pw.in"

METRICS = (
    Metric("wall_s", "s", kind="time"),
    Metric("cpu_s", "s"),
    Metric("elapsed_s", "s", kind="time"),
    Metric("iterations", ""),
    Metric("peak_memory_bytes", "B"),
)

RELAXATIONS = ("relax", "vc-relax")
_STEP = Metric("scf_step_s", "s")
_EV_OF_RY = 13.605693
_HOUR_S, _LAST_OF_MINUTE_S = 3600.0, 59.99
_BAND_TOLERANCE_EV = 1e-3  # a tenth of this is the last printed digit
_MORE_THAN_ELAPSED, _CLOCK_S = 1.05, 2.0

TRANSPORTS: Mapping[str, Mapping[str, str]] = {
    "two-copies": {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"},
}
"""Ways for Open MPI 4's ranks on one node to exchange data, besides its default of one copy (by CMA).

Two copies go through shared memory. TCP and, without a fabric, UCX were slower for every input that we tried.
"""

ALLOCATORS: Mapping[str, Mapping[str, str]] = {
    "keep": {
        "MALLOC_MMAP_THRESHOLD_": str(2**30),
        "MALLOC_TRIM_THRESHOLD_": str(2**31),
        "MALLOC_TOP_PAD_": str(2**26),
    },
    "huge-pages": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
}
"""Ways for glibc to manage memory (mallopt(3), glibc manual "Memory Allocation Tunables").

Keep freed memory, which saves page faults for pw.x's work arrays; or ask for transparent huge pages.
"""

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS")
_ELECTRONS = ("diagonalization", "diago_david_ndim", "mixing_mode", "mixing_beta", "mixing_ndim", "startingwfc")


@dataclass(frozen=True)
class QeObjective:
    """Runs one input of pw.x.

    Args:
        program: pw.x, by name or path.
        deck: The user's input with absolute paths.
        tolerance_ry: How far apart the energies of two runs may be, in Ry.
        cores_per_node: The cores of a node.
        nodes: The number of nodes; ranks and threads beyond their cores share these.
        library_paths: The values of LD_LIBRARY_PATH that select the BLAS libraries, by name.
        saved: The files from which the input continues; each run gets a copy.
        tolerance_is_stated: Whether the user states `tolerance_ry`; else it is larger for a run that did not converge.
    """

    program: str
    deck: Deck
    tolerance_ry: float
    cores_per_node: int
    nodes: int
    library_paths: Mapping[str, str] = field(default_factory=dict)
    saved: Saved | None = None
    tolerance_is_stated: bool = False

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the input's calculation."""
        if self.deck.calculation in RELAXATIONS:
            return (_STEP, *METRICS)
        is_band_structure = self.deck.calculation in BAND_STRUCTURES
        return tuple(metric for metric in METRICS if metric.name != "iterations" or not is_band_structure)

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the run of a configuration, and write its input into the run's folder.

        Everything that the run writes stays in that folder.
        """
        ranks, threads = int(configuration["np"]), int(configuration.get("threads", 1))
        deck = self._deck_for(configuration)
        deck.write(context.folder / INPUT_NAME)
        copies = self.saved.copy_into(deck, context.folder, deck.prefix) if self.saved is not None else ()
        # If ranks share cores, the run holds all cores.
        cores = min(ranks * threads, self.nodes * self.cores_per_node)
        return Job(
            argv=(self.program, *_divisions(configuration), "-inp", INPUT_NAME),
            folder=context.folder,
            environment=self._environment(configuration, threads),
            mpi=MpiStart(
                ranks,
                bind_to=_text(configuration, "bind_to"),
                map_by=_text(configuration, "map_by"),
            ),
            resources=Resources(cores=cores, nodes=-(-cores // self.cores_per_node), cpus=context.cpus),
            time_limit_s=context.time_limit_s,
            copies=copies,
        )

    def progress_reader(self) -> ProgressReader:
        """Return a reader of SCF iterations."""
        reader = IterationReader()
        steps = count(1)  # pw.x restarts its own numbers when ions move, and for exact exchange

        def read(line: str) -> Progress | None:
            done = reader.read(line)
            if done is None:
                return None
            figures = {"accuracy_ry": done.accuracy_ry, "energy_ry": done.energy_ry, "elapsed_s": done.elapsed_s}
            return Progress(next(steps), {name: value for name, value in figures.items() if value is not None})

        return read

    def measure(self, output: Output) -> Measurement:
        """Check that the run ended normally and was divided as asked; read its times and its energy.

        It must have converged, or made all iterations that its input allows on purpose.

        Raises:
            RunFailure: It did not; the message uses pw.x's words.
        """
        parsed = parse(output.stdout)
        failure = find_failure(output, parsed, self._iteration_limit)
        if failure is not None:
            raise failure
        if output.job is not None and (others := layout_differences(output.job, parsed.layout)):
            msg = f"pw.x did not divide the work as asked: {', '.join(others)}"
            raise InvalidResult(msg, "qe.other-division")
        total = parsed.total
        if total is None:
            msg = "a run without a time is a failure, which find_failure returns"
            raise AssertionError(msg)
        usage = output.status.usage
        _check_time(parsed, total.wall_s, usage.elapsed_s)
        wall_s = _to_the_second(total.wall_s, usage.elapsed_s)
        values = {
            "scf_step_s": wall_s / max(1, len(parsed.energies_ry)),
            "wall_s": wall_s,
            "cpu_s": total.cpu_s,
            "elapsed_s": usage.elapsed_s,
            "iterations": float(len(parsed.iterations)),
            "peak_memory_bytes": float(usage.peak_memory_bytes),
        }
        return Measurement(
            metrics={metric.name: values[metric.name] for metric in self.metrics},
            answer=self._answer(parsed),
            details=self._details(parsed),
        )

    def _answer(self, parsed: PwOutput) -> Answer:
        """Return what the run computed.

        Raises:
            InvalidResult: It printed no result.
        """
        if parsed.last_energy_ry is not None:
            return self._energy(parsed, parsed.last_energy_ry)
        tolerance_ev = max(_BAND_TOLERANCE_EV, self.tolerance_ry * _EV_OF_RY)
        if parsed.band_energies_ev:
            return Answer("mean energy of the bands", fmean(parsed.band_energies_ev), tolerance_ev, "eV")
        if parsed.level_ev is not None:
            return Answer("highest level", parsed.level_ev, tolerance_ev, "eV")
        msg = (
            "pw.x printed neither the bands nor a Fermi energy to compare runs by; set verbosity = 'high' in the input"
        )
        raise InvalidResult(msg, "qe.no-answer")

    def _energy(self, parsed: PwOutput, energy_ry: float) -> Answer:
        """Return the energy and, if the input limits the iterations, their number.

        A run that stopped at the limit did other work than one that made fewer iterations. Its energy may be off by the
        accuracy that pw.x estimates, which is by chance small after some iterations. Ranks begin with other random wave
        functions, so that runs of rutile with a limit of 4 differed by 0.01 of estimated 0.03 Ry.
        """
        is_limited = parsed.limited_to is not None
        tolerance_ry = self.tolerance_ry
        if is_limited and not self.tolerance_is_stated:
            last = (iteration.accuracy_ry or 0.0 for iteration in parsed.iterations[-2:])
            tolerance_ry = max(tolerance_ry, *last)
        energy = Answer("total energy", energy_ry, tolerance_ry, "Ry")
        if self._iteration_limit is None:
            return energy
        allowed = 0.0 if is_limited else float(self._iteration_limit)
        return replace(energy, parts=(Answer("iterations", float(len(parsed.iterations)), allowed), energy))

    @property
    def _iteration_limit(self) -> int | None:
        return self.deck.iteration_limit if self.deck.calculation == "scf" else None

    def _details(self, parsed: PwOutput) -> dict[str, object]:
        steps = max(1, len(parsed.energies_ry)) if self.deck.calculation in RELAXATIONS else 1
        return {
            "version": parsed.version,
            "layout": asdict(parsed.layout),
            "workload": asdict(parsed.workload),
            PARTS: {name: wall_s / steps for name, wall_s in parsed.parts.items()},
            CYCLES: steps,
            "scf_steps": len(parsed.energies_ry),
            "iteration_ends_s": [iteration.elapsed_s for iteration in parsed.iterations],
        }

    def _deck_for(self, configuration: Configuration) -> Deck:
        control = own_folder_values(self.deck)
        if "disk_io" in configuration:
            control["disk_io"] = configuration["disk_io"]
        electrons = {name: configuration[name] for name in _ELECTRONS if name in configuration}
        return self.deck.with_values("control", control).with_values("electrons", electrons)

    def _environment(self, configuration: Configuration, threads: int) -> dict[str, str]:
        environment = dict.fromkeys(_THREAD_VARIABLES, str(threads))
        if "blas" in configuration:
            environment["LD_LIBRARY_PATH"] = self.library_paths[str(configuration["blas"])]
        environment.update(TRANSPORTS.get(str(configuration.get("transport")), {}))
        environment.update(ALLOCATORS.get(str(configuration.get("malloc")), {}))
        return environment


def own_folder_values(deck: Deck) -> dict[str, Value]:
    """Return the variables that make pw.x write into the run's folder only, wave functions included."""
    return {name: OUTPUT_FOLDER for name in ("outdir", "wfcdir") if name == "outdir" or deck.get(name) is not None}


def _divisions(configuration: Configuration) -> list[str]:
    """Return the command-line options of the configuration, also for values of 1: pw.x may choose what is left out."""
    options = ((option, configuration.get(name)) for name, option in DIVISIONS.items())
    return [word for option, value in options if value is not None for word in (option, str(value))]


def _check_time(parsed: PwOutput, wall_s: float, elapsed_s: float) -> None:
    """Check a printed time against the run's own duration, and against that of a part of the run.

    Raises:
        InvalidResult: It cannot be right.
    """
    if elapsed_s > 0.0 and wall_s > _MORE_THAN_ELAPSED * elapsed_s + _CLOCK_S:
        msg = f"pw.x printed {wall_s:.0f} s for the whole program, which ran for {elapsed_s:.0f} s"
        raise InvalidResult(msg, "qe.wrong-time")
    if parsed.is_too_short:
        msg = f"pw.x printed {wall_s:.0f} s for the whole program, and more for a part of it"
        raise InvalidResult(msg, "qe.wrong-time")


def _to_the_second(printed_s: float, elapsed_s: float) -> float:
    """Return the time of a run; from an hour on pw.x prints no seconds, so they are taken from the job's time."""
    return printed_s if printed_s < _HOUR_S else min(max(elapsed_s, printed_s), printed_s + _LAST_OF_MINUTE_S)


def _text(configuration: Configuration, name: str) -> str | None:
    return str(configuration[name]) if name in configuration else None


DIVISIONS = {"npool": "-npool", "nbgrp": "-nbgrp", "ntg": "-ntg", "ndiag": "-ndiag"}
"""The parameters that divide the work, and pw.x's options for them."""


def layout_differences(job: Job, layout: Layout) -> list[str]:
    """Return in words where pw.x divided the work other than asked; it may choose what was not asked for."""
    did = {
        "npool": layout.pools,
        "nbgrp": layout.band_groups,
        "ntg": layout.task_groups,
        "ndiag": layout.diagonalization_grid**2,
        "np": layout.ranks,
    }
    return [f"{name}={did[name]} instead of {count}" for name, count in _amounts_of(job) if did[name] != count]


def _amounts_of(job: Job) -> Iterator[tuple[str, int]]:
    yield "np", job.mpi.ranks if job.mpi is not None else 1
    following = dict(zip(job.argv, job.argv[1:], strict=False))
    for name, option in DIVISIONS.items():
        if option in following:
            yield name, int(following[option])
