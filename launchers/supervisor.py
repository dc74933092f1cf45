"""Runs one job and leaves nothing of it behind.

Started by path (`python -I -S -E supervisor.py`) for a quick start, so it imports the standard library only. The job's
description is one line of JSON on standard input, which stays open after it: its end means that the launching process
is gone. The answer on standard output is one line of JSON: the supervisor's process id, or why the job did not start.

The supervisor is a *subreaper*: whatever the job starts and orphans becomes a child of the supervisor, whatever session
or process group it puts itself into (Open MPI gives every rank its own group). So "no children" means that nothing is
left. Its parent is a subreaper, too, and only waits: a killed supervisor leaves its children to that process, which
ends them.
"""

# pathlib takes longer to import than this program to start.
# ruff: noqa: PTH100, PTH104, PTH108, PTH120, PTH123

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

if __name__ != "__main__":
    from launchers.cpus import current_affinity, parse_cpu_list
    from launchers.meters.meter_process import MeterProcess
    from launchers.noise.meter import NoiseMeter
    from launchers.process_tree import descendants, has_children, memory_bytes, start_time
    from launchers.shared_memory import SHARED_MEMORY, JobSharedMemory
else:
    # Started by path and isolated, so Python does not search the folder of this file.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from cpus import current_affinity, parse_cpu_list  # type: ignore[import-not-found, no-redef]
    from meters.meter_process import MeterProcess  # type: ignore[import-not-found, no-redef]
    from noise.meter import NoiseMeter  # type: ignore[import-not-found, no-redef]
    from process_tree import (  # type: ignore[import-not-found, no-redef]
        descendants,
        has_children,
        memory_bytes,
        start_time,
    )
    from shared_memory import SHARED_MEMORY, JobSharedMemory  # type: ignore[import-not-found, no-redef]

    del sys.path[0]

STATUS_FILE = ".autotune-status.json"

AFFINITY_FILE = ".autotune-affinity.json"
"""Holds the CPUs of the job; written before its program starts."""

WALL_TIME_REACHED = "the wall time of its job was reached"
"""Begins the message of a job that was told to end when its wall time was over."""

_RESERVED_FILE = ".autotune-status.new"
_RESERVED_BYTES = (
    4096  # reserved before the job starts, so that the end of a job that fills the disk can still be recorded
)
_MESSAGE_CHARACTERS = 400

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_PR_SET_CHILD_SUBREAPER = 36

_END_NOW = signal.SIGQUIT
_END_SOON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2)  # USR2: before KILL, USR1: before STOP
_HANDLED_SIGNALS = (*_END_SOON, _END_NOW, signal.SIGUSR1, signal.SIGCHLD)
_SIGNALLING_S = 0.05  # a scheduler signals all processes of a job, and may reach the supervisor after the program
_FIRST_SAMPLE_S = 0.01
_SAMPLE_S = 0.25
_SAMPLE_COST = 0.01  # of a core, at most: a job with many threads is sampled less often
_MEASURE_COST = 0.001
_KILL_PATIENCE_S = 30.0  # a process that waits for a dead file system cannot be killed
_FULL_BYTES = 2**20  # a disk with less room counts as full: programs fail before the last byte
_WALL_TIME_SLACK, _WALL_TIME_SLACK_S = 0.1, 60.0  # a job's wall time begins before its shell does
_FOREVER = float("inf")


class Supervisor:
    """One job, from its start to the end of its last process. The job's folder is the current folder."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._program = 0
        self._reason, self._message = "exited", ""
        self._exit_code: int | None = None
        self._started = self._elapsed_s = 0.0
        self._affinity: dict[str, Any] | None = None
        self._peak_bytes = self._folder_mode = 0
        self._stop_at, self._measure_at = _FOREVER, 0.0
        self._oom_kills = _oom_kills()
        self._memory, self._meter, self._meters = JobSharedMemory(), NoiseMeter(), MeterProcess()
        # Programs map files here; without room the kernel kills them with SIGBUS.
        self._places = {SHARED_MEMORY, spec["environment"].get("TMPDIR") or "/tmp"}  # noqa: S108
        self._full: set[str] = set()
        self._signals: set[int] = set()
        self._folder_fd = self._lock_fd = self._wake_fd = -1
        self._outputs: list[int] = []
        # The parent of a batch job's supervisor began as the job's shell, and what its commands used is not the job's.
        self._shell_began = start_time(os.getppid())
        # A batch job does not end with its submitter, and has no pipe to it.
        self._lifeline = [] if spec["launcher_pid"] is None else [0]

    def start(self) -> None:
        """Start the program.

        Raises:
            OSError: The program could not be started.
        """
        self._meters.begin(self._spec)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        os.chdir(self._spec["folder"])
        self._folder_fd = os.open(".", os.O_RDONLY)
        self._folder_mode = os.fstat(self._folder_fd).st_mode
        if self._spec["cpus"]:
            os.sched_setaffinity(0, self._spec["cpus"])
        self._reserve_status()
        self._memory.keep_in(os.curdir)
        self._wake_fd, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in _HANDLED_SIGNALS:
            signal.signal(number, lambda received, _: self._signals.add(received))
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        self._outputs = [os.open(self._spec[name], flags, 0o644) for name in ("stdout", "stderr")]
        self._affinity = current_affinity() | ({"host": self._spec["host"]} if self._spec.get("host") else {})
        self._write_affinity()
        cpus = os.sched_getaffinity(0)
        self._meter.begin(cpus, parse_cpu_list(self._affinity["threads"]) - cpus)
        self._started = time.monotonic()
        self._program = _spawn(self._spec, self._outputs)

    def watch(self) -> None:
        """Return when the program has ended or must be ended now."""
        limit_s = self._spec["time_limit_s"]
        deadline = _FOREVER if limit_s is None else self._started + limit_s
        sample_s = _FIRST_SAMPLE_S
        sample_at = self._started + sample_s
        while not self._reap():
            now = time.monotonic()
            self._handle_signals(now)
            if not self._launcher_lives():
                self._stop("cancelled", "the process that started the job is gone", now)
                self._stop_at, self._lifeline = min(self._stop_at, now + self._spec["clean_up_s"]), []
            elif now >= deadline:
                self._stop("timed out", f"the time limit of {limit_s:g} s was reached", now)
            if now >= self._stop_at:
                return
            if now >= sample_at:
                used_s = time.process_time()
                self._sample(now)
                sample_s = max(min(2 * sample_s, _SAMPLE_S), (time.process_time() - used_s) / _SAMPLE_COST)
                sample_at = now + sample_s
            waits_for = deadline if self._stop_at == _FOREVER else self._stop_at
            self._wait(min(sample_at, waits_for) - time.monotonic())
        if not self._lifeline:
            time.sleep(_SIGNALLING_S)
            self._handle_signals(time.monotonic())

    def finish(self) -> None:
        """Kill whatever is left and record how the job ended."""
        self._memory.note(descendants(os.getpid()))
        left = _kill_descendants(self._reap)
        self._elapsed_s = self._elapsed_s or time.monotonic() - self._started
        notes = [self._message]
        if left:
            notes.append(f"processes that cannot be killed: {left}")
        if _oom_kills() > self._oom_kills and self._exit_code != 0:
            notes.append("the kernel killed processes on this machine for lack of memory during the run")
        self._full.update(filter(_is_full, self._places))
        if _is_full(self._folder_fd):
            notes.append("the disk is full")
        notes += [f"no room is left in {place}" for place in sorted(self._full)]
        # A program that ends well may leave shared memory on purpose.
        if self._reason != "exited" or self._exit_code != 0:
            # What starts a server and its load kills processes itself, and may have been killed before it could remove
            # what they left.
            self._memory.include_added()
            self._memory.remove()
        self._message = "; ".join(filter(None, notes))
        self._write_status("ended")

    def give_up(self, error: BaseException) -> None:
        """End the job after an error of the supervisor itself."""
        _kill_descendants(self._reap)
        self._message = f"the job's supervisor failed: {error!r}"
        self._write_status("lost")

    def _launcher_lives(self) -> bool:
        """Whether the launching process is still running.

        The pipe shows this at once, except that a process forked by the launching one may hold the other end of the
        pipe, too.
        """
        if select.select(self._lifeline, [], [], 0)[0] and not os.read(0, 4096):
            return False
        return not self._lifeline or bool(start_time(self._spec["launcher_pid"]) == self._spec["launcher_start_time"])

    def _handle_signals(self, now: float) -> None:
        if self._signals.intersection((*_END_SOON, _END_NOW)):
            self._stop("cancelled", WALL_TIME_REACHED if self._wall_time_is_over() else "", now)
        if _END_NOW in self._signals:
            self._stop_at = now
        # The signals stay in the set: one that comes between the question above and a removal would be lost.

    def _wall_time_is_over(self) -> bool:
        """Whether the job's wall time is over."""
        walltime_s = self._spec.get("walltime_s")
        if walltime_s is None or self._shell_began is None:
            return False
        ran_s = time.clock_gettime(time.CLOCK_BOOTTIME) - self._shell_began / os.sysconf("SC_CLK_TCK")
        return bool(ran_s >= walltime_s - min(_WALL_TIME_SLACK_S, _WALL_TIME_SLACK * walltime_s))

    def _stop(self, reason: str, message: str, now: float) -> None:
        """Ask all processes of the job to end; they are killed when the grace period is over."""
        if self._stop_at != _FOREVER:
            return
        self._reason, self._message = reason, message
        self._stop_at = now + self._spec["grace_s"]
        pids = descendants(os.getpid())
        self._memory.note(pids)
        _signal_all(pids, signal.SIGTERM)

    def _wait(self, timeout_s: float) -> None:
        select.select([*self._lifeline, self._wake_fd], [], [], min(max(timeout_s, 0.0), _SAMPLE_S))
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_fd, 512):
                pass

    def _reap(self) -> bool:
        """Collect children that ended; return whether the program has ended, now or earlier."""
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self._meter.read_ended(ended.si_pid)
                pid, status = os.waitpid(ended.si_pid, 0)
                if pid == self._program:
                    self._elapsed_s = time.monotonic() - self._started
                    self._meters.stop()
                    self._exit_code = os.waitstatus_to_exitcode(status)
        return self._exit_code is not None

    def _sample(self, now: float) -> None:
        pids = descendants(os.getpid())
        self._peak_bytes = max(self._peak_bytes, memory_bytes(pids))
        self._memory.note(pids)
        if now >= self._measure_at:
            since = time.monotonic()
            self._meter.sample(pids)
            self._measure_at = now + (time.monotonic() - since) / _MEASURE_COST
        self._full.update(filter(_is_full, self._places))
        if self._peak_bytes > (self._spec["memory_limit_bytes"] or _FOREVER):
            self._stop("memory limit", f"used {self._peak_bytes >> 20} MiB of memory, more than its limit", now)
        limit_bytes = self._spec["output_limit_bytes"]
        if sum(os.fstat(fd).st_size for fd in self._outputs) > limit_bytes:
            self._stop("output limit", f"printed more than {limit_bytes / 2**20:g} MiB, the limit of every run", now)

    def _reserve_status(self) -> None:
        fd = os.open(_RESERVED_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError("another job is running in this folder") from None
        except OSError:
            pass  # a file system without locks
        os.pwrite(fd, b" " * _RESERVED_BYTES, 0)
        os.fsync(fd)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(STATUS_FILE)
        self._lock_fd = fd

    def _write_affinity(self) -> None:
        """Write the affinity while the program runs; on a full disk it is reported only at the end."""
        with contextlib.suppress(OSError):
            new = f"{AFFINITY_FILE}.new"
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), "wb") as file:
                file.write(json.dumps(self._affinity).encode())
            os.rename(new, AFFINITY_FILE)

    def _write_status(self, state: str) -> None:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        status = {
            "state": state,
            "reason": self._reason,
            "exit_code": self._exit_code,
            "elapsed_s": self._elapsed_s,
            "cpu_s": used.ru_utime + used.ru_stime,
            # A run may be shorter than the first sample; the kernel still knows its largest process.
            "peak_memory_bytes": max(self._peak_bytes, used.ru_maxrss * 1024),
            "message": self._message[:_MESSAGE_CHARACTERS],
            "affinity": self._affinity,
            "disturbance": self._meter.figures(self._elapsed_s, used),
            "metered": self._meters.figures(),
        }
        content = json.dumps(status).encode()
        with contextlib.suppress(OSError):  # nothing more can be done: the reader finds no status and reports that
            # The job may have made its folder read-only, or removed the file.
            if os.fstat(self._folder_fd).st_mode != self._folder_mode:
                os.fchmod(self._folder_fd, self._folder_mode & 0o7777)
            fd = os.open(_RESERVED_FILE, os.O_WRONLY | os.O_CREAT, 0o644)
            os.pwrite(fd, content.ljust(_RESERVED_BYTES), 0)
            os.fsync(fd)
            # Leave the folder before the status appears: its reader may remove the folder at once.
            os.chdir(os.sep)
            os.rename(_RESERVED_FILE, STATUS_FILE, src_dir_fd=self._folder_fd, dst_dir_fd=self._folder_fd)


def _spawn(spec: dict[str, Any], outputs: list[int]) -> int:
    """Start the program in a session of its own and return its process id."""
    supervisor = os.getpid()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _become(spec, outputs, supervisor)
        except OSError as error:
            os.write(write_end, json.dumps([error.errno, error.strerror]).encode())
        finally:
            os._exit(127)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        failure = pipe.read()
    if failure:
        number, text = json.loads(failure)
        raise OSError(number, text)
    return pid


def _become(spec: dict[str, Any], outputs: list[int], supervisor: int) -> None:
    """Turn this process into the program."""
    signal.set_wakeup_fd(-1)
    for number in (*_HANDLED_SIGNALS, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(127)
    os.setsid()
    os.dup2(os.open(spec.get("stdin") or os.devnull, os.O_RDONLY), 0)
    for fd, output in enumerate(outputs, start=1):
        os.dup2(output, fd)
    os.chdir(spec.get("starts_in") or os.curdir)
    os.execve(spec["executable"], spec["argv"], spec["environment"])  # noqa: S606  that is what this is for


def _kill_descendants(collect: Callable[[], object]) -> list[int]:
    """Kill and `collect` all descendants of this process; return those that cannot be killed within a long time."""
    give_up_at = time.monotonic() + _KILL_PATIENCE_S
    pause_s = 0.001
    while True:
        collect()
        if not has_children():
            return []
        left = descendants(os.getpid())
        if time.monotonic() >= give_up_at:
            return left
        _signal_all(left, signal.SIGKILL)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.05)


def _signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _oom_kills() -> int:
    """Return how many processes the kernel has killed for lack of memory (Linux 4.13 and later)."""
    with contextlib.suppress(OSError), open("/proc/vmstat", "rb") as file:
        for line in file:
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0


def _is_full(place: str | int) -> bool:
    try:
        there = os.statvfs(place)
    except OSError:
        return False
    return bool(there.f_blocks) and there.f_bavail * there.f_frsize < _FULL_BYTES


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def _answer(values: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(values).encode() + b"\n")


def _discard_output() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def continue_in_child(folder: str) -> None:
    """Return in a child; this process waits for its end, and ends what it leaves of the job if it was killed.

    Nobody else would: the kernel ends the program with its supervisor, but not what the program has started, nor its
    shared memory. Signals are passed on, and this process ends as the child did.
    """
    passed_on = (*_END_SOON, _END_NOW, signal.SIGUSR1)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # A signal that comes meanwhile waits until there is a child to pass it on to.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)
    parent, child = os.getpid(), os.fork()
    if child == 0:
        # A batch system that kills only the process that it started means the job.
        _prctl(_PR_SET_PDEATHSIG, _END_NOW)
        if os.getppid() != parent:
            os._exit(127)
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        return
    for number in passed_on:
        signal.signal(number, lambda received, _: _signal_all([child], received))
    signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    _discard_output()
    os.chdir(os.sep)  # a reader of the status may remove the folder at once
    # The process of a meter may end before.
    while (ended := os.wait())[0] != child:
        pass
    for number in passed_on:
        signal.signal(number, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(ended[1])
    if code < 0:
        _end_left_over(folder)
        with contextlib.suppress(OSError):  # SIGKILL needs no default action
            signal.signal(-code, signal.SIG_DFL)
        os.kill(parent, -code)
    os._exit(code)


def _end_left_over(folder: str) -> None:
    """End the descendants of this process, and remove the shared memory of their job."""
    memory = JobSharedMemory.read(folder)
    if memory is not None:
        memory.note(descendants(os.getpid()))
    _kill_descendants(_collect)
    if memory is not None:
        memory.include_added()
        memory.remove()


def _collect() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> int:
    """Run the job described on standard input."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return 1  # the launching process is gone already
    # Detach from the launching process: some of those (Ray's workers) kill their children when they end.
    if os.fork():
        os._exit(0)
    spec = json.loads(line)
    continue_in_child(spec["folder"])
    supervisor = Supervisor(spec)
    try:
        supervisor.start()
    except OSError as error:
        _answer({"error": error.strerror or str(error), "errno": error.errno})
        return 1
    _answer({"pid": os.getpid()})
    _discard_output()
    try:
        supervisor.watch()
        supervisor.finish()
    except BaseException as error:  # noqa: BLE001  whatever it is, nothing of the job may stay behind
        supervisor.give_up(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
