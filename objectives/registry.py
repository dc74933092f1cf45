"""The objectives by name. Each is imported on first use, so that it costs the others no time."""

import difflib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from launchers.extensions.entry_points import EntryPointError, describe, find_entry_points, load_entry_point
from objectives.base import Plan, PlanError, RunJob
from objectives.decision import Rules
from objectives.kind import ObjectiveKind, Program, Runs
from objectives.shapes.costs import Costs
from spaces import Configuration, Value

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMAND = "command"
"""The objective for any program, described in the study file alone."""

REPLAY = "replay"
"""The objective of studies that replay recorded measurements."""

GROUP = "autotune.objectives"
"""The group of entry points by which other distributions offer objectives; each is an `ObjectiveKind`."""

_FILES = ("files.*.template", "files.*.copy", "files.*.made_from.*")

OBJECTIVES = {
    "qe": ObjectiveKind(
        "objectives.qe.plan:plan",
        own_input="objectives.qe.options:with_own_input",
        quantities="objectives.qe.quantities:quantities",
        costs="objectives.qe.costs:costs",
        layout="objectives.qe.division:describe_layout",
        facts="facts",
        paths=("facts", "saved"),
        programs=(
            Program(
                "pw.x",
                "study qe",
                "quantum-espresso",
                "module load qe (or quantum-espresso)",
                needed=True,
                links_blas=True,
            ),
            Program(
                "ld1.x", "study qe --input ceo2 (makes its pseudopotentials)", "quantum-espresso", "module load qe"
            ),
        ),
    ),
    COMMAND: ObjectiveKind(
        "objectives.command:plan",
        is_generic=True,
        paths=_FILES,
        own_input="objectives.file_options:with_own_input",
    ),
    "ucx": ObjectiveKind("objectives.ucx.plan:plan", costs="objectives.ucx.costs:costs"),
    "mpi": ObjectiveKind("objectives.mpi.plan:plan", rules="objectives.mpi.rules.write:write_rules"),
    "training": ObjectiveKind("objectives.training.script:plan", is_generic=True, paths=_FILES),
    "dna": ObjectiveKind("objectives.training.dna:plan", costs="objectives.training.costs:dna"),
    "ddp": ObjectiveKind("objectives.training.ddp:plan", costs="objectives.training.costs:ddp"),
    REPLAY: ObjectiveKind("objectives.replay.plan:plan", runs="recorded"),
    "external": ObjectiveKind("objectives.external:plan", runs="told", is_generic=True),
}
"""The objectives that ship with autotune."""


def names() -> tuple[str, ...]:
    """Return the names of all objectives, the shipped ones first.

    Raises:
        PlanError: A distribution offers an objective whose name is taken.
    """
    return (*OBJECTIVES, *_others())


def find_kind(name: str) -> ObjectiveKind:
    """Return the registration of an objective.

    Raises:
        PlanError: There is no such objective, or the distribution that offers it is broken.
    """
    # Look these up for shipped names, too, since two objectives of one name are an error.
    others = _others()
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    if name in others:
        return _kind_of_entry_point(others[name])
    known = names()
    close = difflib.get_close_matches(name, known, n=1)
    suggestion = f" (did you mean {close[0]!r}?)" if close else ""
    msg = f"no objective is called {name!r}{suggestion}; known: {', '.join(known)}"
    raise PlanError(msg)


def is_known(name: str) -> bool:
    """Whether there is an objective of this name."""
    try:
        return name in names()
    except PlanError:
        return False


def runs(name: str) -> Runs:
    """Return who makes the runs of an objective; autotune, if it is unknown."""
    return _kind_of_stored(name).runs


def is_generic(name: str) -> bool:
    """Whether an objective stands for any program; False if it is unknown."""
    return _kind_of_stored(name).is_generic


def paths(name: str) -> tuple[str, ...]:
    """Return the options of an objective that are paths relative to the study file."""
    return _kind_of_stored(name).paths


def with_own_input(name: str, options: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the options of an objective with a user's input in place of the study's.

    Raises:
        PlanError: The study has no input to replace, or the user's does not exist.
    """
    function = _kind_of_stored(name).own_input
    if function is None:
        return {**options, "input": path}
    replaced: dict[str, Any] = _function(name, function)(options, path)
    return replaced


def with_facts(name: str, options: Mapping[str, Any], path: str, *, has_input: bool) -> dict[str, Any]:
    """Return the options of an objective with a file of facts, for a prediction without the program.

    Without `has_input`, an input of the user, the facts replace the study's input.

    Raises:
        PlanError: The objective takes no facts.
    """
    option = _kind_of_stored(name).facts
    if option is None:
        able = ", ".join(known for known, kind in OBJECTIVES.items() if kind.facts)
        msg = f"objective {name!r} takes no facts from a file; these do: {able}"
        raise PlanError(msg)
    return {key: value for key, value in options.items() if has_input or key != "input"} | {option: path}


def plan(name: str, options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Make an objective ready to be tuned on this machine; it may make dry runs in `folder`.

    Args:
        name: The objective.
        options: The `[options]` of the study file.
        machine: Facts of the machine: `cores`, `nodes`, `cores_per_node`, `threads_per_core`, `sockets`,
            `memory_bytes`. With `described` they are those of another machine, and the space leaves out what only this
            one could tell. With `nothing_runs` the plan is for a prediction and the program may be missing;
            `installation` then holds facts of the program there, stated or measured. With `makes_files` false, files
            that are made once for all runs are not made.
        run_job: Runs a job to its end.
        folder: The folder for dry runs.

    Raises:
        PlanError: There is no such objective, its options have errors, or the program cannot be tuned here.
    """
    found = find_kind(name)
    planned: Plan = _function(name, found.plan)(options, machine=machine, run_job=run_job, folder=folder)
    return replace(planned, runs=found.runs)


Quantities = Callable[[Mapping[str, npt.NDArray[Any]]], dict[str, npt.NDArray[np.float64]]]
"""Computes what a run time depends on from columns of parameters and facts by name, (n,) each."""


def quantities(name: str) -> Quantities | None:
    """Return what computes the quantities that a run time of this objective depends on; None if it has none."""
    where = _kind_of_stored(name).quantities
    return None if where is None else _function(name, where)


CostsOf = Callable[[Mapping[str, npt.NDArray[Any]]], Costs | None]
"""Computes the terms of a run time from columns of parameters and facts by name, (n,) each; None if too few are known.
"""


def costs(name: str) -> CostsOf | None:
    """Return what computes the terms of a run time of this objective; None if it has none."""
    where = _kind_of_stored(name).costs
    return None if where is None else _function(name, where)


def layout(name: str, configuration: Configuration, facts: Mapping[str, Value]) -> tuple[str, ...]:
    """Return sentences on how a configuration divides a problem with known `facts`; none for most objectives."""
    where = _kind_of_stored(name).layout
    sentences: tuple[str, ...] = () if where is None else _function(name, where)(configuration, facts)
    return sentences


def rules(name: str) -> Rules | None:
    """Return what writes decision tables for the program of this objective; None if it has no such form."""
    where = _kind_of_stored(name).rules
    return None if where is None else _function(name, where)


def _kind_of_stored(name: str) -> ObjectiveKind:
    """Return the registration of a stored study's objective; an empty one if its distribution was removed, so that the
    study can still be read.
    """
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    try:
        return find_kind(name)
    except PlanError:
        return ObjectiveKind("")


def _function(name: str, where: str) -> Callable[..., Any]:
    """Import a function that an objective declares as `module:function`."""
    module, _, function = where.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    except Exception as error:  # third-party code may raise anything; show it to the user
        if name in OBJECTIVES:
            raise
        reason = " ".join(str(error).split())
        msg = f"{describe(_others()[name])}: {where} cannot be loaded: {type(error).__name__}: {reason}; fix it"
        raise PlanError(msg) from error
    return found


@cache
def _others() -> Mapping[str, "EntryPoint"]:
    """Return the objectives that other distributions offer, without importing them."""
    try:
        return find_entry_points(GROUP, taken=OBJECTIVES)
    except EntryPointError as error:
        raise PlanError(str(error)) from error


def _kind_of_entry_point(point: "EntryPoint") -> ObjectiveKind:
    try:
        found = load_entry_point(point)
    except EntryPointError as error:
        raise PlanError(str(error)) from error
    if not isinstance(found, ObjectiveKind):
        msg = f"{describe(point)} must be an objectives.kind.ObjectiveKind, got {type(found).__name__}"
        raise PlanError(msg)
    return found
