"""`autotune model`: show the data of the performance model, and how well it predicts new machines and workloads."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from statistics import fmean, median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.common import errors, known_storages, output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AlsoOption, AsJson, PictureOption, Storage
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
        typer.Argument(metavar="PROGRAM", help="Test the model of this program. Default: list programs."),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    also: AlsoOption = None,
    picture: PictureOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the model's data, and how well it predicts.

    Without PROGRAM it counts the measurements of each program. With it, it predicts machines and workloads that are
    left out of the data.
    """
    from autotune.performance.measurements.dataset import measurements

    known = measurements(known_storages(storage, also or ()))
    if program is None:
        if picture is not None:
            msg = "a picture shows one program: autotune model PROGRAM --picture FILE"
            raise typer.BadParameter(msg, param_hint="--picture")
        _list(known, as_json=as_json)
        return
    own = [row for row in known if row.setting.program == program]
    if not own:
        names = sorted({row.setting.program for row in known})
        known_names = ", ".join(names) or "none"
        msg = f"no measurements of {program!r}{did_you_mean(program, names)}; programs with measurements: {known_names}"
        raise CannotRunHereError(msg)
    from autotune.performance.accuracy import judge_held_out
    from autotune.pictures import draw_calibration

    held_out: dict[By, list[HeldOutSetting]] = {}
    for by in _BY:
        held_out[by] = []
        for held in judge_held_out(own, by):
            errors().print(f"predicted without its {by}: {held.setting.place}, {held.setting.workload}")
            held_out[by].append(held)
    if picture is not None:
        draw_calibration({f"without its {by}": _points(rows) for by, rows in held_out.items()}, picture)
    if as_json:
        print_json({by: [_row(held) for held in rows] for by, rows in held_out.items()})
        return
    _print_data(own)
    for by, rows in held_out.items():
        _print_accuracy(by, rows)


def _list(known: "Sequence[Measured]", *, as_json: bool) -> None:
    from rich.table import Table

    by_program = {name: [row for row in known if row.setting.program == name] for name in _programs(known)}
    if as_json:
        print_json({name: _counts(rows) for name, rows in by_program.items()})
        return
    table = Table("program", "machines", "workloads", "values", "bounds", "failures")
    for name, rows in by_program.items():
        table.add_row(name, *map(str, _counts(rows).values()))
    output().print(table)
    output().print("autotune model PROGRAM shows how well the model predicts a program")


def _programs(known: "Sequence[Measured]") -> list[str]:
    return sorted({row.setting.program for row in known})


def _counts(rows: "Sequence[Measured]") -> dict[str, int]:
    return {
        "machines": len({row.setting.place for row in rows}),
        "workloads": len({row.setting.workload for row in rows}),
        "values": sum(row.value is not None for row in rows),
        "bounds": sum(row.bound is not None for row in rows),
        "failures": sum(row.failed for row in rows),
    }


def _print_data(own: "Sequence[Measured]") -> None:
    from rich.table import Table

    sources = list(dict.fromkeys(row.setting.source for row in own))
    table = Table("machine", "metric", "workloads", "values", "source", title="what it is fitted on")
    groups = list(dict.fromkeys((row.setting.place, row.setting.metric.name, row.setting.source) for row in own))
    for machine, metric, source in groups:
        mine = [row for row in own if (row.setting.place, row.setting.metric.name) == (machine, metric)]
        mine = [row for row in mine if row.setting.source == source]
        workloads, values = {row.setting.workload for row in mine}, sum(row.value is not None for row in mine)
        number = sources.index(source) + 1
        table.add_row(machine, metric, str(len(workloads)), str(values), f"({number})")
    output().print(table)
    for number, source in enumerate(sources, start=1):
        output().print(f"({number}) {source}")


def _print_accuracy(by: "By", rows: "Sequence[HeldOutSetting]") -> None:
    from rich.table import Table

    if not rows:
        output().print(f"no {by} could be left out: this takes two or more with 3 values of the same metric")
        return
    table = Table(
        title=f"without the {by}'s own measurements: best / value of the first proposal, and of the best of five"
    )
    for title in (by, "settings", "values", "default", "model"):
        table.add_column(title, overflow="fold")
    times = Table(title=f"values predicted without the {by}'s own measurements")
    for title in (by, "error", "rank", "in interval", "width", "no answer"):
        times.add_column(title)
    groups: dict[str, list[HeldOutSetting]] = defaultdict(list)
    for held in rows:
        groups[held.setting.machine if by == "machine" else held.setting.workload].append(held)
    for name, group in groups.items():
        defaults = [held.default for held in group if held.default is not None]
        default = f"{median(defaults):.2f}" if defaults else ""
        values, choices = str(sum(held.values for held in group)), _choices([held.choice for held in group])
        table.add_row(name, str(len(group)), values, default, choices)
        times.add_row(name, *_times([held.times for held in group]))
    output().print(table)
    output().print(times)
    for name, group in groups.items():
        for doubt in dict.fromkeys(doubt for held in group for doubt in held.doubts):
            output().print(f"{name}: {doubt}")


def _choices(choices: "Sequence[Choice | None]") -> str:
    there = [choice for choice in choices if choice is not None]
    if not there:
        return "-"
    return f"{median(choice.first for choice in there):.2f} {median(choice.best for choice in there):.2f}"


def _times(times: "Sequence[Times | None]") -> list[str]:
    there = [entry for entry in times if entry is not None]
    refused = str(len(times) - len(there) or "")
    if not there:
        return ["", "", "", "", refused]
    ranks = [entry.correlation for entry in there if not isnan(entry.correlation)]
    return [
        f"{median(entry.error for entry in there):.0%}",
        f"{median(ranks):.2f}" if ranks else "",
        f"{fmean(entry.covered for entry in there):.0%}",
        f"x {median(entry.width for entry in there):.2f}",
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
        f"{held.setting.place}, {held.setting.workload}, {held.setting.metric.name}": held.times.predicted
        for held in rows
        if held.times is not None
    }
