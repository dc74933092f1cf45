"""Jobs on this machine, each under a supervisor process that leaves nothing of it behind."""

import errno
import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from launchers import supervisor
from launchers.base import LaunchError
from launchers.card import visibility_variables
from launchers.cpus import CPUS, one_thread_per_core, parse_cpu_list, threads_in_use
from launchers.detect import detect
from launchers.environment import inherited_variables, job_environment
from launchers.job import OUTPUT_LIMIT_BYTES, STDERR, STDOUT, Job, JobState, JobStatus
from launchers.mpi import CannotStartRanksError, MpiFlavour, mpi_environment, notes
from launchers.mpi.slurm_slots import with_slots
from launchers.mpi_command import mpi_argv, with_program_path
from launchers.process_tree import start_time
from launchers.processes import JOB_VARIABLE, SESSION_VARIABLE, find_marked, kill_marked, read_mark, signal_all
from launchers.secret import fill_masked
from launchers.sequence import prepare_command
from launchers.shell_lines import shell_lines
from launchers.status import read_status

_PYTHON = [sys.executable, "-I", "-S"]
_SUPERVISOR = [*_PYTHON, "-E", supervisor.__file__]
_GRACE_S = 5.0
# A job whose submitter is gone is killed at once; but mpirun has this long to remove its ranks' shared memory.
_CLEAN_UP_S = 1.0
# How long a supervisor may take for what it does at once, on a machine that is busy.
_PATIENCE_S = 10.0
_PAUSE_S = 0.01

# This process's ends of the pipes by which supervisors notice that it is gone, by job id.
_lifelines: dict[str, IO[bytes]] = {}


class _JobId(NamedTuple):
    """What another process on this machine needs to find a job: its supervisor, its mark, its folder."""

    pid: int
    mark: str

    @property
    def folder(self) -> Path:
        return Path(self.mark.partition(":")[2])

    def __str__(self) -> str:
        return f"local:{self.pid}:{self.mark}"

    @classmethod
    def parse(cls, job_id: str) -> "_JobId":
        """Read an id.

        Raises:
            ValueError: it is none of a local job.
        """
        kind, _, rest = job_id.partition(":")
        pid, _, mark = rest.partition(":")
        if kind != "local" or not pid.isdigit() or ":" not in mark:
            msg = f"{job_id!r} is not the id of a local job, which looks like local:PID:TOKEN:FOLDER"
            raise ValueError(msg)
        return cls(int(pid), mark)

    def is_alive(self) -> bool:
        """Whether the supervisor is there (and the number is not another process's by now)."""
        return read_mark(self.pid, JOB_VARIABLE) == self.mark


@dataclass(frozen=True)
class LocalLauncher:
    """Starts jobs on this machine. Jobs end with the process that submitted them, however that ends.

    `flavour` is what starts ranks; without one, jobs of ranks cannot be started. A job that is asked to end has
    `grace_s` before it is killed; one that prints more than `output_limit_bytes` is asked to end.
    """

    flavour: MpiFlavour | None = None
    grace_s: float = _GRACE_S
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES

    @property
    def queue(self) -> None:
        """None: jobs start at once."""

    def submit(self, job: Job) -> str:
        """Start `job`; its program runs when this returns.

        Raises:
            LaunchError: it could not be started.
        """
        environment = self.environment(job)
        _check_folder(job.folder)
        argv = self._full_command(job)
        for part in job.placed_parts or (job,):
            self._check(part)
        mark = f"{secrets.token_hex(8)}:{job.folder.resolve()}"
        spec = {
            "executable": _executable(argv[0], job.folder, environment),
            "argv": argv,
            "environment": environment | {JOB_VARIABLE: mark},
            "folder": os.fspath(job.folder.resolve()),
            "stdout": STDOUT,
            "stderr": STDERR,
            "cpus": threads_in_use(job.resources.cpus, job.resources.threads_per_core),
            "nodes": job.resources.nodes,
            "gpus": job.resources.gpus,
            "meter": list(job.meter),
            "is_part": False,
            "time_limit_s": job.time_limit_s,
            "grace_s": self.grace_s,
            "output_limit_bytes": self.output_limit_bytes,
            "memory_limit_bytes": job.memory_limit_bytes,
            "clean_up_s": _CLEAN_UP_S if job.mpi is not None else 0.0,
            "launcher_pid": os.getpid(),
            "launcher_start_time": start_time(os.getpid()),
        }
        return _start(spec, mark)

    def poll(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the status of every id. A job whose supervisor was killed is ended here, and lost."""
        return {job_id: _read_end(_JobId.parse(job_id)) for job_id in ids}

    def cancel(self, job_id: str) -> None:
        """End the job and everything it started; nothing of it is left when this returns."""
        job = _JobId.parse(job_id)
        _end([job], signal.SIGTERM, self.grace_s + _PATIENCE_S)
        _forget(job_id)

    def command(self, job: Job) -> list[str]:
        """Return the whole command line of `job`.

        Raises:
            LaunchError: this machine cannot start it.
        """
        if not job.argv:
            msg = f"{job.name} has no command"
            raise LaunchError(msg)
        nodes, hosts = job.resources.nodes, job.resources.hosts
        if nodes > 1 and len(hosts) < nodes:
            msg = f"{job.name} needs {nodes} nodes, but jobs are started on this machine only; use nodes = 1"
            raise LaunchError(msg)
        if job.mpi is None:
            return list(job.argv)
        flavour = self._flavour(job)
        try:
            return mpi_argv(flavour, with_program_path(job, flavour, self.environment(job)), online=online_cpus())
        except CannotStartRanksError as error:
            raise LaunchError(str(error)) from error

    def environment(self, job: Job) -> dict[str, str]:
        """Return the whole environment of `job`, but for its mark."""
        caller = os.environ if job.software is None else job.software.changes.apply_to(os.environ)
        return job_environment(with_slots(caller, job.resources.nodes), self._own_variables(job))

    def preview(self, job: Job) -> str:
        """Return `job` as a line for a shell: its folder, its own environment, its command."""
        # What its software sets is long, and said in a word by what loads it.
        lines = shell_lines(job, self.command, lambda one: self._own_variables(replace(one, software=None)))
        load = [line.removesuffix(" || exit 1") for line in (job.software.script if job.software else ())]
        return " && ".join([f"cd {shlex.quote(os.fspath(job.folder))}", *load, *lines])

    def notes(self, *, ranks: bool) -> tuple[str, ...]:
        """Return what a user should know about how jobs are started here, which have `ranks` or not."""
        return notes(self.flavour, user_id=os.geteuid()) if ranks and self.flavour else ()

    def _full_command(self, job: Job) -> list[str]:
        return prepare_command(job, self.command, self._own_variables, (self.grace_s, self.output_limit_bytes), _PYTHON)

    def _check(self, job: Job) -> None:
        """Check what can be known before the start of a job without parts.

        Raises:
            LaunchError: it could not be started.
        """
        environment, argv = self.environment(job), self.command(job)
        _check_words([*argv, *(word for step in job.prepare for word in step)], environment)
        _check_folder(job.folder)
        if not job.prepare:
            for program in dict.fromkeys((argv[0], job.argv[0])):
                _executable(program, job.folder, environment)

    def _own_variables(self, job: Job) -> dict[str, str]:
        added = mpi_environment(self._flavour(job), user_id=os.geteuid()) if job.mpi is not None else {}
        changed = {} if job.software is None else job.software.changes.variables
        cards = visibility_variables(job.resources.cards, job.resources.gpus)
        return {**changed, **added, **cards, **fill_masked(job.environment, os.environ)}

    def _flavour(self, job: Job) -> MpiFlavour:
        if job.software is not None and job.software.mpi is not None:
            return job.software.mpi
        if self.flavour is None:
            msg = (
                f"{job.name} needs MPI, but none of mpirun, mpiexec and srun is on the search path; load a module "
                "(module load openmpi) or install one (apt-get install openmpi-bin)"
            )
            raise LaunchError(msg)
        return self.flavour


def local_launcher() -> LocalLauncher:
    """Return a launcher with the MPI start command that this machine has, if it has one."""
    return LocalLauncher(detect())


def end_jobs_below(folder: Path) -> int:
    """End all jobs on this machine whose folders are `folder` or below it; return how many there were.

    For the start of a study whose last process may have been killed: it must be sure that nobody else runs it.
    """
    root = folder.resolve()
    marks = find_marked(JOB_VARIABLE, lambda mark: _JobId(0, mark).folder.is_relative_to(root))
    _end([_JobId(pid, mark) for pid, mark in marks.items() if _is_supervisor(pid)], signal.SIGQUIT, _PATIENCE_S)
    kill_marked(JOB_VARIABLE, lambda mark: _JobId(0, mark).folder.is_relative_to(root))
    return len(set(marks.values()))


@cache
def end_with_this_process() -> None:
    """Make what this process starts from now on end with it, also when it is killed.

    Not for jobs, which end with it anyway. Asked again, it does nothing.
    """
    token = secrets.token_hex(8)
    guard = subprocess.Popen(
        [sys.executable, "-P", "-m", "launchers.guard", token, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=os.sep,
    )
    os.environ[SESSION_VARIABLE] = token
    _guards.append(guard)


_guards: list["subprocess.Popen[bytes]"] = []


@cache
def online_cpus() -> frozenset[int]:
    """Return one hardware thread of each of this machine's cores, whether this process may use them or not.

    A job that has all of these has the whole machine, whatever its second threads are.
    """
    return frozenset(one_thread_per_core(parse_cpu_list(Path(CPUS, "online").read_text(encoding="ascii"))))


def _start(spec: Mapping[str, Any], mark: str) -> str:
    with subprocess.Popen(
        _SUPERVISOR,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        cwd=os.sep,
        env=inherited_variables(os.environ) | {JOB_VARIABLE: mark},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # It outlives this process, which only makes the supervisor. Closing it ends the job, so that is done on errors.
        lifeline = os.fdopen(os.dup(process.stdin.fileno()), "wb", buffering=0)
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(spec).encode() + b"\n")
                process.stdin.flush()
            answer = process.stdout.read()
            job_id = str(_JobId(_parse_answer(answer, spec), mark))
        except BaseException:
            lifeline.close()
            raise
    _lifelines[job_id] = lifeline
    return job_id


def _parse_answer(answer: bytes, spec: Mapping[str, Any]) -> int:
    """Read the supervisor's answer.

    Raises:
        LaunchError: it could not start the job.
    """
    try:
        read = json.loads(answer)
    except ValueError:
        msg = f"the supervisor of the job did not start: {answer.decode(errors='replace').strip() or 'no answer'}"
        raise LaunchError(msg) from None
    if "pid" in read:
        return int(read["pid"])
    reasons = {
        errno.ENOEXEC: "it is no program for this machine, or a script without #! in its first line",
        errno.EINVAL: f"the cores {spec['cpus']} cannot be used here, usable are {sorted(os.sched_getaffinity(0))}",
    }
    reason = reasons.get(read["errno"], "")
    msg = f"cannot start {spec['executable']} in {spec['folder']}: {read['error']}{': ' if reason else ''}{reason}"
    raise LaunchError(msg)


def _read_end(job: _JobId) -> JobStatus:
    status = read_status(job.folder)
    if status is None and job.is_alive():
        return JobStatus(JobState.RUNNING)
    # It may have ended between the two looks.
    status = status or read_status(job.folder)
    _forget(str(job))
    if status is not None:
        return status
    kill_marked(JOB_VARIABLE, lambda mark: mark == job.mark)
    return JobStatus(JobState.LOST, message=_why_lost(job.folder))


def _why_lost(folder: Path) -> str:
    if not folder.exists():
        return f"the job's folder {folder} is gone, and with it how the job ended; does the program remove it?"
    message = f"the job's supervisor is gone and left no status in {folder}; what was left of the job has been ended"
    with suppress(OSError):
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < 2**20:
            message += f" (the disk is full: {free_bytes} bytes free)"
    return message


def _end(jobs: Sequence[_JobId], number: signal.Signals, patience_s: float) -> None:
    """Ask supervisors to end their jobs, all at once; kill what does not."""
    signal_all([job.pid for job in jobs if job.is_alive()], number)
    give_up_at = time.monotonic() + patience_s
    while any(job.is_alive() for job in jobs) and time.monotonic() < give_up_at:
        time.sleep(_PAUSE_S)
    marks = {job.mark for job in jobs if job.is_alive() or read_status(job.folder) is None}
    if marks:
        kill_marked(JOB_VARIABLE, lambda mark: mark in marks)


def _is_supervisor(pid: int) -> bool:
    with suppress(OSError):
        return os.fsencode(supervisor.__file__) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return False


def _forget(job_id: str) -> None:
    lifeline = _lifelines.pop(job_id, None)
    if lifeline is not None:
        lifeline.close()


def _check_words(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    for word in [*argv, *environment, *environment.values()]:
        if "\0" in word:
            msg = f"{word!r} holds a zero byte, which no command line and no environment can"
            raise LaunchError(msg)
    for name in environment:
        if not name or "=" in name:
            msg = f"{name!r} cannot be the name of an environment variable"
            raise LaunchError(msg)


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        msg = f"the job's folder {folder} is not there, or not a folder; make it first"
        raise LaunchError(msg)
    if not os.access(folder, os.W_OK | os.X_OK):
        msg = f"the job's folder {folder} cannot be written to; its output is kept there"
        raise LaunchError(msg)


def _executable(program: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the full path of a program as the job would find it.

    Raises:
        LaunchError: it is not there, or not a program.
    """
    if "/" in program:
        path = folder.resolve() / program
        if not path.is_file():
            msg = f"there is no program {path}"
            raise LaunchError(msg)
        if not os.access(path, os.X_OK):
            msg = f"{path} is not executable; chmod +x makes it so"
            raise LaunchError(msg)
        return os.fspath(path)
    searched = environment.get("PATH", os.defpath)
    executable = shutil.which(program, path=searched)
    if executable is None:
        msg = (
            f"{program} was not found in any of {searched}; load its module (module load ...), install it, "
            "or give its full path"
        )
        raise LaunchError(msg)
    return os.path.abspath(executable)  # noqa: PTH100  must not resolve links: some programs look at their own name
