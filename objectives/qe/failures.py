"""Every way in which a run of pw.x fails, as a typed failure in the program's own words.

The printed text decides, not the exit code: pw.x returns a status only if it was built to (Debian's is), and a run that
did not converge may exit with 0.
"""

import re
import signal
from dataclasses import dataclass

from launchers import EndReason, JobState
from objectives.base import (
    ApplicationError,
    InfrastructureError,
    InvalidResult,
    OutOfMemory,
    Output,
    RunFailure,
    TimedOut,
)
from objectives.ending import NO_ROOM, signal_in, signal_name
from objectives.qe.output import PwOutput
from objectives.system_failures import find_system_failure, rule, shorten_words

_NOT_CONVERGED, _ALL_STEPS = 2, 3
# Signs of a run that was stopped on its way: an earlier step or cycle of it may have converged.
_CUT_SHORT = ("Maximum CPU time exceeded", "Signal Received, stopping", "Calculation (EXX) stopped")
_RULER = re.compile(r"^\s*%{10,}\s*$")
_ROUTINE = re.compile(r"^\s*Error in routine\s+(\S.*?)\s*\(\s*([-+]?\d{1,9})\s*\)\s*:?\s*$")


@dataclass(frozen=True)
class ProgramError:
    """The error with which pw.x stops itself: the routine, its code and the message."""

    routine: str
    code: int
    message: str

    def __str__(self) -> str:
        return f"Error in routine {self.routine} ({self.code}): {self.message}"


_ROUTINES = (
    rule(r"mp_start_pools .*out of range", ApplicationError, "too-many-pools"),
    rule(r"mp_start_pools .*nproc_pool", ApplicationError, "pools-do-not-divide"),
    rule(r"mp_start_bands|band groups", ApplicationError, "band-groups"),
    rule(r"task.?groups?", ApplicationError, "task-groups"),
    rule(r"read_namelists", ApplicationError, "bad-namelist"),
    rule(r"read_cards|card_|read_.*card", ApplicationError, "bad-card"),
    rule(r"read_input|open_input_file", ApplicationError, "input-missing"),
    rule(r"readpp .*not found", ApplicationError, "pseudo-missing"),
    rule(r"readpp .*not readable|read_upf|upf_", ApplicationError, "pseudo-unreadable"),
    rule(r"no plane waves found|processes with no planes", ApplicationError, "too-many-ranks"),
    rule(r"allocat\w* .*(?:memory|fail)|cannot allocate", OutOfMemory, "out-of-memory"),
    # What cannot be read was written by another number of ranks or pools, or by another calculation.
    rule(
        r"error (?:while |in )?reading|read_rhog|read_file|readfile|error opening (?:xml|data-file)|read_xml",
        ApplicationError,
        "file-not-read",
    ),
    rule(r"davcio|error (?:writing|opening)|write_rhog|error while writing", InfrastructureError, "file-not-written"),
    rule(
        r"cdiaghg|rdiaghg|eigenvectors failed|S matrix not positive|problems computing cholesky",
        ApplicationError,
        "diagonalization",
    ),
)


def program_errors(text: str) -> tuple[ProgramError, ...]:
    """Return the errors that pw.x printed between rulers; the same error of several ranks counts once.

    Lines of other ranks may lie in between: the message is the first line after the routine's that is neither a ruler
    nor another routine's.
    """
    lines = [line.strip() for line in text.splitlines()]
    found: dict[ProgramError, None] = {}
    for place, line in enumerate(lines):
        if match := _ROUTINE.match(line):
            found[ProgramError(match[1], int(match[2]), _message_after(lines, place))] = None
    with_message = {error.routine for error in found if error.message}
    return tuple(error for error in found if error.message or error.routine not in with_message)


def find_failure(output: Output, parsed: PwOutput, iteration_limit: int | None = None) -> RunFailure | None:
    """Return the failure in `output`; None for a run that converged and ended normally.

    A run that its input stops on purpose after `iteration_limit` iterations need not converge. Complete runs are
    recognised first: warnings that MPI prints do not make them fail.
    """
    is_limited = iteration_limit is not None and parsed.limited_to == iteration_limit
    if output.status.reason in (None, EndReason.EXITED) and _is_whole(output, parsed, is_limited=is_limited):
        return None
    return (
        _from_status(output)
        or find_system_failure(f"{output.stderr}\n{output.stdout}", output.job, "qe.")
        or _from_program_errors(output.stdout + "\n" + output.stderr)
        or _from_signal(output)
        or _from_text(output, parsed)
        or _from_absence(output, parsed)
    )


def _is_whole(output: Output, parsed: PwOutput, *, is_limited: bool) -> bool:
    code = output.status.exit_code
    return (
        (code in (0, None) or (is_limited and code == _NOT_CONVERGED) or _has_made_all_steps(output))
        and not any(sign in output.stdout for sign in _CUT_SHORT)
        and not _missing(parsed, is_limited=is_limited)
        and (parsed.not_converged_after is None or is_limited)
        and "Error in routine" not in output.stdout
    )


def _has_made_all_steps(output: Output) -> bool:
    """Whether the ions moved as often as the input allows (PW/src/run_pwscf.f90)."""
    return output.status.exit_code == _ALL_STEPS and "The maximum number of steps has been reached" in output.stdout


def _missing(parsed: PwOutput, *, is_limited: bool = False) -> list[str]:
    has_no_cycle = parsed.is_band_structure
    signs = (
        (
            "the statement that convergence was achieved",
            has_no_cycle or is_limited or parsed.converged_after is not None,
        ),
        ("the final total energy (!)", has_no_cycle or is_limited or parsed.energy_ry is not None),
        ("the time of the whole program (PWSCF ... WALL)", parsed.total is not None),
        ("JOB DONE.", parsed.job_done),
    )
    return [words for words, is_there in signs if not is_there]


def _from_status(output: Output) -> RunFailure | None:
    status = output.status
    at_limit = f"stopped at its time limit after {status.usage.elapsed_s:.1f} s"
    endings: tuple[tuple[bool, type[RunFailure], str, str], ...] = (
        (status.reason is EndReason.TIMED_OUT, TimedOut, "qe.timed-out", at_limit),
        (status.reason is EndReason.OUTPUT_LIMIT, ApplicationError, "qe.output-limit", "printed more than a run may"),
        (status.reason is EndReason.MEMORY_LIMIT, OutOfMemory, "qe.memory-limit", "was stopped at its memory limit"),
        (status.reason is EndReason.NOT_STARTED, InfrastructureError, "qe.not-started", "the job was not started"),
        (status.reason is EndReason.CANCELLED, InfrastructureError, "qe.cancelled", "the job was cancelled"),
        (
            status.state is not JobState.ENDED,
            InfrastructureError,
            "qe.lost",
            "the job was lost, so it is unknown how it ended",
        ),
        ("lack of memory" in status.message, OutOfMemory, "qe.out-of-memory", ""),
        ("disk is full" in status.message, InfrastructureError, "qe.disk-full", ""),
    )
    for happened, failure, code, words in endings:
        if happened:
            return failure(status.message or words, code)
    return None


def _from_program_errors(text: str) -> RunFailure | None:
    errors = program_errors(text)
    if not errors:
        return None
    text = "; ".join(str(error) for error in errors)
    for one in _ROUTINES:
        if any(one.sign.search(f"{error.routine} {error.message}") for error in errors):
            return one.failure(shorten_words(text), f"qe.{one.code}")
    return ApplicationError(shorten_words(text), f"qe.error.{re.sub(r'[^a-z0-9_]+', '_', errors[0].routine.lower())}")


def _from_signal(output: Output) -> RunFailure | None:
    number = signal_in(output)
    if number is None:
        return None
    name = signal_name(number)
    if number in {signal.SIGKILL, signal.SIGTERM}:
        # Programs do not kill themselves, and kills for lack of memory were recognised above.
        return InfrastructureError(f"killed from outside, by {name}", "qe.killed")
    if number == signal.SIGBUS and NO_ROOM in output.status.message:
        return InfrastructureError(f"killed by {name}: {output.status.message}", "qe.disk-full")
    return ApplicationError(f"killed by {name}", f"qe.signal.{name.lower().replace(' ', '-')}")


def _from_text(output: Output, parsed: PwOutput) -> RunFailure | None:
    if "Maximum CPU time exceeded" in output.stdout:
        words = "Maximum CPU time exceeded: raise max_seconds in the input, or leave it out"
        return TimedOut(words, "qe.max-seconds")
    if parsed.not_converged_after is not None:
        times = parsed.not_converged_after
        words = f"convergence NOT achieved after {times} iterations: stopping"
        hint = "if the input stops there on purpose, set scf_must_converge = .false. in it"
        return InvalidResult(f"{words} ({hint})", "qe.not-converged")
    if "Signal Received, stopping" in output.stdout:
        return InfrastructureError("Signal Received, stopping ...", "qe.stopped")
    if "Calculation (EXX) stopped" in output.stdout:
        return InvalidResult("Calculation (EXX) stopped before its end", "qe.not-converged")
    return None


def _from_absence(output: Output, parsed: PwOutput) -> RunFailure | None:
    if "MPI_ABORT was invoked" in output.stderr:
        return ApplicationError(shorten_words(_line_with("MPI_ABORT was invoked", output.stderr)), "qe.mpi-abort")
    if not output.stdout.strip():
        words = _last_words(output.stderr) or f"nothing was printed (exit code {output.status.exit_code})"
        return ApplicationError(words, "qe.no-output")
    missing = _missing(parsed)
    if missing:
        words = _last_words(output.stderr)
        return ApplicationError(
            f"the output lacks {', '.join(missing)}" + (f": {words}" if words else ""), "qe.incomplete"
        )
    if output.status.exit_code not in (0, None):
        return ApplicationError(f"exit code {output.status.exit_code} after a complete run", "qe.exit-code")
    return None


def _message_after(lines: list[str], place: int) -> str:
    for line in lines[place + 1 : place + 12]:
        if line and not _RULER.match(line) and not _ROUTINE.match(line) and line != "stopping ...":
            return line
    return ""


def _line_with(words: str, text: str) -> str:
    return next((line for line in text.splitlines() if words in line), words)


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" -\t")]
    return shorten_words("; ".join(lines[-3:]))
