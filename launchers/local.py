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
from collections.abc import Collection, Mapping, Sequence
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
from launchers.own_python import own_python
from launchers.process_tree import start_time
from launchers.processes import JOB_VARIABLE, SESSION_VARIABLE, find_marked, kill_marked, read_mark, signal_all
from launchers.secret import fill_masked
from launchers.sequence import prepare_command
from launchers.shared_memory import JobSharedMemory
from launchers.shell_lines import shell_lines
from launchers.status import read_status

_PYTHON = [sys.executable, "-I", "-S"]
_SUPERVISOR = [*_PYTHON, "-E", supervisor.__file__]
_GRACE_S = 5.0
# A job whose submitter is gone is killed at once, except that mpirun gets this long to remove its ranks' shared memory.
_CLEAN_UP_S = 1.0
# How long a supervisor may take for an immediate action on a busy machine.
_PATIENCE_S = 10.0
_PAUSE_S = 0.01

# This process's ends, by job id, of the pipes whose closing tells a supervisor that its submitter is gone.
_lifelines: dict[str, IO[bytes]] = {}


class _JobId(NamedTuple):
    """How another process on this machine finds a job: its supervisor's process id, its mark and its folder."""

    pid: int
    mark: str

    @property
    def folder(self) -> Path:
        return Path(self.mark.partition(":")[2])

    def __str__(self) -> str:
        return f"local:{self.pid}:{self.mark}"

    @classmethod
    def parse(cls, job_id: str) -> "_JobId":
        """Parse the id of a local job.

        Raises:
            ValueError: It is not the id of a local job.
        """
        kind, _, rest = job_id.partition(":")
        pid, _, mark = rest.partition(":")
        if kind != "local" or not pid.isdigit() or ":" not in mark:
            msg = f"{job_id!r} is not the id of a local job, which looks like local:PID:TOKEN:FOLDER"
            raise ValueError(msg)
        return cls(int(pid), mark)

    def is_alive(self) -> bool:
        """Whether the supervisor runs, and its process id has not been reused."""
        return read_mark(self.pid, JOB_VARIABLE) == self.mark


@dataclass(frozen=True)
class LocalLauncher:
    """Starts jobs on this machine. Jobs end with the process that submitted them, however it ends.

    Attributes:
        flavour: The command that starts ranks; without one, jobs with ranks cannot be started.
        grace_s: How many seconds a job has to end before it is killed.
        output_limit_bytes: A job that prints more than this is ended.
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
            LaunchError: The job could not be started.
        """
        environment = self.environment(job)
        _check_folder(job.folder)
        argv = self._full_command(job)
        for part in job.placed_parts or (job,):
            self._check(part)
        mark = f"{secrets.token_hex(8)}:{job.folder.resolve()}"
        around = job.surroundings
        spec = {
            "executable": _executable(argv[0], _start_folder(job), environment),
            "argv": argv,
            "environment": environment | {JOB_VARIABLE: mark},
            "folder": os.fspath(job.folder.resolve()),
            "starts_in": None if around is None else os.fspath(around.folder.resolve()),
            "stdin": None if around is None or around.stdin is None else os.fspath(around.stdin.resolve()),
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
        """Return the status of every id. A job whose supervisor was killed is ended here and reported as lost."""
        return {job_id: _read_end(_JobId.parse(job_id)) for job_id in ids}

    def cancel(self, job_id: str) -> None:
        """End the job and everything it started; nothing is left of it when this returns."""
        job = _JobId.parse(job_id)
        _end([job], signal.SIGTERM, self.grace_s + _PATIENCE_S)
        _forget(job_id)

    def command(self, job: Job) -> list[str]:
        """Return the complete command line of `job`.

        Raises:
            LaunchError: The job cannot be started on this machine.
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
        """Return the complete environment of `job`, without its mark."""
        if job.surroundings is not None:
            return {**os.environ, **self._own_variables(job)}
        caller = os.environ if job.software is None else job.software.changes.apply_to(os.environ)
        return job_environment(with_slots(caller, job.resources.nodes), self._own_variables(job))

    def preview(self, job: Job) -> str:
        """Return `job` as one line for a shell: its folder, its own variables, its command."""
        # The commands that load its software say the same as the many variables they set.
        lines = shell_lines(job, self.command, lambda one: self._own_variables(replace(one, software=None)))
        load = [line.removesuffix(" || exit 1") for line in (job.software.script if job.software else ())]
        return " && ".join([f"cd {shlex.quote(os.fspath(job.folder))}", *load, *lines])

    def notes(self, *, ranks: bool) -> tuple[str, ...]:
        """Return what a user should know about how this launcher starts jobs, with `ranks` or without."""
        return notes(self.flavour, user_id=os.geteuid()) if ranks and self.flavour else ()

    def _full_command(self, job: Job) -> list[str]:
        return prepare_command(job, self.command, self._own_variables, (self.grace_s, self.output_limit_bytes), _PYTHON)

    def _check(self, job: Job) -> None:
        """Check what can be known before a job without parts starts.

        Raises:
            LaunchError: The job could not be started.
        """
        environment, argv = self.environment(job), self.command(job)
        _check_words([*argv, *(word for step in job.commands for word in step)], environment)
        _check_folder(job.folder)
        if not job.prepare:
            for program in dict.fromkeys((argv[0], *(words[0] for words in job.commands))):
                _executable(program, _start_folder(job), environment)

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
    """Return a launcher with this machine's MPI start command, if it has one."""
    return LocalLauncher(detect())


def end_jobs_below(folder: Path) -> int:
    """End every job on this machine whose folder is `folder` or below it; return how many there were.

    A study calls this when it starts, since its previous process may have been killed: no earlier run may still be
    running.
    """
    root = folder.resolve()
    marks = find_marked(JOB_VARIABLE, lambda mark: _JobId(0, mark).folder.is_relative_to(root))
    _end([_JobId(pid, mark) for pid, mark in marks.items() if _is_supervisor(pid)], signal.SIGQUIT, _PATIENCE_S)
    _kill(set(marks.values()))
    return len(set(marks.values()))


@cache
def end_with_this_process() -> None:
    """Ensure that processes started from now on end with this process, even if it is killed.

    Jobs do not need this: their supervisors end them. Further calls do nothing.
    """
    token = secrets.token_hex(8)
    guard = subprocess.Popen(
        own_python("launchers.guard", token, str(os.getpid())),
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
    """Return one hardware thread of each core of this machine, whether or not this process may use it.

    A job that has all of these has the whole machine, whatever it does with the second threads.
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
        # The copied descriptor outlives `process`, which only forks the supervisor. Closing it ends the job, so close
        # it on errors.
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
    """Return the process id in the supervisor's answer.

    Raises:
        LaunchError: The supervisor could not start the job.
    """
    try:
        read = json.loads(answer)
    except ValueError:
        msg = f"the supervisor of the job did not start: {answer.decode(errors='replace').strip() or 'no answer'}"
        raise LaunchError(msg) from None
    if "pid" in read:
        return int(read["pid"])
    reasons = {
        errno.ENOEXEC: "it is not a program for this machine, or is a script without #! in its first line",
        errno.EINVAL: f"the cores {spec['cpus']} cannot be used here; usable are {sorted(os.sched_getaffinity(0))}",
    }
    reason = reasons.get(read["errno"], "")
    msg = f"cannot start {spec['executable']} in {spec['folder']}: {read['error']}{': ' if reason else ''}{reason}"
    raise LaunchError(msg)


def _read_end(job: _JobId) -> JobStatus:
    status = read_status(job.folder)
    if status is None and job.is_alive():
        return JobStatus(JobState.RUNNING)
    # The job may have ended between the two checks.
    status = status or read_status(job.folder)
    _forget(str(job))
    if status is not None:
        return status
    _kill({job.mark})
    return JobStatus(JobState.LOST, message=_why_lost(job.folder))


def _why_lost(folder: Path) -> str:
    if not folder.exists():
        return (
            f"the job's folder {folder} is gone, and its status with it; check whether the program removes the folder"
        )
    message = f"the job's supervisor is gone and left no status in {folder}; what was left of the job has been ended"
    with suppress(OSError):
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < 2**20:
            message += f" (the disk is full: {free_bytes} bytes free)"
    return message


def _end(jobs: Sequence[_JobId], number: signal.Signals, patience_s: float) -> None:
    """Ask supervisors to end their jobs, all at once; kill those that do not within `patience_s` seconds."""
    signal_all([job.pid for job in jobs if job.is_alive()], number)
    give_up_at = time.monotonic() + patience_s
    while any(job.is_alive() for job in jobs) and time.monotonic() < give_up_at:
        time.sleep(_PAUSE_S)
    _kill({job.mark for job in jobs if job.is_alive() or read_status(job.folder) is None})


def _kill(marks: Collection[str]) -> None:
    """Kill what is left of jobs, and remove the shared memory of those whose supervisors could not."""
    if not marks:
        return
    found = find_marked(JOB_VARIABLE, lambda mark: mark in marks)
    folders = [folder for mark in marks if read_status(folder := _JobId(0, mark).folder) is None]
    left_by = list(filter(None, map(JobSharedMemory.read, folders)))
    for memory in left_by:
        memory.note([*found])
    kill_marked(lambda mark: mark in marks)
    for memory in left_by:
        memory.include_added()
        memory.remove()


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
            msg = f"{word!r} contains a zero byte, which neither a command line nor an environment can contain"
            raise LaunchError(msg)
    for name in environment:
        if not name or "=" in name:
            msg = f"{name!r} cannot be the name of an environment variable"
            raise LaunchError(msg)


def _start_folder(job: Job) -> Path:
    return job.folder if job.surroundings is None else job.surroundings.folder


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        msg = f"the job's folder {folder} does not exist or is not a folder; create it first"
        raise LaunchError(msg)
    if not os.access(folder, os.W_OK | os.X_OK):
        msg = f"the job's folder {folder} is not writable, and the job's output goes there; make it writable"
        raise LaunchError(msg)


def _executable(program: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the full path of a program as the job would find it.

    Raises:
        LaunchError: The program does not exist or is not executable.
    """
    if "/" in program:
        path = folder.resolve() / program
        if not path.is_file():
            msg = f"there is no program {path}"
            raise LaunchError(msg)
        if not os.access(path, os.X_OK):
            msg = f"{path} is not executable; run chmod +x on it"
            raise LaunchError(msg)
        return os.fspath(path)
    searched = environment.get("PATH", os.defpath)
    executable = shutil.which(program, path=searched)
    if executable is None:
        msg = (
            f"{program} was not found in {searched}; load its module (module load ...), install it, "
            "or give its full path"
        )
        raise LaunchError(msg)
    return os.path.abspath(executable)  # noqa: PTH100  do not resolve links: some programs act on their own name
