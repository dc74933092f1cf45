"""`autotune storage import`: import measurements made elsewhere, so that the performance model learns from them."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.common import errors, output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, DryRunOption, Storage
from autotune.errors import ImportFileError
from autotune.storage.address import hide_password, storage_url

_SHIPPED = "ships with autotune"


def import_(
    source_file: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH",
            help="A CSV file, a mapping with rows, a Kernel Tuner cache, T4 results, or outputs of pw.x.",
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option("--mapping", metavar="FILE", help="Read the meaning of CSV columns from this TOML file."),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option("--machine", metavar="NAME", help="The machine, if the file does not name it."),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option("--program", metavar="NAME", help="The program, if the file does not name it."),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option("--workload", metavar="NAME", help="The workload, if the file does not name it."),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", min=1, help="The number of nodes, if the file does not say."),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="TEXT", help="Source of the measurements. Default: the file's path."),
    ] = None,
    dry_run: DryRunOption = False,
    listed: Annotated[bool, typer.Option("--list", help="List imported and shipped measurements.")] = False,
    remove: Annotated[
        str | None, typer.Option("--remove", metavar="SOURCE", help="Remove the measurements of this source.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Import measurements made elsewhere.

    The performance model learns from them. Importing the same file again changes nothing.
    """
    if [source_file is not None, listed, remove is not None].count(True) != 1:
        msg = "give one of: a file or a folder, --list, --remove SOURCE"
        raise typer.BadParameter(msg)
    if listed:
        _list(storage, as_json=as_json)
    elif remove is not None:
        _remove(storage, remove, as_json=as_json)
    else:
        assert source_file is not None
        stated = None if nodes is None else str(nodes)
        given = {"machine": machine, "program": program, "workload": workload, "source": source, "nodes": stated}
        _import(source_file, mapping, given, storage, dry_run=dry_run, as_json=as_json)


def _import(
    path: Path,
    mapping: Path | None,
    given: dict[str, str | None],
    storage: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    from autotune.performance.measurements.files import read_any
    from autotune.performance.measurements.machine_names import find_description, find_machine_facts
    from autotune.storage.measurement_store import Added, MeasurementStore

    imported = read_any(path, mapping, given, find_machine_facts)
    machines = dict.fromkeys(row.setting.machine for row in imported.measured)
    unknown = [machine for machine in machines if find_description(given["machine"] or machine) is None]
    if not imported.measured:
        reasons = "".join(f"\n  left out: {words}" for words in imported.left_out)
        msg = f"no measurement in {path} ({imported.kind}){reasons}"
        raise ImportFileError(msg)
    url = storage_url(storage)
    added = Added() if dry_run else MeasurementStore.create(url).add(imported.measured)
    if as_json:
        machines_of = {"unknown_machines": unknown, "dry_run": dry_run}
        print_json(imported.to_dict() | machines_of | asdict(added))
        return
    output().print(imported.text())
    for name in unknown:
        words = "only the name of this machine is known, so the model learns little from it"
        errors().print(f"{name}: {words}; describe it with `autotune machine`")
    under = f" (some under {', '.join(added.sources)})" if added.sources else ""
    result = (
        "dry run: nothing was imported"
        if dry_run
        else f"{hide_password(url)}: {added.new} new, {added.changed} changed, {added.same} were there already{under}"
    )
    output().print(result)


def _list(storage: str, *, as_json: bool) -> None:
    from autotune.performance.measurements.shipped import load_shipped_measurements
    from autotune.storage.address import sqlite_path
    from autotune.storage.measurement_store import MeasurementStore

    url = storage_url(storage)
    path = sqlite_path(url)
    kept = [] if path is not None and not path.is_file() else MeasurementStore.read(url).sources()
    rows = [asdict(row) | {"shipped": False} for row in kept]
    of: dict[tuple[str, str], int] = {}
    for measurement in load_shipped_measurements():
        key = (measurement.setting.source, measurement.setting.program)
        of[key] = of.get(key, 0) + 1
    rows += [{"source": key[0], "program": key[1], "rows": count, "shipped": True} for key, count in of.items()]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        where = _SHIPPED if row["shipped"] else hide_password(url)
        output().print(f"{row['rows']:>6}  {row['program']}, {where}: {row['source']}")


def _remove(storage: str, source: str, *, as_json: bool) -> None:
    from autotune.storage.measurement_store import MeasurementStore

    url = storage_url(storage)
    known = [row.source for row in MeasurementStore.read(url).sources()]
    if source not in known:
        listed = "\n".join(f"  {name}" for name in dict.fromkeys(known)) or "  none"
        msg = f"{hide_password(url)} has no measurements of source {source!r}; its sources:\n{listed}"
        raise ImportFileError(msg)
    gone = MeasurementStore.create(url).remove(source)
    if as_json:
        print_json({"source": source, "removed": gone})
    else:
        output().print(f"{hide_password(url)}: removed {gone} measurements of {source}")
