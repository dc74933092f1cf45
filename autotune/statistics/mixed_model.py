"""Mixed model of repeated runs: the effects of configurations, of blocks of time and of nodes, and the noise.

    log(value) = configuration + block + node + noise

The configurations' effects are free, those of blocks and nodes random: a machine that does not drift, and nodes that
are alike, have none. The ratios of their variances to that of the noise are those of the greatest restricted likelihood
(REML: Patterson & Thompson 1971) on a small grid; that of nodes is asked for only where runs were on several.
Values are not corrected by estimated effects of blocks, since a neighbour that comes and goes within a block would make
such corrections wrong. A drift makes comparisons across blocks less certain, so those within blocks are preferred. The
same holds for nodes.

Outliers, which every shared machine has, are pulled in to 1.5 standard deviations, and the noise is Huber's "proposal
2" (Robust Statistics, 1981, section 6.7), so that one bad run neither hides a good configuration nor makes the machine
look too noisy to decide.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import sqrt
from statistics import fmean, median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Statistic = Literal["median", "mean"]

# The noise assumed before anything was repeated; it counts as one degree of freedom.
_PRIOR_NOISE = 0.02
_PRIOR_DEGREES = 1.0
# Variance of blocks, or of nodes, over variance of runs.
_RATIOS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_CLIP = 1.5
# E[min(z^2, 1.5^2)] of a standard normal z.
_CLIPPED_VARIANCE = 0.7785
# Pulling in one run that took ten times as long needs some forty rounds; most studies need twenty.
_ROUNDS = 100
# A median of three or more runs varies this much more than their mean, for normal noise.
_MEDIAN_PENALTY = 1.2
# The gain in log-likelihood from which a drift is reported: in fewer than 1 % of studies without a drift.
_DRIFT_EVIDENCE = 4.0


@dataclass(frozen=True)
class MeasuredRun:
    """One run: which configuration, in which block, the logarithm of its value (lower is better), and on which node."""

    configuration: int
    block: int
    value: float
    node: str = ""


@dataclass(frozen=True)
class Contrast:
    """How much slower one configuration is than another: a difference of logarithms, with its Student's t."""

    difference: float
    standard_error: float
    degrees: float


@dataclass(frozen=True)
class Spread:
    """How runs of one configuration differ: within a block of time on one node, between blocks, and between nodes."""

    noise: float
    degrees: float
    drift: float = 0.0
    offsets: Mapping[int, float] = field(default_factory=dict)
    drifts: bool = False
    between_nodes: float = 0.0
    nodes_differ: bool = False


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

    @property
    def between_nodes(self) -> float:
        """The standard deviation of the nodes' effects."""
        return self.spread.between_nodes

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
        return self._unit_variance(runs) * self.noise**2

    def _unit_variance(self, runs: int) -> float:
        """Return the same for runs whose noise is 1."""
        return (_MEDIAN_PENALTY**2 if self.statistic == "median" and runs > 2 else 1.0) / runs

    def contrast(self, challenger: int, incumbent: int) -> Contrast:
        """Compare two configurations that both have runs: within blocks, where that says more."""
        ours, theirs = self.runs.get(challenger, ()), self.runs.get(incumbent, ())
        across = Contrast(
            self.center(challenger) - self.center(incumbent), self._error_across(ours, theirs), self.degrees
        )
        alike = self.drift == 0.0 and self.between_nodes == 0.0
        within = None if alike else self._within(ours, theirs)
        return within if within is not None and within.standard_error < across.standard_error else across

    def prospective(self, challenger: int, incumbent: int, block: int) -> Contrast:
        """Return the contrast, with a difference of 0, that one more run of the challenger will leave.

        The node of that run is not known yet, so it counts as another node.
        """
        more = [*self.runs.get(challenger, ()), MeasuredRun(challenger, block, 0.0, node="\0")]
        return Contrast(0.0, self._error_across(more, self.runs.get(incumbent, ())), self.degrees)

    def error(self, configuration: int) -> float:
        """Return the standard error of the estimate of a configuration that has runs, drift and nodes included."""
        runs = self.runs[configuration]
        return sqrt(self.variance(len(runs)) + self._between((1.0, runs)))

    def _error_across(self, first: Sequence[MeasuredRun], second: Sequence[MeasuredRun]) -> float:
        between = self._between((1.0, first), (-1.0, second))
        return sqrt(self.variance(len(first)) + self.variance(len(second)) + between)

    def _between(self, *signed: tuple[float, Sequence[MeasuredRun]]) -> float:
        """Return the variance that blocks and nodes add to a sum of means of runs, each with its sign."""
        weights: dict[int | str, float] = defaultdict(float)
        for sign, runs in signed:
            for run in runs:
                weights[run.block] += sign / len(runs)
                weights[run.node] += sign / len(runs)
        return sum(
            weight**2 * (self.drift if isinstance(place, int) else self.between_nodes) ** 2
            for place, weight in weights.items()
        )

    def _within(self, first: Sequence[MeasuredRun], second: Sequence[MeasuredRun]) -> Contrast | None:
        """Return the mean difference within the blocks and nodes in which both have runs, weighted by precision.

        Blocks, or nodes, without an effect are not kept apart.
        """
        sides: list[dict[tuple[int, str], list[float]]] = []
        for runs in (first, second):
            by_place: dict[tuple[int, str], list[float]] = defaultdict(list)
            for run in runs:
                place = run.block if self.drift > 0.0 else 0, run.node if self.between_nodes > 0.0 else ""
                by_place[place].append(run.value)
            sides.append(by_place)
        total = difference = 0.0
        for place in sides[0].keys() & sides[1].keys():
            ours, theirs = (side[place] for side in sides)
            weight = 1.0 / (self._unit_variance(len(ours)) + self._unit_variance(len(theirs)))
            difference += weight * (center(ours, self.statistic) - center(theirs, self.statistic))
            total += weight
        return Contrast(difference / total, self.noise / sqrt(total), self.degrees) if total else None


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
    """Estimate how runs differ; `repeated` has only configurations with several runs, as single runs say nothing."""
    if not repeated:
        return Spread(_PRIOR_NOISE, _PRIOR_DEGREES)
    blocks = sorted({sample.block for sample in repeated})
    nodes = sorted({sample.node for sample in repeated})
    design = _Design(repeated, blocks, nodes if len(nodes) > 1 else ())
    values = np.array([sample.value for sample in repeated])
    clipped = values
    for _ in range(_ROUNDS):
        solved = design.solve(clipped)
        residuals = values - solved.fitted
        pulled = solved.fitted + np.clip(residuals, -_CLIP * solved.noise, _CLIP * solved.noise)
        if np.allclose(pulled, clipped, rtol=0.0, atol=1e-4 * solved.noise):
            break
        clipped = pulled
    return Spread(
        solved.noise,
        solved.degrees,
        solved.drift,
        dict(zip(blocks, solved.offsets.tolist(), strict=False)),
        solved.drifts,
        solved.between_nodes,
        solved.nodes_differ,
    )


@dataclass(frozen=True)
class _Solution:
    fitted: Array
    offsets: Array
    noise: float
    degrees: float
    drift: float
    drifts: bool
    between_nodes: float
    nodes_differ: bool


class _Design:
    """The mixed model of one set of repeated runs, ready to be solved for several sets of values.

    `nodes` is empty if all runs were on one node, which then has no effect.
    """

    def __init__(self, samples: Sequence[MeasuredRun], blocks: Sequence[int], nodes: Sequence[str]) -> None:
        places: tuple[int | str, ...] = (*blocks, *nodes)
        columns = {place: column for column, place in enumerate(places)}
        _, self._group = np.unique([sample.configuration for sample in samples], return_inverse=True)
        self._sizes = np.bincount(self._group).astype(float)
        in_places = np.zeros((len(samples), len(columns)))
        rows = np.arange(len(samples))
        in_places[rows, [columns[sample.block] for sample in samples]] = 1.0
        if nodes:
            in_places[rows, [columns[sample.node] for sample in samples]] = 1.0
        self._in_places = in_places
        self._within_places = self._within(in_places)
        # (ratio of blocks, ratio of nodes), and for each the factors by which Henderson's equations are scaled.
        self._ratios = tuple(product(_RATIOS, _RATIOS if nodes else (0.0,)))
        scales = [[ratio[0]] * len(blocks) + [ratio[1]] * len(nodes) for ratio in self._ratios]
        self._roots = np.sqrt(np.array(scales))
        gram = self._within_places.T @ self._within_places
        systems = np.eye(len(columns)) + self._roots[:, :, None] * gram * self._roots[:, None, :]
        self._inverses = np.linalg.inv(systems)
        self._penalties: Array = np.linalg.slogdet(systems)[1]
        self._degrees = _PRIOR_DEGREES + len(samples) - len(self._sizes)

    def _within(self, values: Array) -> Array:
        """Return values, (n,) or (n, m), less the mean of their configuration."""
        sums = np.zeros((len(self._sizes), *values.shape[1:]))
        np.add.at(sums, self._group, values)
        means = sums / self._sizes.reshape(-1, *[1] * (values.ndim - 1))
        within: Array = values - means[self._group]
        return within

    def solve(self, values: Array) -> _Solution:
        """Estimate everything from values, (n,), for the likeliest ratios of variances."""
        within = self._within(values)
        moments = self._roots * (self._within_places.T @ within)
        solved = (self._inverses @ moments[:, :, None])[:, :, 0]
        squares = np.maximum(within @ within - (moments * solved).sum(1), 0.0) / _CLIPPED_VARIANCE
        variances = (_PRIOR_DEGREES * _PRIOR_NOISE**2 + squares) / self._degrees
        likelihoods = -0.5 * (self._degrees * np.log(variances) + self._penalties)
        best = int(np.argmax(likelihoods))
        of_blocks, of_nodes = self._ratios[best]
        offsets = self._roots[best] * solved[best]
        fitted = values - self._within(values - self._in_places @ offsets)
        noise = sqrt(variances[best])
        without_drift = likelihoods[self._ratios.index((0.0, of_nodes))]
        without_nodes = likelihoods[self._ratios.index((of_blocks, 0.0))]
        return _Solution(
            fitted,
            offsets,
            noise,
            self._degrees,
            noise * sqrt(of_blocks),
            bool(likelihoods[best] - without_drift > _DRIFT_EVIDENCE),
            noise * sqrt(of_nodes),
            bool(likelihoods[best] - without_nodes > _DRIFT_EVIDENCE),
        )
