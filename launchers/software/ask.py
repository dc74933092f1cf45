"""Run a short command, such as `mpirun --version`, without a shell, and return what it prints."""

import errno
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from launchers.software.transient_errors import is_transient

_MOST_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Printed:
    """What a command printed, up to 16 MiB of each channel.

    Attributes:
        exit_code: Its exit code.
        text: Its standard output.
        complaint: Its standard error; empty if that is part of `text`.
    """

    exit_code: int
    text: str
    complaint: str


def ask(
    command: Sequence[str],
    patience_s: float,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    merge: bool = False,
) -> Printed:
    """Run a command and return what it prints.

    Args:
        command: The program and its arguments.
        patience_s: The command and all that it started are killed after this time.
        environment: Its environment; that of this process by default.
        folder: The folder that it runs in.
        merge: Whether `text` has its standard error, too, in the order in which it was printed.

    Raises:
        TimeoutError: It did not end in time.
        OSError: It cannot be started.
    """
    give_up_at = time.monotonic() + patience_s
    with subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merge else subprocess.PIPE,
        env=environment,
        cwd=folder,
        start_new_session=True,
    ) as process:
        try:
            text, complaint = _read(process, give_up_at)
            exit_code = process.wait(max(0.0, give_up_at - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            _kill(process)
            msg = f"{Path(command[0]).name} did not answer within {patience_s:g} s"
            raise TimeoutError(errno.ETIMEDOUT, msg, command[0]) from error
        except BaseException:
            _kill(process)
            raise
    return Printed(exit_code, text, complaint)


def find_printed_text(command: Sequence[str], patience_s: float, environment: Mapping[str, str] | None = None) -> str:
    """Return what a command prints on both channels; empty if it cannot run here or does not answer.

    Raises:
        OSError: It cannot run at this moment, which says nothing about its answer.
    """
    try:
        return ask(command, patience_s, environment=environment, merge=True).text
    except TimeoutError:
        return ""
    except OSError as error:
        if is_transient(error):
            raise
        return ""


def _read(process: subprocess.Popen[bytes], give_up_at: float) -> tuple[str, str]:
    """Read both channels until the command closes them; text beyond the limit is dropped."""
    texts = {pipe.fileno(): bytearray() for pipe in (process.stdout, process.stderr) if pipe is not None}
    with selectors.DefaultSelector() as selector:
        for descriptor in texts:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            left_s = give_up_at - time.monotonic()
            if left_s <= 0.0:
                raise subprocess.TimeoutExpired(process.args, 0.0)
            for key, _ in selector.select(left_s):
                piece = os.read(key.fd, 2**16)
                if not piece:
                    selector.unregister(key.fd)
                texts[key.fd] += piece[: _MOST_BYTES - len(texts[key.fd])]
    text, *complaint = (one.decode("utf-8", errors="replace") for one in texts.values())
    return text, "".join(complaint)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
