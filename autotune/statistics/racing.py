"""Racing: a configuration is run again only while that could change whether it beats the incumbent.

The decision that counts is the one after the full number of repeats: is the challenger's value then better, by as much
as matters? After every run the chance of that is predicted from the measurements (a flat prior, Student's t for the
noise). Below the error rate the challenger has lost, above one minus the error rate it has won, and a decided race gets
no more runs. This is stochastic curtailment (Lan, Simon & Halperin, "Stochastically curtailed
tests in long-term clinical trials", 1982) with a predictive probability (Spiegelhalter, Freedman & Blackburn 1986). Its
error rate holds however often the race is judged: whenever it stops, the chance that the full number of repeats would
have decided otherwise is at most the error rate, on average over the differences that occur (the chance is greater
close to a tie, where a wrong decision costs nothing).
"""

from dataclasses import dataclass
from enum import Enum
from math import inf, log, sqrt

from autotune.statistics.mixed_model import Contrast, MixedModel, center


class Standing(Enum):
    """How a configuration stands against the incumbent."""

    LOST = "the full number of repeats would not make it better"
    WON = "is better"
    OPEN = "one more run could tell"


@dataclass(frozen=True)
class RaceRules:
    """The rules by which a configuration is run again.

    `error_rate` is the chance that a race which was ended early would have ended otherwise after `max_runs`;
    `min_gain` is the least relative improvement that matters.
    """

    min_runs: int = 1
    max_runs: int = 5
    error_rate: float = 0.05
    min_gain: float = 0.01


def standing(effects: MixedModel, challenger: int, incumbent: int, rules: RaceRules) -> Standing:
    """Judge a configuration by its difference to the incumbent; both have runs."""
    if effects.count(challenger) < rules.min_runs:
        return Standing.OPEN
    chance = chance_better(effects, challenger, incumbent, rules)
    if chance < rules.error_rate:
        return Standing.LOST
    return Standing.WON if chance > 1.0 - rules.error_rate else Standing.OPEN


def chance_better(effects: MixedModel, challenger: int, incumbent: int, rules: RaceRules) -> float:
    """Return the chance that a challenger is better after the full number of repeats, by as much as matters."""
    contrast = effects.contrast(challenger, incumbent)
    behind = contrast.difference + log(1.0 + rules.min_gain)
    spread = _still_open(effects, contrast, incumbent, rules)
    if effects.count(challenger) >= rules.max_runs or spread == 0.0:
        return float(behind < 0.0)
    from scipy.special import stdtr  # noqa: PLC0415  slow to import, and reading a study needs none of it

    return float(stdtr(contrast.degrees, -behind / spread))


def losing_value(effects: MixedModel, challenger: int, incumbent: int, block: int, rules: RaceRules) -> float:
    """Return the value (a logarithm) of one more run at which the challenger has lost; inf if it cannot lose yet."""
    before = effects.values(challenger)
    if len(before) + 1 < rules.min_runs:
        return inf
    spread = _still_open(effects, effects.prospective(challenger, incumbent, block), incumbent, rules)
    from scipy.special import stdtrit  # noqa: PLC0415  slow to import, and reading a study needs none of it

    allowed = spread * float(stdtrit(effects.degrees, 1.0 - rules.error_rate))
    # Under drift the challenger is compared with the incumbent's runs of the same block, if these were slower.
    here = effects.values(incumbent, block) if effects.drift > 0.0 else []
    rival = max(effects.center(incumbent), center(here, effects.statistic)) if here else effects.center(incumbent)
    limit = rival - log(1.0 + rules.min_gain) + allowed
    needed = (len(before) + 1) * limit - sum(before)
    if center([*before, needed], effects.statistic) < limit - 1e-12:
        return inf
    return needed


def still_open(effects: MixedModel, variance: float, runs: int) -> float:
    """Return the standard deviation of the change that an estimate of this variance may undergo until `runs` runs."""
    return sqrt(max(0.0, variance - effects.variance(runs)))


def _still_open(effects: MixedModel, contrast: Contrast, incumbent: int, rules: RaceRules) -> float:
    """Return the standard deviation of the change that the remaining runs may make to the difference."""
    last = effects.variance(rules.max_runs) + effects.variance(max(rules.max_runs, effects.count(incumbent)))
    return sqrt(max(0.0, contrast.standard_error**2 - last))
