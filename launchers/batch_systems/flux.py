"""Flux: flux batch, flux jobs and flux cancel (manual pages of flux-core 0.60).

Written from the manual and tested with a stand-in only; it has not been run on a real Flux. Flux takes no requests for
memory, quality of service or licences, so a site that needs them puts them into its directives.
"""

import re
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

from launchers.batch_systems.base import SCHEDULER_LOG, JobReport, Request, Scheduler, find_job_id
from launchers.batch_systems.system import Allocation, BatchSystem, ReadText, WinnerForm, WinnerRequest
from launchers.job import EndReason, JobState, Place
from launchers.site import Site

# A word such as "finished" is no id: ids have capitals or digits.
_JOB_IDS = tuple(
    re.compile(form)
    for form in (r"(?<!\w)\u0192([1-9A-HJ-NP-Za-km-z]+)\b", r"^f(?=[a-z]*[1-9A-Z])([1-9A-HJ-NP-Za-km-z]+)$")
)
_SEPARATOR = "|"
_FIELDS = _SEPARATOR.join(("{id.f58plain}", "{state}", "{result}", "{returncode}", "{exception.type}"))

_WAITING = frozenset({"NEW", "DEPEND", "PRIORITY", "SCHED"})
_SIGNALS = 128
_ENDS: Mapping[str, JobReport] = {
    "CANCELED": JobReport(
        JobState.ENDED, EndReason.CANCELLED, message="was cancelled with flux cancel, not by autotune"
    ),
    "TIMEOUT": JobReport(JobState.ENDED, EndReason.TIMED_OUT, message="the time limit of its job was reached"),
    "node-failure": JobReport(JobState.LOST, message="a node of its job failed"),
    "lost-shell": JobReport(JobState.LOST, message="a node of its job failed"),
}
# flux jobs also exits with 0 if it could not query a job; it then prints an error and leaves the job out.
_NO_ANSWER = re.compile(r"^(rpc: |flux-jobs: ERROR)", re.MULTILINE)
_NOTHING_TO_END = re.compile(r"(unknown|invalid|no such) job|inactive", re.IGNORECASE)
_LATER = re.compile(r"Unable to connect to Flux|Connection refused|temporarily|max(imum)? .*jobs", re.IGNORECASE)


def head(request: Request, site: Site) -> list[str]:
    """Return the lines for flux-batch(1). A slot is the job's share of a node."""
    options = [
        f"--job-name={request.name}",
        *_site_options(site),
        f"--nodes={request.nodes}",
        f"--nslots={request.nodes}",
        f"--cores-per-slot={ceil(request.cores / request.nodes)}",
        *([f"--gpus-per-slot={ceil(request.gpus / request.nodes)}"] if request.gpus else []),
        f"--time-limit={request.walltime_s}s",
        *(["--exclusive"] if site.exclusive else []),
        f"--output={SCHEDULER_LOG}",
        *site.directives,
        *_place(request.place),
    ]
    return [f"#flux: {option}" for option in options]


def winner_head(request: WinnerRequest) -> list[str]:
    """Return the lines at the top of the winner's job script."""
    site = request.site
    options = [
        f"--job-name={request.name}",
        f"--nodes={request.nodes}",
        f"--nslots={request.nodes}",
        f"--cores-per-slot={ceil(request.cores / request.nodes)}",
        *([f"--gpus-per-slot={ceil(request.gpus / request.nodes)}"] if request.gpus else []),
        f"--time-limit={request.walltime_s}s",
        *(["--exclusive"] if request.exclusive else []),
        *([*_site_options(site), *site.directives] if site else []),
    ]
    return [f"#flux: {option}" for option in options]


def _place(place: Place) -> list[str]:
    """Return the option for the host to use or avoid (flux-batch(1), --requires).

    It must hold together with the requirements of the site's own directives.
    """
    if place.host:
        return [f"--requires=host:{place.host}"]
    return [f"--requires=-host:{','.join(place.avoid)}"] if place.avoid else []


def _site_options(site: Site) -> list[str]:
    return [
        *([f"--bank={site.account}"] if site.account else []),
        *([f"--queue={site.queue}"] if site.queue else []),
    ]


def submit(path: Path) -> list[str]:
    """Return the command that submits a script."""
    return ["flux", "batch", path.name]


def job_id(answer: str) -> str | None:
    """Parse the answer of flux batch: an id in base 58, whose first letter may be a non-ASCII "ƒ"."""
    number = find_job_id(answer, _JOB_IDS)
    return None if number is None else f"f{number}"


def status(ids: Sequence[str]) -> list[str]:
    """Return the command that queries jobs; named jobs are listed even after they have ended."""
    return ["flux", "jobs", "--no-header", f"--format={_FIELDS}", *ids]


def states(answer: str, complaint: str, code: int) -> Mapping[str, JobReport] | None:
    """Parse the answer of flux jobs."""
    if code != 0 or _NO_ANSWER.search(complaint):
        return None
    by_number = {}
    for line in answer.splitlines():
        fields = [field.strip() for field in line.split(_SEPARATOR)]
        if len(fields) == 5:
            number, state, result, returned, trouble = fields
            by_number[number] = _parse_job(state, result, returned, trouble)
    return by_number


def _parse_job(state: str, result: str, returned: str, trouble: str) -> JobReport:
    if state in _WAITING:
        return JobReport(JobState.QUEUED)
    if state != "INACTIVE":
        return JobReport(JobState.RUNNING)
    known = _ENDS.get(trouble) or _ENDS.get(result)
    if known is not None:
        return known
    code = int(returned) if re.fullmatch(r"-?\d+", returned) else None
    return JobReport(JobState.ENDED, EndReason.EXITED, _SIGNALS - code if code and code > _SIGNALS else code)


def cancel(ids: Sequence[str]) -> list[str]:
    """Return the command that ends jobs."""
    return ["flux", "cancel", *ids]


def can_wait(complaint: str) -> bool:
    """Whether a refused submission will be accepted later."""
    return _LATER.search(complaint) is not None


def allocation(environment: Mapping[str, str], _read_text: ReadText) -> Allocation | None:
    """Return the job of this process; its environment does not list the hosts (flux-environment(7))."""
    number = environment.get("FLUX_JOB_ID")
    return Allocation("Flux", number) if number else None


FLUX = BatchSystem(
    "Flux",
    Scheduler(
        name="flux",
        head=head,
        submit=submit,
        job_id=job_id,
        status=status,
        states=states,
        cancel=cancel,
        can_wait=can_wait,
        nothing_to_end=_NOTHING_TO_END,
        number_variable="FLUX_JOB_ID",
        variables=("FLUX_URI", "FLUX_CONNECTOR_PATH"),
        can_place=lambda site: not any(line.startswith("--requires") for line in site.directives),
    ),
    marker_commands=("flux",),
    session_variable="FLUX_URI",
    allocation=allocation,
    winner=WinnerForm(winner_head, "$PWD", "flux batch"),
    experimental=True,
)
