"""Runs one job of a batch system on the node where its script was started: `python -I node.py FOLDER TOKEN`.

The job is described by a file in its folder. It is run by the supervisor, as on the tuner's own machine: with its time
limit, its usage and its status file; but it does not end with the tuner.

Only the job that was submitted last in a folder may run there, and only once: a submission that got no answer, and was
made again, may have been accepted nevertheless. So the job's file tells the token of the last one, and who runs takes
the folder by a file of its own.
"""

import errno
import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from launchers.cpus import parse_cpu_list
from launchers.noise.meter import PROC, SYS, parse_cgroups
from launchers.status import read_status
from launchers.supervisor import STATUS_FILE, Supervisor

JOB_FILE = ".autotune-job.json"

CLAIM_FILE = ".autotune-claimed"
"""The scheduler's number of the job that runs in the folder, or did; empty if its environment does not tell."""


def main() -> int:
    """Run the job; the exit code is the program's, for the scheduler's own records."""
    folder, token = Path(sys.argv[1]), sys.argv[2]
    spec = _claim(folder, token)
    if spec is None:
        return 1
    confined = spec.pop("confined_argv")
    if _is_confined():
        spec["argv"] = confined
    spec |= {
        "launcher_pid": None,
        "host": _host_name(spec.pop("host_variable", "")),
        "environment": dict(os.environ) | spec["environment"],
    }
    return supervise(folder, spec)


def _is_confined() -> bool:
    """Whether the batch system keeps this job to a part of the node's cores, which then nobody else has.

    By a cpuset: an affinity mask alone does not keep Open MPI from binding the ranks of every job to the first cores.
    """
    cpus = cgroup_cpus()
    return cpus is not None and len(cpus) < (os.cpu_count() or 1)


def cgroup_cpus(proc: str = PROC, sys: str = SYS) -> set[int] | None:
    """Return the CPUs that the control group of this process has (cpuset(7)); None where the kernel does not tell.

    A group without a list of its own has that of the one above it. In a container its own group is the uppermost, and
    may be told by the path that it has outside.
    """
    groups: dict[str, str] = {}
    with suppress(OSError):
        groups = parse_cgroups(Path(proc, "self/cgroup").read_text(encoding="ascii", errors="replace"))
    if "cpuset" in groups:
        top, path, name = Path(sys, "fs/cgroup/cpuset"), groups["cpuset"], "cpuset.effective_cpus"
    else:
        top, path, name = Path(sys, "fs/cgroup"), groups.get("", ""), "cpuset.cpus.effective"
    group = top / path.lstrip("/")
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):
            if folder.is_relative_to(top) and (cpus := parse_cpu_list((folder / name).read_text(encoding="ascii"))):
                return cpus
    return None


def _host_name(variable: str) -> str:
    """Return what the batch system calls this node: the first word of a variable, or of the file that it names."""
    said = os.environ.get(variable, "")
    with suppress(OSError):
        said = Path(said).read_text(encoding="utf-8", errors="replace") if said.startswith(os.sep) else said
    return (said.split() or [os.uname().nodename])[0]


def supervise(folder: Path, spec: dict[str, Any]) -> int:
    """Run what `spec` describes under a supervisor, which this process becomes; return the program's exit code."""
    try:
        executable = _executable(spec["argv"][0], folder, spec["environment"].get("PATH", os.defpath))
        supervisor = Supervisor(spec | {"executable": executable})
        supervisor.start()
    except BlockingIOError as error:
        # The status in this folder is to be that of the other job.
        _log(str(error))
        return 1
    except OSError as error:
        return _write_not_started(folder, _reason(error, spec["argv"][0]))
    try:
        supervisor.watch()
        supervisor.finish()
    except BaseException as error:  # noqa: BLE001  whatever it is, nothing of the job may stay behind
        supervisor.give_up(error)
    status = read_status(folder)
    return 1 if status is None or status.exit_code is None else status.exit_code % 256


def _claim(folder: Path, token: str) -> dict[str, Any] | None:
    """Return what the job is, as the one that runs in the folder; None if it must not, which is said."""
    spec = _read_submission(folder, token)
    if spec is None:
        return None
    # Flux writes its letter in two ways.
    number = os.environ.get(spec.pop("number_variable"), "").replace("\u0192", "f")
    claim = folder / CLAIM_FILE
    try:
        # What was there once does not run again, even where the file system has no locks.
        with claim.open("x", encoding="utf-8") as file:
            file.write(number)
    except FileExistsError:
        owner = claim.read_text(encoding="utf-8")
        # A scheduler may start the same job again.
        if not number or owner != number:
            _log(f"another job is running in this folder, or did: {owner or 'of unknown number'}; this one ends")
            return None
    if _read_submission(folder, token) is None:
        claim.unlink(missing_ok=True)
        return None
    return spec


def _read_submission(folder: Path, token: str) -> dict[str, Any] | None:
    """Return what the job is; None if it is not the one that was submitted last, which is said."""
    try:
        spec: dict[str, Any] = json.loads((folder / JOB_FILE).read_bytes())
    except FileNotFoundError:
        _log(f"nothing is to be run in {folder} any more; this job ends")
        return None
    if spec.pop("token", None) != token:
        _log("another job was submitted for this folder after this one, which ends")
        return None
    return spec


def _log(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201  for the job's own log


def _executable(program: str, folder: Path, path: str) -> str:
    """Return the full path of a program as the job finds it on this node.

    Raises:
        OSError: it is not there, or not a program.
    """
    if "/" not in program:
        executable = shutil.which(program, path=path)
        if executable is None:
            msg = f"{program} was not found on the node in any of {path}"
            raise FileNotFoundError(msg)
        return executable
    full = folder / program
    if not full.is_file():
        msg = f"there is no program {full} on the node"
        raise FileNotFoundError(msg)
    if not os.access(full, os.X_OK):
        msg = f"{full} is not executable; chmod +x makes it so"
        raise PermissionError(msg)
    return os.fspath(full)


def _reason(error: OSError, program: str) -> str:
    if error.errno == errno.ENOEXEC:
        return f"{program} is no program for this machine, or a script without #! in its first line"
    # One of ours has its whole message, and no number.
    return str(error) if error.errno is None else f"cannot start {program} on the node: {error.strerror}"


def _write_not_started(folder: Path, message: str) -> int:
    status = {"state": "ended", "reason": "not started", "exit_code": None, "message": message}
    # Whoever reads the status may remove the folder at once: nobody is in it any more.
    os.chdir(os.sep)
    new = folder / f"{STATUS_FILE}.new"
    new.write_text(json.dumps(status | {"elapsed_s": 0.0, "cpu_s": 0.0, "peak_memory_bytes": 0}), encoding="utf-8")
    new.rename(folder / STATUS_FILE)
    return 127


if __name__ == "__main__":
    sys.exit(main())
