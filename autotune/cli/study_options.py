"""The arguments and options of `autotune study`; `autotune pilot` accepts them as well."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from autotune.cli.options import (
    DEFAULT_STORAGE,
    AsJson,
    InputOption,
    NameOption,
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
    VerboseOption,
    WaitOption,
)
from autotune.cli.placement import CoresOption, LauncherOption, SiteOption


class Switch(StrEnum):
    """On or off."""

    ON = "on"
    OFF = "off"


@dataclass(frozen=True)
class StudyOptions:
    """The command line of `autotune study`; None for an option that was not given."""

    name: StudyArgument = ""
    trials: TrialsOption = None
    timeout: TimeoutOption = None
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Run this number of trials at once, on separate cores.")
    ] = None
    sampler: Annotated[
        str | None,
        typer.Option(
            "--sampler",
            metavar="NAME",
            help="autotune, random, exhaustive, tpe, gp, cmaes, optuna:CLASS, optunahub:PACKAGE@COMMIT.",
        ),
    ] = None
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the search.")] = None
    warm_start: Annotated[
        Switch | None,
        typer.Option(
            "--warm-start",
            help="First try the configurations that are predicted to be best.",
        ),
    ] = None
    changes: SetOption = None
    input_file: InputOption = None
    storage: Storage = DEFAULT_STORAGE
    study_name: NameOption = None
    runs: RunsOption = None
    cores: CoresOption = None
    launcher: LauncherOption = None
    site: SiteOption = None
    noise: NoiseOption = None
    nodes_at_least: Annotated[
        int | None,
        typer.Option("--nodes-at-least", min=1, metavar="N", help="Compare on at least this number of nodes."),
    ] = None
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run failed trials again.")] = False
    tune_again: Annotated[
        bool,
        typer.Option(
            "--tune-again",
            help="Repeat trials that were disturbed or that drifted.",
        ),
    ] = False
    wait: WaitOption = False
    take_over: TakeOverOption = False
    ray_address: Annotated[
        str | None,
        typer.Option("--ray-address", metavar="HOST:PORT|auto", help="Run on the nodes of this Ray cluster."),
    ] = None
    ray_nodes: Annotated[
        int | None, typer.Option("--ray-nodes", min=1, help="Wait until the Ray cluster has this number of nodes.")
    ] = None
    until: UntilOption = None
    status: StatusOption = None
    quiet: QuietOption = False
    verbose: VerboseOption = False
    notify: NotifyOption = None
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the commands of the runs, and run none."),
    ] = False
    as_json: AsJson = False

    @property
    def workers_given(self) -> bool:
        """Whether the command line sets the number of trials that run side by side."""
        keys = (change.partition("=")[0].strip() for change in self.changes or ())
        return self.workers is not None or "budget.workers" in keys
