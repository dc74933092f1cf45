"""A peer with constraints, in an environment of its own: one line of JSON with the places tried, for each seed.

    python peer.py PROBLEM METHOD BUDGET SEED...

Optuna's samplers get the limit as a constraint; SMAC3, which knows none, the worst value seen for what breaks it.
A proposal becomes the nearest valid configuration not tried yet, and the method is told of that one. All of them begin
with the default configuration. Nothing here is of the project.
"""

import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np


class Table:
    """The measured configurations, and which of them were tried."""

    def __init__(self, path: str, seed: int) -> None:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        self.ordered, self.sizes = stored["ordered"], stored["sizes"]
        self.rows = np.array(stored["rows"])
        self.values, self.beyond = stored["values"], stored["beyond"]
        self.default = self.place(stored["default"])
        self.tried: list[int] = []
        self._rng = np.random.default_rng([seed, 1])
        self._fresh = np.ones(len(self.rows), dtype=bool)
        self._scale = np.where(self.ordered, np.maximum(np.array(self.sizes) - 1, 1), 1)

    def place(self, row: list[int]) -> int:
        return int(np.flatnonzero((self.rows == np.array(row)).all(axis=1))[0])

    def nearest(self, row: list[int]) -> int:
        apart = np.abs(self.rows - np.array(row)) / self._scale
        distances = np.sqrt((np.where(self.ordered, apart, apart > 0) ** 2).sum(axis=1))
        distances = np.where(self._fresh, distances, np.inf)
        return int(self._rng.choice(np.flatnonzero(distances <= distances.min() + 1e-9)))

    def take(self, place: int) -> tuple[float | None, float | None]:
        self.tried.append(place)
        self._fresh[place] = False
        return self.values[place], self.beyond[place]


def with_optuna(table: Table, method: str, budget: int, seed: int) -> None:
    import optuna
    from optuna.distributions import CategoricalDistribution, IntDistribution
    from optuna.trial import TrialState, create_trial

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    names = [f"p{number:02d}" for number in range(len(table.sizes))]
    distributions = {
        name: IntDistribution(0, size - 1) if ordered else CategoricalDistribution(range(size))
        for name, size, ordered in zip(names, table.sizes, table.ordered, strict=True)
    }

    def constraints(trial: optuna.trial.FrozenTrial) -> tuple[float]:
        return (trial.user_attrs["beyond"],)

    match method:
        case "optuna-tpe":
            sampler = optuna.samplers.TPESampler(seed=seed, constraints_func=constraints)
        case _:
            sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=True, constraints_func=constraints)
    study = optuna.create_study(sampler=sampler)

    def add(place: int) -> None:
        value, beyond = table.take(place)
        if value is None:
            return
        params = dict(zip(names, table.rows[place].tolist(), strict=True))
        told = {"user_attrs": {"beyond": beyond}, "system_attrs": {"constraints": (beyond,)}}
        study.add_trial(create_trial(params=params, distributions=distributions, value=value, **told))

    add(table.default)
    while len(table.tried) < budget:
        trial = study.ask(distributions)
        row = [trial.params[name] for name in names]
        chosen = table.nearest(row)
        value, beyond = table.values[chosen], table.beyond[chosen]
        if value is not None and table.rows[chosen].tolist() == row:
            table.take(chosen)
            trial.set_user_attr("beyond", beyond)
            study.tell(trial, value)
        else:
            trial.set_user_attr("beyond", 1.0)
            study.tell(trial, state=TrialState.FAIL)
            add(chosen)


def with_smac(table: Table, method: str, budget: int, seed: int) -> None:
    from ConfigSpace import CategoricalHyperparameter, Configuration, ConfigurationSpace, UniformIntegerHyperparameter
    from smac import BlackBoxFacade, HyperparameterOptimizationFacade, Scenario
    from smac.runhistory import TrialInfo, TrialValue

    logging.disable(logging.CRITICAL)
    names = [f"p{number:02d}" for number in range(len(table.sizes))]
    space = ConfigurationSpace(seed=seed)
    for name, size, ordered in zip(names, table.sizes, table.ordered, strict=True):
        if size > 1:
            space.add(
                UniformIntegerHyperparameter(name, 0, size - 1)
                if ordered
                else CategoricalHyperparameter(name, list(range(size)))
            )

    def never(config: Configuration, seed: int = 0) -> float:
        raise NotImplementedError(config, seed)

    facade = HyperparameterOptimizationFacade if method == "smac-hpo" else BlackBoxFacade
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(space, deterministic=True, n_trials=budget, seed=seed, output_directory=Path(folder))
        smac = facade(scenario, never, overwrite=True, logging_level=False)
        seen: list[float] = []
        chosen = table.default
        while True:
            value, beyond = table.take(chosen)
            seen += [] if value is None else [value]
            cost = value if value is not None and beyond is not None and beyond <= 0.0 else max(seen, default=0.0)
            named = dict(zip(names, table.rows[chosen].tolist(), strict=True))
            tried = Configuration(space, {name: named[name] for name in space})
            smac.tell(TrialInfo(config=tried, seed=0), TrialValue(cost=cost), save=False)
            if len(table.tried) == budget:
                return
            proposed = smac.ask().config
            chosen = table.nearest([int(proposed.get(name, 0)) for name in names])


def main() -> None:
    warnings.simplefilter("ignore")
    path, method, budget, *seeds = sys.argv[1:]
    for seed in map(int, seeds):
        table = Table(path, seed)
        (with_smac if method.startswith("smac") else with_optuna)(table, method, int(budget), seed)
        print(json.dumps({"seed": seed, "places": table.tried}), flush=True)


if __name__ == "__main__":
    main()
