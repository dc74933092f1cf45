"""Check a session after a fault against the acknowledged values and an undisturbed twin."""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tests.support.faults.library import Fault
from tests.support.faults.recorded import LAUNCHES
from tests.support.faults.sessions import ACKNOWLEDGED, DATABASE, NAME

_RUNS = Path("autotune-runs", NAME)
# Files of the harness, and folders that other checks cover.
_OWN = (ACKNOWLEDGED, LAUNCHES, "queue", "tmp", str(_RUNS))


@dataclass(frozen=True)
class Known:
    """A file that may stay behind, and why."""

    begins: str
    only_parted: bool
    reason: str

    def covers(self, path: str, fault: Fault) -> bool:
        """Whether `begins`, a regular expression, matches a path relative to the session's folder after this fault."""
        return re.match(self.begins, path) is not None and (fault.parts or not self.only_parted)


KNOWN = (
    Known("tmp/autotune-asktell-", False, "a disk that fails for ever keeps it; the next session removes it"),
    Known(r"(tmp/)?[a-z0-9_]{8}$", False, "on such a disk, too: Python tests temporary folders with such a file"),
    Known("tmp/", True, "a temporary folder of a killed process; the system cleans it up"),
    Known(r"autotune\.db-", False, "files that SQLite keeps while a reader is connected"),
)


@dataclass
class Harm:
    """The harm that a fault did, by kind; an empty list means no harm."""

    lost: list[str]
    doubled: list[str]
    left: list[str]
    different: list[str]
    unsaid: list[str] = field(default_factory=list)

    @property
    def all(self) -> dict[str, list[str]]:
        """The kinds of harm that were found."""
        return {kind.name: found for kind in fields(self) if (found := getattr(self, kind.name))}


HARMS = tuple(kind.name for kind in fields(Harm))


def state(url: str, *, ended: bool = True) -> dict[str, Any]:
    """Return the content of a session's storage, with the result of the study if it has `ended`."""
    from autotune.errors import StorageError
    from autotune.storage.address import sqlite_path
    from autotune.storage.study_store import StudyStore, study_names

    broken: list[str] = []
    if sqlite_path(url) is not None:
        if not Path(DATABASE).exists():
            return {}
        with closing(sqlite3.connect(DATABASE)) as connection:
            broken = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        if not {"studies", "autotune_runs"} <= tables:
            return {"broken": broken}
    try:
        if NAME not in study_names(url):
            return {"broken": broken}
        store = StudyStore.read(url, NAME)
    except StorageError:
        # It does not exist yet.
        return {"broken": broken}
    runs = store.runs()
    return {
        "broken": broken,
        "runs": [[run.started, run.job.get("folder"), _run(run)] for run in runs],
        "unfounded": [t.number for t in store.trials() if t.settled and not t.runs],
        "leases": [lease.place for lease in store.leases().all()],
        "result": _result(store) if ended else None,
    }


def _run(run: Any) -> str:
    outcome = run.outcome
    came = outcome.metrics or outcome.bound or f"{outcome.failure} {outcome.message}"
    return f"{run.series.kind} {run.round} {json.dumps(dict(run.configuration), sort_keys=True)}: {came}"


def _result(store: Any) -> dict[str, Any]:
    from autotune.results.summary import summarise

    summary, made = summarise(store), [trial for trial in store.trials() if trial.runs]
    # A resumed session measures the default configuration again, since the machine may have changed.
    trials = [[dict(t.configuration), [_run(run) for run in t.runs[: 1 if t.number == 0 else None]]] for t in made]
    # Its interval depends on what others took meanwhile, its runs do not.
    verdict = summary.present_verdict
    compared = sorted(_run(run) for run in store.runs() if verdict is not None and run.series == verdict.series)
    return {"trials": trials, "compared": compared, "winner": summary.configuration}


def harm(
    folder: Path, fault: Fault, code: int | None, between: dict[str, Any], after: dict[str, Any], twin: "Twin"
) -> Harm:
    """Compare the state after the fault (`between`) and after the completing session (`after`) with the twin."""
    launches = len(_lines(folder / LAUNCHES))
    left = [*_left(folder, after), *sorted(_files(folder) - twin.files)]
    different = []
    if code != 0:
        different.append(f"the same command ended with {code}")
    elif after.get("result") != twin.state.get("result"):
        different.append(f"{after.get('result')} instead of {twin.state.get('result')}")
    return Harm(
        lost=lost(folder, between, after),
        doubled=_doubled(after, launches if twin.launches else None),
        left=[path for path in left if not any(known.covers(path, fault) for known in KNOWN)],
        different=different,
    )


def lost(folder: Path, between: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return what was acknowledged, or was there `between`, and is no longer, or is another one."""
    kept = {(started, place): run for started, place, run in after.get("runs", [])}
    stored = {f"{started} {place}" for started, place in kept}
    lines = set(_lines(folder / ACKNOWLEDGED))
    told = {line for line in lines if line.startswith("told ")}
    gone = [f"{line} is not stored" for line in sorted(lines - told - stored)]
    if len(told) > len(stored):
        gone.append(f"{len(told)} runs were reported, but {len(stored)} are stored")
    changes = [(run, kept.get((started, place))) for started, place, run in between.get("runs", [])]
    gone += [f"{run} became {now}" for run, now in changes if now != run]
    for found in (between, after):
        gone += [f"database: {text}" for text in found.get("broken", [])]
        gone += [f"trial {number} is settled without a run" for number in found.get("unfounded", [])]
    return gone


def _doubled(after: dict[str, Any], launches: int | None) -> list[str]:
    counts = Counter((started, place) for started, place, _ in after.get("runs", []))
    doubled = [f"{run} is stored {count} times" for run, count in counts.items() if count > 1]
    if launches is not None and counts.total() > launches:
        doubled.append(f"{counts.total()} runs of {launches} launches")
    return doubled


@dataclass(frozen=True)
class Twin:
    """An undisturbed session: the content of its storage, its files, and the number of launched runs."""

    state: dict[str, Any]
    files: frozenset[str]
    launches: int

    @classmethod
    def of(cls, folder: Path, found: dict[str, Any]) -> "Twin":
        """Return the twin of a session that ended in this folder."""
        return cls(found, frozenset(_files(folder)), len(_lines(folder / LAUNCHES)))


def _left(folder: Path, after: dict[str, Any]) -> Iterator[str]:
    """Yield remaining leases, jobs, temporary files, and folders of runs that are not stored."""
    from autotune.coordination.session_settings import RUNS_LOCK

    yield from (f"lease {place}" for place in after.get("leases", []))
    active = folder / "queue" / "active"
    yield from (f"job {name}" for name in (_names(active)))
    yield from (f"tmp/{name}" for name in _names(folder / "tmp"))
    runs = folder / _RUNS
    own = {Path(place) for _, place, _ in after.get("runs", []) if place} | {runs / "plan", runs / RUNS_LOCK}
    yield from (str(path.relative_to(folder)) for path in map(runs.joinpath, _names(runs)) if path not in own)


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()] if folder.exists() else []


def _files(folder: Path) -> set[str]:
    names = (str(path.relative_to(folder)) for path in folder.rglob("*"))
    return {name for name in names if not name.startswith(_OWN)}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
