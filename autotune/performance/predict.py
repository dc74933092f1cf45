"""Predict the best configurations of a study file on a described machine."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autotune.errors import AutotuneError, CannotRunHereError, StudyFileError
from autotune.execution.task import run_job
from autotune.formatting import configuration_text, value_text
from autotune.machines.catalogue import THIS, find_machine
from autotune.machines.detect import quick_facts
from autotune.machines.this_machine import FACTS, this_machine
from autotune.performance.installation import stated_installation, with_installation_apart
from autotune.performance.measurements.dataset import (
    identity_of,
    marks_of,
    program_of,
    with_installation,
    workload_of,
)
from autotune.performance.measurements.machine_names import machine_of
from autotune.performance.model import PerformanceModel
from autotune.performance.recognition import known_installation, of_program, unify_names
from autotune.performance.regression.prediction import Prediction, without_vague_values
from autotune.records.limit import Limits
from autotune.records.measurement import Facts, Measured, Setting
from autotune.studyfile import StudyFile
from autotune.studyfile.limits import limits_of
from autotune.studyfile.plans import plan_of
from autotune.studyfile.space import join_space
from launchers import Job, Launcher
from objectives import registry
from objectives.base import Output, Plan, PlanError, RunJob
from spaces import Configuration, Constraint, Parameter, Space, SpaceError, Value
from spaces.parameters.problem import Problem


@dataclass(frozen=True)
class Target:
    """The machine to predict for.

    Attributes:
        machine: Its name.
        facts: The facts of the part that a run may use.
        here: Whether it is this machine, where autotune can ask the program itself.
        installation: How the program is installed on another machine, as the user states it.
    """

    machine: str
    facts: Facts
    here: bool = False
    installation: Facts = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """A study prepared for a machine: the space of its configurations, and the setting where it would run.

    Attributes:
        plan: The plan of the objective.
        space: The space.
        setting: The setting.
        whole_steps: The steps of a whole run, for programs that work in steps.
        planned_with: Plans for another installation. On a machine that is only described, the installation follows
            from measurements there (`with_known_installation`).
        remarks: Sentences on assumptions, and on what is not predicted.
        limits: The study's limits on metrics.
    """

    plan: Plan
    space: Space
    setting: Setting
    whole_steps: int | None = None
    planned_with: Callable[[Facts], tuple[Plan, Space]] | None = None
    remarks: tuple[str, ...] = ()
    limits: Limits = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules and derived values of the space; the model uses the numbers that they compute."""
        return (*(constraint.rule for constraint in self.space.constraints), *self.space.derived.values())


def question(study: StudyFile, target: Target, launcher: Launcher, folder: Path) -> Question:
    """Plan the objective for the target's machine; a dry run on this machine finds the size of the problem.

    Raises:
        CannotRunHereError: The size of the problem cannot be found on this machine, or the description of the other
            machine lacks its cores, and is not that of a card.
        StudyFileError: The space has errors; the error lists all of them.
    """
    # A description need not give the hardware threads.
    facts = {"threads_per_core": 1, **{name: value for name, value in target.facts.items() if name in FACTS}}
    remarks: tuple[str, ...] = ()
    if "cores" not in facts and "gpu_model" in target.facts:
        facts = {**this_machine().facts, **facts}
        remarks = (f"the description of {target.machine} is that of a card: its host is taken to be like this machine",)
    if "cores" not in facts:
        msg = f"the description of {target.machine!r} does not say its cores"
        raise CannotRunHereError(Problem(msg, "cpu.cores_per_node"))

    run = _once(lambda job: run_job(job, launcher))

    def planned_with(installation: Facts) -> tuple[Plan, Space]:
        def plan_options(options: Mapping[str, Any], plan_folder: Path, *, is_elsewhere: bool = False) -> Plan:
            return registry.plan(
                study.objective,
                options,
                machine={
                    **facts,
                    "described": is_elsewhere or not target.here,
                    "nothing_runs": not target.here,
                    "installation": installation,
                    "makes_files": False,
                },
                run_job=run,
                folder=plan_folder,
            )

        try:
            return join_space(study, plan_of(study, folder, plan_options), facts)
        except PlanError as error:
            raise CannotRunHereError(str(error)) from error

    plan, space = planned_with(target.installation)
    program = program_of(study.objective, study.name, mixed=study.is_mix)
    problem = {name: value for name, value in plan.facts.items() if name not in plan.installation}
    workload, workload_facts = workload_of(program, problem, plan.identity)
    built = {name: plan.facts[name] for name in plan.installation} if target.here else target.installation
    machine, machine_facts = with_installation(target.machine, target.facts, built)
    setting = Setting(
        program=program,
        machine=machine,
        workload=workload,
        metric=plan.objective.metrics[0],
        machine_facts=machine_facts,
        workload_facts=workload_facts,
        # On another machine the program is another file, and a described problem has no known identity.
        identity=identity_of(plan.identity) if target.here and not plan.is_described else "",
        marks=marks_of(study.objective, plan.identity),
    )
    limits = limits_of(study.limits, plan.objective.metrics)
    names = ", ".join(map(str, limits))
    unknown = f"whether a proposal keeps {names} is not known, unless it was measured here: limits are not predicted"
    remarks += (unknown,) if limits else ()
    return Question(plan, space, setting, study.whole_steps, None if target.here else planned_with, remarks, limits)


def for_problem(asked: Question, facts: Facts) -> Question:
    """Return the question about a problem that differs from the study's in some `facts`.

    The other problem gets its own name and no identity, so that no measurement of the study's problem counts for it.
    """
    setting = asked.setting
    changed = {**setting.workload_facts, **facts}
    if changed == setting.workload_facts:
        return asked
    workload, workload_facts = workload_of(setting.program, changed, {})
    return replace(asked, setting=replace(setting, workload=workload, workload_facts=workload_facts, identity=""))


def _once(run: RunJob) -> RunJob:
    """Wrap `run` so that it runs each job once: a second dry run of the same problem would print the same."""
    made: list[tuple[Job, Output]] = []

    def run_once(job: Job) -> Output:
        for earlier, output in made:
            if earlier == job:
                return output
        output = run(job)
        made.append((job, output))
        return output

    return run_once


def with_known_installation(asked: Question, known: Sequence[Measured]) -> Question:
    """Return the question for the installation that was measured on a described machine, with a remark on it.

    The plan is made again, because the program's own choices, and so the default and the space, may depend on its
    version there.

    Raises:
        CannotRunHereError: The size of the problem cannot be found.
        StudyFileError: The space has errors.
    """
    setting = asked.setting
    there = known_installation(setting, of_program(known, setting)) if asked.planned_with is not None else None
    if there is None or asked.planned_with is None:
        return asked
    new = {name: value for name, value in there.facts.items() if name not in setting.machine_facts}
    machine, facts = with_installation(setting.machine, setting.machine_facts, new)
    share = "all" if there.rows == there.total else f"{there.rows} of the {there.total}"
    words = ", ".join(f"{name} {value_text(value)}" for name, value in new.items())
    about = "of this workload there" if there.of_workload else "there"
    remark = f"taken as installed on {setting.machine}: {words}, as in {share} measurements {about}"
    other = "" if there.rows == there.total else "; --installation says another"
    plan, space = asked.planned_with(there.facts)
    setting = replace(setting, machine=machine, machine_facts=facts)
    return replace(asked, plan=plan, space=space, setting=setting, remarks=(*asked.remarks, remark + other))


def predict(asked: Question, known: Sequence[Measured], top: int) -> Prediction:
    """Return the `top` configurations that should be best, by a model of the `known` measurements.

    The prediction has no proposals if the model knows too little.

    Raises:
        CannotRunHereError: There are no measurements of the program.
    """
    own = of_program(known, asked.setting)
    has_costs = asked.plan.shape is not None or registry.costs(asked.setting.program) is not None
    if not own and not has_costs:
        programs = ", ".join(sorted({row.setting.program for row in known})) or "nothing"
        msg = (
            f"no measurements of {asked.setting.program!r} (programs with measurements: {programs}); tune it, "
            "or `autotune storage import` measurements made elsewhere"
        )
        raise CannotRunHereError(msg)
    model = PerformanceModel(tuple(own), asked.rules, asked.plan.shape, asked.limits)
    prediction = model.best(asked.space, asked.setting, top)
    doubts = (*prediction.doubts, *_doubts_about_the_end(prediction, asked.plan.stops_after_s))
    return without_vague_values(replace(prediction, grounds=(*asked.remarks, *prediction.grounds), doubts=doubts))


def _doubts_about_the_end(prediction: Prediction, limit_s: float | None) -> Iterator[str]:
    """Yield a sentence if the input would stop the run that is proposed, or the default, before its end."""
    if limit_s is None or prediction.setting.metric.unit != "s":
        return
    first = prediction.proposals[0].value if prediction.proposals else None
    for name, value in (("the first", first), ("the default", prediction.default_value)):
        if value is not None and value.value > limit_s:
            yield (
                f"{name} should take {value.value:.4g} s, and the input stops runs after {limit_s:g} s (max_seconds): "
                "raise that, or leave it out"
            )


def measurements_there(asked: Question, known: Sequence[Measured]) -> tuple[Setting, list[Measured]]:
    """Return the setting, with its installation among the facts of its machine, and `known` with the same names."""
    setting = with_installation_apart(asked.setting)
    return setting, unify_names(of_program(known, setting), setting)


def restrict(original: Question, rules: Iterable[str], given_as: str = "--where") -> Question:
    """Return the question with further rules of the user.

    If the default breaks a rule, the nearest configuration that satisfies all rules replaces it, with a note.

    Args:
        original: The question.
        rules: The rules.
        given_as: The option or field of the rules, for messages.

    Raises:
        StudyFileError: A rule has an error, or no configuration satisfies all rules.
    """
    unique = dict.fromkeys(rules)
    more = [Constraint(f"asked for: {rule}", rule, f"given by {given_as}") for rule in unique]
    if not more:
        return original
    space = original.space
    try:
        narrower = Space(space.parameters, [*space.constraints, *more], space.facts, space.derived)
        _ = narrower.size
    except SpaceError as error:
        msg = f"{given_as}: {error}"
        raise StudyFileError(msg) from None
    default = space.default()
    if narrower.contains(default):
        return replace(original, space=narrower)
    nearest = narrower.nearest(default)
    note = (
        f"the default configuration, {configuration_text(default)}, breaks {given_as}; in its place stands the nearest "
        f"that keeps to it, {configuration_text(nearest)}: speed-ups are over that"
    )
    plan = replace(original.plan, notes=(*original.plan.notes, note))
    return replace(original, plan=plan, space=_with_default(narrower, nearest))


def _with_default(space: Space, configuration: Configuration) -> Space:
    """Return the space with another of its configurations as default."""
    parameters = [
        parameter
        if parameter.name not in configuration and not parameter.optional
        else _starting_at(parameter, configuration.get(parameter.name))
        for parameter in space.parameters
    ]
    return Space(parameters, space.constraints, space.facts, space.derived)


def _starting_at(parameter: Parameter, value: Value | None) -> Parameter:
    """Return a parameter with another of its values as default."""
    changes: dict[str, Any] = {"default": value}
    return replace(parameter, **changes)


def find_target(machine: str, nodes: int, installation: Iterable[str] = ()) -> Target:
    """Find a machine, and return the part of it that a run may use.

    Args:
        machine: The name or the file of a description, or `this`.
        nodes: The number of nodes.
        installation: How the program is installed on a described machine, as NAME=VALUE.

    Raises:
        MachineError: The machine is unknown, or has fewer nodes.
        AutotuneError: A fact of the installation is unknown, or is stated for this machine.
    """
    stated = stated_installation(installation)
    if machine == THIS and nodes == 1:
        if stated:
            msg = "--installation is for a described machine (--machine NAME); here autotune asks the program itself"
            raise AutotuneError(msg)
        here = this_machine()
        name, facts = machine_of(here.describe() | {"facts": quick_facts(here)})
        return Target(name, {**facts, **here.facts}, here=True)
    description = find_machine(machine)
    name = machine_of(this_machine().describe())[0] if machine == THIS else description.name
    return Target(name, description.for_nodes(nodes), installation=stated)
