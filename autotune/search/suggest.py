"""Ask plain Optuna studies for trials that have the parameters proposed by our samplers."""

import optuna

from autotune.search.distributions import distributions_of
from spaces import Space


def ask(study: optuna.Study, space: Space) -> optuna.Trial:
    """Ask for a trial and set the parameters that its sampler proposed.

    Raises:
        SpaceExhaustedError: every valid configuration has been proposed; the study keeps an empty trial.
    """
    trial = study.ask()
    suggest(trial, space)
    return trial


def suggest(trial: optuna.Trial, space: Space) -> None:
    """Set the parameters that a trial's sampler proposed; call it first in an objective of `study.optimize`."""
    distributions = distributions_of(space)
    for name in trial.relative_params:
        _suggest(trial, name, distributions[name])


def _suggest(trial: optuna.Trial, name: str, distribution: optuna.distributions.BaseDistribution) -> None:
    match distribution:
        case optuna.distributions.IntDistribution(low=low, high=high, step=step):
            trial.suggest_int(name, low, high, step=step)
        case optuna.distributions.FloatDistribution(low=low, high=high, log=log):
            trial.suggest_float(name, low, high, log=log)
        case optuna.distributions.CategoricalDistribution(choices=choices):
            trial.suggest_categorical(name, choices)
