"""How a training ended, as a failure, by the exit codes of our training programs."""

from launchers import EndReason
from objectives.base import ApplicationError, InvalidResult, OutOfMemory, Output
from objectives.ending import check_ending
from objectives.system_failures import last_words

_DIVERGED, _OUT_OF_MEMORY = 3, 12


def check_training_end(output: Output) -> None:
    """Raise the failure that the exit code means.

    Raises:
        RunFailure: The training did not end normally; the message uses its own words.
    """
    code = output.status.exit_code if output.status.reason is EndReason.EXITED else None
    words = last_line(output)
    if code == _OUT_OF_MEMORY:
        raise OutOfMemory(words or "ran out of memory", code="out-of-memory")
    if code == _DIVERGED:
        raise InvalidResult(words or "the training diverged", code="diverged")
    check_ending(output)
    if code:
        raise ApplicationError(f"ended with exit code {code}: {words or 'no output'}", code="exit-code")


def last_line(output: Output) -> str:
    """Return the last line that a run printed, of its errors if there are any."""
    return last_words(output.stderr.strip() or output.stdout)
