"""The sessions that faults strike: commands and clients as users start them, small and deterministic."""

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import postgres
from tests.support.faults import server_database
from tests.support.faults.library import elsewhere
from tests.support.faults.recorded import STUDY

ACKNOWLEDGED = "acknowledged.log"
DATABASE = "autotune.db"
NAME = "mine"

_real_monotonic, _real_sleep = time.monotonic, time.sleep


def be_quick() -> None:
    """Replace `time.sleep` by a jump of `time.monotonic`. Call it before autotune is imported."""
    ahead_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal ahead_s
        ahead_s += seconds

    time.sleep = sleep
    time.monotonic = lambda: _real_monotonic() + ahead_s


def be_patient() -> None:
    """Restore the real `time.sleep` and `time.monotonic`."""
    time.sleep, time.monotonic = _real_sleep, _real_monotonic


def know_before() -> None:
    """Compute once for all forks what each session would compute again: more than half of its time."""
    import importlib.metadata

    from sqlalchemy.orm import configure_mappers

    from autotune.performance.measurements.shipped import load_shipped_measurements

    know_revisions()
    configure_mappers()
    load_shipped_measurements()
    installed = importlib.metadata.entry_points()
    importlib.metadata.entry_points = installed.select


def know_revisions() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from optuna.storages._rdb import storage

    known: dict[str, ScriptDirectory] = {}
    make = ScriptDirectory.from_config

    def kept(config: Any) -> ScriptDirectory:
        place = config.get_main_option("script_location")
        if place not in known:
            known[place] = make(config)
        return known[place]

    ScriptDirectory.from_config = kept
    place = Path(storage.__file__).with_name("alembic")
    config = Config(place.with_suffix(".ini"))
    config.set_main_option("script_location", str(place).replace("%", "%%"))
    list(kept(config).walk_revisions())


class Session(ABC):
    """A kind of session: how to prepare its folder, what to run there, and whether its storage is on a server."""

    name: str
    has_server = False

    def why_not(self) -> str | None:
        """Return why this machine cannot run the session; None if it can."""
        return None

    def url(self) -> str:
        """Return the address of the storage; a file is in the current folder."""
        return f"sqlite:///{Path(DATABASE).absolute()}"

    def prepare(self, folder: Path) -> None:
        """Write the files that the session needs."""
        (folder / f"{NAME}.toml").write_text(STUDY)

    def begin(self) -> None:  # noqa: B027  most have nothing there
        """Create what is not in the folder, once per event."""

    @abstractmethod
    def run(self) -> int:
        """Run the session in the current folder to its end; return its exit code."""


def play_machine(folder: Path) -> None:
    """Give this process its own core locks and executor, and record acknowledged runs."""
    from autotune.coordination import places
    from autotune.execution import core_pool
    from autotune.tuning import opening
    from tests.support.faults import local

    locks = folder / "locks"
    locks.mkdir(exist_ok=True)
    core_pool.user_folder = lambda: locks
    # It scans all processes of the machine, so the number of system calls would vary; none of them is a run.
    opening.end_left_over = lambda runs: 0
    places.LocalExecutor = local.LocalExecutor
    note_acknowledged()


def note_acknowledged() -> None:
    """Make this process record runs as soon as the storage has acknowledged them."""
    from autotune.storage.study_store import StudyStore

    add_runs = StudyStore.add_runs

    def noted(self: StudyStore, runs: Any, *more: Any) -> Any:
        refused = add_runs(self, runs, *more)
        note(*(f"{run.started} {run.job.get('folder')}" for run in runs))
        return refused

    StudyStore.add_runs = noted


def note(*lines: str) -> None:
    """Append lines to the record of acknowledged runs."""
    with elsewhere(), Path(ACKNOWLEDGED).open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def command(*words: str) -> int:
    """Run `autotune` with these words in this process; return its exit code."""
    from autotune.cli.app import main

    sys.argv = ["autotune", *words]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


class Local(Session):
    """`autotune study` on this machine."""

    name = "local"

    def run(self) -> int:
        """Tune to the verdict."""
        return command("study", f"./{NAME}.toml")


class OnServer(Session):
    """A session whose storage is in PostgreSQL."""

    has_server = True

    def why_not(self) -> str | None:
        """Return why there can be no server."""
        return postgres.missing()

    def url(self) -> str:
        """Return the address of the database."""
        return server_database.url()

    def begin(self) -> None:
        """Create an empty database."""
        server_database.make_empty()


class LocalOnServer(OnServer, Local):
    """`autotune study` on this machine, with its storage in PostgreSQL."""

    name = "postgresql"

    def run(self) -> int:
        """Tune to the verdict."""
        return command("study", f"./{NAME}.toml", "--storage", self.url())


class Batch(Session):
    """`autotune study` with a batch system."""

    name = "batch"

    def prepare(self, folder: Path) -> None:
        """Create the scheduler and the site file."""
        from tests.support.faults import queue

        super().prepare(folder)
        queue.make(folder)
        site = 'base = "slurm"\nqueue = "debug"\nwalltime = "5m"\npoll_s = 0.01\nworkers = 1\n'
        (folder / "site.toml").write_text(site)

    def run(self) -> int:
        """Tune to the verdict, a job a run."""
        from launchers.batch import launcher
        from tests.support.faults import queue

        os.environ["PATH"] = os.pathsep.join([str(Path(queue.FOLDER, "bin").absolute()), os.environ["PATH"]])
        launcher.run_command = queue.run_command
        return command("study", f"./{NAME}.toml", "--launcher", "slurm", "--site", "./site.toml")


class AskAndTell(Session):
    """A client of `AskTell` that computes each run itself and keeps its current run in a file."""

    name = "ask-tell"
    _study: Mapping[str, Any] = {
        "name": NAME,
        "objective": "external",
        "options": {"metrics": [{"name": "took_s", "unit": "s", "kind": "time"}]},
        "space": {"parameters": {"x": {"type": "integer", "low": 1, "high": 40, "default": 1}}},
        "budget": {"trials": 3},
        "repeats": {"max_runs": 1, "baseline_runs": 1, "baseline_every": 0},
        "verdict": {"confidence": 0.75, "pairs": 3, "max_pairs": 3, "rounds": 2, "candidates": 1},
    }

    def prepare(self, folder: Path) -> None:
        """Write no files."""

    def run(self) -> int:
        """Ask and tell until the study is finished."""
        from autotune.asktell import AskTell, FinishedError, RunReport
        from autotune.errors import AutotuneError
        from autotune.studyfile import StudyFile

        out = Path("out")
        try:
            with AskTell.open(StudyFile.model_validate(self._study), self.url()) as study:
                while True:
                    with elsewhere():
                        lease, _, x = out.read_text().partition(" ") if out.exists() else ("", "", "")
                    if lease:
                        study.tell(lease, RunReport(value=3.0 + abs(int(x) - 20) / 10))
                        note(f"told {lease}")
                        with elsewhere():
                            out.unlink()
                    asked = study.ask(wait_s=5.0)
                    if asked is not None:
                        with elsewhere():
                            out.write_text(f"{asked.lease} {asked.configuration['x']}")
        except FinishedError:
            return 0
        except (AutotuneError, OSError) as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            return 3


class AskAndTellOnServer(OnServer, AskAndTell):
    """The same with its storage in PostgreSQL."""

    name = "ask-tell-postgresql"


SESSIONS: tuple[Session, ...] = (
    Local(),
    Batch(),
    AskAndTell(),
    LocalOnServer(),
    AskAndTellOnServer(),
)
