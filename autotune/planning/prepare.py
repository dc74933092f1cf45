"""Prepare a study: its plan, space, definition and workloads, from a study file and a machine."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune import __version__
from autotune.errors import CannotRunHereError, StudyFileError
from autotune.execution.segments import Segment
from autotune.execution.task import run_job
from autotune.machines.detect import quick_facts
from autotune.machines.facts import Facts
from autotune.machines.this_machine import Machine
from autotune.records.verified_input import VerifiedInput
from autotune.results.export import resolve_replay
from autotune.studyfile import StudyFile
from autotune.studyfile.definition import Definition
from autotune.studyfile.misplaced import with_right_table
from autotune.studyfile.plans import plans_of
from autotune.studyfile.software import PlanOptions
from autotune.studyfile.space import join_space
from launchers import Job, Launcher
from launchers.secret import find_masked_variables, find_masked_words, find_secret_names, mask_help, mask_tables
from objectives import registry
from objectives.base import Output, Plan, PlanError
from objectives.efficiency.objective import build_library
from spaces import Space


@dataclass(frozen=True)
class Prepared:
    """A study that is ready to run here."""

    study: StudyFile
    plan: Plan
    space: Space
    definition: Definition
    verified: tuple[VerifiedInput, ...] = ()

    @property
    def whole(self) -> Segment | None:
        """The whole training of a program that works in steps; None for other programs."""
        most = self.study.stopping.max_steps if self.study.stopping else None
        return Segment(most, most, self.definition.target) if most else None


def prepare(  # noqa: PLR0913, PLR0917  they have little in common
    study: StudyFile,
    machine: Machine,
    launcher: Launcher,
    folder: Path,
    session: Mapping[str, str] | None = None,
    described: Facts | None = None,
    before_run: Callable[[], None] = lambda: None,
) -> Prepared:
    """Plan the objective of a study, and build its space.

    Args:
        study: The study file.
        machine: The machine for the runs.
        launcher: The launcher of the runs.
        folder: The folder for files of the plan, and for dry runs.
        session: Further facts that compared measurements must share: governor, MPI.
        described: The facts of a described machine, if the runs are not made on this one.
        before_run: Called before each dry run.

    Raises:
        CannotRunHereError: the program cannot be tuned here.
        StudyFileError: the space has errors; all of them are listed.
    """
    check_secrets(study)

    def run_dry(job: Job) -> Output:
        before_run()
        return run_job(job, launcher)

    try:
        plans = plans_of(study, folder, options_planner(study, plan_facts(machine, launcher), run_dry))
    except PlanError as error:
        raise CannotRunHereError("\n".join(str(with_right_table(one)) for one in error.problems)) from error
    plan, space = join_space(study, plans.tuned, machine.facts)
    errors, verified = [], []
    for name, own in plans.verified.items():
        try:
            verified.append(VerifiedInput(name, *join_space(study, own, machine.facts)))
        except StudyFileError as error:
            errors.append(f"input {name!r}: {error}")
    if errors:
        raise CannotRunHereError("\n".join(errors))
    plan = build_library(plan)
    definition = Definition(
        objective=study.objective,
        options=mask_tables(study.tuned_options),
        metrics=plan.objective.metrics,
        space=mask_help(space.to_dict()),
        identity=plan.identity,
        facts=plan.facts,
        installation=plan.installation,
        machine=machine.describe() | {"facts": described or quick_facts(machine)},
        # Recorded runs, and runs that another program makes, do not depend on the machine that stores them.
        machine_identity={**machine.identity, **(session or {})} if plan.runs == "launched" else {},
        version=__version__,
        study=mask_tables(study.model_dump(mode="json")),
        reading=plan.reading,
    )
    return Prepared(study, plan, space, definition, tuple(verified))


def secret_notes(study: StudyFile) -> list[str]:
    """Return a note on the variables and options that are taken for secrets; studies may differ in their values."""
    names = sorted(find_secret_names(study.model_dump(mode="json")))
    note = (
        f"{', '.join(names)}: taken for secrets because of their names, so their values are neither stored nor "
        "compared; after a change that matters to the runs, give the study another name"
    )
    return [note] if names else []


def plan_facts(machine: Machine, launcher: Launcher) -> dict[str, Any]:
    """Return what a plan is told of the machine: its facts, and whether jobs on parts of a node may share cores."""
    return {**machine.facts, "shared_nodes": launcher.queue is not None and not launcher.queue.site.exclusive}


def options_planner(study: StudyFile, facts: Mapping[str, Any], run_dry: Callable[[Job], Output]) -> PlanOptions:
    """Return the function that plans the objective of a study with some options; `run_dry` makes its dry runs."""

    def plan(options: Mapping[str, Any], folder: Path, /, *, is_elsewhere: bool = False) -> Plan:
        return registry.plan(
            study.objective,
            resolve_replay(options, folder) if registry.runs(study.objective) == "recorded" else options,
            machine={**facts, "described": is_elsewhere},
            run_job=run_dry,
            folder=folder,
        )

    return plan


def check_secrets(study: StudyFile) -> None:
    """Check that the secrets that a study file leaves out are in this environment.

    Raises:
        CannotRunHereError: some of them are missing.
    """
    contents = study.model_dump(mode="json")
    missing = sorted(find_masked_variables(contents) - os.environ.keys())
    if missing:
        msg = (
            f"{', '.join(missing)}: secrets are not stored with a study; set them in the environment (export NAME=...)"
        )
        raise CannotRunHereError(msg)
    if masked := find_masked_words(contents):
        msg = (
            f"{', '.join(masked)}: the secret in it was not stored with the study: give the command the study file, or "
            "pass the secret to the program in a variable of [options.environment]"
        )
        raise CannotRunHereError(msg)
