"""From a study file and a machine to everything a study is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune import __version__
from autotune.errors import CannotRunHereError, StudyFileError
from autotune.execution.task import run_job
from autotune.machines.detect import quick_facts
from autotune.machines.facts import Facts
from autotune.machines.this_machine import Machine
from autotune.records.study import EXTERNAL, REPLAY, Definition
from autotune.records.workload import Workload
from autotune.results.export import resolved
from autotune.studyfile import AUTO, OWN_SAMPLER, StudyFile
from launchers import Launcher
from objectives import registry
from objectives.base import Plan, PlanError
from spaces import (
    Constraint,
    Parameter,
    Space,
    SpaceError,
    Value,
    constraints_from_tables,
    parameters_from_tables,
)
from spaces.parameters.errors import did_you_mean


class StudySpaceError(StudyFileError):
    """The space of a study is wrong: `errors` are all that is, with paths where they have one."""

    def __init__(self, study: str, errors: Sequence[str]) -> None:
        self.errors = tuple(errors)
        lines = "\n".join(f"  {line}" for line in errors)
        super().__init__(f"the space of study {study!r} has errors:\n{lines}")


@dataclass(frozen=True)
class Prepared:
    """A study that is ready to run here."""

    study: StudyFile
    plan: Plan
    space: Space
    definition: Definition
    workloads: tuple[Workload, ...] = ()


def prepare(  # noqa: PLR0913, PLR0917  they are not of one kind
    study: StudyFile,
    machine: Machine,
    launcher: Launcher,
    folder: Path,
    session: Mapping[str, str] | None = None,
    described: Facts | None = None,
) -> Prepared:
    """Plan the objective in `folder` (a dry run may be made there), and build the space.

    `session` is what else must not change between measurements that are compared (governor, MPI); `described` are the
    facts of a machine that is not this one.

    Raises:
        CannotRunHereError: the program cannot be tuned here.
        StudyFileError: the space has errors; all of them are listed.
    """

    def planned(options: Mapping[str, Any], place: Path) -> tuple[Plan, Space]:
        plan = registry.plan(
            study.objective,
            resolved(options, place) if study.objective == REPLAY else options,
            machine=machine.facts,
            run_job=lambda job: run_job(job, launcher),
            folder=place,
        )
        return plan, space_of(study, plan, machine.facts)

    errors, workloads = [], []
    try:
        plan, space = planned(study.options, folder)
    except PlanError as error:
        raise CannotRunHereError(str(error)) from error
    for name, changed in study.workloads.items():
        options = {**study.options, **changed}
        if options == study.options:
            continue  # it is the one that is tuned
        try:
            workload = Workload(name, *planned(options, folder / name))
            workloads.append(workload)
            if workload.plan.objective.metrics[0] != plan.objective.metrics[0]:
                other = workload.plan.objective.metrics[0].name
                errors.append(f"workload {name!r}: it measures {other}, not {plan.objective.metrics[0].name}")
        except (PlanError, StudyFileError) as error:
            errors.append(f"workload {name!r}: {error}")
    if errors:
        raise CannotRunHereError("\n".join(errors))
    definition = Definition(
        objective=study.objective,
        options=study.options,
        metrics=plan.objective.metrics,
        space=space.to_dict(),
        identity=plan.identity,
        facts=plan.facts,
        installation=plan.installation,
        machine=machine.describe() | {"facts": described or quick_facts(machine)},
        # What was recorded, or is made elsewhere, does not depend on the machine that keeps it.
        machine_identity={} if study.objective in {REPLAY, EXTERNAL} else {**machine.identity, **(session or {})},
        version=__version__,
        study=study.model_dump(mode="json"),
    )
    return Prepared(study, plan, space, definition, tuple(workloads))


def _auto_errors(study: StudyFile) -> list[str]:
    """Say why nobody can tell when to stop: only our own sampler says what it still expects of one metric."""
    if not study.budget.auto:
        return []
    rule, errors = f"trials = {AUTO!r}", []
    if study.sampler.name != OWN_SAMPLER:
        why = f"needs the sampler {OWN_SAMPLER!r}, which knows what it still expects, got {study.sampler.name!r}"
        errors.append(f"{rule} {why}; give a number of trials @ budget.trials")
    if study.stopping is not None:
        errors.append(f"{rule} cannot be had with [stopping], whose brackets need a number of trials @ budget.trials")
    if study.tradeoff is not None:
        errors.append(f"{rule} cannot be had with [tradeoff]: there is no single best to gain on @ budget.trials")
    return errors


def _tradeoff_errors(study: StudyFile, plan: Plan) -> list[str]:
    if study.tradeoff is None:
        return []
    name, known = study.tradeoff.metric, [metric.name for metric in plan.objective.metrics[1:]]
    errors = (
        []
        if name in known
        else [f"the other metrics are {', '.join(known)}{did_you_mean(name, known)}, got {name!r} @ tradeoff.metric"]
    )
    if study.workloads:
        errors.append("a trade-off has no single winner to try on other workloads @ workloads")
    if study.stopping is not None:
        errors.append("trials that are left early have no place in a trade-off: take [stopping] out @ tradeoff")
    return errors


def space_of(study: StudyFile, plan: Plan, machine: Mapping[str, Value]) -> Space:
    """Join what the objective brings and what the study file adds; the study file's parameters win by name.

    `machine` are the facts of the machine.

    Raises:
        StudySpaceError: the space has errors, or no valid configuration.
    """
    facts = {**machine, **plan.facts}
    errors: list[str] = []
    parameters: tuple[Parameter, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    try:
        parameters = parameters_from_tables(study.space.parameters, facts)
    except SpaceError as error:
        errors.extend(error.errors)
    try:
        constraints = constraints_from_tables(study.space.constraints)
    except SpaceError as error:
        errors.extend(error.errors)
    known = {parameter.name for parameter in (*plan.parameters, *parameters)} | set(study.space.parameters)
    errors.extend(
        f"the options mention {name!r}, but the space has no such parameter{did_you_mean(name, known)} @ options"
        for name in plan.mentioned
        if name not in known
    )
    errors.extend(_tradeoff_errors(study, plan))
    errors.extend(_auto_errors(study))
    if study.objective == EXTERNAL and study.workloads:
        errors.append("who asks is not told of another workload: give each a study of its own @ workloads")
    if study.budget.workers > 1 and plan.facts.get("gpus"):
        errors.append("trials on GPUs run one at a time: budget.workers = 1 @ budget.workers")
    if plan.unknown is not None:
        errors.extend(f"{line} @ space.parameters" for line in plan.unknown(study.space.parameters))
    if study.stopping is not None and not plan.works_in_steps:
        errors.append(
            f"objective {study.objective!r} with these options cannot be stopped at a step (a target, or a budget of "
            "time, ends a run by itself) @ stopping"
        )
    if not errors:
        own = {parameter.name: parameter for parameter in parameters}
        merged = [own.pop(parameter.name, parameter) for parameter in plan.parameters]
        try:
            space = Space([*merged, *own.values()], [*plan.constraints, *constraints], facts)
            space.default()
        except SpaceError as error:
            errors.extend(error.errors)
        else:
            return space
    raise StudySpaceError(study.name, errors)
