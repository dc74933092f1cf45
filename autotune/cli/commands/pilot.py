"""`autotune pilot`: write a job script that runs a study inside one allocation of a cluster."""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import typer
from typer.core import TyperCommand

from autotune.batch.job_script import setup_lines
from autotune.batch.pilot_job import PilotJob, pilot_form, pilot_forms, pilot_script
from autotune.batch.site_file import PROJECT
from autotune.cli.choices import choice
from autotune.cli.common import duration_s, output, write_script
from autotune.cli.options import StudyArgument, with_options
from autotune.cli.placement import SiteOption, parse_cores
from autotune.cli.study_options import StudyOptions
from autotune.cli.study_request import read_request
from autotune.errors import CannotRunHereError, StudyFileError
from autotune.storage.address import hide_password

# The batch system if neither --script nor --site names one.
_USUAL = "slurm"


class PassOptionsOn(TyperCommand):
    """A command that accepts options of another command and keeps them in its context."""

    allow_extra_args = True
    ignore_unknown_options = True


def pilot(
    context: typer.Context,
    name: StudyArgument,
    system: Annotated[
        str | None,
        typer.Option("--script", help="The batch system. Default: that of --site, or slurm.", **choice(pilot_forms)),
    ] = None,
    site: SiteOption = None,
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Number of nodes of the job.")] = 1,
    walltime: Annotated[str, typer.Option("--walltime", metavar="DURATION", help="Time limit of the job (2h).")] = "1h",
    cores_per_node: Annotated[
        int | None, typer.Option("--cores-per-node", min=1, help="Cores of a node; PBS needs the number.")
    ] = None,
    directives: Annotated[
        list[str] | None,
        typer.Option(
            "--directive", metavar="TEXT", help="Add a directive of the batch system: '-q normal'. Repeatable."
        ),
    ] = None,
    setup: Annotated[
        list[str] | None,
        typer.Option("--setup", metavar="LINE", help="Run this shell line before the study. Repeatable."),
    ] = None,
    chain: Annotated[
        int | None,
        typer.Option("--chain", min=1, help="Submit this number of jobs, one after another."),
    ] = None,
    target: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("autotune-job.sh"),
) -> None:
    """Write a job script that tunes inside one job.

    If time runs out, the script submits itself again. `pilot` takes the options of `study`, too.
    """
    from autotune import studyfile
    from autotune.batch.pilot_job import submit_chain

    if target == Path("-"):
        msg = "the script submits itself again by its path, so it needs a file: give it a name"
        raise typer.BadParameter(msg, param_hint="--output")
    stored_name, options = _check_options(name, context.args, nodes)
    there = _SiteSettings.of(site, system, nodes, studyfile.read(studyfile.find(name)))
    # The job may start in another folder, so give a file by its absolute path; a shipped study is given by name.
    file = Path(name)
    words = [os.fspath(file.resolve()) if file.is_file() else name, *options]
    try:
        job = PilotJob(
            name=stored_name,
            script=os.fspath(target.resolve()),
            folder=os.fspath(Path.cwd()),
            python=sys.executable,
            study=words,
            nodes=nodes,
            walltime_s=duration_s(walltime, "--walltime"),
            cores_per_node=cores_per_node or there.cores_per_node,
            directives=(*there.directives, *(directives or ())),
            setup=(*there.setup, *(setup or ())),
            chained=chain is not None,
        )
        text = pilot_script(there.system, job)
    except ValueError as error:
        raise StudyFileError(str(error)) from None
    if chain is not None and there.lacks_account:
        raise StudyFileError(f"put the project to charge in place of {PROJECT} into the site file first")
    write_script(text, target, mode=0o700)
    if chain is not None:
        numbers = submit_chain(there.system, target.resolve(), chain)
        output().print(f"submitted {', '.join(numbers)}: each starts when the one before has ended")
        return
    if there.lacks_account:
        output().print(f"put the project to charge in place of {PROJECT} first, there or in the site file")
    output().print(f"submit it with: {pilot_form(there.system).submit} {shlex.quote(os.fspath(target))}")


@dataclass(frozen=True)
class _SiteSettings:
    """The settings of a site that every pilot job there needs."""

    system: str
    directives: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    cores_per_node: int | None = None
    lacks_account: bool = False

    @classmethod
    def of(cls, name: str | None, system: str | None, nodes: int, study: Mapping[str, Any]) -> Self:
        """Return the settings of a site, or the defaults without one.

        Args:
            name: The site's name or file, if one is given.
            system: The batch system that the user named, if any.
            nodes: The number of nodes of the job.
            study: The study file.

        Raises:
            SiteError: The site is unknown, or has another batch system.
            CannotRunHereError: autotune cannot write pilot jobs for its batch system.
        """
        if name is None:
            return cls(system or _USUAL)
        from autotune.batch.site_file import find_cluster, program_names, with_account

        site = with_account(find_cluster(name, system, programs=program_names(study)).site)
        if site.scheduler not in pilot_forms():
            msg = f"site {site.name!r} has {site.scheduler}, but pilot jobs need one of {', '.join(pilot_forms())}"
            raise CannotRunHereError(msg)
        directives = pilot_form(site.scheduler).directives(site, nodes)
        setup = tuple(setup_lines(site))
        return cls(site.scheduler, tuple(directives), setup, site.cores_per_node, site.account == PROJECT)


def _check_options(name: str, options: list[str], nodes: int) -> tuple[str, list[str]]:
    """Check the options of `study` now rather than after hours in a queue.

    Return the study's name in the storage, and the options that the script needs.

    Raises:
        click.UsageError: An option is wrong.
        StudyFileError: The study file is wrong, or the job script sets an option itself.
    """
    own = {"--ray-address", "--ray-nodes", "--launcher"}
    named = sorted(own.intersection(option.partition("=")[0] for option in options))
    if named:
        msg = f"{', '.join(named)}: the job script sets this itself; leave it out"
        raise StudyFileError(msg)
    given: list[StudyOptions] = []
    probe = typer.Typer(add_completion=False)

    def take(options: StudyOptions) -> None:
        given.append(options)

    probe.command("study")(with_options(take))
    command = typer.main.get_command(probe)
    read = command.make_context("study", [name, *options])
    command.invoke(read)
    (parsed,) = given
    request = read_request(parsed)
    launcher = request.study.launcher
    if launcher.submits_jobs:
        msg = (
            f"the study submits each run as a job (its [launcher] names {launcher.kind or launcher.site}), but a pilot "
            "makes all runs inside its own job: remove [launcher] from the study file, or leave --set launcher... out"
        )
        raise StudyFileError(msg)
    if parsed.cores is not None:
        parse_cores(parsed.cores)
        if nodes > 1:
            msg = f"--cores names cores of one host, but the job gets {nodes} whole nodes: leave --cores out"
            raise StudyFileError(msg)
    source = read.get_parameter_source("storage")
    # A batch system may start the job without this shell's environment, so write its value into the script.
    from_environment = source is not None and source.name == "ENVIRONMENT"
    storage = _check_address(parsed.storage)
    return request.stored_name, [*options, *(["--storage", storage] if from_environment else [])]


def _check_address(address: str) -> str:
    """Return the address of a storage, which the script will contain.

    Raises:
        StudyFileError: It has a password.
    """
    if hide_password(address) != address:
        msg = (
            f"{hide_password(address)}: the job script would contain the storage's password; leave the password out, "
            "and write it into ~/.pgpass (host:5432:database:user:PASSWORD, mode 0600; docs/storage.md)"
        )
        raise StudyFileError(msg)
    return address
