"""The plan of a study: that of its options, or of its inputs together."""

from dataclasses import replace
from pathlib import Path

from autotune.studyfile.model import InputSection, StudyFile
from autotune.studyfile.software import PlanOptions, plan_with_software
from objectives.base import Plan, PlanError
from objectives.mix.plan import PlannedInput, joined
from spaces.parameters.problem import Problem


def plan_of(study: StudyFile, folder: Path, plan: PlanOptions) -> Plan:
    """Return the plan of a study; that of each input is made in a folder of its own below `folder`.

    Raises:
        PlanError: an input cannot be tuned here, or they cannot be mixed; every reason, each with its path.
    """
    if not study.inputs:
        return plan_with_software(study, study.options, folder, plan)
    planned, errors = [], []
    for index, one in enumerate(study.inputs):
        try:
            own = plan_with_software(study, study.planned_options[one.name], folder / one.name, plan)
            planned.append(planned_input(own, index, one))
        except PlanError as error:
            errors += [of_input(problem, index, one) for problem in error.problems]
    return mixed(planned, errors)


def planned_input(plan: Plan, index: int, one: InputSection) -> PlannedInput:
    """Return the plan of an input, which mentions parameters where the study file has its options."""
    mentioned = (replace(mention, path=_path_of_input(mention.path, index, one)) for mention in plan.mentioned)
    return PlannedInput(one.name, one.weight, replace(plan, mentioned=tuple(mentioned)))


def mixed(planned: list[PlannedInput], errors: list[Problem]) -> Plan:
    """Return the mix of inputs, if nothing is wrong with any of them.

    Raises:
        PlanError: there are `errors`, or they cannot be mixed.
    """
    if errors:
        raise PlanError(dict.fromkeys(errors))
    try:
        return joined(planned)
    except PlanError as error:
        raise PlanError(replace(problem, path="inputs") for problem in error.problems) from error


def of_input(problem: Problem, index: int, one: InputSection) -> Problem:
    """Return a problem with the options of an input as one of the study file."""
    path = problem.path and _path_of_input(problem.path, index, one)
    if path is not None and path == problem.path and path.startswith("options."):
        return problem  # it is the study's
    return replace(problem, message=f"input {one.name!r}: {problem.message}", path=path)


def _path_of_input(path: str, index: int, one: InputSection) -> str:
    """Return where the study file has what is at `path` for an input: in its own options, or in the study's."""
    keys = path.split(".")
    return f"inputs.{index}.{path}" if keys[0] == "options" and keys[1:2] and keys[1] in one.options else path
