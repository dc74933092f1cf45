"""Optuna's samplers with three ways to handle constraints.

valid    replace the proposal by the nearest valid configuration not evaluated yet, and tell the sampler that one;
         a failure counts as the worst value seen
reject   ask until a configuration is valid; tell invalid and failed ones as failed; invalid ones cost nothing
penalty  an invalid configuration costs an evaluation; it and a failed one count as the worst value seen
"""

import warnings
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import TrialState, create_trial
from protocol import Oracle, Row, serve


class Asked:
    """A study over places of values: ordered parameters as integers, choices as categories."""

    def __init__(self, oracle: Oracle, sampler: optuna.samplers.BaseSampler) -> None:
        self.oracle = oracle
        self.study = optuna.create_study(sampler=sampler)
        problem = oracle.problem
        self.distributions: dict[str, BaseDistribution] = {
            name: IntDistribution(0, size - 1) if ordered else CategoricalDistribution(range(size))
            for name, size, ordered in zip(problem.names, problem.sizes, problem.ordered, strict=True)
        }

    def ask(self) -> tuple[optuna.Trial, Row]:
        trial = self.study.ask(self.distributions)
        return trial, tuple(trial.params[name] for name in self.oracle.problem.names)

    def tell(self, trial: optuna.Trial, value: float | None) -> None:
        if value is None:
            self.study.tell(trial, state=TrialState.FAIL)
        else:
            self.study.tell(trial, value)

    def add(self, row: Row, value: float | None) -> None:
        """Tell the sampler the value of a configuration that it did not propose."""
        if value is not None:
            params = dict(zip(self.oracle.problem.names, row, strict=True))
            self.study.add_trial(create_trial(params=params, distributions=self.distributions, value=value))


def valid(asked: Asked) -> None:
    oracle = asked.oracle
    while True:
        trial, row = asked.ask()
        chosen = oracle.nearest(row)
        value = oracle.evaluate(chosen)
        told = oracle.worst if value is None else value
        if chosen == row:
            asked.tell(trial, told)
        else:
            asked.tell(trial, None)
            asked.add(chosen, told)


def reject(asked: Asked) -> None:
    oracle = asked.oracle
    while True:
        trial, row = asked.ask()
        if row in oracle.problem.place:
            asked.tell(trial, oracle.evaluate(row))
        else:
            oracle.rejected()
            asked.tell(trial, None)


def penalty(asked: Asked) -> None:
    oracle = asked.oracle
    while True:
        trial, row = asked.ask()
        value = oracle.evaluate(row)
        asked.tell(trial, oracle.worst if value is None else value)


def sampler_of(name: str, seed: int) -> optuna.samplers.BaseSampler:
    match name:
        case "tpe":
            return optuna.samplers.TPESampler(seed=seed)
        case "gp":
            return optuna.samplers.GPSampler(seed=seed, deterministic_objective=True)
    raise ValueError(f"no sampler {name!r}")


def search(oracle: Oracle, options: dict[str, Any], seed: int, budget: int) -> None:
    del budget  # Optuna's samplers do not ask for it
    run = {"valid": valid, "reject": reject, "penalty": penalty}[options["mode"]]
    asked = Asked(oracle, sampler_of(options["sampler"], seed))
    for row, value in oracle.known.items():
        asked.add(row, value)
    run(asked)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    serve(search)
