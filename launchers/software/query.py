"""Run the commands that provide programs, `module` and `spack`, without a shell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from launchers.software.ask import ask


class QueryError(Exception):
    """The command failed; the message is its own."""


@dataclass(frozen=True)
class Reply:
    """The answer of a command.

    Attributes:
        line: The command, as messages show it.
        text: Its standard output.
        complaint: Its standard error.
        exit_code: Its exit code.
    """

    line: str
    text: str
    complaint: str
    exit_code: int

    @property
    def error(self) -> QueryError:
        """The complaint as an error."""
        return QueryError(self.complaint or f"{self.line} ended with exit code {self.exit_code}")


def run_query(command: Sequence[str], line: str, environment: Mapping[str, str], patience_s: float) -> Reply:
    """Run a command, which messages show as `line`, and return its reply.

    Raises:
        QueryError: The command cannot be started or did not answer within `patience_s` seconds.
    """
    try:
        done = ask(command, patience_s, environment=environment)
    except OSError as error:
        msg = f"{line}: {error}"
        raise QueryError(msg) from error
    return Reply(line, done.text, done.complaint.strip(), done.exit_code)
