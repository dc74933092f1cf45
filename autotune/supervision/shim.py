"""Run a study once and record how it ended: `python -I -S shim.py FOLDER`.

It is started by path and imports only the standard library, so that it starts fast. From standard input it reads a
JSON object: `command` (a list of words), `cwd`, `token` (unique to this start), `serial` and `deaths` (copied into its
files), `log_bytes`, and `descriptors` (the limit of open files). It goes to the background before the caller continues,
in a session of its own, so that neither the end of the caller nor that of its terminal ends it.

It writes into the folder: `process.json` (the ids of both processes), `log.txt` and `log.1.txt` (their output, newer
and older part), and at the end `end.json`. The study writes to the log directly: it does not need the shim.
"""

# pathlib takes longer to import than this program to start.
# ruff: noqa: PTH105, PTH108, PTH116, PTH118, PTH123

import contextlib
import fcntl
import json
import os
import resource
import shutil
import signal
import sys
import time
from datetime import UTC, datetime
from typing import Any, NoReturn

PROCESS, END, LOG, OLDER_LOG, LOCK = "process.json", "end.json", "log.txt", "log.1.txt", "lock"

BUSY = "another shim looks after the study"

_LOOK_S = 1.0
_WRITE_PATIENCE_S = 60.0
_READY = b"ready"
# The signals that are passed on, and as which. A study does not handle SIGHUP, and would die without a message.
_HANDED_ON = {
    signal.SIGTERM: signal.SIGTERM,
    signal.SIGINT: signal.SIGINT,
    signal.SIGHUP: signal.SIGTERM,
    signal.SIGUSR1: signal.SIGUSR1,
}


def identity(pid: int) -> dict[str, Any] | None:
    """Return what distinguishes a process from others with the same pid; None if it is not alive.

    Pids are reused. The start time `started`, in clock ticks since the boot, is unique for a pid until the next boot.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        return None
    if not fields or fields[0] in {b"Z", b"X"}:
        return None
    return {"pid": pid, "started": int(fields[19]), "boot": boot}


def lives(known: object) -> bool:
    """Return whether the process with this `identity` is alive; False if the value is not an identity."""
    if not isinstance(known, dict) or type(known.get("pid")) is not int or known["pid"] <= 0:
        return False
    return identity(known["pid"]) == known


def write_private(path: str, value: object) -> None:
    """Write JSON that only this user may read. A reader finds the old content or the new one, never a part.

    Raises:
        OSError: The file cannot be written; the old content is still there.
    """
    text = json.dumps(value, indent=1)
    aside = f"{path}.{os.getpid()}.new"
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise
    _sync_folder(os.path.split(path)[0])


def _sync_folder(folder: str) -> None:
    """Sync the names in a folder to disk, if its file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def limit_log(folder: str, most_bytes: int) -> None:
    """Start a new log when this one is too long; its content replaces the older part."""
    log = os.path.join(folder, LOG)
    with contextlib.suppress(OSError):
        if os.stat(log).st_size <= most_bytes:
            return
        with contextlib.suppress(OSError):  # on a full disk there is no older part
            _copy(log, os.path.join(folder, OLDER_LOG))
        # Writers append, so the next line becomes the first. Lines written between the copy and the truncation are
        # lost.
        os.truncate(log, 0)


def _copy(source: str, target: str) -> None:
    """Copy a file with everything that is appended meanwhile; only this user may read the copy."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as writing, open(source, "rb") as reading:
        shutil.copyfileobj(reading, writing)


class Shim:
    """One process of a study, from its start to its end."""

    def __init__(self, folder: str, spec: dict[str, Any]) -> None:
        """Prepare to run the study of `folder` as `spec` says."""
        self._folder = folder
        self._spec = spec
        self._child = 0
        self._note = {
            "token": spec["token"],
            "serial": spec["serial"],
            "deaths": spec["deaths"],
            "when": _now(),
            "warden": identity(os.getpid()),
            "child": None,
        }

    def claim(self) -> None:
        """Lock the study's folder and record this process.

        Raises:
            OSError: The folder cannot be written. A BlockingIOError means that another shim, or its study, is alive.
        """
        # Locked until this process ends; the study does not inherit the descriptor.
        lock = os.open(os.path.join(self._folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if lives(self._child_before()):
            raise BlockingIOError(BUSY)
        signal.pthread_sigmask(signal.SIG_BLOCK, {*_HANDED_ON, signal.SIGCHLD})
        write_private(self._path(PROCESS), self._note)
        log = os.open(self._path(LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(nothing, 0)

    def _child_before(self) -> object:
        """Return the identity of the newest study process, which may have outlived its shim."""
        with contextlib.suppress(OSError, ValueError), open(self._path(PROCESS), encoding="utf-8") as file:
            note = json.load(file)
            return note.get("child") if isinstance(note, dict) else None
        return None

    def start(self) -> bool:
        """Start the study; return False if that fails, after recording the failure as its end."""
        command = self._spec["command"]
        again = f", the start after {self._spec['deaths']} without a result" if self._spec["deaths"] else ""
        self._say(f"--- {self._note['when']} started{again}")
        try:
            os.chdir(self._spec["cwd"])
            most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._spec["descriptors"], most))
            self._child = os.posix_spawn(
                command[0], command, os.environ, setsigmask=[], setsigdef=[*_HANDED_ON, signal.SIGCHLD]
            )
        except OSError as error:
            self._end(error=f"{error.filename or command[0]}: {error.strerror}")
            return False
        self._note["child"] = identity(self._child)
        with contextlib.suppress(OSError):  # signals reach the study through this process anyway
            write_private(self._path(PROCESS), self._note)
        return True

    def follow(self) -> None:
        """Pass signals on until the study has ended, and record how it ended."""
        awaited = {*_HANDED_ON, signal.SIGCHLD}
        while True:
            ended, status = os.waitpid(self._child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                self._end(code=code if code >= 0 else None, signal=-code if code < 0 else None)
                return
            limit_log(self._folder, self._spec["log_bytes"])
            caught = signal.sigtimedwait(awaited, _LOOK_S)
            handed_on = _HANDED_ON.get(signal.Signals(caught.si_signo)) if caught is not None else None
            if handed_on is not None:
                os.kill(self._child, handed_on)  # not reaped yet, so its pid cannot be another process

    def _end(self, **how: object) -> None:
        end = {"token": self._spec["token"], "code": None, "signal": None, "error": "", **how, "when": _now()}
        said = ", ".join(f"{name} {value}" for name, value in how.items() if value is not None)
        self._say(f"--- {end['when']} ended: {said}")
        give_up_at = time.monotonic() + _WRITE_PATIENCE_S
        while True:
            try:
                write_private(self._path(END), end)
            except OSError:
                if time.monotonic() >= give_up_at:
                    return
                time.sleep(_LOOK_S)
            else:
                return

    def _say(self, line: str) -> None:
        with contextlib.suppress(OSError):
            os.write(1, f"{line}\n".encode())

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _watch(folder: str, spec: dict[str, Any], tell: int) -> NoReturn:
    """Run the shim in the background; write to `tell` that it started, or why not."""
    shim = Shim(folder, spec)
    try:
        shim.claim()
    except OSError as error:
        os.write(tell, (error.strerror or str(error) if not isinstance(error, BlockingIOError) else BUSY).encode())
        os._exit(1)
    goes_on = shim.start()
    with contextlib.suppress(OSError):
        os.write(tell, _READY)
    os.close(tell)
    if goes_on:
        shim.follow()
    os._exit(0)


def main() -> int:
    """Start the study in the background; return 0 once it was started, or 1 with the reason on stderr."""
    folder, spec = sys.argv[1], json.load(sys.stdin)
    listen, tell = os.pipe()
    if os.fork() == 0:
        os.close(listen)
        os.setsid()
        _watch(folder, spec, tell)
    os.close(tell)
    said = b""
    while some := os.read(listen, 4096):
        said += some
    if said == _READY:
        return 0
    sys.stderr.write(said.decode(errors="replace") or "it ended before it began")
    return 1


if __name__ == "__main__":
    sys.exit(main())
