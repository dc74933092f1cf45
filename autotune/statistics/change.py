"""Change detection: whether the mean of a measurement that is repeated in checks, months apart, has shifted.

A value is mean + effect of its check (the day, the node) + noise. How large the two are is not known: both are summed
over, by what the checks show and, for the effect of a check, by a prior, so that the second check already has one. For
each check k the evidence of a shift that began there is the ratio of two likelihoods, with the shift (normal, by 5 % or
50 %) and without it. Their sum over k is the statistic of Shiryaev and Roberts (Roberts, A comparison of some control
chart procedures, Technometrics 1966): without a change it grows by one a check on average, so it exceeds A at most once
in A checks. With likelihoods that sum over what is not known it is an e-detector (Shin, Ramdas & Rinaldo, E-detectors:
a nonparametric framework for sequential change detection, 2024).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

# The two standard deviations of a shift, which is normal; both are equally likely.
_SHIFTS = (0.05, 0.5)
_CHECK_EFFECTS = np.array([0.0, 0.002, 0.004, 0.007, 0.011, 0.017, 0.026, 0.04])
# Relative to the pooled standard deviation.
_NOISES = np.exp(np.linspace(-0.6, 0.8, 5))
_LEAST_NOISE = 0.001
# A bound of the logarithm of likelihood ratios, well before their overflow.
_BEYOND_DOUBT = 300.0
# In standard deviations: values farther from the median of their check are pulled in to this distance.
_OUTLYING = 2.5
# The median of the distances from the middle, times this, is the standard deviation of normal values.
_NORMAL = 1.4826
_TWO_SIDED_95 = 1.96


@dataclass(frozen=True)
class Shift:
    """The most likely shift of the mean, with its 95 % interval, as logarithms of ratios.

    It began with the check `since`; the first check after the reference has number 1. `evidence` is the sum of the
    likelihood ratios of all beginnings. `after` is the level since then, a logarithm with the ends of its 95 %
    interval. It uses only the checks since then, because the reference itself may be off.
    """

    evidence: float
    since: int
    size: float
    low: float
    high: float
    after: tuple[float, float, float]


def shift(checks: Sequence[Sequence[float]], check_effect: float) -> Shift:
    """Return the shift in `checks`, whose values are logarithms; the first one is the reference.

    `check_effect` is the standard deviation of the effect of a check that is expected before any is seen.

    Raises:
        ValueError: there is no check beside the reference, or one has no values.
    """
    if len(checks) < 2 or not all(len(check) for check in checks):
        msg = "a shift is seen in a reference and at least one check, with a value each"
        raise ValueError(msg)
    values = [np.asarray(check, dtype=float) for check in checks]
    found = explanations(values, check_effect)
    likely = found.posterior
    since = int(likely.sum(axis=0).argmax())
    # Over all beginnings: the most likely one is known no better than the size.
    size, low, high = _interval(likely, found.moved / found.precision, 1.0 / found.precision)
    centers, variances = _levels(_clip(values)[since + 1 :], found)
    after = _interval(likely[:, since] * _heavier(found.effects, check_effect), centers, variances)
    return Shift(float(found.ratios.sum()), since + 1, size, low, high, after)


@dataclass(frozen=True)
class Explanations:
    """The possible explanations of checks: r pairs of variances, each with a shift that began at one of k checks.

    A way is an effect of the check, `effects`, (r,), and a noise, `noises`, (..., r), as standard deviations, and a
    width of the shift. `shares`, (..., r), are the logarithms of how likely it is if nothing shifted, `gained`,
    (..., r, k), of how much likelier the checks are with the shift. `moved` over `precision` is the mean of the shift,
    1 over `precision` its variance, (..., r, k) each. Axes of histories may be in front of all of these but `effects`.
    """

    effects: Matrix
    noises: Matrix
    shares: Matrix
    gained: Matrix
    moved: Matrix
    precision: Matrix

    @property
    def ratios(self) -> Matrix:
        """The likelihood ratios of a shift, (..., r, k), which add up."""
        return np.asarray(np.exp(self.shares[..., None] + np.minimum(self.gained, _BEYOND_DOUBT)))

    @property
    def posterior(self) -> Matrix:
        """How likely each is, (..., r, k), if there was a shift; all of a history add up to 1."""
        logs = self.shares[..., None] + self.gained
        likely = np.exp(logs - logs.max(axis=(-2, -1), keepdims=True))
        return np.asarray(likely / likely.sum(axis=(-2, -1), keepdims=True))


def explanations(checks: Sequence[Matrix], check_effect: float) -> Explanations:
    """Return the possible explanations of checks; the first check is the reference.

    Checks may have further axes in front of their values, for many histories at once.
    """
    clipped = _clip(checks)
    means = np.stack([check.mean(axis=-1) for check in clipped], axis=-1)
    squares = [((check - check.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1) for check in clipped]
    within = np.stack(squares, axis=-1).sum(axis=-1, keepdims=True)
    number = np.array([check.shape[-1] for check in clipped], dtype=float)
    degrees = max(1.0, float(number.sum()) - len(number))
    pooled = np.maximum(_LEAST_NOISE, np.sqrt(within / degrees))
    effects = _CHECK_EFFECTS.repeat(len(_NOISES))
    noises = pooled * np.tile(_NOISES, len(_CHECK_EFFECTS))
    weights = 1.0 / ((effects**2)[:, None] + (noises**2)[..., None] / number)
    total = weights.sum(axis=-1, keepdims=True)
    values = means[..., None, :]
    centred = values - (weights * values).sum(axis=-1, keepdims=True) / total
    unchanged = (
        0.5 * np.log(weights).sum(axis=-1)
        - 0.5 * np.log(total[..., 0])
        - 0.5 * (weights * centred**2).sum(axis=-1)
        - degrees * np.log(noises)
        - 0.5 * within / noises**2
        + _prior(check_effect).repeat(len(_NOISES))
    )
    later = np.cumsum(weights[..., :0:-1], axis=-1)[..., ::-1]
    moved = np.cumsum((weights * centred)[..., :0:-1], axis=-1)[..., ::-1]
    known = later - later**2 / total
    precision = np.concatenate([known + width**-2 for width in _SHIFTS], axis=-2)
    moved = np.concatenate([moved] * len(_SHIFTS), axis=-2)
    widths = np.repeat(_SHIFTS, known.shape[-2])[:, None]
    gained = -0.5 * np.log(widths**2 * precision) + 0.5 * moved**2 / precision
    unchanged -= unchanged.max(axis=-1, keepdims=True)
    shares = unchanged - np.log(np.exp(unchanged).sum(axis=-1, keepdims=True)) - np.log(len(_SHIFTS))
    return Explanations(
        np.concatenate([effects] * len(_SHIFTS)),
        np.concatenate([noises] * len(_SHIFTS), axis=-1),
        np.concatenate([shares] * len(_SHIFTS), axis=-1),
        gained,
        moved,
        precision,
    )


def _levels(checks: Sequence[Matrix], found: Explanations) -> tuple[Matrix, Matrix]:
    """Return the mean of some checks of a history, and its variance, for each way in which values stray, (r,) both."""
    means = np.array([check.mean() for check in checks])
    number = np.array([len(check) for check in checks], dtype=float)
    weights = 1.0 / ((found.effects**2)[:, None] + (found.noises**2)[:, None] / number)
    total = weights.sum(axis=-1)
    return (weights * means).sum(axis=-1) / total, 1.0 / total


def _prior(check_effect: float) -> Matrix:
    """Return the logarithms of a half-normal prior at the effects of a check, weighted by what each stands for."""
    widths = np.gradient(_CHECK_EFFECTS)
    return np.asarray(np.log(widths) - 0.5 * (_CHECK_EFFECTS / check_effect) ** 2, dtype=float)


def _heavier(effects: Matrix, check_effect: float) -> Matrix:
    """Return how much likelier effects are by a half-Cauchy prior, whose tail lets a few checks overrule the guess."""
    ratios = (effects / check_effect) ** 2
    return np.asarray(np.exp(0.5 * ratios) / (1.0 + ratios), dtype=float)


def _interval(shares: Matrix, centers: Matrix, variances: Matrix) -> tuple[float, float, float]:
    """Return the mean of a mixture of normal distributions, and the ends of its 95 % interval."""
    shares = shares / shares.sum()
    mean = float((shares * centers).sum())
    reach = _TWO_SIDED_95 * sqrt(float((shares * (variances + (centers - mean) ** 2)).sum()))
    return mean, mean - reach, mean + reach


def _clip(checks: Sequence[Matrix]) -> list[Matrix]:
    """Return the values of each check, with what lies far from its middle drawn towards it."""
    medians = [np.median(check, axis=-1, keepdims=True) for check in checks]
    # The middle of three values is one of them: its distance of 0 says nothing of the noise.
    distances = [
        np.sort(np.abs(check - middle), axis=-1)[..., check.shape[-1] % 2 :]
        for check, middle in zip(checks, medians, strict=True)
    ]
    known = np.concatenate(distances, axis=-1)
    if not known.shape[-1]:
        return list(checks)
    reach = _OUTLYING * np.maximum(_LEAST_NOISE, _NORMAL * np.median(known, axis=-1, keepdims=True))
    return [np.clip(check, middle - reach, middle + reach) for check, middle in zip(checks, medians, strict=True)]
