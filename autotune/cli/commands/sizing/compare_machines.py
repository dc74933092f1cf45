"""`autotune compare-machines`: which of two machines is faster, from which size on, and where nobody knows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import known_storages, output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AlsoOption, AsJson, Storage, StudyArgument
from autotune.cli.study_request import choose
from autotune.errors import AutotuneError, CannotRunHereError

if TYPE_CHECKING:
    from autotune.performance.crossover.comparison import Ratio
    from autotune.performance.crossover.question import Crossover
    from autotune.records.measurement import Facts, Measured
    from spaces import Value


def compare_machines(
    name: StudyArgument,
    machines: Annotated[
        str,
        typer.Option("--machines", metavar="A,B", help="Two machines that were measured, or that are described."),
    ],
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at", metavar="NAME=VALUE", help="Only at this value of a parameter or of the workload. Repeatable."
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option("--over", metavar="NAME", help="Say from which value of this size on a machine is faster."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric", metavar="NAME", help="The figure; by default that of which most was measured of the two."
        ),
    ] = None,
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Number of nodes of each machine.")] = 1,
    storage: Storage = DEFAULT_STORAGE,
    also: AlsoOption = None,
    as_json: AsJson = False,
) -> None:
    """Say which of two machines is faster, or that nobody knows.

    The best values of each workload are compared; with --at, those of the configurations that have such values. Nothing
    runs: what was not measured on both machines is predicted, as far as pairs of other machines, left out, allow.
    """
    from autotune.performance.crossover.question import CrossoverError, crossover
    from autotune.performance.measurements.dataset import measurements, program_of

    study = choose(name, None, None)
    program = program_of(study.objective, study.name, mixed=bool(study.inputs))
    known = measurements(known_storages(storage, also or (), may_be_new=True), program)
    rows = [row for row in known if row.value is not None and row.value > 0.0]
    if not rows:
        msg = (
            f"nothing was measured of {program!r}: tune it on some machines, or `autotune import` measurements that "
            "were made elsewhere"
        )
        raise CannotRunHereError(msg)
    asked = dict(_placed(machine, nodes, rows) for machine in _two(machines, rows))
    if len(asked) < 2:
        msg = f"{machines!r} names one machine twice: name two, --machines A,B"
        raise typer.BadParameter(msg, param_hint="--machines")
    try:
        found = crossover(rows, asked, dict(_value(given, rows) for given in at or ()), over, metric)
    except CrossoverError as error:
        raise AutotuneError(str(error)) from error
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)


def _two(given: str, rows: "Sequence[Measured]") -> tuple[str, str]:
    """Return the two machines of A,B; a name that was measured may have a comma itself."""
    known = {row.setting.machine for row in rows}
    parts = given.split(",")
    splits = [(",".join(parts[:at]).strip(), ",".join(parts[at:]).strip()) for at in range(1, len(parts))]
    splits.sort(key=lambda pair: -sum(machine in known for machine in pair))
    if not splits or not all(splits[0]):
        msg = f"{given!r} does not name two machines: --machines A,B"
        raise typer.BadParameter(msg, param_hint="--machines")
    return splits[0]


def _placed(machine: str, nodes: int, rows: "Sequence[Measured]") -> "tuple[str, Facts]":
    """Return the name of so many nodes of a machine, and their facts: as measured, or as described."""
    from dataclasses import replace

    from autotune.performance.installation import hardware
    from autotune.performance.predict import target_of

    there = {row.setting.place: row.setting for row in rows if row.setting.nodes == nodes}
    exact = [setting for setting in there.values() if setting.machine == machine]
    if exact:
        return exact[0].place, exact[0].machine_facts
    try:
        target = target_of(machine, nodes)
    except AutotuneError as error:
        names = "; ".join(sorted({row.setting.machine for row in rows}))
        msg = f"{error}\nmeasured were: {names}"
        raise AutotuneError(msg) from error
    builds = [one for one in there.values() if hardware(one.machine, one.machine_facts) == target.machine]
    if len(builds) > 1:
        names = "; ".join(sorted(one.machine for one in builds))
        msg = f"--machines {machine}: several builds were measured there, name one of them: {names}"
        raise AutotuneError(msg)
    if builds:
        return builds[0].place, builds[0].machine_facts
    place = replace(rows[0].setting, machine=target.machine, machine_facts=target.facts, nodes_known=True).place
    return place, target.facts


def _value(given: str, rows: "Sequence[Measured]") -> "tuple[str, Value]":
    """Return the name and the value of NAME=VALUE: a number, unless words were measured, such as a version 7.0."""
    name, equals, text = (part.strip() for part in given.partition("="))
    if not equals or not name or not text:
        msg = f"{given!r} is no NAME=VALUE"
        raise typer.BadParameter(msg, param_hint="--at")
    known = [facts[name] for row in rows for facts in (row.configuration, row.setting.workload_facts) if name in facts]
    if known and all(isinstance(value, str) for value in known):
        return name, text
    words: dict[str, Value] = {"true": True, "false": False}
    if text in words:
        return name, words[text]
    for number in (int, float):
        try:
            return name, number(text)
        except ValueError:
            continue
    return name, text


def _print(found: "Crossover") -> None:
    from rich.table import Table

    first, second = found.machines
    table = Table(found.over or "workload", f"{first} : {second}".replace("[", r"\["), "faster")
    for ratio in found.ratios:
        size = ratio.case.workload if found.over is None else f"{ratio.case.facts[found.over]}"
        table.add_row(size.replace("[", r"\["), *(cell.replace("[", r"\[") for cell in _cells(found, ratio)))
    output().print(table)
    for why in dict.fromkeys(ratio.why for ratio in found.ratios if ratio.why):
        output().print(f"not known: {why}", markup=False)
    predicted = any(ratio.speed is not None and not ratio.measured for ratio in found.ratios)
    how = f"; intervals come from pairs of the {found.others} other machines, left out" if predicted else ""
    output().print(f"ratios by {found.metric.name}, above 1 where {first} is better{how}", markup=False)
    output().print(found.sentence(), markup=False)


def _cells(found: "Crossover", ratio: "Ratio") -> tuple[str, str]:
    if ratio.speed is None:
        return "not known", ratio.answer.value
    told = f"{ratio.speed.value:.3g}, measured" if ratio.measured else str(ratio.speed)
    return told, found.faster(ratio)
