"""The plan of a study whose program comes from several places: a plan with each software, joined."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from autotune.studyfile.model import SoftwareSection, StudyFile
from launchers.detect import detect
from launchers.secret import fill_masked, is_secret, mask_secrets
from launchers.software.changes import Changes, changes_in_effect
from launchers.software.loading import load
from launchers.software.modules import loaded_among
from launchers.software.software import LoadedSoftware, Software, SoftwareError
from objectives import registry
from objectives.base import Plan, PlanError
from objectives.software import SOFTWARE, PlannedSoftware, join_software
from spaces.parameters.problem import Problem


class PlanOptions(Protocol):
    """Plans a program with some options."""

    def __call__(self, options: Mapping[str, Any], folder: Path, /, *, is_elsewhere: bool = False) -> Plan:
        """Return the plan; a dry run may use `folder`. A program that `is_elsewhere` is not searched for here."""


def plan_with_software(study: StudyFile, options: Mapping[str, Any], folder: Path, plan: PlanOptions) -> Plan:
    """Return the plan of some of a study's options, with the software in the study file.

    Raises:
        PlanError: The program cannot be tuned here, or a software is unavailable; every reason.
    """
    if not study.software:
        return plan(options, folder)
    loaded, errors = load_software(study)
    if SOFTWARE in study.space.parameters:
        msg = f"[software] makes a parameter {SOFTWARE!r} of its tables; rename this one"
        errors.append(Problem(msg, f"space.parameters.{SOFTWARE}"))
    planned = []
    for name, software in loaded.items():
        with changes_in_effect(software.changes.then(Changes(dict(software.secrets)))):
            try:
                own = plan(options, folder / name, is_elsewhere=software.container is not None)
                planned.append(PlannedSoftware(name, software, own))
            except PlanError as error:
                errors += [Problem(f"with software {name!r}: {p.message}", p.path, p.line) for p in error.problems]
    if errors:
        raise PlanError(errors)
    return join_software(planned)


def load_software(study: StudyFile) -> tuple[dict[str, LoadedSoftware], list[Problem]]:
    """Load a study's software; return it by name, and the problems of what is unavailable here."""
    loaded, errors = {}, []
    for name, section in study.software.items():
        try:
            loaded[name] = _load(study, section)
        except SoftwareError as error:
            errors.append(Problem(f"software {name!r}: {error}", f"{SOFTWARE}.{name}"))
    return loaded, errors


def _load(study: StudyFile, section: SoftwareSection) -> LoadedSoftware:
    if section.container is not None and study.objective != registry.COMMAND:
        msg = (
            f"objective {study.objective!r} inspects its program before it tunes it, which it cannot do inside an "
            "image; use modules or Spack, or objective = 'command'"
        )
        raise SoftwareError(msg)
    variables = fill_masked(section.environment, os.environ)
    secrets = {name: value for name, value in variables.items() if is_secret(name, value)}
    software = load(
        Software(
            modules=tuple(section.modules),
            purge=section.purge,
            spack=tuple(section.spack),
            spack_environment=section.spack_environment or "",
            container=section.container or "",
            runtime=section.runtime or "",
            programs=tuple(section.programs),
            libraries=tuple(section.libraries),
            variables={name: value for name, value in variables.items() if name not in secrets},
        )
    )
    # The variables are part of the software's identity.
    software = replace(software, identity={**software.identity, **mask_secrets(secrets)}, secrets=secrets)
    searched = software.changes.variables.get("PATH")
    brought = None if searched is None else detect(searched)
    # A software without an MPI of its own, such as a compiler's module, uses the one found without it.
    is_here = brought == detect() and not loaded_among(section.modules, os.environ)
    return software if is_here else software.with_mpi(brought)
