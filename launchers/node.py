"""Runs one job of a batch system on the node where its script started: `python -I node.py FOLDER TOKEN`.

A file in the job's folder describes the job. The supervisor runs it as it does on the tuner's own machine, with its
time limit, its usage and its status file, except that the job does not end with the tuner.

Only the job last submitted for a folder may run there, and only once. A submission that was repeated because it got no
answer may have been accepted the first time, too. The job's file therefore holds the token of the last submission, and
the job that runs claims the folder with a file of its own.
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
from launchers.supervisor import STATUS_FILE, Supervisor, continue_in_child

JOB_FILE = ".autotune-job.json"

CLAIM_FILE = ".autotune-claimed"
"""Holds the scheduler's number of the job that claimed the folder; empty if its environment does not have it."""


def main() -> int:
    """Run the job; the exit code is the program's, for the scheduler's own records."""
    folder, token = Path(sys.argv[1]), sys.argv[2]
    spec = _claim(folder, token)
    if spec is None:
        return 1
    continue_in_child(spec["folder"])
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
    """Whether the batch system confines this job to some of the node's cores, which no other job then has.

    Only a cpuset counts: an affinity mask does not keep Open MPI from binding the ranks of every job to the first
    cores.
    """
    cpus = cgroup_cpus()
    return cpus is not None and len(cpus) < (os.cpu_count() or 1)


def cgroup_cpus(proc: str = PROC, sys: str = SYS) -> set[int] | None:
    """Return the CPUs of this process's control group (cpuset(7)); None if the kernel does not list them.

    A group without a list of its own has that of its parent. In a container the process's group is the root, although
    the kernel may show the path that it has outside.
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
    """Return the batch system's name of this node: the first word of a variable, or of the file that it names."""
    text = os.environ.get(variable, "")
    with suppress(OSError):
        text = Path(text).read_text(encoding="utf-8", errors="replace") if text.startswith(os.sep) else text
    return (text.split() or [os.uname().nodename])[0]


def supervise(folder: Path, spec: dict[str, Any]) -> int:
    """Become the supervisor of the job that `spec` describes, and run it; return the program's exit code."""
    try:
        executable = _executable(spec["argv"][0], folder, spec["environment"].get("PATH", os.defpath))
        supervisor = Supervisor(spec | {"executable": executable})
        supervisor.start()
    except BlockingIOError as error:
        # Write no status: the folder's status belongs to the other job.
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
    """Claim the folder and return the job's description; log why and return None if this job must not run."""
    spec = _read_submission(folder, token)
    if spec is None:
        return None
    # Flux writes the first letter of its ids as f or as ƒ.
    number = os.environ.get(spec.pop("number_variable"), "").replace("\u0192", "f")
    claim = folder / CLAIM_FILE
    try:
        # Creating the file exclusively works even on file systems without locks.
        with claim.open("x", encoding="utf-8") as file:
            file.write(number)
    except FileExistsError:
        owner = claim.read_text(encoding="utf-8")
        # A scheduler may start the same job again.
        if not number or owner != number:
            _log(f"another job has claimed this folder: {owner or 'number unknown'}; this one ends")
            return None
    if _read_submission(folder, token) is None:
        claim.unlink(missing_ok=True)
        return None
    return spec


def _read_submission(folder: Path, token: str) -> dict[str, Any] | None:
    """Return the job's description; log why and return None if this is not the last submission for the folder."""
    try:
        spec: dict[str, Any] = json.loads((folder / JOB_FILE).read_bytes())
    except FileNotFoundError:
        _log(f"{folder} has no job to run any more; this job ends")
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
        OSError: The program does not exist or is not executable.
    """
    if "/" not in program:
        executable = shutil.which(program, path=path)
        if executable is None:
            msg = f"{program} was not found on the node in {path}"
            raise FileNotFoundError(msg)
        return executable
    full = folder / program
    if not full.is_file():
        msg = f"there is no program {full} on the node"
        raise FileNotFoundError(msg)
    if not os.access(full, os.X_OK):
        msg = f"{full} is not executable; run chmod +x on it"
        raise PermissionError(msg)
    return os.fspath(full)


def _reason(error: OSError, program: str) -> str:
    if error.errno == errno.ENOEXEC:
        return f"{program} is not a program for this machine, or is a script without #! in its first line"
    # Errors raised in this module have a complete message and no number.
    return str(error) if error.errno is None else f"cannot start {program} on the node: {error.strerror}"


def _write_not_started(folder: Path, message: str) -> int:
    status = {"state": "ended", "reason": "not started", "exit_code": None, "message": message}
    # Leave the folder before the status appears: its reader may remove the folder at once.
    os.chdir(os.sep)
    new = folder / f"{STATUS_FILE}.new"
    new.write_text(json.dumps(status | {"elapsed_s": 0.0, "cpu_s": 0.0, "peak_memory_bytes": 0}), encoding="utf-8")
    new.rename(folder / STATUS_FILE)
    return 127


if __name__ == "__main__":
    sys.exit(main())
