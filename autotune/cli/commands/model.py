"""`autotune model`: the data of the performance model, and how well it predicts machines and workloads new to it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.common import drawable, errors, known_storages, output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AlsoOption, AsJson, Storage
from autotune.errors import CannotRunHereError
from spaces.parameters.errors import did_you_mean

if TYPE_CHECKING:
    from autotune.performance.accuracy import By, Choice, HeldOutSetting, Times
    from autotune.pictures import Point
    from autotune.records.measurement import Measured

_BY: tuple["By", ...] = ("machine", "workload")


def model(
    program: Annotated[
        str | None,
        typer.Argument(metavar="[PROGRAM]", help="Judge this program's model. Default: list all programs."),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    also: AlsoOption = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Draw predicted against measured values (.png, .svg, .pdf).", callback=drawable),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the model's data, and how well it predicts.

    Without PROGRAM: how many measurements there are of each program. With it: how well the program's model predicts
    machines and workloads that are left out of its data.
    """
    from autotune.performance.measurements.dataset import measurements

    known = measurements(known_storages(storage, also or ()))
    if program is None:
        if picture is not None:
            msg = "a picture is drawn of one program: autotune model PROGRAM --picture FILE"
            raise typer.BadParameter(msg, param_hint="--picture")
        _list(known, as_json=as_json)
        return
    own = [one for one in known if one.setting.program == program]
    if not own:
        names = sorted({one.setting.program for one in known})
        there = ", ".join(names) or "nothing"
        msg = f"nothing was measured of {program!r}{did_you_mean(program, names)}; there is: {there}"
        raise CannotRunHereError(msg)
    from autotune.performance.accuracy import left_out
    from autotune.pictures import draw_calibration

    found: dict[By, list[HeldOutSetting]] = {}
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
    from rich.table import Table

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
    from rich.table import Table

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


def _report(by: "By", rows: "Sequence[HeldOutSetting]") -> None:
    from rich.table import Table

    if not rows:
        output().print(f"no {by} could be left out: at least two are needed, with 3 values by the same metric")
        return
    names = list(dict.fromkeys(name for held in rows for name in held.baselines))
    table = Table(
        title=f"without the {by}'s own measurements: best / value of the first proposal, and of the best of five"
    )
    for title in (by, "settings", "values", "default", "model", *names):
        table.add_column(title, overflow="fold")
    times = Table(title=f"values predicted without the {by}'s own measurements")
    for title in (by, "error", "rank", "in 90 %", "width", "no answer"):
        times.add_column(title)
    groups: dict[str, list[HeldOutSetting]] = defaultdict(list)
    for held in rows:
        groups[held.setting.machine if by == "machine" else held.setting.workload].append(held)
    for name, group in groups.items():
        told = [_choices([held.choice for held in group])]
        told += [_choices([held.baselines.get(one) for held in group]) for one in names]
        defaults = [held.default for held in group if held.default is not None]
        default = f"{median(defaults):.2f}" if defaults else ""
        table.add_row(name, str(len(group)), str(sum(held.values for held in group)), default, *told)
        times.add_row(name, *_times([held.times for held in group]))
    output().print(table)
    output().print(times)
    for name, group in groups.items():
        for doubt in dict.fromkeys(doubt for held in group for doubt in held.doubts):
            output().print(f"{name}: {doubt}", markup=False)


def _choices(found: "Sequence[Choice | None]") -> str:
    there = [one for one in found if one is not None]
    if not there:
        return "-"
    return f"{median(one.first for one in there):.2f} {median(one.best for one in there):.2f}"


def _times(found: "Sequence[Times | None]") -> list[str]:
    there = [one for one in found if one is not None]
    refused = str(len(found) - len(there) or "")
    if not there:
        return ["", "", "", "", refused]
    ranks = [one.correlation for one in there if not isnan(one.correlation)]
    return [
        f"{median(one.error for one in there):.0%}",
        f"{median(ranks):.2f}" if ranks else "",
        f"{fmean(one.covered for one in there):.0%}",
        f"x {median(one.width for one in there):.2f}",
        refused,
    ]


def _row(held: "HeldOutSetting") -> dict[str, Any]:
    setting = held.setting
    named = {"machine": setting.place, "workload": setting.workload, "metric": setting.metric.name}
    row = named | {name: value for name, value in asdict(held).items() if name != "setting"}
    if held.times is not None and isnan(held.times.correlation):
        # JSON has no NaN.
        row["times"]["correlation"] = None
    return row


def _points(rows: "Sequence[HeldOutSetting]") -> "dict[str, Sequence[Point]]":
    return {
        f"{held.setting.place}, {held.setting.workload}": held.times.predicted
        for held in rows
        if held.times is not None
    }
