"""The command line and the job script of a study's winner."""

import json
from collections.abc import Mapping
from typing import Any

from autotune.batch.job_script import JobScript, job_script, own_environment
from autotune.batch.script_forms import SHELL
from autotune.batch.site_file import PROJECT, find_cluster, own_cluster, program_names, with_account
from autotune.errors import AutotuneError, CannotRunHereError, NothingWorkedError
from autotune.execution.task import job_from_description
from autotune.records.series import SeriesKind
from autotune.records.study import REPLAY_NOTICE, Run
from autotune.results.summary import Summary
from autotune.storage.readable_study import ReadableStudy
from autotune.studyfile import StudyFile
from launchers.mpi import script_flavour
from launchers.mpi_command import mpi_argv
from launchers.secret import MASK
from launchers.server import PORT, fill_in
from launchers.site import Site

_ELSEWHERE = {SeriesKind.WORKLOAD, SeriesKind.WATCH, SeriesKind.ASIDE}


def run_to_use(store: ReadableStudy, summary: Summary) -> Run | None:
    """Return the newest complete run of the configuration to use on the tuned workload; None without such a run."""
    wanted = dict(summary.configuration or {})
    runs = [
        run
        for run in store.runs()
        if run.outcome.complete and dict(run.configuration) == wanted and run.series.kind not in _ELSEWHERE
    ]
    return runs[-1] if runs and summary.configuration is not None else None


def command_to_use(store: ReadableStudy, summary: Summary) -> list[str] | dict[str, list[str]] | None:
    """Return the command line of the configuration to use, with variables and ranks; None if no command was started.

    For a mix, return the command lines by input.
    """
    run = run_to_use(store, summary)
    if run is None or summary.definition.replay or summary.definition.is_asktell:
        return None
    if parts := run.job.get("parts"):
        return {part["name"]: _command(part) for part in parts}
    return _command(dict(run.job)) if run.job.get("argv") else None


def commands_of(job: Mapping[str, Any]) -> list[list[str]]:
    """Return the command lines of a stored job, as in `command_to_use`; empty if no command was started."""
    return [_command(dict(part)) for part in job.get("parts") or ([job] if job.get("argv") else [])]


def setup_to_use(store: ReadableStudy, summary: Summary) -> list[str]:
    """Return the shell lines that make the software of the configuration to use available: modules, paths."""
    run = run_to_use(store, summary)
    return [] if run is None else [line.removesuffix(" || exit 1") for line in run.job.get("setup", ())]


def site_of(study: StudyFile, form: str, name: str | None = None, account: str | None = None) -> Site | None:
    """Return the site of a job script: the site called `name`, the study's, or the user's own.

    None means that a script in this form is not for a particular site.

    Raises:
        SiteError: the site's file has errors, or its batch system is not that of the form.
    """
    launcher, programs = study.launcher, program_names({"objective": study.objective, "options": study.tuned_options})
    if name is None and launcher.kind != form:
        own = None if form == SHELL else own_cluster(form, programs=programs)
        if own is not None:
            return with_account(own.site, account)
        return Site(form, account=account, knows_program=False) if account is not None else None
    scheduler = None if form == SHELL else form
    return with_account(find_cluster(name or launcher.site, scheduler, programs=programs).site, account)


def _command(job: dict[str, Any]) -> list[str]:
    # Leave out variables with the folder of the measured run, and secrets, which the user's shell has.
    server = job.get("server") or {}
    own = own_environment(job) | server.get("environment", {})
    environment = {name: value for name, value in own.items() if job["folder"] not in value and value != MASK}
    variables = ["env", *(f"{name}={value}" for name, value in sorted(environment.items()))] if environment else []
    if server:
        # The run found a free port; a user chooses one.
        return [fill_in(word, {PORT: "PORT"}) for word in (*variables, *server["argv"])]
    return [*variables, *mpi_argv(script_flavour(job), job_from_description(job))]


def _figures(summary: Summary) -> list[str]:
    """Return sentences on the measured speed of the configuration in the script.

    A simplified configuration gets its own figures, and those of the winner only as such.
    """
    if summary.preference is not None:
        said = [summary.simplified_sentence(), summary.preference.sentence(), summary.verdict_sentence()]
        return [sentence for sentence in said if sentence is not None]
    sentence = summary.verdict_sentence()
    if sentence is None:
        return [summary.text_without_verdict()]
    simplified = summary.simplified_sentence()
    if simplified is None:
        return [sentence]
    return [simplified, f"the winner itself, with them: {sentence}"]


def script_of(store: ReadableStudy, summary: Summary, form: str, site: Site | None = None) -> str:
    """Return the script, in one of the `script_forms`, that runs the configuration to use as it was measured.

    Raises:
        CannotRunHereError: the study is a replay, or another program makes its runs.
        NothingWorkedError: no run of the winner is complete.
        AutotuneError: the study is a trade-off, and no point of its front is chosen.
    """
    if summary.definition.replay:
        msg = (
            f"study {summary.name!r} is a replay: nothing ran, so there is no job to write a script for; "
            f"{REPLAY_NOTICE}"
        )
        raise CannotRunHereError(msg)
    if summary.definition.is_asktell:
        msg = f"the runs of study {summary.name!r} are made by another program: there is no job to write a script for"
        raise CannotRunHereError(msg)
    if summary.front is not None and summary.to_use is None:
        msg = (
            f"study {summary.name!r} looks for a trade-off and has no single winner; "
            f"weight its metrics to choose a point of the front: --weights {summary.front.equal_weights}"
        )
        raise AutotuneError(msg)
    run = run_to_use(store, summary)
    if run is None:
        msg = f"study {summary.name!r} has no complete run of its winner"
        raise NothingWorkedError(msg)
    job, remarks = run.job, _remarks(summary, run.job, site)
    with_ranks = next((part for part in job.get("parts", ()) if part["mpi"]), job)
    name, flavour = f"autotune-{summary.name}", script_flavour(dict(with_ranks))
    return job_script(form, JobScript(name, run.configuration, job, run.outcome.usage, flavour, remarks, site))


def _remarks(summary: Summary, job: Mapping[str, Any], site: Site | None) -> list[str]:
    """Return remarks on the study, its figures, and what the reader must fill in."""
    remarks = [f"autotune study {summary.name}, on {summary.definition.machine['host']}", *_figures(summary)]
    if summary.taken_doubt is not None:
        remarks.append(f"doubt: {summary.taken_doubt}")
    if site is not None and site.account == PROJECT:
        remarks.append(f"replace {PROJECT} by the project to charge, or use autotune best --account NAME")
    texts = [part.get(key) for part in (job, *job.get("parts", ())) for key in ("argv", "prepare", "server", "files")]
    per_core = job["resources"].get("threads_per_core", 1)
    if per_core > 1:
        remarks.append(f"measured with {per_core} hardware threads of each core: the job must be allowed to use them")
    if MASK in json.dumps(texts):
        remarks.append(f"replace {MASK} by your secret: secrets are not stored")
    return remarks
