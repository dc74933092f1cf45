"""`autotune study`: tune, or go on tuning."""

import os
import re
import shlex
import tempfile
import time
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from autotune import studyfile
from autotune.batch import allocation
from autotune.batch.site_file import lasting
from autotune.cli.common import (
    DEFAULT_STORAGE,
    LEFT,
    STOPPED,
    AsJson,
    Storage,
    TakeOverOption,
    WaitOption,
    displayed,
    duration_s,
    errors,
    if_held,
    output,
    print_json,
)
from autotune.cli.where import (
    CoresOption,
    LauncherKind,
    LauncherOption,
    SiteOption,
    as_wide_as,
    check_commands,
    cluster_of,
    machine_and_launcher,
)
from autotune.coordination.deadline import Deadline, parse_end
from autotune.display.console import Display
from autotune.errors import StudyFileError
from autotune.execution.ray_node import host_and_port
from autotune.execution.signals import pausable
from autotune.formatting import shown
from autotune.machines.this_machine import Machine
from autotune.records.study import REPLAY_NOTICE
from autotune.storage.address import shown as without_password
from autotune.storage.address import storage_url
from autotune.storage.study_lock import IfHeld
from autotune.studyfile import StudyFile
from launchers.batch import BatchLauncher
from launchers.local import LocalLauncher, local_launcher

StudyArgument = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study that ships with autotune (qe), or a study file (./mine.toml).")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the study file: budget.workers=2. Repeatable."),
]
InputOption = Annotated[
    str | None, typer.Option("--input", metavar="FILE", help="The program's input file; it is copied, never changed.")
]


_ON_RAY = "--ray-address runs on the nodes of a Ray cluster: leave --launcher, --site and --cores out"


class Switch(StrEnum):
    """On or off."""

    ON = "on"
    OFF = "off"


def study(
    name: StudyArgument,
    trials: Annotated[
        str | None,
        typer.Option(
            "--trials",
            metavar="NUMBER|auto",
            help="Total number of trials, earlier sessions included; auto: until more search no longer pays.",
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            "--timeout",
            metavar="DURATION",
            help="No new trial after that (15m, 1h30m); then confirm.",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Trials side by side, each on cores of its own.")
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            "--sampler",
            metavar="NAME",
            help=f"How to search: {', '.join(studyfile.SAMPLERS)}, optuna:CLASS, optunahub:PACKAGE or MODULE:CLASS.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the search.")] = None,
    warm_start: Annotated[
        Switch | None,
        typer.Option("--warm-start", help="Try first what a model of other machines predicts to be best here."),
    ] = None,
    changes: SetOption = None,
    input_file: InputOption = None,
    storage: Storage = DEFAULT_STORAGE,
    study_name: Annotated[
        str | None, typer.Option("--name", help="Name of the study in storage, if not that of the study file.")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option("--runs", help="Folder for the runs' folders, if not beside the storage.")
    ] = None,
    cores: CoresOption = None,
    launcher: LauncherOption = None,
    site: SiteOption = None,
    wait: WaitOption = False,
    take_over: TakeOverOption = False,
    ray_address: Annotated[
        str | None,
        typer.Option("--ray-address", metavar="HOST:PORT|auto", help="Run the trials on the nodes of a Ray cluster."),
    ] = None,
    ray_nodes: Annotated[
        int | None, typer.Option("--ray-nodes", min=1, help="Wait until the Ray cluster has that many nodes.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help="Stop cleanly before that time (17:30, 2026-11-22T17:30); exit code 7 if there is more to do. "
            "Inside a job of a batch system: before the job's end.",
        ),
    ] = None,
    status: Annotated[
        Path | None,
        typer.Option(
            "--status",
            metavar="FILE",
            help="Write how things stand to FILE as JSON, at most once a second, for monitors.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands that would be run, and run none.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tune a program. The same command again resumes: finished trials are never repeated.

    Ctrl-C ends the runs in flight. `kill -USR1 PID` pauses: they end by themselves, no other starts (exit code 8).
    """
    chosen, stored_name, held, ends_at = check(
        name=name,
        trials=trials,
        timeout=timeout,
        workers=workers,
        sampler=sampler,
        seed=seed,
        warm_start=warm_start,
        changes=changes,
        input_file=input_file,
        study_name=study_name,
        cores=cores,
        launcher=launcher,
        site=site,
        wait=wait,
        take_over=take_over,
        ray_address=ray_address,
        ray_nodes=ray_nodes,
        until=until,
    )
    cluster = cluster_of(chosen)
    if ray_address is not None and cluster is not None:
        raise StudyFileError(_ON_RAY)
    if workers is None and not any(change.partition("=")[0].strip() == "budget.workers" for change in changes or ()):
        chosen = as_wide_as(chosen, cluster)
    machine, starter, facts = machine_and_launcher(cluster, cores, stored_name)
    file = studyfile.find(name)
    if dry_run:
        _dry_run(chosen, machine, starter)
        return
    check_commands(cluster)
    # Ray and Optuna take a second to import: what is wrong above is said before.
    from autotune.coordination.session_settings import SessionSettings, default_runs  # noqa: PLC0415
    from autotune.tuning.session import run_study  # noqa: PLC0415

    url = storage_url(storage)
    settings = SessionSettings(
        url,
        stored_name,
        runs or default_runs(url, stored_name),
        machine,
        starter,
        file,
        held,
        ray_address=ray_address,
        ray_nodes=ray_nodes or 1,
        facts=facts,
    )
    stopped = STOPPED if cluster is None else LEFT.format(name=stored_name)
    with pausable() as pause, displayed(stopped, status) as display:
        settings = replace(settings, deadline=_deadline(ends_at, display), pause=pause)
        summary = run_study(chosen, settings, display)
    if as_json:
        print_json(summary.to_dict())
        return
    output().print(summary.best_text(), markup=False)
    if summary.definition.replay:
        return
    again = "" if storage == DEFAULT_STORAGE else f" --storage {shlex.quote(without_password(storage))}"
    output().print(f"job script: autotune best {stored_name}{again} --script pbs|slurm|sh", markup=False)


class Asked(NamedTuple):
    """What the options of `study` ask for: `ends_at` is `--until`, in seconds since 1970."""

    chosen: StudyFile
    stored_name: str
    held: IfHeld
    ends_at: float | None


def check(
    *,
    name: str,
    trials: str | None,
    timeout: str | None,
    workers: int | None,
    sampler: str | None,
    seed: int | None,
    warm_start: Switch | None,
    changes: list[str] | None,
    input_file: str | None,
    study_name: str | None,
    cores: str | None,
    launcher: LauncherKind | None,
    site: str | None,
    wait: bool,
    take_over: bool,
    ray_address: str | None,
    ray_nodes: int | None,
    until: str | None,
) -> Asked:
    """Check what the options of `study` say by themselves, wherever the study is going to run.

    Raises:
        typer.BadParameter: an option is wrong.
        StudyFileError: so is the study file, or options contradict each other.
    """
    if launcher is LauncherKind.LOCAL and site is not None:
        msg = f"--launcher local runs on this machine, --site {site} names a batch system's: leave one of the two out"
        raise StudyFileError(msg)
    overrides: dict[str, Any] = {
        "budget.trials": _trials(trials) if trials is not None else None,
        "budget.timeout_s": duration_s(timeout) if timeout else None,
        "budget.workers": workers,
        "sampler.name": sampler,
        "sampler.seed": seed,
        # Who says "here" does not want the study file's site either.
        **(
            {"launcher": '{ kind = "local" }'}
            if launcher is LauncherKind.LOCAL
            else {"launcher.kind": launcher and launcher.value, "launcher.site": site}
        ),
        "sampler.warm_start": None if warm_start is None else str(warm_start is Switch.ON).lower(),
    }
    held = if_held(wait, take_over)
    chosen = choose(name, changes, input_file, overrides)
    _check_ray(ray_address, ray_nodes, cores)
    stored_name = study_name or chosen.name
    if not re.fullmatch(studyfile.NAME, stored_name):
        msg = f"--name {stored_name!r}: a study's name has letters, digits, '.', '_' and '-' only"
        raise StudyFileError(msg)
    return Asked(chosen, stored_name, held, None if until is None else _until(until))


def _check_ray(address: str | None, nodes: int | None, cores: str | None) -> None:
    if address is None:
        if nodes is not None:
            msg = f"--ray-nodes {nodes} counts the nodes of a Ray cluster: say which with --ray-address HOST:PORT"
            raise StudyFileError(msg)
        return
    if cores is not None:
        raise StudyFileError(_ON_RAY)
    if address != "auto":
        try:
            host_and_port(address)
        except ValueError as error:
            msg = f"{error}, or auto for the Ray cluster on this host"
            raise typer.BadParameter(msg, param_hint="--ray-address") from None


def _until(text: str) -> float:
    try:
        return parse_end(text, datetime.now().astimezone()).timestamp()
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--until") from None


def _deadline(asked: float | None, display: Display) -> Deadline | None:
    """Return when the study must have stopped: as asked, or before the end of the job that this is; None: never."""
    if asked is not None:
        return Deadline(asked)
    found = allocation.read(os.environ)
    if found is None:
        return None
    now = time.time()
    ends_at = allocation.find_end(found, now)
    if ends_at is None:
        past = found.ends_at is not None and found.ends_at <= now
        known = "is past, if its environment is right, and so not known" if past else "is not known"
        display.line(f"inside {found.system} job {found.id}, whose end {known}: --until TIME says it")
        return None
    deadline = Deadline(ends_at)
    display.line(f"inside {found.system} job {found.id}: runs end within the next {deadline.left_s / 60:.0f} minutes")
    return deadline


def _trials(text: str) -> str:
    """Return a number of trials, or `auto`, as it is written in a study file."""
    if text != studyfile.AUTO and not re.fullmatch(r"0*[1-9]\d*", text):
        msg = f"{text!r} is neither a number of trials, from 1 up, nor {studyfile.AUTO}"
        raise typer.BadParameter(msg, param_hint="--trials")
    return text if text == studyfile.AUTO else str(int(text))


def choose(
    name: str, changes: list[str] | None, input_file: str | None, overrides: dict[str, Any] | None = None
) -> StudyFile:
    """Return the study that the options describe; an own input makes a study of its own name.

    Its site is the same from every folder: other commands come back to the study from elsewhere.
    """
    given = [f"{key}={value}" for key, value in (overrides or {}).items() if value is not None]
    loaded = studyfile.load(studyfile.find(name), [*(changes or []), *given])
    if loaded.launcher.site is not None:
        launcher = loaded.launcher.model_copy(update={"site": lasting(loaded.launcher.site)})
        loaded = loaded.model_copy(update={"launcher": launcher})
    if input_file is None:
        return loaded
    options = {**loaded.options, "input": input_file}
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(input_file).stem)
    return loaded.model_copy(update={"options": options, "name": f"{loaded.name}-{stem}"})


def _dry_run(chosen: StudyFile, machine: Machine, starter: LocalLauncher | BatchLauncher) -> None:
    from autotune.planning.prepare import prepare  # noqa: PLC0415
    from autotune.search.preview import preview  # noqa: PLC0415
    from autotune.search.registry import check_sampler  # noqa: PLC0415
    from objectives.base import Context  # noqa: PLC0415

    check_sampler(chosen.sampler)
    with tempfile.TemporaryDirectory() as scratch:
        prepared = prepare(chosen, machine, local_launcher(), Path(scratch) / "plan")
        for note in (*((REPLAY_NOTICE,) if prepared.plan.runs == "recorded" else ()), *prepared.plan.notes):
            errors().print(note, markup=False)
        known = preview(prepared.space, chosen.sampler, chosen.budget.most)
        for number, configuration in enumerate(known.proposals):
            output().print(f"# trial {number}: {shown(configuration)}", markup=False)
            if prepared.plan.runs != "launched":
                continue  # nothing would be run
            folder = Path(scratch) / f"{number}"
            folder.mkdir()
            job = prepared.plan.objective.job(configuration, Context(folder))
            if isinstance(starter, LocalLauncher):
                cpus = machine.cpus[: job.resources.cores]
                job = replace(job, resources=replace(job.resources, cpus=cpus))
            output().print(starter.shown(job).replace(os.fspath(folder), "RUN-FOLDER"), markup=False)
        count = len(known.proposals)
        if count < chosen.budget.most and not known.whole:
            last = f", {chosen.budget.most - 1} at most," if chosen.budget.auto else f" to {chosen.budget.most - 1}"
            output().print(f"# trials {count}{last} depend on what these measure")
