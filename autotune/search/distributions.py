"""Parameters as Optuna distributions.

Fixed for the whole study, since Optuna allows no change within one; validity does not come from them but from the
sampler, which proposes from the valid set only.
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
