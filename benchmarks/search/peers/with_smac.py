"""SMAC3's facade for hyperparameters (a random forest, expected improvement of the logarithm).

ConfigSpace has no arithmetic constraints, so a proposal is replaced by the nearest valid configuration not evaluated
yet, and SMAC gets the value of that one. A failure counts as the worst value seen.
"""

import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

from ConfigSpace import CategoricalHyperparameter, Configuration, ConfigurationSpace, UniformIntegerHyperparameter
from protocol import Oracle, Problem, serve
from smac import BlackBoxFacade, HyperparameterOptimizationFacade, Scenario
from smac.runhistory import StatusType, TrialInfo, TrialValue


def space_of(problem: Problem, seed: int) -> ConfigurationSpace:
    """Return the parameters that have more than one value, as places of values."""
    space = ConfigurationSpace(seed=seed)
    for name, size, ordered in zip(problem.names, problem.sizes, problem.ordered, strict=True):
        if size > 1 and ordered:
            space.add(UniformIntegerHyperparameter(name, 0, size - 1))
        elif size > 1:
            space.add(CategoricalHyperparameter(name, list(range(size))))
    return space


def never(config: Configuration, seed: int = 0) -> float:
    """Stand in for a target: trials are asked for and told."""
    raise NotImplementedError(config, seed)


def search(oracle: Oracle, options: dict[str, Any], seed: int, budget: int) -> None:
    problem = oracle.problem
    facade = {"hpo": HyperparameterOptimizationFacade, "blackbox": BlackBoxFacade}[options["facade"]]
    with tempfile.TemporaryDirectory() as folder:
        space = space_of(problem, seed)
        scenario = Scenario(space, deterministic=True, n_trials=budget, seed=seed, output_directory=Path(folder))
        smac = facade(scenario, never, overwrite=True, logging_level=False)
        while True:
            info = smac.ask()
            row = tuple(int(info.config.get(name, 0)) for name in problem.names)
            chosen = oracle.nearest(row)
            value = oracle.evaluate(chosen)
            told = oracle.worst if value is None else value
            if chosen != row:
                named = dict(zip(problem.names, chosen, strict=True))
                configuration = Configuration(space, {name: named[name] for name in space})
                info = TrialInfo(config=configuration, seed=info.seed, instance=info.instance, budget=info.budget)
            if told is not None:
                smac.tell(info, TrialValue(cost=told, status=StatusType.SUCCESS), save=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    serve(search)
