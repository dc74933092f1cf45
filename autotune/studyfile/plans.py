"""The plans of a study: one for its options or inputs together, and one for each input that is only verified."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autotune.studyfile.model import InputSection, StudyFile
from autotune.studyfile.software import PlanOptions, plan_with_software
from objectives.base import Plan, PlanError
from objectives.mix.plan import PlannedInput, differences, join_inputs
from spaces.parameters.problem import Problem


@dataclass(frozen=True)
class StudyPlans:
    """The plans of a study.

    Attributes:
        tuned: The plan of what is tuned.
        verified: The plans of the inputs of weight 0, by name.
    """

    tuned: Plan
    verified: Mapping[str, Plan] = field(default_factory=dict)


def plan_of(study: StudyFile, folder: Path, plan: PlanOptions) -> Plan:
    """Return the plan of what is tuned. Each input is planned in its own folder below `folder`.

    Raises:
        PlanError: The study cannot be tuned here; every reason, each with its path.
    """
    if not study.inputs:
        return plan_with_software(study, study.options, folder, plan)
    return together(_plan_inputs(study, study.optimised_inputs, folder, plan)).tuned


def plans_of(study: StudyFile, folder: Path, plan: PlanOptions) -> StudyPlans:
    """Return the plan of what is tuned, as `plan_of` does, and those of the inputs that are only verified.

    Raises:
        PlanError: An input cannot run here, or the inputs do not fit together; every reason, each with its path.
    """
    if not study.inputs:
        return StudyPlans(plan_of(study, folder, plan))
    return together(_plan_inputs(study, study.inputs, folder, plan))


def _plan_inputs(
    study: StudyFile, inputs: Sequence[InputSection], folder: Path, plan: PlanOptions
) -> list[PlannedInput]:
    planned, errors = [], []
    for one in inputs:
        index = study.inputs.index(one)
        try:
            own = plan_with_software(study, study.options_of(one), folder / one.name, plan)
            planned.append(plan_input(own, index, one))
        except PlanError as error:
            errors += [of_input(problem, index, one) for problem in error.problems]
    if errors:
        raise PlanError(dict.fromkeys(errors))
    return planned


def plan_input(plan: Plan, index: int, one: InputSection) -> PlannedInput:
    """Return the plan of an input, with the paths of its mentions as they are in the study file."""
    mentioned = (replace(mention, path=_path_of_input(mention.path, index, one)) for mention in plan.mentions)
    return PlannedInput(one.name, one.weight, replace(plan, mentions=tuple(mentioned)))


def together(planned: Sequence[PlannedInput]) -> StudyPlans:
    """Return the plans of a study with these inputs.

    If only one input is tuned, it keeps its own plan. Beside a mix, each verified input becomes a mix of itself, so
    that its runs have the same metric and the facts that rules of the study may mention.

    Raises:
        PlanError: The inputs do not fit together.
    """
    optimised = [one for one in planned if one.weight > 0.0]
    verified = [one for one in planned if one.weight == 0.0]
    if verified and (wrong := differences([optimised[0], *verified])):
        raise PlanError(Problem(message, "inputs") for message in wrong)
    if len(optimised) == 1:
        return StudyPlans(optimised[0].plan, {one.name: one.plan for one in verified})
    try:
        tuned = join_inputs(optimised)
        alone = {one.name: join_inputs([replace(one, weight=1.0)]) for one in verified}
    except PlanError as error:
        raise PlanError(replace(problem, path="inputs") for problem in error.problems) from error
    return StudyPlans(tuned, {name: replace(plan, facts={**tuned.facts, **plan.facts}) for name, plan in alone.items()})


def of_input(problem: Problem, index: int, one: InputSection) -> Problem:
    """Return a problem with the options of an input, with its path in the study file."""
    path = problem.path and _path_of_input(problem.path, index, one)
    if path is not None and path == problem.path and path.startswith("options."):
        return problem  # it is the study's
    return replace(problem, message=f"input {one.name!r}: {problem.message}", path=path)


def _path_of_input(path: str, index: int, one: InputSection) -> str:
    """Return the path in the study file of an input's `path`: in its own options, or in the study's."""
    keys = path.split(".")
    return f"inputs.{index}.{path}" if keys[0] == "options" and keys[1:2] and keys[1] in one.options else path
