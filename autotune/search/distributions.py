"""Parameters as Optuna distributions.

They are fixed for a whole study, since Optuna allows no change within one. They do not ensure validity; the sampler
does, which proposes only from the valid set.
"""

from itertools import pairwise

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from spaces import Choice, Flag, Float, Integer, Parameter, Space


def distributions_of(space: Space) -> dict[str, BaseDistribution]:
    """Return the distribution of every parameter, by name, over a superset of its valid values."""
    return {parameter.name: distribution_of(parameter) for parameter in space.parameters}


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """Return the distribution that holds every value of `parameter`; unset is the absence of the parameter."""
    match parameter:
        case Integer(values=values):
            return _integers(values)
        case Float(low=low, high=high, log=log):
            return FloatDistribution(low, high, log=log)
        case Choice(values=values):
            return CategoricalDistribution(values)
        case Flag():
            return CategoricalDistribution((False, True))


def _integers(values: tuple[int, ...]) -> BaseDistribution:
    steps = {second - first for first, second in pairwise(values)}
    if len(steps) > 1:
        return CategoricalDistribution(values)
    return IntDistribution(values[0], values[-1], step=max(steps, default=1))
