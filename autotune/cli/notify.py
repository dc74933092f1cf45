"""`--notify COMMAND|URL`: report the end of a session to a command or a server, however it ended."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread

import typer

from autotune.cli.common import errors
from autotune.errors import AutotuneError, ExitCode, is_interrupt

_PATIENCE_S = 10.0
# Time to end a command that ran past its limit.
_GRACE_S = 1.0
_LATE = f"not done within {_PATIENCE_S:.0f} s"
_SCHEMES = ("http://", "https://")


@dataclass
class SessionEnd:
    """How the session of `study` ended; `verdict` is its verdict in words, or empty."""

    study: str
    verdict: str = ""


@dataclass(frozen=True)
class Receiver:
    """A command or a URL that receives the result.

    The command runs without a shell and finds the result in its environment; the URL receives it as JSON.
    """

    command: Sequence[str] = ()
    url: str = ""

    @classmethod
    def of(cls, text: str | None) -> "Receiver | None":
        """Return the receiver that `--notify` names; None if the option is not given.

        Raises:
            typer.BadParameter: The text is neither a URL nor a command on PATH.
        """
        if text is None:
            return None
        if text.startswith(_SCHEMES):
            return cls(url=_check_url(text))
        return cls(_split_command(text))

    def send(self, result: Mapping[str, str]) -> None:
        """Send the result; print a failure, which has no other effect."""
        failures: list[str] = [_LATE]

        def send() -> None:
            try:
                _post(self.url, result) if self.url else _run(self.command, result)
                failures.clear()
            except Exception as error:  # noqa: BLE001  no failure here may change how the session ended
                failures[:] = [_why(error)]

        # Use a thread: the time limit of a request does not cover a slow name server or a slowly arriving answer.
        sender = Thread(target=send, daemon=True)
        sender.start()
        sender.join(_PATIENCE_S + _GRACE_S)
        for failure in tuple(failures):
            errors().print(f"--notify: {self._name}: {failure}")

    @property
    def _name(self) -> str:
        from urllib.parse import urlsplit

        # Print the host only: the path of a web hook is often its secret.
        return urlsplit(self.url).hostname or "" if self.url else self.command[0]


@contextmanager
def notify_at_end(notify: str | None, study: str) -> Iterator[SessionEnd]:
    """Report to a command or a URL how the context ended.

    Raises:
        typer.BadParameter: `notify` is neither; raised before anything runs.
    """
    receiver = Receiver.of(notify)
    end = SessionEnd(study)
    code: int = ExitCode.OK
    try:
        yield end
    except BaseException as error:
        code = _exit_code(error)
        raise
    finally:
        if receiver is not None:
            receiver.send({"study": end.study, "exit_code": str(int(code)), "verdict": end.verdict})


def _check_url(url: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        known = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    if not known:
        msg = "the URL names no host: --notify takes a command, or https://HOST/PATH"
        raise typer.BadParameter(msg, param_hint="--notify")
    return url


def _split_command(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        msg = f"{command!r} is not a command: {error}"
        raise typer.BadParameter(msg, param_hint="--notify") from None
    if not words or shutil.which(words[0]) is None:
        msg = f"{words[0] if words else command!r} is not an executable file, nor on PATH"
        raise typer.BadParameter(msg, param_hint="--notify")
    return words


def _exit_code(error: BaseException) -> int:
    if isinstance(error, (typer.Exit, typer.BadParameter, AutotuneError)):
        return error.exit_code
    if is_interrupt(error):
        return ExitCode.INTERRUPTED
    return ExitCode.STORAGE if isinstance(error, OSError) else 1


def _post(url: str, result: Mapping[str, str]) -> None:
    from urllib.request import Request, urlopen

    body = json.dumps({**result, "exit_code": int(result["exit_code"])}).encode()
    request = Request(url, body, {"Content-Type": "application/json"}, method="POST")  # noqa: S310  http or https
    with urlopen(request, timeout=_PATIENCE_S):  # noqa: S310
        pass


def _run(words: Sequence[str], result: Mapping[str, str]) -> None:
    told = {f"AUTOTUNE_{name.upper()}": text for name, text in result.items()}
    # Send the command's output to standard error: standard output is for the result of the session.
    ended = subprocess.run(
        words,
        env={**os.environ, **told},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        timeout=_PATIENCE_S,
        check=False,
    )
    if ended.returncode:
        msg = f"it ended with exit code {ended.returncode}"
        raise OSError(msg)


def _why(error: Exception) -> str:
    from urllib.error import HTTPError, URLError

    if isinstance(error, subprocess.TimeoutExpired | TimeoutError):
        return _LATE
    if isinstance(error, HTTPError):
        return f"it answered {error.code} {error.reason}"
    if isinstance(error, URLError):
        return str(error.reason)
    return getattr(error, "strerror", None) or str(error)
