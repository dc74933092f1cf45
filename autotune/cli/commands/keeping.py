"""`autotune reread`, `rename`, `label`, `reset`, `delete` and `clean`: what is kept of studies that were made."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import displayed, errors, output, print_json
from autotune.cli.completion import study_names
from autotune.cli.options import DEFAULT_STORAGE, AsJson, SetOption, Storage, StudyName
from autotune.cli.removal import YesOption, ask, count_text, folders_text
from autotune.cli.where import cluster_of, machine_and_launcher
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.coordination.upkeep import Removable
    from autotune.storage.study_store import StudyStore


def reread(
    name: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="The study's name, or its study file (./mine.toml) as it is now.",
            autocompletion=study_names,
        ),
    ],
    changes: SetOption = None,
    storage: Storage = DEFAULT_STORAGE,
    stored_name: Annotated[
        str | None, typer.Option("--name", help="Name of the study in the storage; by default that of the study file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read the kept outputs of a study's runs again.

    Nothing runs. `autotune study` does so by itself when only the way of reading has changed.
    """
    from autotune import studyfile
    from autotune.coordination.session_settings import SessionSettings, default_runs
    from autotune.tuning.rereading import reread_study
    from autotune.tuning.session import stored_study

    url = storage_url(storage)
    if name.endswith(".toml"):
        study = studyfile.load(studyfile.find(name), changes or [])
        stored_name = stored_name or study.name
    else:
        stored_name = stored_name or name
        study = stored_study(url, stored_name)
        if changes:
            msg = f"changes a study file: give that, `autotune reread ./{name}.toml --set {changes[0]}`"
            raise typer.BadParameter(msg, param_hint="--set")
    machine, launcher, facts = machine_and_launcher(cluster_of(study), None, stored_name)
    settings = SessionSettings(url, stored_name, default_runs(url, stored_name), machine, launcher, facts=facts)
    with displayed() as display:
        found = reread_study(study, settings, display)
    if as_json:
        print_json(asdict(found))
    else:
        output().print(found.sentence(), markup=False)


def rename(
    name: StudyName,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """Give a study another name.

    The folder of its runs is renamed, too. `autotune study FILE --name NEW` goes on with it.
    """
    import re

    from autotune.coordination.upkeep import rename as renamed
    from autotune.coordination.upkeep import unused
    from autotune.studyfile import NAME

    if not re.fullmatch(NAME, new):
        msg = f"{new!r}: a study's name has letters, digits, '.', '_' and '-' only"
        raise typer.BadParameter(msg, param_hint="NEW")
    with unused(storage_url(storage), name, "renamed") as store:
        folder = renamed(store, new)
    where = f"; its runs are in {folder}" if folder else ""
    output().print(f"study {name!r} is called {new!r} now{where}: go on with --name {new}", markup=False)


def label(
    name: StudyName,
    tags: Annotated[list[str] | None, typer.Option("--tag", metavar="WORD", help="Add a tag. Repeatable.")] = None,
    untags: Annotated[
        list[str] | None, typer.Option("--untag", metavar="WORD", help="Take a tag away. Repeatable.")
    ] = None,
    note: Annotated[
        str | None,
        typer.Option("--note", metavar="TEXT", help='A text, in place of the one that there is; "" removes it.'),
    ] = None,
    archived: Annotated[
        bool | None, typer.Option("--archive/--unarchive", help="Leave it out of `autotune list`, or no longer.")
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Tag a study, note a text of it, or archive it.

    The page shows and changes the same. Nothing that was measured changes. Without an option it prints what is noted.
    """
    from autotune.records.labels import Labels
    from autotune.storage.readable import labels_of
    from autotune.storage.stored_study import stored_study

    url = storage_url(storage)
    before = labels_of(stored_study(url, name))
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
        output().print(f"study {name!r}: {labels.text()}", markup=False)


def delete(name: StudyName, storage: Storage = DEFAULT_STORAGE, yes: YesOption = False) -> None:
    """Delete a study: its trials, its runs and their folders."""
    from autotune.coordination.upkeep import delete as deleted
    from autotune.coordination.upkeep import unused

    with unused(storage_url(storage), name, "deleted") as store:
        found = _asked("delete", store, yes=yes)
        deleted(store, found)
    output().print(f"study {name!r} is deleted, with {folders_text(found)}", markup=False)


def reset(name: StudyName, storage: Storage = DEFAULT_STORAGE, yes: YesOption = False) -> None:
    """Forget all trials of a study; its name and file stay."""
    from autotune.coordination.upkeep import reset as emptied
    from autotune.coordination.upkeep import unused

    with unused(storage_url(storage), name, "reset") as store:
        found = _asked("reset", store, yes=yes)
        emptied(store, found)
    output().print(f"study {name!r} has no trials any more; {folders_text(found)} went with them", markup=False)


def clean(
    name: Annotated[
        str | None,
        typer.Argument(help="The study's name; by default all studies of the storage.", autocompletion=study_names),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    failed: Annotated[
        bool, typer.Option("--failed", help="Also those of failed runs, which show why they failed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove the folders of runs whose results are stored.

    No result is lost, but these outputs cannot be read again. Those of failed runs stay, unless --failed is given.
    """
    from autotune.coordination.upkeep import removable, remove, unused
    from autotune.errors import BusyError
    from autotune.storage.stored_study import stored_studies

    url = storage_url(storage)
    done: dict[str, Removable] = {}
    for one in [name] if name is not None else [stored.name for stored in stored_studies(url)]:
        try:
            with unused(url, one, "cleaned") as store:
                done[one] = removable(store, lambda _, run: not failed and run.outcome.failure is not None)
                if not dry_run:
                    remove(done[one])
        except BusyError as error:
            if name is not None:
                raise
            errors().print(f"left as it is: {error}", markup=False)
    if as_json:
        studies = {
            one: {"folders": len(found.folders), "bytes": found.size_bytes, "kept": found.kept}
            for one, found in done.items()
        }
        print_json({"dry_run": dry_run, "studies": studies})
        return
    for one, found in done.items():
        failures = (
            f"; kept: {count_text(found.kept)} of failed runs (--failed removes those, too)" if found.kept else ""
        )
        would = "would be " if dry_run else ""
        output().print(f"study {one!r}: {folders_text(found)} {would}removed{failures}", markup=False)


def _asked(what: str, store: "StudyStore", *, yes: bool) -> "Removable":
    """Return the folders that go with a study, when the user has agreed to that."""
    from autotune.coordination.upkeep import removable

    found = removable(store)
    about = f"{len(store.trials())} trials with {len(store.runs())} runs, and {folders_text(found)}"
    ask(f"{what} study {store.name!r}: {about}?", yes=yes)
    return found
