"""The objectives by name. Each is imported when it is asked for, so that none costs the others time."""

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
"""The objective of any program, described in the study file alone."""

REPLAY = "replay"
"""The objective of studies that tell recorded measurements again."""

GROUP = "autotune.objectives"
"""The group of entry points by which other distributions offer objectives: each is a value of `ObjectiveKind`."""

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
    """Return the names of all objectives, those that ship first.

    Raises:
        PlanError: a distribution offers one whose name is taken.
    """
    return (*OBJECTIVES, *_others())


def find_kind(name: str) -> ObjectiveKind:
    """Return what is known of the objective called `name`.

    Raises:
        PlanError: there is no such objective, or the distribution that offers it is broken.
    """
    # Also where the name is one of ours: two objectives of one name are an error, whichever is meant.
    others = _others()
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    if name in others:
        return _offered_kind(others[name])
    known = names()
    close = difflib.get_close_matches(name, known, n=1)
    suggestion = f" (did you mean {close[0]!r}?)" if close else ""
    msg = f"no objective is called {name!r}{suggestion}; known: {', '.join(known)}"
    raise PlanError(msg)


def is_known(name: str) -> bool:
    """Whether there is an objective called `name`."""
    try:
        return name in names()
    except PlanError:
        return False


def runs(name: str) -> Runs:
    """Return who makes the runs of the objective called `name`; those of an unknown one count as launched."""
    return _stored_kind(name).runs


def is_generic(name: str) -> bool:
    """Whether the objective called `name` stands for any program; an unknown one does not."""
    return _stored_kind(name).is_generic


def paths(name: str) -> tuple[str, ...]:
    """Return which options of the objective called `name` are paths relative to the study file."""
    return _stored_kind(name).paths


def with_own_input(name: str, options: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the options of the objective called `name` with an input of the user's in place of the study's.

    Raises:
        PlanError: the study has no input that could be replaced, or the user's is not there.
    """
    function = _stored_kind(name).own_input
    if function is None:
        return {**options, "input": path}
    replaced: dict[str, Any] = _function(name, function)(options, path)
    return replaced


def with_facts(name: str, options: Mapping[str, Any], path: str, *, has_input: bool) -> dict[str, Any]:
    """Return the options of the objective called `name` with the facts of a problem, for a prediction without it.

    Without an input of the user's (`has_input`) they stand alone.

    Raises:
        PlanError: it cannot be told facts.
    """
    option = _stored_kind(name).facts
    if option is None:
        able = ", ".join(known for known, kind in OBJECTIVES.items() if kind.facts)
        msg = f"objective {name!r} takes no facts from a file; it is for: {able}"
        raise PlanError(msg)
    return {key: value for key, value in options.items() if has_input or key != "input"} | {option: path}


def plan(name: str, options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Make the objective called `name` ready to be tuned on this machine; it may make a dry run in `folder`.

    `machine` holds the machine's facts: `cores`, `nodes`, `cores_per_node`, `threads_per_core`, `sockets`,
    `memory_bytes`. With `described` they are those of another machine than this one: what only this one could tell is
    left out of the space. With `nothing_runs` the plan is for a prediction, and the program may be missing;
    `installation` is then what is known of it there, stated or measured, by the names of facts. Files that are made
    once for all runs are not made where `makes_files` is false.

    Raises:
        PlanError: there is no such objective, its options have errors, or the program cannot be tuned here.
    """
    found = find_kind(name)
    planned: Plan = _function(name, found.plan)(options, machine=machine, run_job=run_job, folder=folder)
    return replace(planned, runs=found.runs)


Quantities = Callable[[Mapping[str, npt.NDArray[Any]]], dict[str, npt.NDArray[np.float64]]]
"""Computes what a run time depends on from columns of parameters and facts, (n,) each, by name."""


def quantities(name: str) -> Quantities | None:
    """Return what is known of the physics of the objective called `name`, for a performance model; None if nothing."""
    where = _stored_kind(name).quantities
    return None if where is None else _function(name, where)


CostsOf = Callable[[Mapping[str, npt.NDArray[Any]]], Costs | None]
"""Computes what a run time is a sum of from columns of parameters and facts, (n,) each, by name; None: not enough."""


def costs(name: str) -> CostsOf | None:
    """Return what the run time of the objective called `name` is made of; None where nobody wrote it."""
    where = _stored_kind(name).costs
    return None if where is None else _function(name, where)


def layout(name: str, configuration: Configuration, facts: Mapping[str, Value]) -> tuple[str, ...]:
    """Return sentences on how a configuration divides a problem with known `facts`; none where nobody wrote them."""
    where = _stored_kind(name).layout
    sentences: tuple[str, ...] = () if where is None else _function(name, where)(configuration, facts)
    return sentences


def rules(name: str) -> Rules | None:
    """Return what writes decision tables for the program of the objective called `name`; None where nobody wrote it."""
    where = _stored_kind(name).rules
    return None if where is None else _function(name, where)


def _stored_kind(name: str) -> ObjectiveKind:
    """Return what is known of a study's objective, nothing if its distribution is gone: the study can be read still."""
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    try:
        return find_kind(name)
    except PlanError:
        return ObjectiveKind("")


def _function(name: str, where: str) -> Callable[..., Any]:
    """Import a function that the objective called `name` declares as `module:function`."""
    module, _, function = where.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    except Exception as error:  # others' code: whatever it raises, the user has to see what it says
        if name in OBJECTIVES:
            raise
        reason = " ".join(str(error).split())
        msg = f"{describe(_others()[name])}: {where} cannot be loaded: {type(error).__name__}: {reason}; mend it"
        raise PlanError(msg) from error
    return found


@cache
def _others() -> Mapping[str, "EntryPoint"]:
    """Return the objectives that other distributions offer; none is imported."""
    try:
        return find_entry_points(GROUP, taken=OBJECTIVES)
    except EntryPointError as error:
        raise PlanError(str(error)) from error


def _offered_kind(point: "EntryPoint") -> ObjectiveKind:
    try:
        found = load_entry_point(point)
    except EntryPointError as error:
        raise PlanError(str(error)) from error
    if not isinstance(found, ObjectiveKind):
        msg = f"{describe(point)} must be an objectives.kind.ObjectiveKind, got {type(found).__name__}"
        raise PlanError(msg)
    return found
