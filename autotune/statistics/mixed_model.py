"""What repeated runs say: an effect of every configuration, of every block of time, and the noise between runs.

    log(value) = configuration + block + noise

The configurations' effects are free, those of the blocks random: a machine that does not drift has none. The ratio of
the two variances is the one of the greatest restricted likelihood (REML: Patterson & Thompson 1971) on a small grid.
Values are not corrected by estimated effects of blocks, since a neighbour that comes and goes within a block would make
nonsense of them; a drift makes comparisons across blocks less certain, and those within blocks are preferred.

Outliers, which every shared machine has, are pulled in to 1.5 standard deviations, and the noise is Huber's "proposal
2" (Robust Statistics, 1981, section 6.7), so that one bad run neither hides a good configuration nor makes the machine
look too noisy to decide.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean, median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Statistic = Literal["median", "mean"]

# Before anything was repeated, runs are thought to differ by 2 %: worth one degree of freedom.
_PRIOR_NOISE = 0.02
_PRIOR_DEGREES = 1.0
# Variance of blocks over variance of runs.
_RATIOS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_CLIP = 1.5
# E[min(z^2, 1.5^2)] of a standard normal z.
_CLIPPED_VARIANCE = 0.7785
# Pulling in one run that took ten times as long takes some forty rounds, most studies are done in twenty.
_ROUNDS = 100
# A median of three or more runs varies this much more than their mean, for normal noise.
_MEDIAN_PENALTY = 1.2
# The gain in log-likelihood from which on a drift is reported: less than one study in a hundred without any.
_DRIFT_EVIDENCE = 4.0


@dataclass(frozen=True)
class MeasuredRun:
    """One run: which configuration, in which block, and the logarithm of its value (lower is better)."""

    configuration: int
    block: int
    value: float


@dataclass(frozen=True)
class Contrast:
    """How much slower one configuration is than another: a difference of logarithms, with its Student's t."""

    difference: float
    standard_error: float
    degrees: float


@dataclass(frozen=True)
class Spread:
    """How runs of one configuration differ: within a block of time, and between blocks."""

    noise: float
    degrees: float
    drift: float = 0.0
    offsets: Mapping[int, float] = field(default_factory=dict)
    drifts: bool = False


@dataclass(frozen=True)
class MixedModel:
    """The estimates: the `runs` of configurations, the `centers` of their values, and their `spread`."""

    runs: Mapping[int, Sequence[MeasuredRun]]
    centers: Mapping[int, float]
    statistic: Statistic
    spread: Spread

    @property
    def noise(self) -> float:
        """The standard deviation of one run."""
        return self.spread.noise

    @property
    def degrees(self) -> float:
        """The degrees of freedom of the noise."""
        return self.spread.degrees

    @property
    def drift(self) -> float:
        """The standard deviation of the blocks' effects."""
        return self.spread.drift

    @property
    def offsets(self) -> Mapping[int, float]:
        """The effects of the blocks."""
        return self.spread.offsets

    @property
    def drifts(self) -> bool:
        """Whether there is evidence that the machine drifts."""
        return self.spread.drifts

    def count(self, configuration: int) -> int:
        """Return how many runs a configuration has."""
        return len(self.runs.get(configuration, ()))

    def values(self, configuration: int, block: int | None = None) -> list[float]:
        """Return the values of a configuration's runs, those of one block only if that is given."""
        runs = self.runs.get(configuration, ())
        return [sample.value for sample in runs if block is None or sample.block == block]

    def center(self, configuration: int) -> float:
        """Return the estimate of a configuration's value (a logarithm)."""
        return self.centers[configuration]

    def variance(self, runs: int) -> float:
        """Return the variance of the estimate of a configuration with `runs` runs in one block."""
        penalty = _MEDIAN_PENALTY**2 if self.statistic == "median" and runs > 2 else 1.0
        return penalty * self.noise**2 / runs

    def contrast(self, challenger: int, incumbent: int) -> Contrast:
        """Compare two configurations that both have runs: within blocks, where that says more."""
        across = Contrast(
            self.center(challenger) - self.center(incumbent),
            self._error_across(self._blocks(challenger), self._blocks(incumbent)),
            self.degrees,
        )
        within = self._within(challenger, incumbent) if self.drift > 0.0 else None
        return within if within is not None and within.standard_error < across.standard_error else across

    def prospective(self, challenger: int, incumbent: int, block: int) -> Contrast:
        """Return what a comparison without a difference will be worth after one more run of the challenger."""
        error = self._error_across([*self._blocks(challenger), block], self._blocks(incumbent))
        return Contrast(0.0, error, self.degrees)

    def _blocks(self, configuration: int) -> list[int]:
        return [sample.block for sample in self.runs.get(configuration, ())]

    def _error_across(self, first: Sequence[int], second: Sequence[int]) -> float:
        weights: dict[int, float] = defaultdict(float)
        for sign, blocks in ((1.0, first), (-1.0, second)):
            for block in blocks:
                weights[block] += sign / len(blocks)
        between = self.drift**2 * sum(weight**2 for weight in weights.values())
        return sqrt(self.variance(len(first)) + self.variance(len(second)) + between)

    def _within(self, challenger: int, incumbent: int) -> Contrast | None:
        """Return the mean difference within the blocks in which both have runs, each block weighted by its runs."""
        shared = set(self._blocks(challenger)) & set(self._blocks(incumbent))
        total = difference = 0.0
        for block in shared:
            ours, theirs = self.values(challenger, block), self.values(incumbent, block)
            weight = len(ours) * len(theirs) / (len(ours) + len(theirs))
            difference += weight * (center(ours, self.statistic) - center(theirs, self.statistic))
            total += weight
        return Contrast(difference / total, self.noise / sqrt(total), self.degrees) if shared else None


def center(values: Sequence[float], statistic: Statistic) -> float:
    """Return the median or the mean."""
    return median(values) if statistic == "median" else fmean(values)


def fit(samples: Sequence[MeasuredRun], statistic: Statistic = "median") -> MixedModel:
    """Estimate effects and noise from runs."""
    runs: dict[int, list[MeasuredRun]] = defaultdict(list)
    for sample in samples:
        runs[sample.configuration].append(sample)
    centers = {configuration: center([sample.value for sample in of], statistic) for configuration, of in runs.items()}
    return MixedModel(
        runs, centers, statistic, spread_of([sample for sample in samples if len(runs[sample.configuration]) > 1])
    )


def spread_of(repeated: Sequence[MeasuredRun]) -> Spread:
    """Estimate how runs differ. Leave out configurations that ran once: they say nothing about it."""
    if not repeated:
        return Spread(_PRIOR_NOISE, _PRIOR_DEGREES)
    blocks = sorted({sample.block for sample in repeated})
    design = _Design(repeated, blocks)
    values = np.array([sample.value for sample in repeated])
    clipped = values
    for _ in range(_ROUNDS):
        solved = design.solve(clipped)
        residuals = values - solved.fitted
        pulled = solved.fitted + np.clip(residuals, -_CLIP * solved.noise, _CLIP * solved.noise)
        if np.allclose(pulled, clipped, rtol=0.0, atol=1e-4 * solved.noise):
            break
        clipped = pulled
    offsets = dict(zip(blocks, solved.offsets.tolist(), strict=True))
    return Spread(solved.noise, solved.degrees, solved.drift, offsets, solved.drifts)


@dataclass(frozen=True)
class _Solution:
    fitted: Array
    offsets: Array
    noise: float
    degrees: float
    drift: float
    drifts: bool


class _Design:
    """The mixed model of one set of repeated runs, ready to be solved for several sets of values."""

    def __init__(self, samples: Sequence[MeasuredRun], blocks: Sequence[int]) -> None:
        columns = {block: column for column, block in enumerate(blocks)}
        _, self._group = np.unique([sample.configuration for sample in samples], return_inverse=True)
        self._sizes = np.bincount(self._group).astype(float)
        in_blocks = np.zeros((len(samples), len(blocks)))
        in_blocks[np.arange(len(samples)), [columns[sample.block] for sample in samples]] = 1.0
        self._in_blocks = in_blocks
        self._within_blocks = self._within(in_blocks)
        # With the eigenvectors of their Gram matrix as a basis, every ratio of variances is a division.
        self._eigenvalues, self._basis = np.linalg.eigh(self._within_blocks.T @ self._within_blocks)
        self._scales = 1.0 + np.outer(_RATIOS, np.maximum(self._eigenvalues, 0.0))
        self._degrees = _PRIOR_DEGREES + len(samples) - len(self._sizes)

    def _within(self, values: Array) -> Array:
        """Return values, (n,) or (n, m), less the mean of their configuration."""
        sums = np.zeros((len(self._sizes), *values.shape[1:]))
        np.add.at(sums, self._group, values)
        means = sums / self._sizes.reshape(-1, *[1] * (values.ndim - 1))
        within: Array = values - means[self._group]
        return within

    def solve(self, values: Array) -> _Solution:
        """Estimate everything from values, (n,), for the likeliest ratio of variances."""
        within = self._within(values)
        moments = self._basis.T @ (self._within_blocks.T @ within)
        squares = within @ within - np.array(_RATIOS) * (moments**2 / self._scales).sum(1)
        squares = np.maximum(squares, 0.0) / _CLIPPED_VARIANCE
        variances = (_PRIOR_DEGREES * _PRIOR_NOISE**2 + squares) / self._degrees
        likelihoods = -0.5 * (self._degrees * np.log(variances) + np.log(self._scales).sum(1))
        best = int(np.argmax(likelihoods))
        offsets = self._basis @ (_RATIOS[best] / self._scales[best] * moments)
        fitted = values - self._within(values - self._in_blocks @ offsets)
        noise = sqrt(variances[best])
        drifts = bool(likelihoods[best] - likelihoods[0] > _DRIFT_EVIDENCE)
        return _Solution(fitted, offsets, noise, self._degrees, noise * sqrt(_RATIOS[best]), drifts)
