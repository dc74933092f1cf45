"""The output of pw.x as values. Missing parts are never an error, since a run may end anywhere.

Formats: UtilXlib/clocks_handler.f90 (times), PW/src/print_ks_energies.f90 and PW/src/electrons.f90 of Quantum ESPRESSO.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60
_COUNT = r"\d{1,9}"  # a broken file may have more digits, but that is no count
_SECONDS = r"\d+\.\d*|\.\d+"
_DURATION = rf"(?:({_COUNT})\s*d)?\s*(?:({_COUNT})\s*h)?\s*(?:({_COUNT})\s*m(?!s))?\s*(?:({_SECONDS}|\d+)\s*s)?"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[EeDd][-+]?\d+)?"
_FORTRAN_NUMBER = re.compile(
    r"([-+]?(?:\d+\.?\d*|\.\d+))(?:[edq]?([-+]\d{1,9})|[edq](\d{1,9}))?", re.ASCII | re.IGNORECASE
)

_TIMER = re.compile(
    rf"^\s*(\S.*?)\s*:\s*(?=[\d.]){_DURATION}\s*CPU\s+(?=[\d.]){_DURATION}\s*WALL(?:\s*\(\s*({_COUNT})\s+calls\))?\s*$"
)
# Version 4 prints the wall time of the whole program only.
_TOTAL_OF_4 = re.compile(
    rf"^\s*(PWSCF)\s*:\s*(?=[\d.]){_DURATION}\s*CPU time,\s+(?=[\d.]){_DURATION}\s*wall time\s*$", re.MULTILINE
)
# Version 6.3 writes wall times from an hour to a day as "45h 2m WALL" and, in a line of its own, "50h": the minutes of
# the CPU time come first, and the 2 h 50 min of the wall time have moved by one place.
_SHIFTED = re.compile(
    rf"^\s*PWSCF\s*:\s*(?=[\d.]){_DURATION}\s*CPU\s+({_COUNT})h\s*({_COUNT})m\s+WALL\s*\n\s*({_COUNT})h\s*$",
    re.MULTILINE,
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = rf"(\d{{1,2}})\s*({'|'.join(_MONTHS)})\s*(\d{{4}})"
_CLOCK = r"(\d{1,2})\s*:\s*(\d{1,2})\s*:\s*(\d{1,2})"
_STARTED = re.compile(rf"starts on\s+{_DATE}\s+at\s+{_CLOCK}")
_ENDED = re.compile(rf"This run was terminated on:\s+{_CLOCK}\s+{_DATE}")
_ITERATION = re.compile(r"^\s*iteration\s*#\s*(\d{1,9})\b")
_TIME_SO_FAR = re.compile(rf"^\s*total cpu time spent up to now is\s*({_NUMBER})\s*secs")
_ENERGY = re.compile(rf"^(!{{0,2}})\s*total energy\s*=\s*({_NUMBER})\s*Ry")
_ACCURACY = re.compile(rf"^\s*estimated scf accuracy\s*<\s*({_NUMBER})\s*Ry")
_CONVERGED = re.compile(r"^\s*convergence has been achieved in\s*(\d{1,9})\s*iterations")
_THRESHOLD = re.compile(rf"^\s*(?:scf )?convergence threshold\s*=\s*({_NUMBER})\s*$", re.MULTILINE)
_NOT_CONVERGED = re.compile(r"^\s*(?:EXX )?convergence NOT achieved after\s*(\d{1,9})\s*iterations")
# "v.6.1 (svn rev. 13369) starts": the revision may follow.
_VERSION = re.compile(r"^\s*Program PWSCF\s+v\.\s*(\S+)\s+(?:\([^()\n]*\)\s*)?starts", re.MULTILINE)
_SPINS = "Starting magnetic structure"
_WEIGHT = re.compile(rf"^\s*k\(\s*\d+\) = \([^()\n]*\), wk =\s*({_NUMBER})", re.MULTILINE)
_OF_ONE_SPIN = 1.5  # between 1 and 2: the weights of all k-points add up to 1, or to 2 with both spins
_ELECTRONS = re.compile(rf"number of electrons\s*=\s*({_NUMBER})")
_BAND_STRUCTURE = "End of band structure calculation"
_LEVEL = re.compile(
    r"^\s*(?:the Fermi energy is|highest occupied(?:, lowest unoccupied)? level \(ev\):)\s*([-+]?\d+\.\d+)",
    re.MULTILINE,
)
_BANDS_FOLLOW = re.compile(r"^\s*k =.*(?:bands|band energies) \(ev\):\s*$")
_BAND_ENERGIES = re.compile(r"^\s*(?:-?\d+\.\d{4}\s*)+$")
_BAND_ENERGY = re.compile(r"-?\d+\.\d{4}")
# Versions 6.0 and 6.1 print "fft and procs/group", version 4 "fft/group".
_TASK_GROUPS = (
    r"wavefunctions fft division:\s+(?:task group distribution\s*#TG\s+x Z-proc|fft and procs/group|fft/group)"
    r"\s*=\s*(\d{1,9})"
)
_CUTOFF = r"^\s*{} cutoff\s*=\s*({})\s*Ry"
_GRID = r"^\s*{} +grid:\s*\d+ G-vectors\s+FFT dimensions:\s*\(\s*(\d+),\s*(\d+),\s*(\d+)\)"
_GRID_OF_4 = r"^\s*G cutoff =[^\n(]*\([^\n)]*G-vectors\)\s+{} grid:\s*\(\s*(\d+),\s*(\d+),\s*(\d+)\)"
# Version 6.0 prints "Mb" and "total allocated".
_MEMORY = r"^\s*Estimated {} dynamical RAM{}\s*>\s*([\d.]+)\s*([kMG][bB])"
_UNIT_BYTES = {"k": 1024, "M": 1024**2, "G": 1024**3}

MAIN_TIMER = "PWSCF"
_LONGEST = "electrons"
_STAGES = ("init_run", _LONGEST, "forces", "stress", "update_pot", "hinit1")  # none is a part of another
_ROUTINES = 60  # an SCF calculation prints fewer routines; a broken output may have any number


@dataclass(frozen=True)
class Timer:
    """One line of pw.x's table of routines, in seconds; `calls` is 0 if not printed, as for the whole program."""

    cpu_s: float
    wall_s: float
    calls: int = 0


@dataclass(frozen=True)
class Iteration:
    """One iteration of the self-consistency, as far as it was printed."""

    number: int
    energy_ry: float | None = None
    accuracy_ry: float | None = None
    elapsed_s: float | None = None


@dataclass(frozen=True)
class Layout:
    """How pw.x divided its work, which may differ from what it was asked to do.

    Args:
        ranks: MPI ranks.
        threads: Threads of each rank.
        pools: Pools.
        band_groups: Band groups of a pool.
        task_groups: Task groups of a band group.
        diagonalization: The algorithm of the subspace problem.
        diagonalization_grid: The side of the square of ranks that share it; 1 is the serial algorithm.
        nodes: The nodes of the ranks; None if not printed.
    """

    ranks: int = 1
    threads: int = 1
    pools: int = 1
    band_groups: int = 1
    task_groups: int = 1
    diagonalization: str = "serial"
    diagonalization_grid: int = 1
    nodes: int | None = None


@dataclass(frozen=True)
class Workload:
    """The size of the problem, as pw.x prints it before it begins; None where it was not printed."""

    kpoints: int | None = None
    bands: int | None = None
    electrons: float | None = None
    atoms: int | None = None
    dense_grid: tuple[int, int, int] | None = None
    smooth_grid: tuple[int, int, int] | None = None
    memory_per_rank_bytes: int | None = None
    memory_bytes: int | None = None
    cutoff_ry: float | None = None
    density_cutoff_ry: float | None = None

    @property
    def sizes(self) -> dict[str, int | float]:
        """The known sizes except the k-points, by the names of the study's facts."""
        found: dict[str, int | float | None] = {
            "bands": self.bands,
            "electrons": self.electrons,
            "atoms": self.atoms,
            "cutoff_ry": self.cutoff_ry,
            "density_cutoff_ry": self.density_cutoff_ry,
        }
        for which, grid in (("dense", self.dense_grid), ("smooth", self.smooth_grid)):
            found |= {f"fft_{which}_{axis}": size for axis, size in zip("xyz", grid or (), strict=False)}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class PwOutput:
    """Everything read from one output of pw.x.

    A band structure (nscf) has no energies except those of bands, if they were printed, and a level: the Fermi energy,
    or the highest occupied level. `threshold_ry` is the accuracy at which the self-consistency has converged;
    `stamped_s` lies between the times of day at which the run started and ended.
    """

    version: str | None = None
    openmp: bool = False
    layout: Layout = Layout()
    workload: Workload = Workload()
    iterations: tuple[Iteration, ...] = ()
    energies_ry: tuple[float, ...] = ()
    converged_after: int | None = None
    not_converged_after: int | None = None
    threshold_ry: float | None = None
    band_energies_ev: tuple[float, ...] = ()
    level_ev: float | None = None
    is_band_structure: bool = False
    timers: dict[str, Timer] = field(default_factory=dict)
    stamped_s: float | None = None
    has_exact_exchange: bool = False
    job_done: bool = False

    @property
    def energy_ry(self) -> float | None:
        """The final energy (marked `!`, with exact exchange `!!`): the last one if the ions moved."""
        return self.energies_ry[-1] if self.energies_ry else None

    @property
    def last_energy_ry(self) -> float | None:
        """The final energy, or that of the last iteration if there is none."""
        last = self.iterations[-1].energy_ry if self.iterations else None
        return last if self.energy_ry is None else self.energy_ry

    @property
    def limited_to(self) -> int | None:
        """The iterations after which the input stopped the run before it converged; None if it did not.

        With `scf_must_converge = .false.` pw.x then says that it converged. It prints rounded figures. In a run with
        ions or with exact exchange, an earlier self-consistency that converged has a final energy.
        """
        if not self.iterations or (last_ry := self.iterations[-1].accuracy_ry) is None:
            return None
        if self.not_converged_after is not None:
            return None if self.energies_ry else self.not_converged_after
        is_above = self.threshold_ry is not None and last_ry > 2 * self.threshold_ry
        return self.converged_after if is_above and not self.has_exact_exchange else None

    @property
    def is_too_long(self) -> bool:
        """Whether the wall time of the whole program is longer than the other times of the output allow."""
        stages_s = sum(self.timers[name].wall_s for name in _STAGES if name in self.timers)
        # The machine's clock may be put back by an hour, and a run may spend more time on its files than in all stages.
        limits_s = [1.5 * self.stamped_s] if self.stamped_s else []
        limits_s += [(1.5 if limits_s else 10.0) * stages_s] if stages_s else []
        return self.total is not None and bool(limits_s) and self.total.wall_s > max(limits_s) + 60.0

    @property
    def is_too_short(self) -> bool:
        """Whether the wall time of the whole program is shorter than that of its longest part."""
        total, part = self.total, self.timers.get(_LONGEST)
        return total is not None and part is not None and part.wall_s > 1.05 * total.wall_s + 1.0

    @property
    def parts(self) -> dict[str, float]:
        """The wall-clock seconds of each routine, and of the whole program."""
        return {name: timer.wall_s for name, timer in islice(self.timers.items(), _ROUTINES)}

    @property
    def total(self) -> Timer | None:
        """The time of the whole program."""
        return self.timers.get(MAIN_TIMER)


def duration_s(text: str) -> float | None:
    """Return a time as pw.x prints it (`0.79s`, `1m52.55s`, `1h 2m`, `1d 2h 3m`) in seconds; None for other text."""
    match = re.fullmatch(rf"\s*{_DURATION}\s*", text)
    return _seconds(match.groups()) if match and any(match.groups()) else None


def parse(text: str) -> PwOutput:
    """Read an output of pw.x of any version, complete or not."""
    lines = text.splitlines()
    iterations, energies = _iterations(lines)
    return PwOutput(
        version=version[1] if (version := _VERSION.search(text)) else None,
        openmp="Parallel version (MPI & OpenMP)" in text or "Parallel version (OpenMP)" in text,
        layout=_layout(text),
        workload=_workload(text),
        iterations=iterations,
        energies_ry=energies,
        converged_after=_last_number(_CONVERGED, lines),
        not_converged_after=_last_number(_NOT_CONVERGED, lines),
        threshold_ry=number(thresholds[-1]) if (thresholds := _THRESHOLD.findall(text)) else None,
        band_energies_ev=_band_energies(lines) if (is_band_structure := _BAND_STRUCTURE in text) else (),
        level_ev=number(levels[-1]) if (levels := _LEVEL.findall(text)) else None,
        is_band_structure=is_band_structure,
        timers=_timers(text, lines),
        stamped_s=_stamped_s(text),
        has_exact_exchange="EXX" in text,
        job_done="JOB DONE." in text or _TOTAL_OF_4.search(text) is not None,  # version 4 ends with its times
    )


class IterationReader:
    """Assembles iterations from the lines that pw.x prints about them."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._elapsed_s: float | None = None
        self._energy_ry: float | None = None

    def read(self, line: str) -> Iteration | None:
        """Read the next line; return the iteration that it completes."""
        if match := _ITERATION.match(line):
            self._number, self._elapsed_s, self._energy_ry = int(match[1]), None, None
        elif match := _TIME_SO_FAR.match(line):
            self._elapsed_s = number(match[1])
        elif match := _ENERGY.match(line):
            self._energy_ry = number(match[2])
        elif self._number is not None and (match := _ACCURACY.match(line)):
            done = Iteration(self._number, self._energy_ry, number(match[1]), self._elapsed_s)
            self._number = None
            return done
        return None


def number(text: str) -> float:
    """Return a number in Fortran's notation: `1.0d-6`, `1.E-06`, `1.0q-6` and `1.0-6` alike.

    Raises:
        ValueError: It is no number, or one in the notation of Python alone (`1_000`, `nan`).
    """
    match = _FORTRAN_NUMBER.fullmatch(text.strip())
    if match is None:
        msg = f"{text!r} is not a number"
        raise ValueError(msg)
    return float(f"{match[1]}e{match[2] or match[3] or 0}")


def _seconds(groups: tuple[str | None, ...]) -> float:
    days, hours, minutes, seconds = (float(group) if group else 0.0 for group in groups)
    return days * _DAY_S + hours * _HOUR_S + minutes * _MINUTE_S + seconds


def _timers(text: str, lines: list[str]) -> dict[str, Timer]:
    matches = [match for line in lines if "WALL" in line and (match := _TIMER.match(line))]
    matches += _TOTAL_OF_4.finditer(text)
    found = {match[1]: _timer(match) for match in matches}
    for match in _SHIFTED.finditer(text):
        if int(match[3] or 0) == int(match[5]):  # the minutes of the CPU time
            wall_s = int(match[6]) * _HOUR_S + int(match[7]) * _MINUTE_S
            found[MAIN_TIMER] = Timer(_seconds(match.groups()[:4]), float(wall_s))
    return found


def _timer(match: re.Match[str]) -> Timer:
    calls = match[10] if match.re is _TIMER else None
    return Timer(_seconds(match.groups()[1:5]), _seconds(match.groups()[5:9]), int(calls or 0))


def _stamped_s(text: str) -> float | None:
    """Return the seconds between the start and the end by the times of day that are printed."""
    started, ended = _STARTED.search(text), _ENDED.search(text)
    if started is None or ended is None:
        return None
    try:
        begin = _moment(*started.groups())
        end = _moment(*ended.groups()[3:], *ended.groups()[:3])
    except ValueError:
        return None
    return (end - begin).total_seconds()


def _moment(day: str, month: str, year: str, *clock: str) -> datetime:
    hour, minute, second = map(int, clock)
    return datetime(int(year), _MONTHS.index(month) + 1, int(day), hour, minute, second, tzinfo=UTC)


def _band_energies(lines: list[str]) -> tuple[float, ...]:
    """Return the energies of all bands at all k-points; a line has eight of them."""
    found: list[float] = []
    are_bands = False
    for line in lines:
        if line.strip():
            are_bands = bool(_BANDS_FOLLOW.match(line)) or (are_bands and bool(_BAND_ENERGIES.match(line)))
            found.extend(map(float, _BAND_ENERGY.findall(line)) if are_bands and "=" not in line else ())
    return tuple(found)


def _iterations(lines: list[str]) -> tuple[tuple[Iteration, ...], tuple[float, ...]]:
    reader = IterationReader()
    iterations = []
    energies: dict[str, list[float]] = {"!": [], "!!": []}
    for line in lines:
        if done := reader.read(line):
            iterations.append(done)
        if line.startswith("!") and (match := _ENERGY.match(line)):
            energies[match[1]].append(number(match[2]))
    # With exact exchange, "!" marks intermediate cycles.
    return tuple(iterations), tuple(energies["!!"] or energies["!"])


def _layout(text: str) -> Layout:
    ranks = _number(r"running on\s+(\d{1,9})\s+processors", text)
    if ranks is None:
        ranks = _number(r"Number of (?:MPI processes|processors in use):\s*(\d{1,9})", text) or 1
    # Version 4 prints "ortho sub-group", and not the library.
    grid = re.search(
        r"(\S+) distributed-memory algorithm\s*\(size of sub-group:\s*(\d{1,9})\s*\*\s*(\d{1,9})\s+procs\)", text
    ) or re.search(r"\b(ortho) sub-group\s*=\s*(\d{1,9})\s*\*\s*(\d{1,9})\s+procs", text)
    return Layout(
        ranks=ranks,
        threads=_number(r"Threads/MPI process:\s*(\d{1,9})", text)
        or _number(r"Serial multi-threaded version, running on\s+(\d{1,9})\s+processor cores", text)
        or 1,
        pools=_number(r"K-points division:\s*npool\s*=\s*(\d{1,9})", text) or 1,
        band_groups=_number(r"band groups division:\s*nbgrp\s*=\s*(\d{1,9})", text) or 1,
        task_groups=_number(_TASK_GROUPS, text) or 1,
        diagonalization=grid[1] if grid else "serial",
        diagonalization_grid=int(grid[2]) if grid else 1,
        nodes=_number(r"MPI processes distributed on\s+(\d{1,9})\s+nodes", text),
    )


def _workload(text: str) -> Workload:
    return Workload(
        kpoints=_kpoints(text),
        bands=_number(r"number of Kohn-Sham states=\s*(\d{1,9})", text),
        electrons=number(electrons[1]) if (electrons := _ELECTRONS.search(text)) else None,
        atoms=_number(r"number of atoms/cell\s*=\s*(\d{1,9})", text),
        dense_grid=_grid("Dense", text),
        smooth_grid=_grid("Smooth", text) or _grid("Dense", text),
        memory_per_rank_bytes=_memory("max", " per process", text),
        memory_bytes=_memory("total(?: allocated)?", "", text),
        cutoff_ry=_cutoff("kinetic-energy", text),
        density_cutoff_ry=_cutoff("charge density", text),
    )


def _kpoints(text: str) -> int | None:
    """Return how many k-points the pools share; each counts twice if spins have their own.

    Then pw.x prints one of each pair, with weights that add up to 1 (PW/src/summary.f90); early versions printed both.
    """
    printed = _number(r"number of k points=\s*(\d{1,9})", text)
    if printed is None or _SPINS not in text:
        return printed
    weights = sum(number(match[1]) for match in islice(_WEIGHT.finditer(text), printed))
    return printed if weights > _OF_ONE_SPIN else 2 * printed


def _cutoff(which: str, text: str) -> float | None:
    match = re.search(_CUTOFF.format(which, _NUMBER), text, re.MULTILINE)
    return number(match[1]) if match else None


def _grid(name: str, text: str) -> tuple[int, int, int] | None:
    of_4 = {"Dense": "FFT", "Smooth": "smooth"}[name]
    match = re.search(_GRID.format(name), text, re.MULTILINE) or re.search(_GRID_OF_4.format(of_4), text, re.MULTILINE)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _memory(which: str, of_what: str, text: str) -> int | None:
    match = re.search(_MEMORY.format(which, of_what), text, re.MULTILINE)
    try:
        return round(float(match[1]) * _UNIT_BYTES[match[2][0]]) if match else None
    except ValueError:  # "1.2.3" in a mutilated output
        return None


def _number(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text)
    return int(match[1]) if match else None


def _last_number(pattern: re.Pattern[str], lines: list[str]) -> int | None:
    found = None
    for line in lines:
        if match := pattern.match(line):
            found = int(match[1])
    return found
