"""Failures of the machine, of MPI and of the loader, by their own words: the same for every program.

The words decide whether the machine or the configuration is to blame: a configuration is not tried again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from launchers import Job
from objectives.base import ApplicationError, InfrastructureError, OutOfMemory, RunFailure

_MAX_WORDS = 400  # characters of the program's output in a message; the run's folder keeps all of it
_READ_CHARACTERS = 10_000


@dataclass(frozen=True)
class Rule:
    """A pattern in the output, and the failure that it means."""

    sign: re.Pattern[str]
    failure: type[RunFailure]
    code: str


def rule(sign: str, failure: type[RunFailure], code: str) -> Rule:
    """Return a rule; a space in its `sign` also matches the end of a line, since programs wrap their messages."""
    return Rule(re.compile(sign.replace(" ", r"\s+"), re.IGNORECASE), failure, code)


DISK = (
    rule(r"no space left on device|disk quota exceeded|not enough space for /[^\n]*", InfrastructureError, "disk-full"),
    rule(
        r"stale (?:nfs )?file handle|input/output error|remote i/o error|transport endpoint is not connected"
        r"|cannot send after transport endpoint shutdown",
        InfrastructureError,
        "file-server",
    ),
)
"""Rules for disks and file servers, which programs may not notice."""

TOO_FEW_SLOTS = "too-few-slots"

# In the order of the search: causes before their consequences.
_RULES = (
    *DISK,
    rule(r"error while loading shared libraries[^\n]*", ApplicationError, "library-missing"),
    rule(r"symbol lookup error[^\n]*|undefined symbol: [^\n]*", ApplicationError, "library-unfit"),
    rule(r"not enough slots available[^\n]*(?:\n[^\n]+)?", ApplicationError, TOO_FEW_SLOTS),
    rule(r"has detected an attempt to run as root", InfrastructureError, "root-refused"),
    rule(
        r"binding more processes than cpus[^\n]*|bind(?:ing)? (?:was )?requested[^\n]*|conflicting binding policy",
        ApplicationError,
        "binding",
    ),
    rule(r"No components were able to be opened in the \w+ framework[^\n]*", ApplicationError, "mpi-component"),
    rule(
        r"unable to find the specified executable[^\n]*|could not access(?: or execute an|[^\n]*) executable",
        InfrastructureError,
        "not-found",
    ),
    rule(
        r"cannot allocate memory|error allocating \d+ bytes|out of memory|std::bad_alloc|insufficient virtual memory"
        r"|allocation would exceed memory limit|oom[-_ ]kill\w*[^\n]*|exceeded memory limit|memory allocation failed"
        r"|\bMemoryError\b",
        OutOfMemory,
        "out-of-memory",
    ),
    # Open MPI and PRRTE, MPICH's Hydra, Slurm, ssh.
    rule(
        r"(?:ORTE|PRRTE|PRTE) (?:has lost communication|was unable to reliably start)[^\n]*"
        r"|(?:ORTE|PRRTE|PRTE) daemon has (?:unexpectedly )?failed[^\n]*"
        r"|unable to complete a tcp connection[^\n]*|connection to proxy [^\n]*failed"
        r"|lost connection to (?:a |the )?(?:remote )?(?:daemon|proxy)[^\n]*"
        r"|hyd\w*[^\n]*assert \(!closed\) failed|ssh: (?:connect to host|could not resolve)[^\n]*"
        r"|host key verification failed|permission denied \(publickey[^\n]*"
        r"|due to node failure|node failure on [^\n]*|communication connection failure",
        InfrastructureError,
        "node-lost",
    ),
    rule(
        r"uncorrectable ecc error[^\n]*|gpu (?:has fallen off the bus|is lost)[^\n]*",
        InfrastructureError,
        "device-lost",
    ),
)

# A line of signs only, with which programs draw frames.
_RULE = re.compile(r"[^\w\s]+")
# A line of a paragraph that says where a message comes from, as in GROMACS: "Source file: src/cmdline.cpp (line 271)".
_ORIGIN = re.compile(r"[A-Z][\w ]*:\s+\S.*")
# What start commands say of the end of any program, which is not why it failed: Open MPI and PRRTE, MPICH's Hydra and
# Intel MPI, Slurm.
_START_COMMANDS = re.compile(
    r"(?:mpirun|mpiexec|prterun|orterun|prun) (?:detected|has exited|noticed)|^Primary job +terminated normally"
    r"|MPI_ABORT was invoked|application called MPI_Abort|(?:BAD TERMINATION OF ONE OF )?YOUR APPLICATION"
    r"|^srun: (?:error: .*: tasks? .*: Exited with|Terminating|launch/slurm: )|^slurmstepd: error: \*\*\*"
    r"|^a non-zero exit code\. Per user-direction, the job has been aborted"
    r"|ORTE_ERROR_LOG: .* in file \S*show_help\.c"
    r"|more process(?:es)? (?:has|have) sent help message|Set MCA parameter .* to 0 to see all help"
)


def without_start_command(text: str) -> str:
    """Return a failed run's output without what a start command says behind it of the end of any program.

    Start commands draw frames around it, of lines of signs only.
    """
    lines = text.rstrip().splitlines()
    while lines:
        last = lines[-1].strip()
        if not last or _START_COMMANDS.search(last):
            lines.pop()
            continue
        rules = [at for at, line in enumerate(lines[:-1]) if _RULE.fullmatch(line.strip())]
        framed = next(filter(str.strip, lines[rules[-1] + 1 : -1]), "") if rules else ""
        if not _RULE.fullmatch(last) or not _START_COMMANDS.search(framed):
            break
        del lines[rules[-1] :]
    return "\n".join(lines) or text.rstrip()


def last_words(text: str) -> str:
    """Return the last meaningful line of a failed run's output; empty without one.

    Lines of signs only do not count, nor what a start command says of the end of any program. Of a message in a frame,
    the first paragraph counts that does more than name the program and the place. If nothing else is left, the first
    line does.
    """
    blocks = [""]
    for line in text[-_READ_CHARACTERS:].splitlines():
        if _RULE.fullmatch(line.strip()):
            blocks.append("")
        else:
            blocks[-1] += f"{line.strip()}\n"
    blocks = [block.strip() for block in blocks]
    for number in reversed(range(len(blocks))):
        is_framed = number % 2 == 1 and number < len(blocks) - 1
        first = _message_in(blocks[number])
        if is_framed and first and not _START_COMMANDS.search(first):
            return shorten_words(first)
        own = [line for line in blocks[number].splitlines() if line and not _START_COMMANDS.search(line)]
        if own and not is_framed:
            return shorten_words(own[-1])
    return shorten_words(next(filter(None, blocks), "").partition("\n")[0])


def _message_in(frame: str) -> str:
    """Return the first paragraph of a frame that is more than the program's name and the place in its source."""
    paragraphs = frame.split("\n\n")
    messages = (one for one in paragraphs if not all(map(_ORIGIN.fullmatch, one.splitlines())))
    return next(messages, paragraphs[0])


def find_system_failure(text: str, job: Job | None, prefix: str = "") -> RunFailure | None:
    """Return the failure of the machine, of MPI or of the loader in a failed run's output; None if it names none.

    On several nodes, too few slots mean that MPI does not see all nodes of the job: that is the machine's failure.
    """
    failure = failure_by(_RULES, text, prefix)
    if (
        failure is not None
        and failure.code == f"{prefix}{TOO_FEW_SLOTS}"
        and job is not None
        and job.resources.nodes > 1
    ):
        return InfrastructureError(f"{failure}: MPI does not see all nodes of the job", failure.code)
    return failure


def failure_by(rules: Sequence[Rule], text: str, prefix: str = "") -> RunFailure | None:
    """Return the failure of the first rule whose sign is in the text, with the line around it."""
    for one in rules:
        if match := one.sign.search(text):
            return one.failure(shorten_words(_line_around(text, match)), f"{prefix}{one.code}")
    return None


def shorten_words(text: str) -> str:
    """Return words of the output on one line of a message."""
    joined = " ".join(text.split())
    return joined if len(joined) <= _MAX_WORDS else joined[: _MAX_WORDS - 3] + "..."


def _line_around(text: str, match: re.Match[str]) -> str:
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return text[start : end if end >= 0 else len(text)]
