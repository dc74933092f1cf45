"""The objectives by name. Each is imported when it is asked for, so that none costs the others time."""

import difflib
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from objectives.base import Plan, PlanError, RunJob

OBJECTIVES = {
    "qe": "objectives.qe.plan",
    "command": "objectives.command",
    "ucx": "objectives.ucx.plan",
    "training": "objectives.training.script",
    "dna": "objectives.training.dna",
    "ddp": "objectives.training.ddp",
    "replay": "objectives.replay.plan",
    "external": "objectives.external",
}
"""Name -> module with a function `plan`."""


def plan(name: str, options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Make the objective called `name` ready to be tuned on this machine; it may make a dry run in `folder`.

    `machine` holds the machine's facts: `cores`, `nodes`, `cores_per_node`, `sockets`, `memory_bytes`. With `described`
    they are those of another machine than this one: what only this one could tell is left out of the space.

    Raises:
        PlanError: there is no such objective, its options have errors, or the program cannot be tuned here.
    """
    if name not in OBJECTIVES:
        close = difflib.get_close_matches(name, OBJECTIVES, n=1)
        suggestion = f" (did you mean {close[0]!r}?)" if close else ""
        msg = f"no objective is called {name!r}{suggestion}; known: {', '.join(OBJECTIVES)}"
        raise PlanError(msg)
    module = importlib.import_module(OBJECTIVES[name])
    planned: Plan = module.plan(options, machine=machine, run_job=run_job, folder=folder)
    return planned


Quantities = Callable[[Mapping[str, npt.NDArray[Any]]], dict[str, npt.NDArray[np.float64]]]
"""Computes what a run time depends on from columns of parameters and facts, (n,) each, by name."""

_QUANTITIES = {"qe": "objectives.qe.quantities"}


def quantities(name: str) -> Quantities | None:
    """Return what is known of the physics of the objective called `name`, for a performance model; None if nothing."""
    if name not in _QUANTITIES:
        return None
    found: Quantities = importlib.import_module(_QUANTITIES[name]).quantities
    return found


def terms(name: str) -> Quantities | None:
    """Return what the run time of the objective called `name` is a sum of, up to rates; None where nobody wrote it."""
    if name not in _QUANTITIES:
        return None
    found: Quantities = importlib.import_module(_QUANTITIES[name]).terms
    return found
