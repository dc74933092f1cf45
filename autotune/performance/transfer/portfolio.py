"""Portfolio: a few configurations; on any plausible machine, the best of them should be good.

The unknown efficiencies of a machine are drawn many times: a mixture of the differences of known machines from their
expected efficiencies, and a smooth function of the space. Each configuration is chosen for its gain over those
chosen before, a greedy choice that is within 1 - 1/e of the best set (Nemhauser, Wolsey & Fisher 1978).
"""

import numpy as np
import numpy.typing as npt

from autotune.performance.regression.features import FloatArray
from autotune.search.gaussian_process import correlation

_SCENARIOS = 1_500
# The share of the known machines' surprises in a scenario, and the size of the smooth part, in efficiency.
_SHARE = 0.5
_NOISE = 0.1
_LENGTH = 1.0
_JITTER = 1e-6
# Configurations that add nothing to those chosen before are ranked by their own efficiency.
_TIE_BREAK = 1e-6


def portfolio(
    expected: FloatArray, surprises: FloatArray, traits: FloatArray, count: int, rng: np.random.Generator
) -> list[int]:
    """Return the indices of `count` of c configurations, the best first.

    Args:
        expected: the efficiency that is expected of each, (c,).
        surprises: how far m known machines were from their expected efficiencies without their data, (m, c).
        traits: the traits of the configurations, (c, d).
        count: how many to choose.
        rng: draws the scenarios.
    """
    m, c = surprises.shape
    mixed = rng.standard_normal((_SCENARIOS, m)) / np.sqrt(max(m, 1)) @ surprises
    covariance = correlation(traits, traits, np.full(traits.shape[1], _LENGTH)) + _JITTER * np.eye(c)
    smooth = rng.standard_normal((_SCENARIOS, c)) @ np.linalg.cholesky(covariance).T
    drawn = np.maximum(expected + _SHARE * mixed + _NOISE * smooth, 0.0)
    # Efficiency is relative to the best configuration of the scenario.
    drawn /= np.maximum(drawn.max(axis=1, keepdims=True), 1e-9)
    return _greedy(drawn, min(count, c))


def _greedy(scenarios: npt.NDArray[np.float64], count: int) -> list[int]:
    best = np.zeros(len(scenarios))
    chosen: list[int] = []
    for _ in range(count):
        gains = np.maximum(scenarios, best[:, None]).mean(axis=0) + _TIE_BREAK * scenarios.mean(axis=0)
        gains[chosen] = -1.0
        chosen.append(int(gains.argmax()))
        best = np.maximum(best, scenarios[:, chosen[-1]])
    return chosen
