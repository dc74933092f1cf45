"""Runs a job's command as the load of a server: starts the server, waits until it is ready, runs the load, stops it.

It is started by path where the job runs (`python -I -S server.py COMMAND...`, with the server's description in the
job's folder), so it imports the standard library only. Server, warm-up and load are its children, and it is a
*subreaper*, so that it also ends what they leave behind. Each command besides the server has a subreaper of its own, so
that the next one runs alone. If they are killed, the job's supervisor ends them all.

The load's output and exit code are those of the job. The server's log, and the output of warm-up and reset, are files
of their own. A record says what happened, so that a server that failed is distinguished from a load that failed.
"""

# The job's folder is the current folder, and pathlib takes longer to import than this program to start.
# ruff: noqa: PTH100, PTH104, PTH108, PTH115, PTH118, PTH119, PTH120, PTH123, PTH202, PTH208

import ctypes
import json
import math
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import Any, NoReturn

if __name__ != "__main__":
    from launchers.highest_load import highest_load, next_load, reported_load
    from launchers.process_tree import descendants, start_time
    from launchers.shared_memory import JobSharedMemory
    from launchers.steps import IGNORED_BY_PYTHON, end_as
else:
    # Started by path and isolated, so Python does not search the folder of this file.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from highest_load import highest_load, next_load, reported_load  # type: ignore[import-not-found, no-redef]
    from process_tree import descendants, start_time  # type: ignore[import-not-found, no-redef]
    from shared_memory import JobSharedMemory  # type: ignore[import-not-found, no-redef]
    from steps import IGNORED_BY_PYTHON, end_as  # type: ignore[import-not-found, no-redef]

    del sys.path[0]

SERVER_FILE = ".autotune-server.json"
"""Describes the server to this program; secrets included, so only the user can read it."""

RECORD_FILE = ".autotune-served.json"

SERVER_LOG = "server.log"
STEPS_LOG = "warm-up.log"

PORT = "port"
"""The name of the port that a run gives to its server: `{port}` in a study file."""

_HERE = "localhost"
_FIRST_PORT = 10_240
_LOG_TICK_S = 0.5
_PAUSES_S = (0.01, 0.1)  # between two looks for readiness: the first, and the longest
_PROBE_S = 5.0
_KILL_PATIENCE_S = 30.0
_SETTLE_S = 0.5  # a load that fails because its server dies may end first
_LINE_CHARACTERS = 10_000
_CHUNK_BYTES = 2**22
_ASKED_TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2)
_LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp
_PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>


def with_server(command: list[str], python: list[str]) -> list[str]:
    """Return a command line that runs `command` as the load of a server; `python` starts an interpreter."""
    return [*python, __file__, *command]


def read_record(folder: PathLike[str]) -> dict[str, Any]:
    """Return the record that a job with a server has left in its folder; empty if there is no readable one.

    Its keys are `phase` (how far the run came: start, warm-up, load), `started_s` (the seconds before the first load),
    `load_s` (those of the load, or of the one that is reported), `failure` (None, or `code`, `message` and `exit_code`
    of a server that failed), `loads` (those of a search), `highest` (what it found) and `reported` (the position of the
    load whose output is that of the job).

    Raises:
        OSError: It cannot be read.
    """
    with suppress(FileNotFoundError, ValueError):
        with open(os.path.join(folder, RECORD_FILE), encoding="utf-8") as file:
            record = json.load(file)
        return record if isinstance(record, dict) else {}
    return {}


def mark_of(name: str) -> str:
    """Return what stands in a job for a value that its run finds; unlike `{port}`, no user's text has it."""
    return f"{{run:{name}}}"


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the values of this run in place of their marks."""
    for name, value in values.items():
        text = text.replace(mark_of(name), value)
    return text


class _ServerFailedError(Exception):
    """The server failed, or what prepares it.

    Args:
        code: The kind of failure, for tables.
        message: What happened, without the words of the log.
        exit_code: The server's, negative for a signal; None while it ran.
    """

    def __init__(self, code: str, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.code, self.exit_code = code, exit_code


class _Run:
    """The processes of one run."""

    def __init__(self, spec: dict[str, Any], command: list[str]) -> None:
        self._spec = spec
        self._command = command
        self._values: dict[str, str] = {}
        self._ended: dict[int, int] = {}
        self._main, self._roots, self._own = 0, list[int](), 0
        self._files: dict[str, str] = {}
        self._memory = JobSharedMemory()
        self._memory.add_to(os.curdir)
        self._claim: socket.socket | None = None
        self._port = 0
        self.record: dict[str, Any] = {"phase": "start", "started_s": 0.0, "load_s": 0.0, "failure": None}

    def execute(self) -> int:
        """Run it all; return the exit code of the load that is reported, negative for a signal.

        Raises:
            _ServerFailedError: The server failed, or what prepares it.
        """
        began = time.monotonic()
        for name in self._spec["files"]:
            with open(name, encoding="utf-8", errors="surrogateescape", newline="") as file:
                self._files[name] = file.read()
        self._start()
        self.record["phase"] = "warm-up"
        for step in self._spec["warm_up"]:
            self._run_step(step, "warm-up")
        self.record["started_s"] = time.monotonic() - began
        search = self._spec["search"]
        if search is None:
            exit_code, self.record["load_s"] = self._run_load()
            return exit_code
        return self._find_highest(search)

    def stop(self) -> None:
        """Stop the server and end all that is left of it."""
        give_up_at = time.monotonic() + _KILL_PATIENCE_S
        while self._own and self._own not in self._ended and time.monotonic() < give_up_at:
            self._kill(descendants(self._own))  # its subreaper ends then, and removes their shared memory
            self._wait(lambda: self._own in self._ended, 0.005)
        number, roots = getattr(signal, self._spec["stop"]), self._roots
        kill_at = time.monotonic() + self._spec["stop_within_s"]
        _signal_all(roots, number)
        if self._wait(lambda: not any(map(start_time, roots)), kill_at - time.monotonic()):
            # A script that has started the server ends at once, and the server has had no signal yet.
            _signal_all(descendants(os.getpid()), number)
            self._wait(lambda: not descendants(os.getpid()), kill_at - time.monotonic())
        self._kill_descendants()
        self._roots = []

    def note_failure(self, failure: _ServerFailedError) -> None:
        """Record a failure of the server, once it has been stopped."""
        code, message = failure.code, str(failure)
        if failure.code in {"server-died", "server-not-ready"} and _answers(self._port):
            code, message = "port-taken", f"another program took port {self._port} before the server did"
        self.record["failure"] = {"code": code, "message": message, "exit_code": failure.exit_code}

    def _start(self) -> None:
        """Start the server, and wait until it is ready."""
        self._port = self._take_port()
        self._values[PORT] = str(self._port)
        self._write_files()
        argv = [fill_in(word, self._values) for word in self._spec["argv"]]
        log = os.open(SERVER_LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._main = self._spawn(argv, log, log, self._spec["environment"])
        except OSError as error:
            raise _ServerFailedError("server-died", f"{argv[0]}: {error.strerror}", 127) from error
        finally:
            os.close(log)
        self._roots = [self._main]
        lines, failures = _new_lines(SERVER_LOG), [re.compile(one) for one in self._spec["failure"]]
        kind, text = self._spec["ready"]
        sign = re.compile(text) if kind == "line" else None
        url = fill_in(text, self._values) if kind == "url" else ""
        host, port, _ = _split(url) if url else (_HERE, self._port, "")
        is_here = host in {_HERE, "0.0.0.0", "::1"} or host.startswith("127.")  # noqa: S104  no address to listen at
        self._port = port if is_here else self._port
        give_up_at = time.monotonic() + self._spec["ready_within_s"]
        pause_s, longest_s = _PAUSES_S
        while True:
            is_ready = _has_page(url, give_up_at) if url else kind == "port" and _answers(self._port)
            # Another program may have the port; then the server is about to end, or waits for it.
            is_ready = is_ready and (not is_here or _listens(descendants(os.getpid()), self._port))
            new = next(lines)
            for line in new:
                if any(one.search(line) for one in failures):
                    raise _ServerFailedError("server-failure", "reported a failure before it was ready")
                is_ready = is_ready or (sign is not None and sign.search(line) is not None)
            if not self._is_alive():
                code = self._ended.get(self._main)
                raise _ServerFailedError("server-died", f"{_ending(code)} before it was ready", code)
            if is_ready:
                return
            if time.monotonic() >= give_up_at:
                within = f"{self._spec['ready_within_s']:g} s"
                raise _ServerFailedError("server-not-ready", f"was not ready within {within} ({_sign(kind, text)})")
            self._check_logs()
            self._wait(lambda: not self._is_alive(), pause_s)
            # A long log is read on at once.
            pause_s = _PAUSES_S[0] if new else min(1.5 * pause_s, longest_s)

    def _run_load(self, outputs: Sequence[str] = ()) -> tuple[int, float]:
        """Reset the server and run the load; return its exit code and how many seconds it took.

        Args:
            outputs: The files for its standard output and error; by default they are those of the job.
        """
        for step in self._spec["reset"]:
            self._run_step(step, "reset")
        self.record["phase"] = "load"
        argv = [fill_in(word, self._values) for word in self._command]
        files = [os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644) for name in outputs]
        began = time.monotonic()
        load = self._start_client(argv, *(files or (1, 2)))
        for file in files:
            os.close(file)
        while not self._wait(lambda: load in self._ended or not self._is_alive(), _LOG_TICK_S):
            self._check_logs(outputs)
        elapsed_s = time.monotonic() - began
        self._check_server(load, "the load")
        return self._ended[load], elapsed_s

    def _start_client(self, argv: list[str], out: int, err: int) -> int:
        """Start a command in a process that kills what the command leaves, and then ends as it did; return its id."""
        client = self._own = os.fork()
        if client:
            return client
        code = 127
        try:
            for number in _ASKED_TO_END:
                signal.signal(number, lambda *_: None)  # it ends when the command does
            _become_subreaper()
            command = self._spawn(argv, out, err)
            self._wait(lambda: command in self._ended)
            self._kill_descendants()
            code = end_as(self._ended[command])
        except OSError as error:
            os.write(err, f"{argv[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(code)

    def _run_step(self, argv: Sequence[str], what: str) -> None:
        words = [fill_in(word, self._values) for word in argv]
        log = os.open(STEPS_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        step = self._start_client(words, log, log)
        os.close(log)
        while not self._wait(lambda: step in self._ended or not self._is_alive(), _LOG_TICK_S):
            self._check_logs()
        self._check_server(step, f"its {what}")
        if code := self._ended[step]:
            raise _ServerFailedError(what, f"{os.path.basename(words[0])} {_ending(code)}")

    def _check_server(self, client: int, what: str) -> None:
        """Check that the server lives at the end of a process that needs it."""
        if self._ended.get(client) != 0:
            self._wait(lambda: not self._is_alive(), _SETTLE_S)
        if not self._is_alive():
            code = self._ended.get(self._main)
            raise _ServerFailedError("server-died", f"{_ending(code)} during {what}", code)

    def _find_highest(self, search: dict[str, Any]) -> int:
        """Search for the highest load that keeps its limits; return the exit code of the load that is reported."""
        judged: dict[str, Any] = {}
        loads: list[dict[str, Any]] = []
        self.record["loads"] = loads
        kept: list[tuple[float, bool]] = []
        low, high, start = search["low"], search["high"], search["start"]
        while (load := next_load(low, high, kept, start, search["shift"])) is not None:
            number = len(loads) + 1
            self._values[search["name"]] = f"{load:.6g}" if isinstance(load, float) else str(load)
            self._write_files()
            for name in search["files"]:
                with suppress(FileNotFoundError):
                    os.unlink(name)
            exit_code, load_s = self._run_load([output_of(number, name) for name in ("stdout", "stderr")])
            judged = self._judge(number, exit_code)
            loads.append({search["name"]: load, "exit_code": exit_code, "load_s": load_s, **judged})
            kept.append((load, judged["breaks"] is None))
            if "is_lost" in judged:
                break
            for name in search["files"]:
                with suppress(FileNotFoundError):
                    os.rename(name, output_of(number, name))
        highest = highest_load(low, high, kept, start)
        reported = len(kept) - 1 if "is_lost" in judged else reported_load(kept, highest)
        for name, target in (("stdout", 1), ("stderr", 2)):
            with open(output_of(reported + 1, name), "rb") as file:
                while chunk := file.read(_CHUNK_BYTES):
                    _write_all(target, chunk)
        for name in search["files"]:
            with suppress(FileNotFoundError):
                os.rename(output_of(reported + 1, name), name)
        self.record |= {"highest": highest, "reported": reported, "load_s": loads[reported]["load_s"]}
        return int(loads[reported]["exit_code"])

    def _judge(self, number: int, exit_code: int) -> dict[str, Any]:
        """Return the figures of a load as `metrics`, and as `breaks` which limit it breaks, or why it failed."""
        answer = f".autotune-load-{number}.json"
        file = os.open(answer, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            judge = self._spawn([*self._spec["judge"], str(number), str(exit_code)], file, 2)
        finally:
            os.close(file)
        self._wait(lambda: judge in self._ended)
        try:
            with open(answer, encoding="utf-8") as read:
                judged: dict[str, Any] = json.load(read)
        except ValueError:
            msg = "the figures of a load could not be read: see stderr"
            raise _ServerFailedError("judge", msg) from None
        finally:
            os.unlink(answer)
        return judged

    def _write_files(self) -> None:
        for name, text in self._files.items():
            with open(name, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                file.write(fill_in(text, self._values))

    def _spawn(self, argv: list[str], out: int, err: int, variables: Mapping[str, str] | None = None) -> int:
        environment = {name: fill_in(text, self._values) for name, text in {**os.environ, **(variables or {})}.items()}
        return os.posix_spawnp(
            argv[0],
            argv,
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, err, 2)],
            setsigmask=(),
            setsigdef=IGNORED_BY_PYTHON,
        )

    def _kill_descendants(self) -> None:
        give_up_at = time.monotonic() + _KILL_PATIENCE_S
        while (left := descendants(os.getpid())) and time.monotonic() < give_up_at:
            self._kill(left)
            self._wait(lambda: False, 0.005)
        self._memory.remove()

    def _kill(self, pids: list[int]) -> None:
        # Killed processes cannot remove their shared memory themselves.
        self._memory.note(pids)
        _signal_all(pids, signal.SIGKILL)

    def _is_alive(self) -> bool:
        if any(start_time(pid) is not None for pid in self._roots):
            return True
        self._reap()
        if all(self._ended.get(pid) == 0 for pid in self._roots):
            # It runs on in the background, perhaps after several forks; what is left is its, unless it is the load's.
            others = {os.getpid(), self._own, *descendants(self._own)} if self._own else set()
            self._roots = [pid for pid in descendants(os.getpid()) if pid not in others]
            return bool(self._roots)
        return False

    def _check_logs(self, of_load: Sequence[str] = ()) -> None:
        limit_bytes = self._spec["output_limit_bytes"]
        writers = {SERVER_LOG: "the server", STEPS_LOG: "warm-up or reset", **dict.fromkeys(of_load, "a load")}
        for name, writer in writers.items():
            with suppress(FileNotFoundError):
                if os.path.getsize(name) > limit_bytes:
                    msg = f"{writer} printed more than {limit_bytes / 2**20:g} MiB, the limit of every run"
                    raise _ServerFailedError("output-limit", msg)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._ended[ended[0]] = os.waitstatus_to_exitcode(ended[1])

    def _wait(self, is_done: Callable[[], bool], timeout_s: float = math.inf) -> bool:
        """Return whether it is done, within the time; sleep until a child ends."""
        give_up_at = time.monotonic() + timeout_s
        while True:
            self._reap()
            if is_done():
                return True
            left_s = give_up_at - time.monotonic()
            if left_s <= 0.0:
                return False
            # The end of a daemon's process is no child's end.
            signal.sigtimedwait({signal.SIGCHLD}, min(left_s, _LOG_TICK_S))

    def _take_port(self) -> int:
        """Return a free port below those that the kernel gives to connections, for this run of ours only."""
        last = 65_535
        with suppress(OSError, ValueError), open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            first = int(file.read().split()[0])
            last = first - 1 if first > 2 * _FIRST_PORT else last
        while True:
            port = _FIRST_PORT + int.from_bytes(os.urandom(4), "big") % (last - _FIRST_PORT + 1)
            # An abstract name, which ends with this process: two runs that take the same port at once would collide.
            claim = socket.socket(socket.AF_UNIX)
            try:
                claim.bind(f"\0autotune-port-{port}")
                with socket.socket() as free:
                    free.bind(("", port))
            except OSError:
                claim.close()
                continue
            self._claim = claim
            return port


def output_of(number: int, name: str) -> str:
    """Return the name of a file that a load of a search wrote, in a flat form that survives the run."""
    return f"load-{number}.{name.replace(os.sep, '_')}"


def _answers(port: int) -> bool:
    """Whether a program accepts connections on a port of this host."""
    with suppress(OSError), socket.create_connection((_HERE, port), timeout=_PROBE_S):
        return True
    return False


def _listens(pids: list[int], port: int) -> bool:
    """Whether one of these processes listens on a port, or nobody can tell."""
    sockets = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/net/{name}", encoding="ascii") as file:
            rows = [line.split() for line in file]
            sockets |= {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}") and row[3] == _LISTENS}
    for pid in pids:
        try:
            files = os.listdir(f"/proc/{pid}/fd")
        except FileNotFoundError:
            continue
        except OSError:  # another user's
            return True
        for descriptor in files:
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{descriptor}") in sockets:
                    return True
    return not sockets


def _has_page(url: str, until: float) -> bool:
    """Whether an address answers with a page (status 200 to 399)."""
    import http.client  # noqa: PLC0415  most runs do not need it

    timeout_s = min(_PROBE_S, max(0.1, until - time.monotonic()))
    host, port, path = _split(url)
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        return 200 <= connection.getresponse().status < 400
    except (OSError, ValueError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _split(url: str) -> tuple[str, int, str]:
    """Return host, port and path of an address."""
    from urllib.parse import urlsplit  # noqa: PLC0415  most runs do not need it

    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 80, f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"


def _new_lines(name: str) -> Iterator[list[str]]:
    """Yield the lines that a file has got since the last time; a line without its end waits for it."""
    rest = b""
    with open(name, "rb") as file:
        while True:
            *lines, rest = (rest + file.read(_CHUNK_BYTES)).split(b"\n")
            rest = rest[-_LINE_CHARACTERS:]
            yield [line[-_LINE_CHARACTERS:].decode(errors="replace") for line in lines]


def _sign(kind: str, text: str) -> str:
    return {"port": "nothing accepts connections on its port", "url": f"{text} does not answer"}.get(
        kind, f"no line of its log matches {text!r}"
    )


def _ending(code: int | None) -> str:
    if code is None:
        return "ended"
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was killed by {name}"


def _signal_all(pids: Sequence[int], number: int) -> None:
    for pid in filter(start_time, pids):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _become_subreaper() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def main(command: list[str]) -> int:
    """Run the command as the load of the server that the job's folder describes."""
    with open(SERVER_FILE, encoding="utf-8") as file:
        run = _Run(json.load(file), command)
    _become_subreaper()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    for number in _ASKED_TO_END:
        signal.signal(number, end)
    exit_code, failed = 1, None
    try:
        exit_code = run.execute()
    except _ServerFailedError as failure:
        failed = failure
    finally:
        for number in _ASKED_TO_END:
            signal.signal(number, signal.SIG_IGN)
        run.stop()
        if failed is not None:
            run.note_failure(failed)
        # Ignore a full disk here: without a record the run counts as one whose load failed, and the disk is reported.
        with suppress(OSError), open(RECORD_FILE, "w", encoding="utf-8") as file:
            json.dump(run.record, file)
    return end_as(exit_code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
