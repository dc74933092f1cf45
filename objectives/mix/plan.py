"""The plan of several inputs: their plans, joined."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum
from typing import Any

from launchers import STDERR, STDOUT
from objectives.base import Metric, Output, Plan, PlanError, Reading, Readings
from objectives.joint import join_spaces, merge_by_name
from objectives.mix.objective import INPUTS, MixInput, MixObjective, name_for_input, read_inputs
from spaces import Configuration, SpaceError


@dataclass(frozen=True)
class PlannedInput:
    """One input of a mix: its weight in relation to the others, and its own plan."""

    name: str
    weight: float
    plan: Plan


def join_inputs(inputs: Sequence[PlannedInput]) -> Plan:
    """Return the plan whose objective is the mix of the inputs.

    Raises:
        PlanError: They cannot be mixed; all reasons are reported.
    """
    errors = differences(inputs)
    named = [(one.name, one.plan) for one in inputs]
    try:
        space = join_spaces(named)
    except SpaceError as error:
        raise PlanError([*errors, *error.problems]) from error
    if errors:
        raise PlanError(errors)
    total = fsum(one.weight for one in inputs)
    everywhere = {parameter.name for parameter in space.parameters}
    mixed = tuple(
        MixInput(
            one.name,
            one.weight / total,
            one.plan.objective,
            frozenset(everywhere - {parameter.name for parameter in one.plan.parameters}),
        )
        for one in inputs
    )
    plans = [one.plan for one in inputs]
    shares = ", ".join(f"{one.name} {one.share:.6g}" for one in sorted(mixed, key=lambda one: one.name))
    return Plan(
        objective=MixObjective(mixed),
        parameters=space.parameters,
        constraints=space.constraints,
        facts=space.facts,
        identity={"mix": shares} | merge_by_name({one.name: one.plan.identity for one in inputs}, name_for_input),
        reading=merge_by_name({one.name: one.plan.reading for one in inputs}, name_for_input),
        output_files=tuple(f"{one.name}/{file}" for one in inputs for file in (STDOUT, STDERR, *one.plan.output_files)),
        mentions=tuple(dict.fromkeys(name for plan in plans for name in plan.mentions)),
        notes=(*_merge_remarks((one.name, one.plan.notes) for one in inputs), *space.notes),
        run_values=tuple(dict.fromkeys(name for plan in plans for name in plan.run_values)),
        name_errors=_unknown(plans),
        alike=partial(_alike, tuple(zip(mixed, plans, strict=True))) if all(plan.alike for plan in plans) else None,
        installation=tuple(name for name in plans[0].installation if name in space.facts),
        warnings=_merge_remarks((one.name, one.plan.warnings) for one in inputs),
        read_figures=partial(_read_figures, tuple(zip(mixed, plans, strict=True))),
        shape=plans[0].shape if all(plan.shape == plans[0].shape for plan in plans) else None,
        is_described=any(plan.is_described for plan in plans),
    )


def differences(inputs: Sequence[PlannedInput]) -> list[str]:
    """Return why values of the inputs cannot be compared."""
    first, errors = inputs[0], []
    target = first.plan.objective.metrics[0]
    for one in inputs:
        own = one.plan.objective.metrics[0]
        if not own.compares_with(target):
            errors.append(
                f"input {one.name!r} measures {_describe(own)}, input {first.name!r} {_describe(target)}: "
                "all inputs of a study have the same metric"
            )
        if one.plan.runs != "launched" or one.plan.recorded is not None:
            errors.append(f"input {one.name!r} is not run by autotune: only what it runs can have [[inputs]]")
    return errors


def _describe(metric: Metric) -> str:
    return f"{metric.name} ({f'{metric.unit}, ' if metric.unit else ''}{metric.direction})"


def _merge_remarks(texts: Iterable[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return remarks without repetition; a remark of some inputs names them."""
    by_text: dict[str, list[str]] = {}
    count = 0
    for name, remarks in texts:
        count += 1
        for remark in dict.fromkeys(remarks):
            by_text.setdefault(remark, []).append(name)
    return tuple(
        text if len(names) == count else f"input {', '.join(names)}: {text}" for text, names in by_text.items()
    )


def _unknown(plans: Sequence[Plan]) -> Callable[[Iterable[str]], list[str]] | None:
    judges = [plan.name_errors for plan in plans if plan.name_errors is not None]
    if not judges:
        return None

    def unknown(names: Iterable[str]) -> list[str]:
        given = list(names)
        return list(dict.fromkeys(line for judge in judges for line in judge(given)))

    return unknown


def _alike(
    inputs: Sequence[tuple[MixInput, Plan]], one: Configuration, other: Configuration, details: Mapping[str, Any]
) -> bool:
    """Whether a configuration is the same in effect on every input as a measured one."""
    by_input = details.get(INPUTS, {})
    return all(
        plan.alike is not None
        and plan.alike(own.own_configuration(one), own.own_configuration(other), by_input.get(own.name, {}))
        for own, plan in inputs
    )


def _read_figures(inputs: Sequence[tuple[MixInput, Plan]], output: Output) -> Readings:
    """Read the figures of each input on its own."""
    plans = {own.name: plan for own, plan in inputs}

    def seen(own: MixInput, left: Output) -> tuple[list[Reading], Reading | None]:
        look = plans[own.name].read_figures
        readings = Readings() if look is None else look(left)
        metrics = [replace(one, name=name_for_input(one.name, own.name)) for one in readings.metrics]
        return metrics, readings.answer and replace(
            readings.answer, name=name_for_input(readings.answer.name, own.name)
        )

    found = read_inputs(tuple(own for own, _ in inputs), output.folder, seen)
    return Readings(tuple(reading for metrics, _ in found for reading in metrics))
