"""The arguments and options of `autotune study`, which `autotune pilot` takes, too."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from autotune.cli.options import (
    DEFAULT_STORAGE,
    AsJson,
    InputOption,
    NoiseOption,
    NotifyOption,
    QuietOption,
    RunsOption,
    SetOption,
    StatusOption,
    Storage,
    StudyArgument,
    TakeOverOption,
    TimeoutOption,
    TrialsOption,
    UntilOption,
    WaitOption,
)
from autotune.cli.where import CoresOption, LauncherOption, SiteOption


class Switch(StrEnum):
    """On or off."""

    ON = "on"
    OFF = "off"


@dataclass(frozen=True)
class StudyOptions:
    """What the user asked of `autotune study`; None where an option was not given."""

    name: StudyArgument
    trials: TrialsOption = None
    timeout: TimeoutOption = None
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Number of trials side by side, each on its own cores.")
    ] = None
    sampler: Annotated[
        str | None,
        typer.Option(
            "--sampler",
            metavar="NAME",
            help="How to search: autotune, random, exhaustive, tpe, gp, cmaes, optuna:CLASS, optunahub:PACKAGE@COMMIT.",
        ),
    ] = None
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the search.")] = None
    warm_start: Annotated[
        Switch | None,
        typer.Option(
            "--warm-start",
            help="First try what is predicted to be best here, by costs that are known or by measurements elsewhere.",
        ),
    ] = None
    changes: SetOption = None
    input_file: InputOption = None
    storage: Storage = DEFAULT_STORAGE
    study_name: Annotated[
        str | None, typer.Option("--name", help="Name of the study in the storage; by default that of the study file.")
    ] = None
    runs: RunsOption = None
    cores: CoresOption = None
    launcher: LauncherOption = None
    site: SiteOption = None
    noise: NoiseOption = None
    nodes_at_least: Annotated[
        int | None,
        typer.Option(
            "--nodes-at-least", min=1, metavar="N", help="The verdict speaks for so many nodes: pairs of runs on each."
        ),
    ] = None
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run the trials that failed again; what they did stays in `runs`.")
    ] = False
    tune_again: Annotated[
        bool,
        typer.Option(
            "--tune-again",
            help="Make trials again that others disturbed, or that ran when the machine was slower or faster than now.",
        ),
    ] = False
    wait: WaitOption = False
    take_over: TakeOverOption = False
    ray_address: Annotated[
        str | None,
        typer.Option("--ray-address", metavar="HOST:PORT|auto", help="Run the trials on the nodes of a Ray cluster."),
    ] = None
    ray_nodes: Annotated[
        int | None, typer.Option("--ray-nodes", min=1, help="Wait until the Ray cluster has this number of nodes.")
    ] = None
    until: UntilOption = None
    status: StatusOption = None
    quiet: QuietOption = False
    notify: NotifyOption = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the commands of the runs, and run none; with --runs, write their files there."
        ),
    ] = False
    as_json: AsJson = False

    @property
    def workers_given(self) -> bool:
        """Whether the command line says how many trials run side by side."""
        keys = (change.partition("=")[0].strip() for change in self.changes or ())
        return self.workers is not None or "budget.workers" in keys
