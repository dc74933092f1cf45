"""`autotune merge`: several people's storages in one."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.common import output, print_json
from autotune.cli.options import AsJson
from autotune.storage.address import shown, sqlite_path, storage_url

if TYPE_CHECKING:
    from autotune.storage.merging.merge import Merged


def merge(
    sources: Annotated[list[str], typer.Argument(metavar="STORAGE", help="Files, or addresses, to take from.")],
    into: Annotated[
        str, typer.Option("--into", metavar="STORAGE", help="File, or address, to put them in; made if not there.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put the studies of several storages into one.

    Merging the same again changes nothing. If anything goes wrong, the target is as it was.
    """
    from autotune.storage.merging.merge import merge as merged

    target = storage_url(into)
    urls = list(dict.fromkeys(map(storage_url, sources)))
    if any(_is_same(url, target) for url in urls):
        msg = f"{into} is among the storages to take from, too: name another one"
        raise typer.BadParameter(msg, param_hint="--into")
    done: list[Merged] = []

    def say(part: "Merged") -> None:
        done.append(part)
        if not as_json:
            _print(part)

    merged(urls, target, say, dry_run=dry_run)
    if as_json:
        print_json({"into": shown(target), "dry_run": dry_run, "storages": [_as_json(part) for part in done]})
        return
    changed = any(part.changed for part in done)
    if dry_run:
        output().print("dry run: nothing was written", markup=False)
    elif changed:
        output().print(f"all of it is in {shown(target)}: autotune list --storage {into}", markup=False)
    else:
        output().print(f"nothing new for {shown(target)}", markup=False)


def _is_same(url: str, other: str) -> bool:
    path, its = sqlite_path(url), sqlite_path(other)
    return url == other or (path is not None and its is not None and path.resolve() == its.resolve())


def _print(part: "Merged") -> None:
    output().print(f"{part.source}:", markup=False)
    for study in part.studies:
        output().print(f"  {study.sentence()}", markup=False)
    if part.measurements:
        output().print(f"  {part.measurements} imported measurements: new", markup=False)
    if part.replaced:
        output().print(f"  {part.replaced} imported measurements: replaced by those of more runs", markup=False)
    if part.left_out:
        names = ", ".join(part.left_out)
        output().print(f"  left out, not made by autotune or never begun: {names}", markup=False)
    if not (part.studies or part.measurements or part.replaced or part.left_out):
        output().print("  nothing", markup=False)


def _as_json(part: "Merged") -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(part) | {"changed": part.changed}
