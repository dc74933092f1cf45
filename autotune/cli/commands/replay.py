"""`autotune replay`: show from recorded measurements whether a smaller budget would have been enough."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.common import errors, open_display, output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, SetOption, Storage
from autotune.errors import StudyFileError
from autotune.formatting import join_words
from autotune.held_folders import temporary_folder
from autotune.storage.address import sqlite_path, storage_url

if TYPE_CHECKING:
    from rich.table import Table

    from autotune.planning.prepare import Prepared
    from autotune.studyfile import StudyFile
    from autotune.tuning.replay import BudgetRow

_BUDGETS = "10,20,50,100"
_STORAGES = frozenset({".db", ".sqlite", ".sqlite3"})


def replay(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE-OR-STUDY",
            help="A table (CSV, Kernel Tuner cache, T4), a storage, a study file, or a stored study.",
        ),
    ],
    study_name: Annotated[str | None, typer.Option("--study", help="The study of the given storage.")] = None,
    budgets: Annotated[
        str, typer.Option("--budgets", metavar="LIST", help="Replay with these numbers of trials.")
    ] = _BUDGETS,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Number of replays of each budget.")] = 20,
    sampler: Annotated[str | None, typer.Option("--sampler", help="Search with this sampler.")] = None,
    changes: SetOption = None,
    storage: Storage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Replay recorded measurements with smaller budgets.

    It shows what each budget would have found. Nothing is run.
    """
    from autotune.machines.this_machine import this_machine
    from autotune.planning.prepare import prepare
    from autotune.records.study import REPLAY_NOTICE
    from autotune.tuning.replay import best_recorded, budget_rows, limits_in, table_of
    from launchers.local import local_launcher

    numbers = _numbers(budgets)
    extra = [f"sampler.name={sampler}"] if sampler else []
    chosen = _find_study(source, study_name, storage, [*(changes or []), *extra])
    with temporary_folder("replay") as scratch:
        prepared = prepare(chosen, this_machine(), local_launcher(), scratch)
        notes = [REPLAY_NOTICE, *prepared.plan.notes, *_coverage_note(prepared)]
        for note in notes:
            errors().print(note)
        with open_display(stopped="stopped: nothing was stored") as display:
            rows = budget_rows(chosen, prepared, numbers, seeds, display)
    metric, limits = prepared.definition.target, limits_in(chosen, prepared)
    best = best_recorded(table_of(prepared), limits)
    if as_json:
        print_json(
            {
                "replay": True,
                "metric": metric.name,
                "unit": metric.unit,
                "best_recorded": best,
                "limits": [str(limit) for limit in limits],
                "recorded": len(table_of(prepared).recordings),
                "space": prepared.space.size.value,
                "sampler": chosen.sampler.name,
                "notes": notes,
                "budgets": [row.to_dict() for row in rows],
            }
        )
        return
    output().print(_table(rows))
    value = "none" if best is None else f"{best:.4g} {metric.unit}"
    of_those = f" of those that keep {join_words([str(limit) for limit in limits])}" if limits else ""
    judged = "a found configuration is judged by the median of its recorded runs"
    output().print(f"best recorded{of_those}: {value}; {judged}")


def _numbers(text: str) -> list[int]:
    parts = text.split(",")
    if not all(re.fullmatch(r"\s*[1-9]\d*\s*", part) for part in parts):
        msg = f"--budgets {text!r} is not a list of numbers of trials; write {_BUDGETS}"
        raise StudyFileError(msg)
    return [int(part) for part in parts]


def _find_study(source: str, study_name: str | None, storage: str, changes: list[str]) -> "StudyFile":
    """Return the study that replays a table, a storage, a study file or a stored study.

    Raises:
        StudyFileError: `source` is something else.
    """
    from autotune import studyfile
    from objectives import registry

    path = Path(source)
    known = studyfile.catalogue()
    if path.suffix == ".toml" or (source in known and study_name is None and _is_replay(known[source])):
        study = studyfile.load(studyfile.find(source), changes)
        if registry.runs(study.objective) != "recorded":
            msg = f"{source} is not a replay: its objective is {study.objective!r}; set objective = 'replay'"
            raise StudyFileError(msg)
        return study
    options: dict[str, Any] = {"table": source}
    if path.is_file() or "://" in source:
        is_storage = "://" in source or path.suffix in _STORAGES
        if is_storage and study_name is None:
            msg = (
                f"{source} is a storage: name one of its studies with --study NAME; `autotune storage list` lists them"
            )
            raise StudyFileError(msg)
        if study_name is not None:
            options["study"] = study_name
    elif study_name is not None:
        msg = f"--study names a study of a storage, but there is no file {source}"
        raise StudyFileError(msg)
    else:
        stored = sqlite_path(storage_url(storage))
        if stored is not None and not stored.is_file():
            msg = f"there is no file {source}, and no storage {stored} with a study of that name"
            raise StudyFileError(msg)
        options = {"table": storage, "study": source}
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", options.get("study") or path.name).lstrip("._-") or registry.REPLAY
    table = {"name": name, "objective": registry.REPLAY, "options": options} | _settings(options)
    return studyfile.apply_overrides(table, changes, source)


def _is_replay(path: Path) -> bool:
    from autotune import studyfile
    from objectives import registry

    return registry.runs(studyfile.load(path).objective) == "recorded"


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return how a stored study was tuned: its sampler, its repeats, and its limits on recorded metrics."""
    if "study" not in options:
        return {}
    from autotune.storage.study_store import StudyStore

    definition = StudyStore.read(storage_url(options["table"]), options["study"]).definition
    stored, recorded = definition.study, {metric.name for metric in definition.metrics}
    limits = {name: limit for name, limit in stored.get("limits", {}).items() if name in recorded}
    kept = {key: stored[key] for key in ("sampler", "repeats") if key in stored}
    return kept | ({"limits": limits} if limits else {})


def _coverage_note(prepared: "Prepared") -> list[str]:
    """Return a warning if only a part of the space was measured."""
    from autotune.tuning.replay import table_of

    whole = prepared.plan.space_size
    recorded = len(table_of(prepared).recordings)
    if whole is None or recorded >= whole:
        return []
    warning = (
        f"only {recorded} of {whole} configurations were recorded, and the others are unknown; if a search chose them, "
        "they are better than most, and the figures below are too good"
    )
    return [warning]


def _table(rows: "list[BudgetRow]") -> "Table":
    from rich.table import Table

    table = Table("budget", "best found / best recorded", "quartiles", "within 5 %", "core-hours (simulated)")
    for row in rows:
        ratio = "" if row.median is None else f"{row.median:.3f}"
        spread = "" if row.lower is None or row.upper is None else f"{row.lower:.3f} to {row.upper:.3f}"
        trials = (
            f"{row.budget}" if row.trials >= row.budget else f"{row.budget} ({row.trials:.0f} trials: all there are)"
        )
        table.add_row(trials, ratio, spread, f"{row.within:.0%} of {row.seeds}", f"{row.core_h:.3g}")
    return table
