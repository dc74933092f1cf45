"""What provides programs is asked by its own command, `module` or `spack`, without a shell."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class QueryError(Exception):
    """The command did not do what it was asked; the message is its own."""


@dataclass(frozen=True)
class Reply:
    """How a command ended that is shown as `line`: the text that it printed, and what it complained of."""

    line: str
    text: str
    complaint: str
    exit_code: int

    @property
    def error(self) -> QueryError:
        """The complaint as an error."""
        return QueryError(self.complaint or f"{self.line} ended with exit code {self.exit_code}")


def run_query(command: Sequence[str], line: str, environment: Mapping[str, str], patience_s: float) -> Reply:
    """Return the reply of a command, which messages show as `line`.

    Raises:
        QueryError: it cannot be started, or did not answer.
    """
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience_s,
            check=False,
            env=dict(environment),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"{line}: {error}"
        raise QueryError(msg) from error
    complaint = done.stderr.decode(errors="replace").strip()
    return Reply(line, done.stdout.decode(errors="replace"), complaint, done.returncode)
