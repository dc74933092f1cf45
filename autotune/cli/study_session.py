"""A session of `autotune study`, from its options to its summary."""

import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from autotune.cli.common import LEFT, STOPPED
from autotune.cli.placement import as_wide_as, cautions, cluster_of, machine_and_launcher
from autotune.cli.study_options import StudyOptions
from autotune.cli.study_request import ON_RAY, StudyRequest
from autotune.errors import StudyFileError

if TYPE_CHECKING:
    from autotune.batch.site_file import Cluster
    from autotune.coordination.deadline import Deadline
    from autotune.coordination.session_settings import SessionSettings
    from autotune.display.console import Display
    from autotune.execution.signals import Pause
    from autotune.machines.facts import Facts
    from autotune.machines.this_machine import Machine
    from autotune.results.summary import Summary
    from autotune.studyfile import StudyFile
    from launchers import Launcher


@dataclass(frozen=True)
class PlacedStudy:
    """A study that was asked for, and where its runs are made: as jobs of a `cluster`, or on this machine."""

    study: "StudyFile"
    request: StudyRequest
    cluster: "Cluster | None"
    machine: "Machine"
    launcher: "Launcher"
    facts: "Facts | None"

    @property
    def stopped(self) -> str:
        """What is said when the session is interrupted."""
        return STOPPED if self.cluster is None else LEFT.format(name=self.request.stored_name)


def placed(options: StudyOptions, request: StudyRequest) -> PlacedStudy:
    """Return the study that was asked for with the machine that its runs get.

    Raises:
        AutotuneError: there is no such site, or the cores cannot be used.
    """
    chosen = request.study
    cluster = cluster_of(chosen)
    if options.ray_address is not None and cluster is not None:
        raise StudyFileError(ON_RAY)
    if not options.workers_given:
        chosen = as_wide_as(chosen, cluster)
    machine, launcher, facts = machine_and_launcher(cluster, options.cores, request.stored_name)
    return PlacedStudy(chosen, request, cluster, machine, launcher, facts)


def tuned(options: StudyOptions, placed_study: PlacedStudy, pause: "Pause", display: "Display") -> "Summary":
    """Tune and confirm a study, or go on with it.

    Raises:
        AutotuneError: the study is busy, cannot run here, nothing worked, or its time is over before it is done.
    """
    from autotune.tuning.session import run_study

    request, settings = placed_study.request, _settings(options, placed_study)
    if options.input_file is not None and options.study_name is None:
        display.line(f"study: {request.stored_name} (its name is made from the input; --name gives another)")
    for caution in cautions(placed_study.cluster):
        display.line(caution)
    settings = replace(settings, deadline=_deadline(request.ends_at, display), pause=pause)
    return run_study(placed_study.study, settings, display)


def _settings(options: StudyOptions, placed_study: PlacedStudy) -> "SessionSettings":
    """Return where the study is kept and run."""
    from autotune import studyfile
    from autotune.coordination.session_settings import SessionSettings, default_runs
    from autotune.storage.address import storage_url

    request, url = placed_study.request, storage_url(options.storage)
    return SessionSettings(
        url,
        request.stored_name,
        options.runs or default_runs(url, request.stored_name),
        placed_study.machine,
        placed_study.launcher,
        studyfile.find(options.name),
        request.if_held,
        ray_address=options.ray_address,
        ray_nodes=options.ray_nodes or 1,
        facts=placed_study.facts,
        retry_failed=options.retry_failed,
        tune_again=options.tune_again,
    )


def _deadline(until: float | None, display: "Display") -> "Deadline | None":
    """Return the deadline of the study: `until`, or the end of the job that this process is in; None without either."""
    from autotune.batch import allocation
    from autotune.coordination.deadline import Deadline

    if until is not None:
        return Deadline(until)
    job = allocation.read(os.environ)
    if job is None:
        return None
    now = time.time()
    ends_at = allocation.find_end(job, now)
    if ends_at is None:
        past = job.ends_at is not None and job.ends_at <= now
        known = "is past, if its environment is right, and so not known" if past else "is not known"
        display.line(f"inside {job.system} job {job.id}, whose end {known}: --until TIME says it")
        return None
    deadline = Deadline(ends_at)
    display.line(f"inside {job.system} job {job.id}: runs end within the next {deadline.left_s / 60:.0f} minutes")
    return deadline
