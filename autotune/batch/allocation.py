"""The allocation that this process runs in, as the batch system says it: which hosts, and until when.

Sources: Slurm's sbatch(1) "OUTPUT ENVIRONMENT VARIABLES" and squeue(1); OpenPBS qsub(1B), qstat(1B) and
pbs_job_attributes(7B); LSF "Environment variables set for job execution"; flux-environment(7).
"""

import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path

_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Allocation:
    """Hosts that a batch system lent: `cores` are those of each host, as it counts them (0: it does not say).

    `gpus` are those of a host; `ends_at` is in seconds since 1970, None if the environment does not say.
    """

    system: str
    id: str
    hosts: tuple[str, ...] = ()
    cores: tuple[int, ...] = ()
    gpus: int = 0
    ends_at: float | None = None


def read(environment: Mapping[str, str], read_text: Callable[[str], str] | None = None) -> Allocation | None:
    """Return the allocation that the environment tells of; None outside of one. `read_text` reads a file."""
    read_text = read_text or _read_text
    if environment.get("SLURM_JOB_ID"):
        return _slurm(environment)
    if environment.get("PBS_JOBID"):
        return _pbs(environment, read_text)
    if environment.get("LSB_JOBID"):
        return _lsf(environment)
    if environment.get("FLUX_JOB_ID"):
        return Allocation("Flux", environment["FLUX_JOB_ID"])
    return None


def ask_end(allocation: Allocation, run: Callable[[Sequence[str]], str] | None = None) -> float | None:
    """Ask the batch system, once, when the allocation ends, in seconds since 1970; None if it does not say."""
    run = run or _run
    try:
        if allocation.system == "Slurm":
            return slurm_end(run(["squeue", "-h", "-j", allocation.id, "-o", "%e"]))
        if allocation.system == "PBS":
            return pbs_end(run(["qstat", "-f", allocation.id]), time.time())
    except (OSError, subprocess.SubprocessError):
        pass
    return None


def find_end(allocation: Allocation, now: float, run: Callable[[Sequence[str]], str] | None = None) -> float | None:
    """Return when the allocation ends: as its environment says, else as the batch system does when asked.

    An end before `now` is none: the environment is that of an earlier job, or the job was given more time.
    """
    if allocation.ends_at is not None and allocation.ends_at > now:
        return allocation.ends_at
    told = ask_end(allocation, run)
    return told if told is not None and told > now else None


def expand_hosts(text: str) -> list[str]:
    """Return the hosts of a Slurm host list: `gadi-cpu-[0001-0003,0007],x1` are five.

    Raises:
        ValueError: it is none.
    """
    hosts: list[str] = []
    for part in _split(text):
        words = [piece for piece in re.split(r"(\[[^\[\]]*\])", part) if piece]
        choices = [_expand_range(word[1:-1]) if word.startswith("[") else [word] for word in words]
        if any("[" in choice or "]" in choice for found in choices for choice in found):
            msg = f"{text!r} is not a list of hosts: its brackets do not match"
            raise ValueError(msg)
        hosts += ["".join(chosen) for chosen in product(*choices)]
    return hosts


def expand_counts(text: str) -> list[int]:
    """Return what `48(x3),24` stands for: 48, 48, 48, 24.

    Raises:
        ValueError: it is none.
    """
    counts: list[int] = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if match is None:
            msg = f"{text!r} is not a list of counts such as 48(x3),24"
            raise ValueError(msg)
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def slurm_end(said: str) -> float | None:
    """Read what `squeue -o %e` says: a local time, or `N/A`."""
    try:
        return datetime.fromisoformat(said.strip()).astimezone().timestamp()
    except ValueError:
        return None


def pbs_end(said: str, now: float) -> float | None:
    """Read from `qstat -f` when a job ends: its start and its walltime, or what it has used so far by PBS's count.

    The count lags behind by minutes, so that the start is better where it is told.
    """
    values = dict(re.findall(r"^\s*([\w.]+) = (.*?)\s*$", said.replace("\n\t", ""), re.MULTILINE))
    walltime_s = _hours_s(values.get("Resource_List.walltime", ""))
    if walltime_s is None:
        return None
    try:
        return datetime.strptime(values["stime"], "%a %b %d %H:%M:%S %Y").astimezone().timestamp() + walltime_s
    except (KeyError, ValueError):
        used_s = _hours_s(values.get("resources_used.walltime", ""))
        return None if used_s is None else now + walltime_s - used_s


def _slurm(environment: Mapping[str, str]) -> Allocation:
    # What cannot be read is not known: a study can do without it.
    try:
        hosts = expand_hosts(environment.get("SLURM_JOB_NODELIST", environment.get("SLURM_NODELIST", "")))
    except ValueError:
        hosts = []
    try:
        cores = expand_counts(environment.get("SLURM_JOB_CPUS_PER_NODE", ""))
    except ValueError:
        cores = []
    end = environment.get("SLURM_JOB_END_TIME", "")
    return Allocation(
        "Slurm",
        environment["SLURM_JOB_ID"],
        tuple(hosts),
        tuple(cores) or (0,) * len(hosts),
        _trailing_number(environment.get("SLURM_GPUS_ON_NODE", "")),
        float(end) if end.isdecimal() else None,
    )


def _pbs(environment: Mapping[str, str], read_text: Callable[[str], str]) -> Allocation:
    try:
        lines = Counter(read_text(environment["PBS_NODEFILE"]).split())
    except (KeyError, OSError):
        lines = Counter()
    total = _trailing_number(environment.get("PBS_NCPUS", environment.get("NCPUS", "")))
    hosts = tuple(lines)
    # A node file has a line for each MPI process that was asked for: with one a host it says nothing of cores.
    each = total if environment.get("PBS_NCPUS") is None else total // max(1, len(hosts))
    cores = tuple(max(count, each) for count in lines.values())
    gpus = _trailing_number(environment.get("PBS_NGPUS", "")) // max(1, len(hosts))
    return Allocation("PBS", environment["PBS_JOBID"], hosts, cores, gpus)


def _lsf(environment: Mapping[str, str]) -> Allocation:
    words = environment.get("LSB_MCPU_HOSTS", "").split()
    pairs = [(host, int(count)) for host, count in zip(words[::2], words[1::2], strict=False) if count.isdigit()]
    return Allocation(
        "LSF", environment["LSB_JOBID"], tuple(host for host, _ in pairs), tuple(count for _, count in pairs)
    )


def _split(text: str) -> list[str]:
    """Split at the commas that are outside of brackets."""
    return [part for part in (match[0].strip() for match in re.finditer(r"(?:\[[^\]]*\]|[^,])+", text)) if part]


def _expand_range(text: str) -> list[str]:
    found: list[str] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            msg = f"[{text}] is not a range of numbers such as [0001-0003,0007]"
            raise ValueError(msg)
        first, last = match[1], match[2] or match[1]
        found += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return found


def _hours_s(text: str) -> float | None:
    match = re.fullmatch(r"(?:(\d+):)?(\d+):(\d+)", text)
    return int(match[1] or 0) * 3600.0 + int(match[2]) * 60.0 + int(match[3]) if match else None


def _trailing_number(text: str) -> int:
    match = re.search(r"(\d+)$", text)
    return int(match[1]) if match else 0


def _read_text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def _run(argv: Sequence[str]) -> str:
    """Return what a command prints.

    Raises:
        OSError: it is not there.
        subprocess.SubprocessError: it failed.
    """
    ended = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=_PATIENCE_S)
    return ended.stdout
