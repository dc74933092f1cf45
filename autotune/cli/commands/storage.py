"""`autotune storage`: list, merge, rename, label, reread, clean and delete the studies of a storage."""

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.common import duration_s, errors, open_display, output, print_json
from autotune.cli.completion import study_names
from autotune.cli.options import (
    DEFAULT_STORAGE,
    AsJson,
    DryRunOption,
    ExistingStorage,
    NameOption,
    SetOption,
    StudyName,
    YesOption,
)
from autotune.cli.tables import Column, fit_table
from autotune.errors import BusyError, StorageError
from autotune.formatting import plain_line, quantity
from autotune.storage.address import hide_password, sqlite_path, storage_url

if TYPE_CHECKING:
    from autotune.coordination.upkeep import Removable
    from autotune.results.summary import Summary
    from autotune.storage.merging.merge import Merged
    from autotune.storage.study_store import StudyStore

_LIST = (
    Column("study"),
    Column("trials", 2),
    Column("failed", 1),
    Column("best", 4),
    Column("over the default", 3),
    Column("verdict"),
)


def list_studies(
    tags: Annotated[
        list[str] | None, typer.Option("--tag", metavar="WORD", help="Only studies with this tag. Repeatable.")
    ] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Include archived studies.")] = False,
    storage: ExistingStorage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """List the studies of a storage."""
    from autotune.records.labels import Labels
    from autotune.results.summary import summarise
    from autotune.storage.readable_study import labels_of
    from autotune.storage.stored_study import open_stored_studies

    shown_ones: list[tuple[Summary, Labels]] = []
    damaged: dict[str, str] = {}
    left_out = 0
    for store in open_stored_studies(storage_url(storage)):
        try:
            labels = labels_of(store)
            if not set(tags or ()) <= set(labels.tags):
                continue
            if labels.archived and not archived:
                left_out += 1
                continue
            shown_ones.append((summarise(store), labels))
        except StorageError as error:
            damaged[store.name] = str(error)
    if as_json:
        print_json(
            [summary.to_dict() | labels.to_dict() for summary, labels in shown_ones]
            + [{"study": name, "error": reason} for name, reason in damaged.items()]
        )
        return
    columns: tuple[Column, ...] = _LIST
    rows = [_list_row(summary) for summary, _ in shown_ones]
    if any(labels.tags for _, labels in shown_ones):
        columns = (*_LIST[:-1], Column("tags", 5), _LIST[-1])
        rows = [[*row[:-1], ", ".join(one.tags), row[-1]] for row, (_, one) in zip(rows, shown_ones, strict=True)]
    rows += [[name, *[""] * (len(columns) - 2), "damaged"] for name in damaged]
    console = output()
    console.print(fit_table(columns, rows, console))
    if left_out:
        console.print(f"{left_out} archived {'study is' if left_out == 1 else 'studies are'} left out (--archived)")
    for reason in damaged.values():
        errors().print(reason, soft_wrap=True)


def _list_row(summary: "Summary") -> list[str]:
    from autotune.records.study import State

    standings, speed_up = summary.standings, summary.speed_up
    value, _ = summary.medians
    return [
        summary.name,
        str(summary.finished),
        str(sum(count for kind, count in standings.counts.items() if kind != State.CAPPED.value)),
        "" if value is None else quantity(value, standings.metric),
        speed_up.text() if speed_up is not None else "",
        ("replay: " if summary.definition.replay else "") + (summary.verdict_sentence() or ""),
    ]


def show(storage: ExistingStorage = DEFAULT_STORAGE, as_json: AsJson = False) -> None:
    """Show the kind, version and size of a storage."""
    from autotune.storage.contents import read_contents
    from autotune.storage.tables import VERSION

    url = storage_url(storage)
    stored = read_contents(url)
    if as_json:
        print_json({"storage": hide_password(url), "known_version": VERSION, **asdict(stored)})
        return
    others = f", and {stored.others} of other programs" if stored.others else ""
    version = (
        "nothing was stored yet" if stored.version is None else f"{stored.version} (this autotune writes {VERSION})"
    )
    lines = (
        f"storage {hide_password(url)}",
        f"kind: {stored.kind}, {stored.size_bytes / 1e6:.1f} MB",
        f"version: {version}" + (f", Optuna's tables: {stored.optuna}" if stored.optuna else ""),
        f"studies: {stored.studies}{others}",
        f"trials: {stored.trials}, runs: {stored.runs}, imported measurements: {stored.imported}",
    )
    output().print("\n".join(lines))


def merge(
    sources: Annotated[list[str], typer.Argument(metavar="STORAGE", help="The storages to copy from.")],
    into: Annotated[str, typer.Option("--into", metavar="STORAGE", help="The storage to copy into; made if missing.")],
    dry_run: DryRunOption = False,
    as_json: AsJson = False,
) -> None:
    """Copy the studies of several storages into one.

    Merging the same again changes nothing. If anything fails, the target stays as it was.
    """
    from autotune.storage.merging.merge import merge as merge_storages

    target = storage_url(into)
    urls = list(dict.fromkeys(map(storage_url, sources)))
    if any(_is_same(url, target) for url in urls):
        msg = f"{into} is also one of the storages to copy from: name another target"
        raise typer.BadParameter(msg, param_hint="--into")
    done: list[Merged] = []

    def say(part: "Merged") -> None:
        done.append(part)
        if not as_json:
            _print_merged(part)

    merge_storages(urls, target, say, dry_run=dry_run)
    if as_json:
        print_json(
            {"into": hide_password(target), "dry_run": dry_run, "storages": [_merge_json(part) for part in done]}
        )
        return
    changed = any(part.changed for part in done)
    if dry_run:
        output().print("dry run: nothing was written")
    elif changed:
        output().print(f"all of it is in {hide_password(target)}: autotune storage list --storage {into}")
    else:
        output().print(f"nothing new for {hide_password(target)}")


def _is_same(url: str, other: str) -> bool:
    path, its = sqlite_path(url), sqlite_path(other)
    return url == other or (path is not None and its is not None and path.resolve() == its.resolve())


def _print_merged(part: "Merged") -> None:
    output().print(f"{part.source}:")
    for study in part.studies:
        output().print(f"  {study.sentence()}")
    if part.measurements:
        output().print(f"  {part.measurements} imported measurements: new")
    if part.replaced:
        output().print(f"  {part.replaced} imported measurements: replaced by those of more runs")
    if part.left_out:
        names = ", ".join(part.left_out)
        output().print(f"  left out, not made by autotune or never begun: {names}")
    if not (part.studies or part.measurements or part.replaced or part.left_out):
        output().print("  nothing")


def _merge_json(part: "Merged") -> dict[str, Any]:
    return asdict(part) | {"changed": part.changed}


def reread(
    name: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="The study's name, or its study file (./mine.toml).",
            autocompletion=study_names,
        ),
    ],
    changes: SetOption = None,
    storage: ExistingStorage = DEFAULT_STORAGE,
    stored_name: NameOption = None,
    as_json: AsJson = False,
) -> None:
    """Read the kept outputs of a study again.

    Nothing runs. `autotune study` does the same if only the rules for reading outputs have changed.
    """
    from autotune import studyfile
    from autotune.cli.placement import find_study_cluster, machine_and_launcher
    from autotune.coordination.session_settings import SessionSettings, default_runs
    from autotune.tuning.rereading import reread_study
    from autotune.tuning.session import study_file_of

    url = storage_url(storage)
    if name.endswith(".toml"):
        study = studyfile.load(studyfile.find(name), changes or [])
        stored_name = stored_name or study.name
    else:
        stored_name = stored_name or name
        study = study_file_of(url, stored_name)
        if changes:
            msg = f"changes a study file, so give the file: `autotune storage reread ./{name}.toml --set {changes[0]}`"
            raise typer.BadParameter(msg, param_hint="--set")
    machine, launcher, facts = machine_and_launcher(find_study_cluster(study), None, stored_name)
    settings = SessionSettings(url, stored_name, default_runs(url, stored_name), machine, launcher, facts=facts)
    with open_display() as display:
        found = reread_study(study, settings, display)
    if as_json:
        print_json(asdict(found))
    else:
        output().print(found.sentence())


def rename(
    name: StudyName,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
    storage: ExistingStorage = DEFAULT_STORAGE,
) -> None:
    """Rename a study.

    The folder of its runs is renamed, too. `autotune study FILE --name NEW` resumes it.
    """
    from autotune.coordination.upkeep import hold_unused
    from autotune.coordination.upkeep import rename as rename_study
    from autotune.studyfile import NAME

    if not re.fullmatch(NAME, new):
        msg = f"{new!r}: a study's name has letters, digits, '.', '_' and '-' only"
        raise typer.BadParameter(msg, param_hint="NEW")
    with hold_unused(storage_url(storage), name, "renamed") as (store, _):
        folder = rename_study(store, new)
    where = f"; its runs are in {folder}" if folder else ""
    output().print(f"renamed study {name!r} to {new!r}{where}; resume it with --name {new}")


def label(
    name: StudyName,
    tags: Annotated[list[str] | None, typer.Option("--tag", metavar="WORD", help="Add a tag. Repeatable.")] = None,
    untags: Annotated[
        list[str] | None, typer.Option("--untag", metavar="WORD", help="Remove a tag. Repeatable.")
    ] = None,
    note: Annotated[str | None, typer.Option("--note", metavar="TEXT", help='Replace the note; "" removes it.')] = None,
    archived: Annotated[
        bool | None, typer.Option("--archive/--unarchive", help="Leave it out of `autotune storage list`, or not.")
    ] = None,
    storage: ExistingStorage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Tag a study, add a note, or archive it.

    Without an option it prints the labels. The page shows and changes the same.
    """
    from autotune.records.labels import Labels
    from autotune.storage.readable_study import labels_of
    from autotune.storage.stored_study import open_stored_study

    url = storage_url(storage)
    before = labels_of(open_stored_study(url, name))
    kept = dict.fromkeys((*before.tags, *(tags or ())))
    try:
        labels = Labels(
            tuple(tag for tag in kept if tag not in (untags or ())),
            before.note if note is None else note.strip(),
            before.archived if archived is None else archived,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if labels != before:
        from autotune.storage.studies import StoredStudies

        StoredStudies(url).note(name, labels)
    if as_json:
        print_json(labels.to_dict())
    else:
        output().print(f"study {name!r}: {labels.text()}")


def delete(name: StudyName, storage: ExistingStorage = DEFAULT_STORAGE, yes: YesOption = False) -> None:
    """Delete a study, its runs and their folders."""
    from autotune.coordination.upkeep import delete as delete_study
    from autotune.coordination.upkeep import hold_unused

    with hold_unused(storage_url(storage), name, "deleted") as (store, lock):
        found = _ask_about_study("delete", store, yes=yes)
        lock.renew()
        delete_study(store, found)
    output().print(f"deleted study {name!r} and {_folders_text(found)}")


def reset(name: StudyName, storage: ExistingStorage = DEFAULT_STORAGE, yes: YesOption = False) -> None:
    """Remove all trials of a study.

    Its name and its study file stay.
    """
    from autotune.coordination.upkeep import hold_unused
    from autotune.coordination.upkeep import reset as reset_study

    with hold_unused(storage_url(storage), name, "reset") as (store, lock):
        found = _ask_about_study("reset", store, yes=yes)
        lock.renew()
        reset_study(store, found)
    output().print(f"removed all trials of study {name!r} and {_folders_text(found)}")


def clean(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The study's name. Default: all studies.", autocompletion=study_names),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="AGE", help="Only runs that ended longer ago (30d). Default: keep_days, or all."
        ),
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="Include failed runs, the winner's and the default's.")] = False,
    storage: ExistingStorage = DEFAULT_STORAGE,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: AsJson = False,
) -> None:
    """Remove run folders whose results are stored.

    No result is lost, but these outputs cannot be read again. `keep_days` stands under [runs] in the study file.
    """
    from autotune.coordination.upkeep import hold_unused, remove
    from autotune.storage.stored_study import open_stored_studies

    url = storage_url(storage)
    given_s = None if older_than is None else duration_s(older_than, "--older-than")
    cleaned: dict[str, dict[str, Any]] = {}
    declined: str | None = None
    for one in [name] if name is not None else [stored.name for stored in open_stored_studies(url)]:
        try:
            with hold_unused(url, one, "cleaned") as (store, lock):
                found, age_s = _find_outdated(store, given_s, whole=whole)
                if found.folders and not dry_run:
                    if not _agrees(f"study {one!r}: remove {_folders_text(found)}?", yes=yes):
                        declined = one
                        break
                    lock.renew()
                    remove(found)
        except BusyError as error:
            if name is not None:
                raise
            errors().print(f"not cleaned: {error}")
            continue
        left = 0 if dry_run else sum(folder.exists() for folder in found.folders)
        cleaned[one] = {
            "older_than_s": age_s,
            "folders": len(found.folders),
            "bytes": found.size_bytes,
            "kept": found.kept,
            "not_removable": left,
        }
        if not as_json:
            output().print(_text_of_cleaning(one, found, left, dry_run=dry_run))
    if as_json:
        print_json({"dry_run": dry_run, "studies": cleaned})
    if declined is not None:
        errors().print(f"stopped: study {declined!r} was not cleaned")
        raise typer.Exit(1)


def _find_outdated(store: "StudyStore", given_s: float | None, *, whole: bool) -> "tuple[Removable, float]":
    """Return the folders to remove, and their least age in seconds."""
    from autotune.tuning.retention import find_outdated_folders, retention_s

    age_s = (retention_s(store.definition) or 0.0) if given_s is None else given_s
    return find_outdated_folders(store, age_s, whole=whole), age_s


def _text_of_cleaning(name: str, found: "Removable", left: int, *, dry_run: bool) -> str:
    would = "would be " if dry_run else ""
    stay = "stays" if found.kept == 1 else "stay"
    kept = f"; {_count_text(found.kept)} {stay}" if found.kept else ""
    failed = f"; {left} of them could not be removed: look at their permissions" if left else ""
    return f"study {name!r}: {_folders_text(found)} {would}removed{kept}{failed}"


def _ask_about_study(what: str, store: "StudyStore", *, yes: bool) -> "Removable":
    """Ask whether to delete or reset a study; return the folders to remove with it."""
    from autotune.coordination.upkeep import find_removable

    found = find_removable(store)
    about = f"{len(store.trials())} trials with {len(store.runs())} runs, and {_folders_text(found)}"
    if not _agrees(f"{what} study {store.name!r}: {about}?", yes=yes):
        errors().print("nothing was changed")
        raise typer.Exit(1)
    return found


def _agrees(question: str, *, yes: bool) -> bool:
    """Ask the user to confirm what cannot be undone, unless `yes`; return whether the user agrees.

    Raises:
        typer.BadParameter: There is no terminal to ask at.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        msg = "there is no terminal to ask at: repeat the command with --yes"
        raise typer.BadParameter(msg, param_hint="--yes")
    return typer.confirm(plain_line(question), err=True)


def _folders_text(found: "Removable") -> str:
    """Return the number of folders, where they are and their size, in words."""
    if found.elsewhere:
        return f"0 folders of runs (they belong to {found.elsewhere})"
    around = {folder.parent for folder in found.folders}
    where = f" in {_near(next(iter(around)))}" if len(around) == 1 else ""
    return f"{_count_text(len(found.folders))} of runs{where} ({found.size_bytes / 1e6:.1f} MB)"


def _count_text(number: int) -> str:
    return "1 folder" if number == 1 else f"{number} folders"


def _near(folder: Path) -> Path:
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder
