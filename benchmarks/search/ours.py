"""The methods that run in this process: the project's own sampler, and random draws from the valid set."""

import contextlib
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import optuna
from optuna.trial import TrialState

import autotune
from autotune.search.base import SpaceExhaustedError
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.suggest import ask
from benchmarks.search.problem import Problem
from benchmarks.search.recording import BudgetSpentError, Recording

# Files that do not affect proposals.
_DECIDES_NOTHING = ("expected_gain.py",)

InProcess = Callable[[Problem, Recording, int], str]


def ours(problem: Problem, recording: Recording, seed: int) -> str:
    """Search with the default sampler, as a study does; return why it ended."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=ValidSetSampler(problem.space, seed=seed))
    with contextlib.suppress(SpaceExhaustedError):
        while not recording.over:
            trial = ask(study, problem.space)
            value = recording.evaluate(problem.space.indices([trial.params])[0].tolist())
            if value is None:
                study.tell(trial, state=TrialState.FAIL)
            else:
                study.tell(trial, value)
    return recording.over or "space"


def random(problem: Problem, recording: Recording, seed: int) -> str:
    """Draw from the valid set without repeats."""
    try:
        for place in np.random.default_rng(seed).permutation(problem.size):
            recording.evaluate(problem.rows[place].tolist())
    except BudgetSpentError as reason:
        return str(reason)
    return "space"


@cache
def own_version() -> str:
    """Return the version with a digest of the code that affects proposals, so that a changed sampler runs again."""
    package = Path(autotune.__file__).parent
    search = [file for file in sorted((package / "search").rglob("*.py")) if file.name not in _DECIDES_NOTHING]
    model = package / "statistics" / "gaussian_process.py"
    files = [*search, model, *sorted((package.parent / "spaces").rglob("*.py"))]
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files))
    return f"{autotune.__version__}+{digest.hexdigest()[:8]}"
