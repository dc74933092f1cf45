"""Choose where runs start: on this machine, on the nodes of a Ray cluster, or as jobs of a batch system."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.batch.launcher_names import LOCAL, launcher_names
from autotune.cli.choices import choice
from autotune.errors import CannotRunHereError, StudyFileError
from launchers.batch_systems.registry import BATCH_SYSTEMS, EXPERIMENTAL, find_batch_system

if TYPE_CHECKING:
    from autotune.batch.site_file import Cluster
    from autotune.machines.facts import Facts
    from autotune.machines.this_machine import Machine
    from autotune.studyfile import StudyFile
    from launchers import Launcher
    from launchers.site import Site

LauncherOption = Annotated[
    str | None,
    typer.Option(
        "--launcher",
        help=f"Start runs here, or as jobs of a batch system ({', '.join(EXPERIMENTAL)}: experimental).",
        **choice(launcher_names, shown=[LOCAL, *BATCH_SYSTEMS]),
    ),
]
SiteOption = Annotated[
    str | None,
    typer.Option(
        "--site",
        metavar="NAME|FILE",
        help="The site of the batch system: a name (gadi) or a file.",
    ),
]
CoresOption = Annotated[str | None, typer.Option("--cores", metavar="LIST", help="Use only these cores: 0-3,8.")]


def find_study_cluster(chosen: "StudyFile") -> "Cluster | None":
    """Return the site whose batch system runs a study; None for a study that runs here.

    Raises:
        AutotuneError: The site is unknown, or its file has errors.
    """
    from autotune.batch.site_file import find_cluster, program_names

    if not chosen.launcher.submits_jobs:
        return None
    programs = program_names({"objective": chosen.objective, "options": chosen.tuned_options})
    return find_cluster(chosen.launcher.site, chosen.launcher.kind, programs=programs)


def with_site_workers(chosen: "StudyFile", cluster: "Cluster | None") -> "StudyFile":
    """Return the study with the site's number of runs side by side, which overrides the study file."""
    if cluster is None:
        return chosen
    return chosen.model_copy(update={"budget": chosen.budget.model_copy(update={"workers": cluster.workers})})


def machine_and_launcher(
    cluster: "Cluster | None", cores: str | None, study: str
) -> "tuple[Machine, Launcher, Facts | None]":
    """Return the machine that runs use, the launcher that starts them, and the facts of a machine other than this one.

    Args:
        cluster: The site that runs the study; None for this machine.
        cores: The value of `--cores`.
        study: The study's name, which jobs are named after.

    Raises:
        StudyFileError: `cores` is not a list of usable cores, or is given for a site.
    """
    from autotune.machines.this_machine import this_machine
    from launchers.batch import BatchLauncher
    from launchers.local import local_launcher

    if cluster is None:
        return restrict_cores(this_machine(), cores), local_launcher(), None
    if cores is not None:
        msg = "--cores names cores of this host, but runs are jobs of a batch system: set nodes = ... in the site file"
        raise StudyFileError(msg)
    launcher = BatchLauncher(find_batch_system(cluster.site.scheduler).scheduler, cluster.site, prefix=study)
    return cluster.machine, launcher, cluster.facts


def check_commands(cluster: "Cluster | None") -> None:
    """Check, before anything is stored, that this host can submit jobs to the cluster.

    Raises:
        CannotRunHereError: It cannot.
    """
    if cluster is not None:
        check_site(cluster.site)


def cautions(cluster: "Cluster | None") -> tuple[str, ...]:
    """Return warnings about the site's batch system that a user should read before a study."""
    from autotune.batch.site_probe import ask_batch_system

    if cluster is None:
        return ()
    system = find_batch_system(cluster.site.scheduler)
    return ask_batch_system(system, system.cautions(cluster.site), cluster.site.queue)


def check_site(site: "Site") -> None:
    """Check that this host can submit jobs to a site, charge them to a project and follow them.

    Raises:
        CannotRunHereError: The submit command or the project is missing, or jobs could not be followed.
    """
    from launchers.batch.commands import run_command

    kind, system = site.scheduler, find_batch_system(site.scheduler)
    command = system.scheduler.submit(Path("job.sh"))[0]
    if shutil.which(command) is None:
        msg = (
            f"{command}, which submits jobs to {kind}, is not on PATH here: call autotune on a host that can submit "
            f"(a login node), after `module load {kind}` if your site has that; --dry-run shows the jobs anyway"
        )
        raise CannotRunHereError(msg)
    if site.needs_account and not site.account:
        msg = (
            f"site {site.name!r} rejects jobs without a project to charge: write yours into "
            f'~/.config/autotune/site.toml, `base = "{site.name}"` and `account = "..."`'
        )
        raise CannotRunHereError(msg)
    variables = system.scheduler.variables
    if problem := system.obstacle(os.environ, lambda argv: run_command(argv, variables=variables).stdout):
        raise CannotRunHereError(problem)


def parse_cores(text: str) -> set[int]:
    """Return the cores of a list such as `0-3,8`.

    Raises:
        StudyFileError: The text is not such a list.
    """
    from launchers.cpus import parse_cpu_list

    try:
        return set(parse_cpu_list(text))
    except ValueError:
        msg = f"--cores {text!r} is not a list of cores; write 0-3,8"
        raise StudyFileError(msg) from None


def restrict_cores(machine: "Machine", cores: str | None) -> "Machine":
    """Return the machine with only the listed cores.

    Raises:
        StudyFileError: The text is not a list of cores, or names cores that cannot be used.
    """
    if cores is None:
        return machine
    wanted = parse_cores(cores)
    missing = wanted - set(machine.cpus)
    if missing or not wanted:
        usable = ",".join(map(str, machine.cpus))
        msg = f"--cores {cores}: {sorted(missing) or 'no core'} cannot be used here; usable: {usable}"
        raise StudyFileError(msg)
    return replace(machine, cpus=tuple(sorted(wanted)))
