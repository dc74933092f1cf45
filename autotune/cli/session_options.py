"""The options of commands that make runs of a study, and the settings and display of their session."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from autotune.cli.common import LEFT, STOPPED, if_held, open_display
from autotune.cli.options import (
    DEFAULT_STORAGE,
    AsJson,
    NoiseOption,
    NotifyOption,
    QuietOption,
    RunsOption,
    StatusOption,
    Storage,
    TakeOverOption,
    VerboseOption,
    WaitOption,
)
from autotune.cli.placement import (
    CoresOption,
    check_commands,
    find_study_cluster,
    machine_and_launcher,
    with_site_workers,
)
from autotune.execution.signals import pausable
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.coordination.session_settings import SessionSettings
    from autotune.display.console import Display
    from autotune.studyfile import StudyFile


@dataclass(frozen=True)
class SessionOptions:
    """Where to store and run a session, what to do about others that run there, and how to report."""

    storage: Storage = DEFAULT_STORAGE
    runs: RunsOption = None
    cores: CoresOption = None
    noise: NoiseOption = None
    wait: WaitOption = False
    take_over: TakeOverOption = False
    status: StatusOption = None
    quiet: QuietOption = False
    verbose: VerboseOption = False
    notify: NotifyOption = None
    as_json: AsJson = False

    def load_stored(self, name: str, verdict: Mapping[str, Any] | None = None) -> "tuple[StudyFile, SessionSettings]":
        """Load a stored study, with changes to its `verdict` section; return it and the settings of its session.

        Raises:
            AutotuneError: The storage has no such study, or it cannot run here.
        """
        from autotune.studyfile import parse
        from autotune.tuning.session import study_file_of

        table, changes = study_file_of(storage_url(self.storage), name).model_dump(mode="json"), verdict or {}
        section = table["verdict"] | changes
        if "max_pairs" not in changes:
            # --pairs above the study's max_pairs raises it.
            section["max_pairs"] = max(section["max_pairs"], section["pairs"])
        return self.resolve_study(parse(table | {"verdict": section}, source="the options"), name)

    def resolve_study(
        self, study: "StudyFile", name: str, file: Path | None = None
    ) -> "tuple[StudyFile, SessionSettings]":
        """Return a study as it runs here, and the settings of its session.

        Args:
            study: The study to run.
            name: Its name in the storage.
            file: The study file that it was read from, if any.

        Raises:
            AutotuneError: The study cannot run here.
        """
        from autotune.coordination.session_settings import SessionSettings, default_runs

        held = if_held(self.wait, self.take_over)
        if self.noise is not None:
            study = study.model_copy(update={"noise": study.noise.model_copy(update={"mode": self.noise.value})})
        url, cluster = storage_url(self.storage), find_study_cluster(study)
        check_commands(cluster)
        machine, launcher, facts = machine_and_launcher(cluster, self.cores, name)
        folder = self.runs or default_runs(url, name)
        settings = SessionSettings(url, name, folder, machine, launcher, file, if_held=held, facts=facts)
        return with_site_workers(study, cluster), settings

    @contextmanager
    def open_display(self, settings: "SessionSettings") -> "Iterator[tuple[SessionSettings, Display]]":
        """Show a session at the terminal, and let SIGUSR1 pause it."""
        stopped = STOPPED if settings.queue is None else LEFT.format(name=settings.name)
        shown = open_display(stopped, self.status, quiet=self.quiet, verbose=self.verbose)
        with pausable() as pause, shown as display:
            yield replace(settings, pause=pause), display

    def check_makes_no_runs(self, where: str) -> None:
        """Refuse options that need runs, for a command that makes no runs `where` it is.

        Raises:
            typer.BadParameter: `--notify` or `--status` is given.
        """
        about = {"--notify": (self.notify, "reports the end of runs"), "--status": (self.status, "shows progress")}
        for option, (given, does) in about.items():
            if given:
                msg = f"it {does}, and no runs are made {where}: leave it out"
                raise typer.BadParameter(msg, param_hint=option)
