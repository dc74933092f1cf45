"""`autotune model`: what the performance model knows, and how well it predicts what it has not seen."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from autotune.cli.common import DEFAULT_STORAGE, AsJson, Storage, drawable, errors, known_storages, output, print_json
from autotune.errors import CannotRunHereError
from autotune.studyfile import suggestion

if TYPE_CHECKING:
    from autotune.performance.accuracy import By, Choice, Held
    from autotune.performance.measured import Measured
    from autotune.pictures import Point

_BY: tuple["By", ...] = ("machine", "workload")


def model(
    program: Annotated[
        str | None, typer.Argument(metavar="[PROGRAM]", help="Judge the model of this program; all are listed without.")
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="STORAGE", help="Learn from the measurements in it, too. Repeatable."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Draw predicted over measured values (.png, .svg, .pdf).", callback=drawable),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what was measured of each program, or how well a program's model predicts what it has not seen."""
    from autotune.performance.gather import measurements  # noqa: PLC0415  Optuna takes a second to import

    known = measurements(known_storages(storage, also or ()))
    if program is None:
        _list(known, as_json=as_json)
        return
    own = [one for one in known if one.setting.program == program]
    if not own:
        names = sorted({one.setting.program for one in known})
        there = ", ".join(names) or "nothing"
        msg = f"nothing was measured of {program!r}{suggestion(program, names)}; there is: {there}"
        raise CannotRunHereError(msg)
    from autotune.performance.accuracy import left_out  # noqa: PLC0415  XGBoost and scikit-learn take a second, too
    from autotune.pictures import draw_calibration  # noqa: PLC0415

    found: dict[By, list[Held]] = {}
    for by in _BY:
        found[by] = []
        for held in left_out(own, by):
            errors().print(f"predicted without its {by}: {held.setting.place}, {held.setting.workload}", markup=False)
            found[by].append(held)
    if picture is not None:
        draw_calibration({f"without its {by}": _points(rows) for by, rows in found.items()}, picture)
    if as_json:
        print_json({by: [_row(held) for held in rows] for by, rows in found.items()})
        return
    _fitted_on(own)
    for by, rows in found.items():
        _report(by, rows)


def _list(known: "Sequence[Measured]", *, as_json: bool) -> None:
    by_program = {name: [one for one in known if one.setting.program == name] for name in _programs(known)}
    if as_json:
        print_json({name: _counts(rows) for name, rows in by_program.items()})
        return
    table = Table("program", "machines", "workloads", "values", "bounds", "failures")
    for name, rows in by_program.items():
        table.add_row(name, *map(str, _counts(rows).values()))
    output().print(table)
    output().print("autotune model PROGRAM tells how well a program is predicted", markup=False)


def _programs(known: "Sequence[Measured]") -> list[str]:
    return sorted({one.setting.program for one in known})


def _counts(rows: "Sequence[Measured]") -> dict[str, int]:
    return {
        "machines": len({one.setting.place for one in rows}),
        "workloads": len({one.setting.workload for one in rows}),
        "values": sum(one.value is not None for one in rows),
        "bounds": sum(one.bound is not None for one in rows),
        "failures": sum(one.failed for one in rows),
    }


def _fitted_on(own: "Sequence[Measured]") -> None:
    sources = list(dict.fromkeys(one.setting.source for one in own))
    table = Table("machine", "metric", "workloads", "values", "source", title="what it is fitted on")
    rows = list(dict.fromkeys((one.setting.place, one.setting.metric.name, one.setting.source) for one in own))
    for place, metric, source in rows:
        mine = [one for one in own if (one.setting.place, one.setting.metric.name) == (place, metric)]
        mine = [one for one in mine if one.setting.source == source]
        workloads, values = {one.setting.workload for one in mine}, sum(one.value is not None for one in mine)
        table.add_row(place, metric, str(len(workloads)), str(values), f"({sources.index(source) + 1})")
    output().print(table)
    for number, source in enumerate(sources, start=1):
        output().print(f"({number}) {source}", markup=False)


def _report(by: str, rows: "Sequence[Held]") -> None:
    if not rows:
        output().print(f"no {by} could be left out: at least two are needed, with 3 values by the same metric")
        return
    names = list(dict.fromkeys(name for held in rows for name in held.baselines))
    table = Table(title=f"predicted without the {by}'s own measurements: best value / value, first and best of five")
    for title in ("machine", "workload", "values", "default", "model", *names):
        table.add_column(title)
    for held in rows:
        default = "" if held.default is None else f"{held.default:.2f}"
        told = [_choice(held.choice), *(_choice(held.baselines.get(name)) for name in names)]
        table.add_row(held.setting.place, held.setting.workload, str(held.values), default, *told)
    output().print(table)
    times = Table(title=f"predicted values, without the {by}'s own measurements")
    for title in ("machine", "workload", "median error", "rank correlation", "in 90 % intervals", "width", "doubts"):
        times.add_column(title)
    for held in rows:
        if held.times is None:
            told = ["no answer", "", "", ""]
        else:
            one = held.times
            told = [f"{one.error:.0%}", f"{one.correlation:.2f}", f"{one.covered:.0%}", f"x {one.width:.2f}"]
        times.add_row(held.setting.place, held.setting.workload, *told, "; ".join(held.doubts))
    output().print(times)


def _choice(found: "Choice | None") -> str:
    return "-" if found is None else f"{found.first:.2f} {found.best:.2f}"


def _row(held: "Held") -> dict[str, Any]:
    setting = held.setting
    named = {"machine": setting.place, "workload": setting.workload, "metric": setting.metric.name}
    return named | {name: value for name, value in asdict(held).items() if name != "setting"}


def _points(rows: "Sequence[Held]") -> "dict[str, Sequence[Point]]":
    return {
        f"{held.setting.place}, {held.setting.workload}": held.times.predicted
        for held in rows
        if held.times is not None
    }
