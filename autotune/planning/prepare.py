"""From a study file and a machine to everything a study is made of."""

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
from autotune.records.study import Definition
from autotune.records.verified_input import VerifiedInput
from autotune.results.export import resolved
from autotune.studyfile import StudyFile
from autotune.studyfile.plans import plans_of
from autotune.studyfile.space import joined
from launchers import Job, Launcher
from launchers.secret import find_masked_variables, mask_tables
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
        """How far a program goes that works in steps, where promotion does not decide it; None for others."""
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
    """Plan the objective in `folder` (a dry run may be made there), and build the space.

    `session` are further facts that compared measurements must share (governor, MPI); `described` are the
    facts of a machine that is not this one; `before_run` is called before each dry run.

    Raises:
        CannotRunHereError: the program cannot be tuned here.
        StudyFileError: the space has errors; all of them are listed.
    """
    check_secrets(study)

    def run_dry(job: Job) -> Output:
        before_run()
        return run_job(job, launcher)

    def plan_options(options: Mapping[str, Any], plan_folder: Path, *, is_elsewhere: bool = False) -> Plan:
        return registry.plan(
            study.objective,
            resolved(options, plan_folder) if registry.runs(study.objective) == "recorded" else options,
            machine={**machine.facts, "described": is_elsewhere},
            run_job=run_dry,
            folder=plan_folder,
        )

    try:
        plans = plans_of(study, folder, plan_options)
    except PlanError as error:
        raise CannotRunHereError(str(error)) from error
    plan, space = joined(study, plans.tuned, machine.facts)
    errors, verified = [], []
    for name, own in plans.verified.items():
        try:
            verified.append(VerifiedInput(name, *joined(study, own, machine.facts)))
        except StudyFileError as error:
            errors.append(f"input {name!r}: {error}")
    if errors:
        raise CannotRunHereError("\n".join(errors))
    plan = build_library(plan)
    definition = Definition(
        objective=study.objective,
        options=mask_tables(study.tuned_options),
        metrics=plan.objective.metrics,
        space=space.to_dict(),
        identity=plan.identity,
        facts=plan.facts,
        installation=plan.installation,
        machine=machine.describe() | {"facts": described or quick_facts(machine)},
        # What was recorded, or is made elsewhere, does not depend on the machine that keeps it.
        machine_identity={**machine.identity, **(session or {})} if plan.runs == "launched" else {},
        version=__version__,
        study=mask_tables(study.model_dump(mode="json")),
        reading=plan.reading,
    )
    return Prepared(study, plan, space, definition, tuple(verified))


def check_secrets(study: StudyFile) -> None:
    """Check that the secrets which a study file does not tell are in this environment.

    Raises:
        CannotRunHereError: some are missing.
    """
    missing = sorted(find_masked_variables(study.model_dump()) - os.environ.keys())
    if missing:
        msg = (
            f"{', '.join(missing)}: secrets are not stored with a study; set them in the environment (export NAME=...)"
        )
        raise CannotRunHereError(msg)
