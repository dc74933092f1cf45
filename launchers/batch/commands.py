"""Run the short commands of a scheduler."""

import errno
import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

from launchers.batch_systems.base import JobReport, Scheduler

# A busy scheduler answers after a while; one that does not answer at all must not block the tuner.
_PATIENCE_S = 60.0
_PAUSE_S = 0.1
# After an interrupt the answer to a query is no longer needed.
_QUESTION_PATIENCE_S = 1.0
_UNANSWERED = 124
_MISSING = 127
# Errors of this process, not of the scheduler; a busy host may recover from them.
_LACKING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
_LACKING_PATIENCE_S = 900.0
# Command lines have a limit, and long ones keep a scheduler busy.
_AT_ONCE = 500
# Variables that every command needs: who the caller is, and where programs are. Only those that select a scheduler are
# passed beside them, so that nothing else reaches a job.
_NAMES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "KRB5CCNAME", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Answer:
    """A command's exit code and output.

    Attributes:
        code: Its exit code; 127 if it is missing, 124 if it did not answer.
        stdout: Its output.
        stderr: Its error messages.
        lacking: It could not be started because this process lacks descriptors or memory.
    """

    code: int
    stdout: str = ""
    stderr: str = ""
    lacking: bool = False

    @property
    def is_unknown(self) -> bool:
        """Whether the command may or may not have done its work: it did not answer, or was killed."""
        return self.code in {_UNANSWERED, -signal.SIGKILL, -signal.SIGTERM}

    @property
    def is_missing(self) -> bool:
        """Whether the command is not there."""
        return self.code == _MISSING

    @property
    def complaint(self) -> str:
        """Its error message on one line. Some commands repeat it for each job; each of its lines is here once."""
        lines = (self.stderr.strip() or self.stdout.strip() or f"exit code {self.code}").splitlines()
        return " ".join(" ".join(dict.fromkeys(map(str.strip, lines))).split())


class Commands(Protocol):
    """Runs commands."""

    def __call__(
        self,
        argv: Sequence[str],
        folder: Path | None = None,
        answer_file: Path | None = None,
        input_file: Path | None = None,
    ) -> Answer:
        """Run `argv` in `folder` and return its answer.

        Args:
            argv: The command line.
            folder: The folder to run it in; None for the current one.
            answer_file: Receives the output at once, so that `read_late_answer` finds it even if this process is
                killed.
            input_file: Standard input; None for no input.
        """


def run_command(
    argv: Sequence[str],
    folder: Path | None = None,
    answer_file: Path | None = None,
    input_file: Path | None = None,
    variables: Collection[str] = (),
) -> Answer:
    """Run a command; a command that is missing or does not answer gives an `Answer` as well.

    It sees the `variables` of this process's environment, and those that every command needs.

    Raises:
        KeyboardInterrupt: The user interrupted. A command with `answer_file` was first given time to end.
    """
    try:
        with ExitStack() as files:
            stdin = None if input_file is None else files.enter_context(input_file.open("rb"))
            if answer_file is None:
                stdout = files.enter_context(TemporaryFile())
            else:
                stdout = files.enter_context(answer_file.open("w+b"))
                # The lock lasts until both this process and the command have closed the file. Some file systems have no
                # locks.
                with suppress(OSError):
                    fcntl.flock(stdout, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Use files, not pipes: a command that outlives its reader must not die of a broken pipe.
            stderr = files.enter_context(TemporaryFile())
            patience_s = _QUESTION_PATIENCE_S if answer_file is None else _PATIENCE_S
            own = command_environment(os.environ, variables)
            code = _run(argv, folder, own, (stdin, stdout, stderr), patience_s)
            answer = Answer(_UNANSWERED if code is None else code, _text(stdout), _text(stderr))
    except OSError as error:
        return not_started_answer(argv, error)
    # A command that was given up may still have done its work.
    return answer if code is not None else replace(answer, stderr=f"{argv[0]} did not answer within {_PATIENCE_S:g} s")


def not_started_answer(argv: Sequence[str], error: OSError) -> Answer:
    """Return the answer that stands for a command that could not be started."""
    return Answer(_MISSING, stderr=f"{argv[0]}: {error.strerror or error}", lacking=error.errno in _LACKING)


class BoundedCommands:
    """Runs commands, and gives up if this process has lacked the means to start one for a quarter of an hour.

    A scheduler that does not answer is waited for without limit, but a process without descriptors or memory would wait
    for itself.
    """

    def __init__(self, commands: Commands, clock: Callable[[], float]) -> None:
        """Run commands by `commands`."""
        self._commands = commands
        self._clock = clock
        self._lacking_since: float | None = None

    def __call__(
        self,
        argv: Sequence[str],
        folder: Path | None = None,
        answer_file: Path | None = None,
        input_file: Path | None = None,
    ) -> Answer:
        """Run a command.

        Raises:
            OSError: No command could be started for too long.
        """
        answer = self._commands(argv, folder, answer_file, input_file)
        if not answer.lacking:
            self._lacking_since = None
        elif self._lacking_since is None:
            self._lacking_since = self._clock()
        elif self._clock() - self._lacking_since >= _LACKING_PATIENCE_S:
            msg = (
                f"no command of the scheduler could be started for {_LACKING_PATIENCE_S / 60:.0f} minutes "
                f"({answer.complaint}); jobs keep running; repeat the command to follow them"
            )
            raise OSError(msg)
        return answer


def query_states(
    commands: Commands, scheduler: Scheduler, numbers: Sequence[str]
) -> tuple[Scheduler, Mapping[str, JobReport] | None, Answer]:
    """Query the states of jobs; return them, or None without an answer, and the scheduler that could be queried."""
    answer = commands(scheduler.status(numbers))
    states = scheduler.states(answer.stdout, answer.stderr, answer.code)
    simpler = scheduler.fallback(answer.complaint) if states is None else None
    return (scheduler, states, answer) if simpler is None else query_states(commands, simpler, numbers)


def read_late_answer(answer_file: Path) -> str:
    """Wait for a command whose caller was killed, if it still runs; return what it printed.

    Raises:
        OSError: The file does not exist.
    """
    give_up_at = time.monotonic() + _PATIENCE_S
    with answer_file.open("rb") as file:
        while time.monotonic() < give_up_at:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE_S)
            except OSError:
                break
            else:
                break
        return file.read().decode("utf-8", errors="replace")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


def _run(
    argv: Sequence[str],
    folder: Path | None,
    own: Mapping[str, str],
    files: tuple[IO[bytes] | None, IO[bytes], IO[bytes]],
    patience_s: float,
) -> int | None:
    """Return the exit code, or None if the command does not end in time.

    After an interrupt the command has `patience_s` more seconds.
    """
    stdin, stdout, stderr = files
    process = None
    try:
        with _interrupts_held():
            process = subprocess.Popen(
                argv,
                cwd=folder,
                env=own,
                stdin=stdin or subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                # Keep Ctrl-C from the command: a submission that has begun must finish, and its job must be known.
                start_new_session=True,
            )
        try:
            return process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None
    except KeyboardInterrupt:
        # SIGTERM arrives here as well. A second interrupt ends the waiting, not the command.
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience_s)
        raise


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Delay interrupts until the block ends: inside it, one would lose a command that has just been started.

    Ignored signals stay ignored, also for the command. Only the main thread is ever interrupted.
    """
    received: list[int] = []
    in_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM) if in_main}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
    if received:
        signal.raise_signal(received[0])


def command_environment(caller: Mapping[str, str], variables: Collection[str] = ()) -> dict[str, str]:
    """Return a scheduler command's environment: its own `variables`, and those that every command needs."""
    return {name: value for name, value in caller.items() if name in _NAMES or name in variables}


def split_ids(ids: Sequence[str]) -> list[Sequence[str]]:
    """Split ids into groups that each fit into one command line."""
    return [ids[first : first + _AT_ONCE] for first in range(0, len(ids), _AT_ONCE)]
