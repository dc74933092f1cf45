"""The options of commands that make runs of a study, and what follows from them: settings, and what is shown."""

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
    """Where a session is kept and run, what it does about others there, and how it reports."""

    storage: Storage = DEFAULT_STORAGE
    runs: RunsOption = None
    cores: CoresOption = None
    noise: NoiseOption = None
    wait: WaitOption = False
    take_over: TakeOverOption = False
    status: StatusOption = None
    quiet: QuietOption = False
    notify: NotifyOption = None
    as_json: AsJson = False

    def load_stored(self, name: str, verdict: Mapping[str, Any] | None = None) -> "tuple[StudyFile, SessionSettings]":
        """Return the stored study of that name, with changes of its `verdict`, and the settings of its session.

        Raises:
            AutotuneError: there is no such study, or it cannot run here.
        """
        from autotune.studyfile import parse
        from autotune.tuning.session import stored_study

        table, changes = stored_study(storage_url(self.storage), name).model_dump(mode="json"), verdict or {}
        section = table["verdict"] | changes
        if "max_pairs" not in changes:
            # --pairs above the study's max_pairs raises it.
            section["max_pairs"] = max(section["max_pairs"], section["pairs"])
        return self.resolve_study(parse(table | {"verdict": section}, source="the options"), name)

    def resolve_study(
        self, study: "StudyFile", name: str, file: Path | None = None
    ) -> "tuple[StudyFile, SessionSettings]":
        """Return a study as it runs here, and the settings of its session under a `name`.

        Raises:
            AutotuneError: it cannot run here.
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
        """Show a session to the person at the terminal; it can be paused."""
        stopped = STOPPED if settings.queue is None else LEFT.format(name=settings.name)
        with pausable() as pause, open_display(stopped, self.status, quiet=self.quiet) as display:
            yield replace(settings, pause=pause), display

    def check_makes_no_runs(self, where: str) -> None:
        """Check that no option is given that is about runs, where none are made.

        Raises:
            typer.BadParameter: one is.
        """
        about = {"--notify": (self.notify, "tells when runs have ended"), "--status": (self.status, "shows progress")}
        for option, (given, does) in about.items():
            if given:
                msg = f"it {does}, and no runs are made {where}: leave it out"
                raise typer.BadParameter(msg, param_hint=option)
