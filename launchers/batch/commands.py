"""Running the short commands of a scheduler."""

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

# A busy scheduler answers after a while; one that does not answer at all must not hold the tuner up.
_PATIENCE_S = 60.0
_PAUSE_S = 0.1
# After an interrupt a question needs no answer any more.
_QUESTION_PATIENCE_S = 1.0
_UNANSWERED = 124
_MISSING = 127
# What this process lacks, whatever the scheduler does; a busy host may give it again.
_LACKING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
_LACKING_PATIENCE_S = 900.0
# Command lines have a limit, and schedulers a patience.
_AT_ONCE = 500
# What every command needs of its caller: who it is, and where programs are. Nothing else of it reaches a job but what
# says which scheduler is meant.
_NAMES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "KRB5CCNAME", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code; 127 for one that is not there, 124 for one that did not answer.

    `lacking` says that it could not be started for want of descriptors or memory in this process.
    """

    code: int
    stdout: str = ""
    stderr: str = ""
    lacking: bool = False

    @property
    def is_unknown(self) -> bool:
        """Whether nobody can tell if it did what it was to do: it did not answer, or somebody ended it."""
        return self.code in {_UNANSWERED, -signal.SIGKILL, -signal.SIGTERM}

    @property
    def complaint(self) -> str:
        """What it said went wrong, in one line."""
        return " ".join((self.stderr.strip() or self.stdout.strip() or f"exit code {self.code}").split())


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

        With `answer_file` its output goes there at once, where it is found also when this process is killed meanwhile
        (`read_late_answer`). It reads `input_file`, or nothing.
        """


def run_command(
    argv: Sequence[str],
    folder: Path | None = None,
    answer_file: Path | None = None,
    input_file: Path | None = None,
    variables: Collection[str] = (),
) -> Answer:
    """Run a command; one that is missing or does not answer is an answer as well.

    It sees the `variables` of this process's environment beside what every command needs.

    Raises:
        KeyboardInterrupt: it came meanwhile. A command with `answer_file` was let end before, as far as it does.
    """
    try:
        with ExitStack() as files:
            stdin = None if input_file is None else files.enter_context(input_file.open("rb"))
            if answer_file is None:
                stdout = files.enter_context(TemporaryFile())
            else:
                stdout = files.enter_context(answer_file.open("w+b"))
                # Held until this process and the command have both closed it. Some file systems have no locks.
                with suppress(OSError):
                    fcntl.flock(stdout, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Files, not pipes: a command that goes on when nobody listens any more must not die of that.
            stderr = files.enter_context(TemporaryFile())
            patience_s = _QUESTION_PATIENCE_S if answer_file is None else _PATIENCE_S
            own = command_environment(os.environ, variables)
            code = _run(argv, folder, own, (stdin, stdout, stderr), patience_s)
            said = Answer(_UNANSWERED if code is None else code, _text(stdout), _text(stderr))
    except OSError as error:
        return not_started_answer(argv, error)
    # What a command was to do that was given up may be done nevertheless.
    return said if code is not None else replace(said, stderr=f"{argv[0]} did not answer within {_PATIENCE_S:g} s")


def not_started_answer(argv: Sequence[str], error: OSError) -> Answer:
    """Return the answer of a command that could not be started."""
    return Answer(_MISSING, stderr=f"{argv[0]}: {error.strerror or error}", lacking=error.errno in _LACKING)


class BoundedCommands:
    """Runs commands, and gives up when for a quarter of an hour none could be started for what this process lacks.

    A scheduler that does not answer is waited for, however long that takes. A process without descriptors or memory
    would wait for itself.
    """

    def __init__(self, commands: Commands, clock: Callable[[], float]) -> None:
        """Run `commands`."""
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
            OSError: none could be started for too long.
        """
        answer = self._commands(argv, folder, answer_file, input_file)
        if not answer.lacking:
            self._lacking_since = None
        elif self._lacking_since is None:
            self._lacking_since = self._clock()
        elif self._clock() - self._lacking_since >= _LACKING_PATIENCE_S:
            msg = (
                f"no command of the scheduler could be started for {_LACKING_PATIENCE_S / 60:.0f} minutes "
                f"({answer.complaint}); jobs go on, and the same command follows them"
            )
            raise OSError(msg)
        return answer


def read_late_answer(answer_file: Path) -> str:
    """Return what a command printed whose caller was killed, and which may not have ended yet: it is waited for.

    Raises:
        OSError: there is no such file.
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
    """Return the exit code; None if there is none in time. After an interrupt it has `patience_s` more."""
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
                # Ctrl-C is meant for the tuner: a submission that was begun must be finished, and known.
                start_new_session=True,
            )
        try:
            return process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None
    except KeyboardInterrupt:
        # SIGTERM is one here as well. One that comes again ends the waiting, and not the command.
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience_s)
        raise


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let an interrupt come at the end of the block: within it, it would lose a command that has been started.

    What is ignored stays so, for the command too. Threads other than the main one are never interrupted.
    """
    came: list[int] = []
    in_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM) if in_main}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def command_environment(caller: Mapping[str, str], variables: Collection[str] = ()) -> dict[str, str]:
    """Return what a scheduler's command sees of its caller's environment: its own `variables`, and little else."""
    return {name: value for name, value in caller.items() if name in _NAMES or name in variables}


def split_ids(ids: Sequence[str]) -> list[Sequence[str]]:
    """Return the ids in parts of which each may stand in one command line."""
    return [ids[first : first + _AT_ONCE] for first in range(0, len(ids), _AT_ONCE)]
