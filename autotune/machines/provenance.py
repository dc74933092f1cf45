"""Provenance: the host and the software of a measurement, stored beside the command and environment of its run."""

import math
import os
import platform
import pwd
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from autotune import __version__
from autotune.machines.this_machine import Machine, read_or_empty
from launchers.cpus import CPUS
from launchers.mpi import MpiFlavour
from launchers.software.ask import ask

_PROC = Path("/proc")
_GIT_PATIENCE_S = 5.0
# Git sets these variables for its hooks: they name another repository than the study file's.
_GIT_ELSEWHERE = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE"})
# Older kernels take 10 ms to read the frequency of a core, unless it was read a moment ago.
_FREQUENCY_PATIENCE_S = 0.0005
_FREQUENCY_SAMPLE = 8


@dataclass(frozen=True)
class SessionFacts:
    """The facts that all runs of a session share; an unknown fact is empty.

    Attributes:
        governor: The frequency governor of the cores in use.
        turbo: `on` or `off`.
        study_commit: The commit checked out in the study file's folder, with `-dirty` appended if the file differs.
    """

    host: str
    user: str
    system: str
    governor: str
    turbo: str
    mpi: str
    autotune: str
    python: str
    study_file: str
    study_commit: str

    def to_dict(self) -> dict[str, str]:
        """Return the JSON-able form that is stored."""
        return asdict(self)

    @property
    def identity(self) -> dict[str, str]:
        """The known facts that must be equal for two measurements to be comparable."""
        candidates = {"governor": self.governor, "turbo": self.turbo, "mpi": self.mpi}
        return {name: value for name, value in candidates.items() if value}


def session_facts(
    machine: Machine, flavour: MpiFlavour | None, study_file: Path | None, *, here: bool = True
) -> SessionFacts:
    """Return the facts of a session.

    Args:
        machine: The machine that this process runs on.
        flavour: The MPI that starts the ranks, if any.
        study_file: The path of the study file, if the study has one.
        here: Whether the runs are made on this machine; otherwise `governor` and `turbo` are unknown.
    """
    return SessionFacts(
        host=machine.host,
        user=_user(),
        system=machine.system,
        governor=_governor(machine.cpus) if here else "",
        turbo=_turbo() if here else "",
        mpi=str(flavour) if flavour else "",
        autotune=__version__,
        python=platform.python_version(),
        study_file=str(study_file) if study_file else "",
        study_commit=_commit(study_file) if study_file else "",
    )


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""  # a container may lack an account for its user


def host_state(cpus: Sequence[int]) -> dict[str, float]:
    """Return the state of this host just before a run on `cpus` starts, JSON-able, without unknown figures.

    The frequency is the mean over a sample of the cores. Reading it stops after half a millisecond, since it must not
    disturb the run.
    """
    state = {
        "load_1m": _load_1m(),
        "frequency_mhz": _frequency_mhz(cpus),
        "memory_available_bytes": _memory_available_bytes(),
    }
    return {name: value for name, value in state.items() if value is not None}


def _governor(cpus: Sequence[int]) -> str:
    files = [Path(CPUS, f"cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus]
    names = sorted({_word(file) for file in files} - {""})
    return f"mixed: {', '.join(names)}" if len(names) > 1 else "".join(names)


def _turbo() -> str:
    # Under Intel's driver the general switch does not exist.
    by_intel = {"0": "on", "1": "off"}.get(_word(Path(CPUS, "intel_pstate/no_turbo")), "")
    return by_intel or {"0": "off", "1": "on"}.get(_word(Path(CPUS, "cpufreq/boost")), "")


def _load_1m() -> float | None:
    try:
        load = float(read_or_empty(_PROC / "loadavg").partition(" ")[0])
    except ValueError:
        return None
    return load if math.isfinite(load) else None


def _frequency_mhz(cpus: Sequence[int]) -> float | None:
    until = time.monotonic() + _FREQUENCY_PATIENCE_S
    frequencies_khz = []
    for cpu in cpus[:: max(1, len(cpus) // _FREQUENCY_SAMPLE)]:
        text = _word(Path(CPUS, f"cpu{cpu}/cpufreq/scaling_cur_freq"))
        if text.isdecimal() and int(text):
            frequencies_khz.append(int(text))
        if time.monotonic() > until:
            break
    return sum(frequencies_khz) / len(frequencies_khz) / 1000 if frequencies_khz else None


def _memory_available_bytes() -> int | None:
    match = re.search(r"^MemAvailable:\s+([0-9]+) kB$", read_or_empty(_PROC / "meminfo"), re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _word(path: Path) -> str:
    """Return the word in a file; empty if the file contains anything but a single word."""
    text = read_or_empty(path).strip()
    return text if re.fullmatch(r"\w+", text, re.ASCII) else ""


def _commit(study_file: Path) -> str:
    """Return the commit of a study file; empty if it is not committed or git fails."""
    try:
        # For a link, the commit is that of its target.
        file = study_file.resolve()
        commit, committed = _git(file.parent, "rev-parse", "HEAD", f"HEAD:./{file.name}").split()
        (present,) = _git(file.parent, "hash-object", "--", file.name).split()
    except (OSError, RuntimeError, ValueError):
        return ""
    return commit if present == committed else f"{commit}-dirty"


def _git(folder: Path, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in _GIT_ELSEWHERE}
    command = ["git", "-C", str(folder), *words]
    done = ask(command, _GIT_PATIENCE_S, environment=environment | {"GIT_OPTIONAL_LOCKS": "0"})
    # An answer that is not complete has too few words.
    return done.text if done.exit_code == 0 else ""
