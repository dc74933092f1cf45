"""Probe a site with a few tiny jobs, since its documentation says little about its batch system and is often wrong."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from autotune.batch import node_probe
from autotune.batch.node_probe import TOKEN_FILE
from launchers import STDOUT, BatchQueue, Job, JobState, JobStatus, LaunchError, Resources
from launchers.batch.commands import query_states, run_command
from launchers.batch_systems.system import BatchSystem, LimitsQuery

TOGETHER = 2
"""The number of jobs of one core, which should run side by side."""

JOBS = TOGETHER + 1
"""The number of all jobs: these, and a job on two nodes."""

LONGEST_S = 60.0
"""The time limit of a job."""

_LOOK_S = 0.2
_OVER = frozenset({JobState.ENDED, JobState.LOST})


class NodeSight(BaseModel):
    """The properties of a node that a job printed: see `autotune.batch.node_probe`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    host: str
    cpus: tuple[int, ...]
    online: tuple[int, ...]
    memory_bytes: int
    sees_folder: bool
    can_submit: bool
    mpi: str
    hosts: int
    starters: dict[str, str | None]
    other: str = ""
    other_sees_folder: bool | None = None
    mpi_over_nodes: str | None = None
    began: float
    ended: float

    @property
    def is_confined(self) -> bool:
        """Whether the job may use only a part of the node's cores."""
        return len(self.cpus) < len(self.online)


@dataclass(frozen=True)
class JobFinding:
    """The result of a job.

    Attributes:
        nodes: The number of its nodes.
        sight: The properties of its node, if it ran.
        waited_s: The time from submission to start.
        problem: Why it did not run or printed nothing; empty if it ran.
    """

    nodes: int
    sight: NodeSight | None = None
    waited_s: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class SiteFindings:
    """The findings of all jobs.

    Attributes:
        system: The batch system.
        jobs: The results of the jobs.
        remembers: Whether the batch system still reports jobs that have ended; None if that is unknown.
        limits: The limits that the batch system reports.
    """

    system: str
    jobs: tuple[JobFinding, ...]
    remembers: bool | None = None
    limits: tuple[str, ...] = ()

    @property
    def sights(self) -> list[NodeSight]:
        """The properties of nodes from all jobs that ran."""
        return [job.sight for job in self.jobs if job.sight is not None]

    @property
    def side_by_side(self) -> tuple[NodeSight, NodeSight] | None:
        """The two jobs of one core, if they ran on the same node at the same time."""
        small = [job.sight for job in self.jobs if job.nodes == 1 and job.sight is not None]
        if len(small) < TOGETHER or small[0].host != small[1].host:
            return None
        first, second = small[:TOGETHER]
        return (first, second) if max(first.began, second.began) < min(first.ended, second.ended) else None


@dataclass
class _SubmittedJob:
    job: Job
    id: str = ""
    submitted: float = field(default_factory=time.time)
    status: JobStatus = field(default_factory=lambda: JobStatus(JobState.QUEUED))


def probe(
    launcher: BatchQueue, system: BatchSystem, folder: Path, patience_s: float, say: Callable[[str], None]
) -> SiteFindings:
    """Submit the jobs, wait for them, and return their findings.

    Args:
        launcher: The launcher that submits the jobs.
        system: The batch system.
        folder: An empty folder in which studies would be made.
        patience_s: The time for all jobs; those that have not ended by then are cancelled.
        say: Receives messages on the progress.
    """
    (folder / TOKEN_FILE).touch()
    submit = system.scheduler.submit(Path("job"))[0]
    submitted_jobs = [_SubmittedJob(_job(folder, number, launcher.site.python, submit)) for number in range(JOBS)]
    refused = {id(one): problem for one in submitted_jobs if (problem := _submit(launcher, one, say))}
    running = {one.id: one for one in submitted_jobs if one.id}
    try:
        _wait(launcher, running, patience_s, say)
        remembers = _remembers(system, [one for one in running.values() if one.status.state is JobState.ENDED])
    finally:
        launcher.end(one.id for one in running.values() if one.status.state not in _OVER)
    found = tuple(_finding(one, refused.get(id(one), "")) for one in submitted_jobs)
    return SiteFindings(system.label, found, remembers, ask_batch_system(system, system.limits, launcher.site.queue))


def _job(folder: Path, number: int, python: str, submit: str) -> Job:
    own = folder / str(number)
    own.mkdir()
    nodes = 1 if number < TOGETHER else 2
    argv = (python, "-I", node_probe.__file__, str(folder), str(number), str(TOGETHER), submit)
    return Job(
        argv, own, resources=Resources(cores=nodes, nodes=nodes), time_limit_s=LONGEST_S, name=f"doctor-{number}"
    )


def _submit(launcher: BatchQueue, one: _SubmittedJob, say: Callable[[str], None]) -> str:
    """Submit a job; return why it was refused, or an empty text."""
    try:
        one.id = launcher.submit(one.job)
    except LaunchError as error:
        return str(error)
    say(f"{one.job.name} ({_nodes(one.job)}): submitted as job {_number(one)}")
    return ""


def _nodes(job: Job) -> str:
    return "one core" if job.resources.nodes == 1 else f"{job.resources.nodes} nodes"


def _number(one: _SubmittedJob) -> str:
    return one.id.split(":")[1]


def _wait(
    launcher: BatchQueue, running: dict[str, _SubmittedJob], patience_s: float, say: Callable[[str], None]
) -> None:
    give_up_at = time.monotonic() + patience_s
    said: dict[str, str] = {}
    while time.monotonic() < give_up_at:
        for job_id, status in launcher.poll(list(running)).items():
            one = running[job_id]
            one.status = status
            if status.state is JobState.QUEUED and status.message and said.get(job_id) != status.message:
                said[job_id] = status.message
                say(f"{one.job.name} waits: {status.message}")
        if all(one.status.state in _OVER for one in running.values()):
            return
        time.sleep(_LOOK_S)


def _finding(one: _SubmittedJob, refused: str) -> JobFinding:
    nodes, status = one.job.resources.nodes, one.status
    if refused:
        return JobFinding(nodes, problem=refused)
    if status.state not in _OVER:
        why = f": {status.message}" if status.message else ""
        return JobFinding(nodes, problem=f"did not end in time and was cancelled ({status.state}{why})")
    try:
        sight = NodeSight.model_validate(json.loads((one.job.folder / STDOUT).read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError):
        ended = status.message or f"it ended with exit code {status.exit_code}"
        return JobFinding(nodes, problem=f"printed no findings: {ended}")
    return JobFinding(nodes, sight, max(0.0, sight.began - one.submitted))


def _remembers(system: BatchSystem, ended: Sequence[_SubmittedJob]) -> bool | None:
    """Return whether the batch system still reports jobs that have ended; None if there are none or it cannot tell."""
    if not ended:
        return None
    numbers = [_number(one) for one in ended]
    ask = partial(run_command, variables=system.scheduler.variables)
    scheduler, states, answer = query_states(ask, system.scheduler, numbers)
    if answer.code == 127:
        return None
    return scheduler.reports_ended and states is not None and set(numbers) <= states.keys()


def ask_batch_system(system: BatchSystem, questions: Sequence[LimitsQuery], queue: str) -> tuple[str, ...]:
    """Ask a batch system some questions, and return the sentences in its answers."""
    said: list[str] = []
    for question in questions:
        answer = run_command(question.command(queue), variables=system.scheduler.variables)
        said += question.read(answer.stdout) if answer.code == 0 else ()
    return tuple(said)
