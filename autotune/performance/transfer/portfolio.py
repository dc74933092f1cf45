"""Portfolio: a few configurations; in any possible world, the best of them should be good.

Each is chosen for what it adds to those chosen before, in the mean over worlds: a greedy choice that is within 1 - 1/e
of the best set (Nemhauser, Wolsey & Fisher 1978).
"""

import numpy as np
import numpy.typing as npt

from autotune.performance.regression.features import FloatArray

# Configurations that add nothing to those chosen before are ranked by their own efficiency.
_TIE_BREAK = 1e-6


def portfolio(
    efficiencies: FloatArray, chances: FloatArray, count: int, allowed: npt.NDArray[np.bool_]
) -> tuple[int, ...]:
    """Return the indices of at most `count` of the `allowed` ones of n configurations, the best first.

    Args:
        efficiencies: of each configuration in w worlds, (w, n).
        chances: those of the worlds, (w,).
        count: how many to choose.
        allowed: which may be chosen, (n,).
    """
    alone = _TIE_BREAK * (chances @ efficiencies)
    best = np.zeros(len(chances))
    left = allowed.copy()
    chosen: list[int] = []
    while len(chosen) < count and left.any():
        gains = chances @ np.maximum(efficiencies, best[:, None]) + alone
        chosen.append(int(np.where(left, gains, -1.0).argmax()))
        left[chosen[-1]] = False
        best = np.maximum(best, efficiencies[:, chosen[-1]])
    return tuple(chosen)
