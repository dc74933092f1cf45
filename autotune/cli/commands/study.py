"""`autotune study`: tune, or resume tuning."""

import os
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from autotune.cli.choices import SCRIPT_FORM
from autotune.cli.command_words import WithWords, words_after  # noqa: F401  the table of commands names it
from autotune.cli.common import LEFT, STOPPED, errors, open_display, output, print_json
from autotune.cli.notify import SessionEnd, notify_at_end
from autotune.cli.options import DEFAULT_STORAGE, with_options
from autotune.cli.placement import cautions, check_commands, find_study_cluster, machine_and_launcher, with_site_workers
from autotune.cli.study_options import StudyOptions
from autotune.cli.study_request import ON_RAY, StudyRequest, read_request
from autotune.errors import ChangedProgramError, ExitCode, StudyFileError
from autotune.execution.signals import pausable
from autotune.held_folders import temporary_folder

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


# A dry run prints this much of each file; with --runs it leaves the whole files in the folder.
_SHOWN_LINES = 4
_SHOWN_CHARACTERS = 100


@dataclass(frozen=True)
class ResolvedStudy:
    """A requested study, and where its runs start.

    Attributes:
        study: The study file, with the site's number of runs side by side.
        request: The checked command line.
        cluster: The site whose batch system runs it; None for this machine.
        machine: The machine that runs use.
        launcher: The launcher that starts them.
        facts: The facts of a machine other than this one.
    """

    study: "StudyFile"
    request: StudyRequest
    cluster: "Cluster | None"
    machine: "Machine"
    launcher: "Launcher"
    facts: "Facts | None"

    @property
    def stopped(self) -> str:
        """The message to print when the session is interrupted."""
        return STOPPED if self.cluster is None else LEFT.format(name=self.request.stored_name)


@with_options
def study(context: typer.Context, options: StudyOptions) -> None:
    """Tune a program. The same command again resumes.

    Of a command, with values to try: autotune study -- ./solve --threads {threads=1..8}

    Ctrl-C ends the runs in flight and keeps all finished ones. `kill -USR1 PID` pauses when these have ended (exit
    code 8).
    """
    if options.dry_run and options.as_json:
        msg = "a dry run prints commands, not JSON: give one of the two"
        raise typer.BadParameter(msg, param_hint="--json")
    words = words_after(context)
    with _study_file(options.name, words) if words else nullcontext(options.name) as name:
        options = replace(options, name=name)
        request = read_request(options)
    with notify_at_end(options.notify, request.stored_name) as end:
        try:
            _tune(options, request, end)
        except ChangedProgramError as error:
            # A name or a folder that the user gave is for one study.
            if options.study_name is not None or options.runs is not None:
                raise
            changed = ", ".join(difference.partition(":")[0] for difference in error.differences)
            errors().print(
                f"study {request.stored_name} was made before a change ({changed}): this is {error.successor}"
            )
            end.study = error.successor
            _tune(options, replace(request, stored_name=error.successor), end)


@contextmanager
def _study_file(name: str, words: Sequence[str]) -> Iterator[str]:
    """Write the study file of a command, unless it is there already; remove it again if the block fails to read it.

    Raises:
        StudyFileError: A study is given as well, the command has no values to try, or there is another such file, or
            one of another user.
    """
    from autotune.planning.knob_values import expanded_note
    from autotune.planning.study_template import command_in, has_values, study_file_name, study_text
    from launchers.secret import mask_words

    if name:
        msg = f"{name} and a command after --: give one of the two"
        raise StudyFileError(msg)
    note = expanded_note(words)
    if note and not has_values(words):
        msg = f"the command has no values to try: {note}"
        raise StudyFileError(msg)
    if note:
        errors().print(f"note: {note}")
    if not has_values(words):
        msg = (
            "the command has no values to try: write them as in ./solve --threads {threads=1..8}, those with commas in "
            "quotes for the shell, '{block=64,128}'; or use autotune init"
        )
        raise StudyFileError(msg)
    path, text = Path(f"{study_file_name(words)}.toml"), study_text(words, os.environ)
    mode = 0o666 if mask_words(words) == words else 0o600
    try:
        with open(path, "x", encoding="utf-8", opener=partial(os.open, mode=mode)) as file:
            file.write(text)
    except FileExistsError:
        if path.lstat().st_uid != os.geteuid():
            msg = f"{path} is of another user: read what it runs, then tune it with autotune study ./{path}"
            raise StudyFileError(msg) from None
        command = command_in(path.read_text(encoding="utf-8", errors="replace"))
        if command != command_in(text):
            about = "another study"
            with suppress(ValueError):  # of a line that was edited
                about = shlex.join(mask_words(shlex.split(command))) or about
            msg = f"{path} is of: {about}; tune it with autotune study ./{path}, or move it away"
            raise StudyFileError(msg) from None
        yield f"./{path}"
        return
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        msg = f"cannot write {path}: {error.strerror}"
        raise StudyFileError(msg) from error
    try:
        yield f"./{path}"
    except BaseException:
        path.unlink()
        raise
    errors().print(f"wrote {path}: metrics, answers, limits and more parameters go there (docs: own-program.md)")


def _tune(options: StudyOptions, request: StudyRequest, end: SessionEnd) -> None:
    resolved = _resolve_site(options, request)
    if options.dry_run:
        _dry_run(resolved.study, resolved.machine, resolved.launcher, options.runs)
        return
    # Check before the session imports Ray and Optuna, which takes a second.
    check_commands(resolved.cluster)
    shown = open_display(resolved.stopped, options.status, quiet=options.quiet, verbose=options.verbose)
    with pausable() as pause, shown as display:
        summary = _run_session(options, resolved, pause, display)
    end.verdict = summary.verdict_sentence() or ""
    if options.as_json:
        print_json(summary.to_dict())
    else:
        _print_found(options, summary)
    if summary.nearest is not None:
        raise typer.Exit(ExitCode.NOTHING_FEASIBLE)


def _resolve_site(options: StudyOptions, request: StudyRequest) -> ResolvedStudy:
    """Find the site, the machine and the launcher of a requested study.

    Raises:
        AutotuneError: The site is unknown, or the cores cannot be used.
    """
    chosen = request.study
    cluster = find_study_cluster(chosen)
    if options.ray_address is not None and cluster is not None:
        raise StudyFileError(ON_RAY)
    if not options.workers_given:
        chosen = with_site_workers(chosen, cluster)
    machine, launcher, facts = machine_and_launcher(cluster, options.cores, request.stored_name)
    return ResolvedStudy(chosen, request, cluster, machine, launcher, facts)


def _run_session(options: StudyOptions, resolved: ResolvedStudy, pause: "Pause", display: "Display") -> "Summary":
    """Tune and confirm a study, or resume it.

    Raises:
        AutotuneError: The study is busy, cannot run here, nothing worked, or its time is over before it is done.
    """
    from autotune.tuning.session import run_study

    request, settings = resolved.request, _settings(options, resolved)
    if options.input_file is not None and options.study_name is None:
        display.line(f"study: {request.stored_name} (named after the input; --name gives another name)")
    for caution in cautions(resolved.cluster):
        display.line(caution)
    settings = replace(settings, deadline=_deadline(request.ends_at, display), pause=pause)
    return run_study(resolved.study, settings, display)


def _settings(options: StudyOptions, resolved: ResolvedStudy) -> "SessionSettings":
    """Return the settings of the session: where the study is stored, and where it runs."""
    from autotune import studyfile
    from autotune.coordination.session_settings import SessionSettings, default_runs
    from autotune.storage.address import storage_url

    request, url = resolved.request, storage_url(options.storage)
    return SessionSettings(
        url,
        request.stored_name,
        options.runs or default_runs(url, request.stored_name),
        resolved.machine,
        resolved.launcher,
        studyfile.find(options.name),
        request.if_held,
        ray_address=options.ray_address,
        ray_nodes=options.ray_nodes or 1,
        facts=resolved.facts,
        retry_failed=options.retry_failed,
        tune_again=options.tune_again,
    )


def _deadline(until: float | None, display: "Display") -> "Deadline | None":
    """Return the time by which runs must end; None if there is no limit.

    That is `until`, in seconds since 1970, or the end of the batch job that this process runs in.
    """
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
        known = "lies in the past by its environment" if past else "is not known"
        display.line(f"inside {job.system} job {job.id}, whose end {known}: set it with --until TIME")
        return None
    deadline = Deadline(ends_at)
    display.line(f"inside {job.system} job {job.id}: runs end within the next {deadline.left_s / 60:.0f} minutes")
    return deadline


def _print_found(options: StudyOptions, summary: "Summary") -> None:
    output().print(summary.best_text())
    if summary.definition.replay or summary.best is None:
        return
    from autotune.storage.address import hide_password as without_password

    again = "" if options.storage == DEFAULT_STORAGE else f" --storage {shlex.quote(without_password(options.storage))}"
    choice = "" if summary.front is None else f" --weights {summary.front.equal_weights}"
    line = f"job script: autotune best {summary.name}{again}{choice} --script {SCRIPT_FORM['metavar']}"
    output().print(line)


def _dry_run(chosen: "StudyFile", machine: "Machine", starter: "Launcher", runs: Path | None) -> None:
    """Print the commands of the first trials; with `runs`, write their files there, so that the commands can be run."""
    from autotune.execution.run_folder import fresh_folder
    from autotune.formatting import with_derived
    from autotune.planning.prepare import prepare
    from autotune.records.study import REPLAY_NOTICE
    from autotune.search.preview import preview
    from autotune.search.registry import check_sampler
    from launchers.local import local_launcher
    from objectives.base import Context

    check_sampler(chosen.sampler)
    with temporary_folder("plan") as scratch:
        prepared = prepare(chosen, machine, local_launcher(), scratch / "plan")
        for note in (*((REPLAY_NOTICE,) if prepared.plan.runs == "recorded" else ()), *prepared.plan.notes):
            errors().print(note)
        known = preview(prepared.space, chosen.sampler, chosen.budget.most)
        for number, configuration in enumerate(known.proposals):
            output().print(f"# trial {number}: {with_derived(prepared.space, configuration)}")
            if prepared.plan.runs != "launched":
                continue  # nothing would be run
            folder = fresh_folder((runs or scratch) / f"dry-run-{number:05d}")
            job = prepared.plan.objective.job(configuration, Context(folder, steps=chosen.whole_steps))
            if starter.queue is None:
                cpus = machine.cpus[: job.resources.cores]
                job = replace(job, resources=replace(job.resources, cpus=cpus))
            shown = starter.preview(job)
            output().print(shown if runs else shown.replace(os.fspath(folder), "RUN-FOLDER"))
            for line in _files_in(folder):
                output().print(f"#   {line}")
        count = len(known.proposals)
        if count < chosen.budget.most and not known.whole:
            last = f", {chosen.budget.most - 1} at most," if chosen.budget.auto else f" to {chosen.budget.most - 1}"
            output().print(f"# trials {count}{last} depend on what these measure")


def _files_in(folder: Path) -> list[str]:
    """Return the names of the files in a run's folder, each text file with its first lines."""
    from objectives.run_files import short_text

    lines = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        text = short_text(path)
        if text is None:
            lines.append(f"file {name}: {path.stat().st_size} bytes")
            continue
        text_lines = text.splitlines()
        lines.append(f"file {name}: {len(text_lines)} lines")
        lines += [f"  | {line[:_SHOWN_CHARACTERS]}" for line in text_lines[:_SHOWN_LINES]]
    return lines
