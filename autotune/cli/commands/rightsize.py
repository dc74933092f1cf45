"""`autotune rightsize`: find the nodes, ranks and threads for a deadline or a budget."""

import re
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.choices import SCRIPT_FORM
from autotune.cli.common import (
    check_has_script,
    check_one_form,
    duration_s,
    errors,
    known_storages,
    output,
    print_json,
    write_script,
)
from autotune.cli.notify import notify_at_end
from autotune.cli.options import (
    AlsoOption,
    AnyStudyArgument,
    InputOption,
    InstallationOption,
    PictureOption,
    ScriptFileOption,
    SetOption,
    with_options,
)
from autotune.cli.placement import LauncherOption, SiteOption
from autotune.cli.session_options import SessionOptions
from autotune.cli.study_request import choose, find_stored, launcher_settings
from autotune.errors import CannotRunHereError, ExitCode
from autotune.formatting import configuration_text
from autotune.held_folders import temporary_folder
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.performance.rightsizing.limits import Limits
    from autotune.performance.rightsizing.right_size import RightSize
    from autotune.studyfile import StudyFile
    from objectives.base import Objective

# With more nodes, rating all sizes takes minutes, and most are far beyond the measurements.
_MOST_NODES = 64
_ENERGY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")


@with_options
def rightsize(
    name: AnyStudyArgument,
    deadline: Annotated[
        str | None, typer.Option("--deadline", metavar="DURATION", help="A run may take this time: 90s, 15m, 2h.")
    ] = None,
    max_core_hours: Annotated[
        float | None, typer.Option("--max-core-hours", help="A run may take these core-hours.")
    ] = None,
    max_energy: Annotated[
        str | None,
        typer.Option("--max-energy", metavar="ENERGY", help="A run may take this energy: 2kWh."),
    ] = None,
    least_energy: Annotated[
        bool, typer.Option("--least-energy", help="Find the least energy instead of the least core-hours.")
    ] = False,
    max_nodes: Annotated[
        int | None,
        typer.Option("--max-nodes", min=1, help="A run may use this number of nodes."),
    ] = None,
    probes: Annotated[
        int, typer.Option("--probes", min=0, help="Make at most this number of runs; earlier ones count.")
    ] = 6,
    machine: Annotated[
        str | None,
        typer.Option("--machine", metavar="NAME|FILE", help="Predict for this machine; run nothing."),
    ] = None,
    installation: InstallationOption = None,
    whole_nodes: Annotated[bool, typer.Option("--whole-nodes", help="Count all cores of each node.")] = False,
    changes: SetOption = None,
    input_file: InputOption = None,
    also: AlsoOption = None,
    launcher: LauncherOption = None,
    site: SiteOption = None,
    picture: PictureOption = None,
    script: Annotated[
        str | None, typer.Option("--script", help="Print a job script of the chosen size.", **SCRIPT_FORM)
    ] = None,
    target: ScriptFileOption = None,
    *,
    session: SessionOptions,
) -> None:
    """Find nodes, ranks and threads for a deadline or a budget.

    With a deadline it finds the cheapest size that meets it with a chance of 90%; without one, the fastest within the
    budget. The same command again resumes.
    """
    check_one_form(None if target is not None else script, as_json=session.as_json)
    check_has_script(script, target)
    limits = _limits(deadline, max_core_hours, max_energy, least_energy=least_energy)
    url = storage_url(session.storage)
    study = choose(name, changes, input_file, launcher_settings(launcher, site), url=url)
    if installation and machine is None:
        msg = "it is for a described machine: add --machine NAME; on this machine autotune asks the program itself"
        raise typer.BadParameter(msg, param_hint="--installation")
    if machine is not None:
        session.check_makes_no_runs("for a --machine")
        known = known_storages(session.storage, also or (), may_be_new=True)
        with temporary_folder("rightsize") as scratch:
            found, objective = _predict(
                study, limits, machine, installation or [], max_nodes, whole_nodes, known, scratch
            )
            _report(found, study, objective, picture, script, target, as_json=session.as_json)
        return
    from autotune import studyfile
    from autotune.comparison.rightsize_probes import SizingRequest
    from autotune.tuning.rightsize_session import rightsize_study

    urls = (url, *(storage_url(other) for other in also or ()))
    request = SizingRequest(limits, probes, max_nodes, whole_nodes, urls)
    if find_stored(url, name) is None:
        study, settings = session.resolve_study(study, study.name, studyfile.find(name))
    else:
        study, settings = session.resolve_study(study, study.name if input_file else name)
    with notify_at_end(session.notify, settings.name) as end:
        with session.open_display(settings) as (paused, display):
            found, objective = rightsize_study(study, paused, display, request)
        end.verdict = found.sentence()
        _report(found, study, objective, picture, script, target, as_json=session.as_json)


def _limits(deadline: str | None, core_hours: float | None, energy: str | None, *, least_energy: bool) -> "Limits":
    from autotune.performance.rightsizing.limits import ENERGY_UNITS, HOUR_S, Limits

    if deadline is None and core_hours is None and energy is None and not least_energy:
        msg = "limit what a run may take: --deadline 2h, --max-core-hours 100 or --max-energy 2kWh; or --least-energy"
        raise typer.BadParameter(msg, param_hint="--deadline")
    if core_hours is not None and not 0.0 < core_hours < inf:
        msg = f"{core_hours:g} is not a number of core-hours above 0"
        raise typer.BadParameter(msg, param_hint="--max-core-hours")
    joules = inf
    if energy is not None:
        match = _ENERGY.fullmatch(energy.strip())
        if match is None or match[2] not in ENERGY_UNITS or float(match[1]) <= 0.0:
            msg = f"{energy!r} is not an energy above 0; write it with one of the units {', '.join(ENERGY_UNITS)}: 2kWh"
            raise typer.BadParameter(msg, param_hint="--max-energy")
        joules = float(match[1]) * ENERGY_UNITS[match[2]]
    return Limits(
        inf if deadline is None else duration_s(deadline, "--deadline"),
        inf if core_hours is None else core_hours * HOUR_S,
        joules,
        least_energy,
    )


def _predict(
    study: "StudyFile",
    limits: "Limits",
    machine: str,
    installation: list[str],
    most_nodes: int | None,
    whole_nodes: bool,
    urls: list[str],
    scratch: Path,
) -> "tuple[RightSize, Objective]":
    """Return the right size on a described machine by past measurements, and the objective that makes its jobs.

    Raises:
        AutotuneError: The machine is unknown, or no measurement predicts times there.
    """
    from autotune.comparison.rightsize_probes import check_target_is_time
    from autotune.performance.measurements.dataset import measurements
    from autotune.performance.predict import find_target, measurements_there, question, with_known_installation
    from autotune.performance.rightsizing.right_size import Knowledge
    from autotune.performance.rightsizing.sizes import Sizes, measured_here, room_of, times_of
    from launchers.local import local_launcher

    if limits.needs_energy:
        msg = "only runs show how much energy they draw: leave --machine out, or limit the core-hours"
        raise CannotRunHereError(msg)
    target = find_target(machine, most_nodes or _find_most_nodes(machine), installation)
    asked = question(study, target, local_launcher(), scratch)
    check_target_is_time(asked.setting.metric)
    known = measurements(urls)
    asked = with_known_installation(asked, known)
    for note in asked.plan.notes:
        errors().print(note)
    setting, measured = measurements_there(asked, known)
    room = room_of(setting.machine_facts, most_nodes, whole_nodes)
    sizes = Sizes(asked.space, setting, asked.plan, room, scratch / "sizes")
    times = list(measured_here(setting, measured))
    candidates, model = sizes.candidates(measured, [configuration for configuration, _ in times])
    times_s = times_of(candidates, times)
    found = Knowledge(candidates, limits, times_s).right_size()
    if found is None:
        msg = (
            f"no times of {asked.setting.program!r} on {machine} can be predicted: run it there (leave --machine out), "
            "or import measurements with `autotune storage import`"
        )
        raise CannotRunHereError("\n".join((msg, *(model.doubts if model is not None else ()))))
    found = found.by(model)
    return replace(found, grounds=(*asked.remarks, *found.grounds)), asked.plan.objective


def _find_most_nodes(machine: str) -> int:
    """Return how many nodes of a described machine a run may use; print a line if that may not be all of them."""
    from autotune.machines.catalogue import THIS, find_machine

    there = 1 if machine == THIS else find_machine(machine).nodes.count
    nodes = min(there or 1, _MOST_NODES)
    if nodes != there:
        known = f"its description does not say how many {machine} has" if there is None else f"{machine} has {there}"
        words = f"at most {nodes} node{'s' * (nodes != 1)} for a run, {known}: --max-nodes N allows more"
        errors().print(words)
    return nodes


def _report(
    found: "RightSize",
    study: "StudyFile",
    objective: "Objective",
    picture: Path | None,
    script: str | None,
    target: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print the result.

    Raises:
        typer.Exit: No size keeps the limits.
    """
    from autotune.pictures.files import save
    from autotune.pictures.right_size import right_size_chart

    if as_json:
        print_json(found.to_dict())
    elif script is None or target is not None:
        _print(found)
    if picture is not None:
        save(right_size_chart(found, study.name), picture)
        errors().print(f"picture: {picture}")
    if not found.keeps:
        errors().print(found.sentence())
        raise typer.Exit(ExitCode.CANNOT_RUN_HERE)
    if script is not None:
        write_script(_script(found, study, objective, script), target)


def _print(found: "RightSize") -> None:
    from rich.table import Column, Table

    from autotune.performance.rightsizing.right_size import percent

    for line in found.grounds:
        output().print(line)
    for line in found.doubts:
        output().print(f"doubt: {line}")
    fixed = (Column(title, no_wrap=True) for title in ("", "nodes", "cores", "time", "core-hours", "chance"))
    energy = [Column("energy", no_wrap=True)] if found.chosen.joules is not None else []
    table = Table(*fixed, *energy, Column("configuration", overflow="fold"))
    for size in found.front:
        table.add_row(
            "take" if size == found.chosen and found.keeps else "ran" if size.measured else "",
            str(size.nodes),
            str(size.cores),
            f"{size.time_s:.4g} s ({size.low_s:.3g} to {size.high_s:.3g})",
            f"{size.core_hours:.3g}",
            percent(size.chance),
            *(f"{size.joules:.3g} J" for _ in energy),
            configuration_text(size.configuration),
        )
    output().print(table)
    if found.probes:
        runs = f"{found.probes} run{'s' * (found.probes != 1)}"
        output().print(f"cost of the probes: {runs}, {found.probe_core_hours:.3g} core-hours")
    if found.keeps:
        output().print(found.sentence())
    for line in filter(None, (found.division, found.trade_off())):
        output().print(line)


def _script(found: "RightSize", study: "StudyFile", objective: "Objective", form: str) -> str:
    from autotune.batch.job_script import JobScript, job_script
    from autotune.batch.winner_script import site_of
    from autotune.execution.task import describe_job
    from launchers import Usage
    from launchers.mpi import script_flavour
    from objectives.base import Context

    with temporary_folder("rightsize") as scratch:
        folder = scratch
        job = describe_job(objective.job(found.chosen.configuration, Context(folder, steps=study.whole_steps)), None)
        remarks = [
            found.sentence(),
            "the time and the memory asked for are guesses; set them, the project and the queue",
        ]
        name, needs = f"autotune-{study.name}", Usage(elapsed_s=found.chosen.high_s)
        site = site_of(study, form)
        size = JobScript(
            name, found.chosen.configuration, job, needs, script_flavour(job), remarks, site, measured=False
        )
        return job_script(form, size)
