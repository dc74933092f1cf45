"""Kernel Tuner's strategies in its simulation mode: `tune_kernel` as it is, with a table elsewhere as its cache.

Its simulation runner answers from a cache file; here it asks the parent instead, counts as its own does (a
configuration counts once), and reports failures as its own do. Strategies have the hyperparameters that the release
ships as defaults, and one that stops by itself before the budget is spent is started again with other random numbers.
Two of them (diff_evo, bayes_opt) draw from generators that cannot be seeded, so their results differ between calls.
"""

import random
import warnings
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np
from kernel_tuner import tune_kernel, util
from kernel_tuner.interface import Options
from kernel_tuner.runners import simulation
from protocol import Oracle, Problem, Row, Stop, serve

# Starts in a row that find nothing new; and what keeps their seeds apart from those of other searches.
_IDLE = 3
_SEEDS = 10_000


class TableRunner(simulation.SimulationRunner):
    """Kernel Tuner's runner, with the oracle in place of the cache."""

    oracle: Oracle
    row_of: dict[tuple[Any, ...], Row]

    def run(self, parameter_space: Iterable[Sequence[Any]], tuning_options: Options) -> list[dict[str, Any] | None]:
        results: list[dict[str, Any] | None] = []
        for element in parameter_space:
            if tuning_options.budget.is_done():
                results.append(None)
                continue
            row = self.row_of[tuple(element)]
            new = row not in self.oracle.known
            value = self.oracle.evaluate(row)
            if new:
                tuning_options.budget.add_evaluations(1)
            result = dict(zip(tuning_options.tune_params.keys(), element, strict=True))
            result |= {"compile_time": 0, "verification_time": 0, "benchmark_time": 0}
            result |= {"strategy_time": 0, "framework_time": 0}
            if value is None:
                result |= {"time": util.RuntimeFailedConfig(), "__error__": util.RuntimeFailedConfig()}
            else:
                result |= {"time": value, "times": [value]}
            results.append(result)
        return results


def search(oracle: Oracle, options: dict[str, Any], seed: int, budget: int) -> None:
    idle = 0
    for attempt in count():
        before = len(oracle.known)
        try:
            _tune(oracle, options["strategy"], seed + _SEEDS * attempt, budget - before)
        except Stop as stop:
            if str(stop) != "repeats":
                raise
        except Exception:
            if idle == _IDLE:
                raise
        if len(oracle.known) >= budget:
            return
        idle = idle + 1 if len(oracle.known) == before else 0
        if idle > _IDLE:
            return


def _tune(oracle: Oracle, strategy: str, seed: int, budget: int) -> None:
    problem = oracle.problem
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  its strategies draw from the global generator
    parameters = _parameters(problem)
    values = list(parameters.values())
    TableRunner.oracle = oracle
    TableRunner.row_of = {
        tuple(values[k][index] for k, index in enumerate(row)): tuple(row) for row in problem.valid.tolist()
    }
    simulation.SimulationRunner = TableRunner
    tune_kernel(
        "kernel",
        "__global__ void kernel() {}",
        1,
        [],
        parameters,
        restrictions=_restrictions(problem),
        lang="CUDA",
        strategy=strategy,
        strategy_options={"max_fevals": budget},
        simulation_mode=True,
        quiet=True,
        objective="time",
        seed=seed,
    )


def _numeric(problem: Problem) -> bool:
    return not any(isinstance(value, str) for values in problem.values for value in values)


def _parameters(problem: Problem) -> dict[str, list[Any]]:
    """Return its parameters: texts become numbers, since half of its strategies compute with the values."""
    if _numeric(problem):
        return dict(zip(problem.names, problem.values, strict=True))
    return {
        name: list(values) if ordered else list(range(len(values)))
        for name, values, ordered in zip(problem.names, problem.values, problem.ordered, strict=True)
    }


def _restrictions(problem: Problem) -> list[str] | None:
    if _numeric(problem):
        return problem.rules
    if problem.rules:
        raise ValueError("rules over texts are not handed to Kernel Tuner")
    return None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(search)
