"""Importance: what share of the differences between valid configurations each parameter and each pair explains.

The function is the Gaussian process of the study's trials (`autotune.results.effects.process`), over a sample of the
valid set, each configuration equally likely: invalid ones do not count, and where constraints tie parameters, a share
is that of the parameter as it varies with the others (`autotune.statistics.variance_shares` has the method and its
sources). Kernels are drawn from their posterior and functions from each, so that intervals say how little a few trials
tell: Chen, Jin & Sudjianto ("Analytical variance-based global sensitivity analysis in simulation-based design under
uncertainty", J. Mech. Des. 127, 2005) take the mean of the process alone; Le Gratiet, Cannamela & Iooss ("A Bayesian
approach for global sensitivity analysis of (multifidelity) computer codes", SIAM/ASA J. UQ 2, 2014) draw functions.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.polynomial.legendre import legvander

from autotune.formatting import listed
from autotune.results.effects.process import StudyProcess
from autotune.results.summary import Summary
from autotune.search.gaussian_process import Array, likely_kernels
from autotune.statistics.variance_shares import CONFIDENCE, VarianceShare, variance_shares
from spaces import Choice, Parameter

_CONFIGURATIONS = 500
_KERNELS = 12
_FUNCTIONS = 16
# Effects of a number are sums of polynomials up to this degree; fewer values have an effect each.
_DEGREE = 4
_LEVELS = 8
_TRIALS_EACH = 4


@dataclass(frozen=True)
class Share:
    """The share of the variance, from 0 to 1, that one parameter explains alone, or two beyond that; and its ends."""

    names: tuple[str, ...]
    share: float
    low: float
    high: float

    @property
    def name(self) -> str:
        """The parameters."""
        return " and ".join(self.names)

    def text(self) -> str:
        """Return it in percent, with its interval."""
        return f"{self.share:.0%} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True)
class Importance:
    """The shares of parameters and of pairs, each the largest first, and the `rest` that only more together explain.

    They are of the variance of the logarithms of `metric` over the valid configurations, by `trials` with a value.
    """

    study: str
    metric: str
    trials: int
    parameters: tuple[Share, ...]
    pairs: tuple[Share, ...]
    rest: Share

    def sentences(self) -> list[str]:
        """Say what matters, what may not, and whether the trials are too few to tell."""
        told = [share for share in self.parameters if share.low > 0.0]
        about = f"the differences in {self.metric} between valid configurations"
        if told:
            first = told[0]
            said = f"{first.name} alone explains {first.text()} of {about}"
            if len(told) > 1:
                said += "; then come " + listed([f"{one.name}, {one.text()}" for one in told[1:3]])
        else:
            said = f"no parameter is known to matter alone for {about}"
        sentences = [said]
        together = [share for share in self.pairs if share.low > 0.0]
        if together:
            sentences.append(f"beyond that, {together[0].name} explain {together[0].text()} together")
        idle = [share.name for share in self.parameters if share.low <= 0.0]
        if idle:
            sentences.append(f"may do nothing alone, for all that is known: {', '.join(idle)}")
        if self.trials < _TRIALS_EACH * len(self.parameters):
            few = f"{self.trials} trials with a value are few for {len(self.parameters)} parameters"
            sentences.append(f"{few}: the intervals are wide, and more trials make them narrower")
        return sentences

    @property
    def leading(self) -> tuple[str, str]:
        """The two parameters that explain most together; the second is empty where there is only one."""
        alone = {share.name: share.share for share in self.parameters}
        together = {share.names: share.share + sum(alone[name] for name in share.names) for share in self.pairs}
        if not together:
            return self.parameters[0].name, ""
        first, second = max(together, key=lambda names: together[names])
        return first, second

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return asdict(self) | {"confidence": CONFIDENCE, "sentences": self.sentences()}


def importance_of(summary: Summary, known: StudyProcess) -> Importance | None:
    """Return what the parameters of a study explain, by its process; None where no parameter varies.

    It takes about as long for any number of trials. The same trials give the same shares.
    """
    rng = np.random.default_rng(0)
    rows = known.space.sample_indices(rng, _CONFIGURATIONS)
    bases = [_basis(parameter, rows[:, place]) for place, parameter in enumerate(known.space.parameters)]
    varied = [place for place, basis in enumerate(bases) if basis.shape[1]]
    if not varied:
        return None
    x = known.space.traits_of(rows)
    kernels = likely_kernels(known.process, rng, _KERNELS)
    draws = np.hstack([known.process.with_kernel(kernel).drawn(x, rng, _FUNCTIONS) for kernel in kernels])
    shares, rest = variance_shares([bases[place] for place in varied], draws)
    names = [known.space.parameters[place].name for place in varied]
    named = sorted((_named(share, names) for share in shares), key=lambda share: (-share.share, share.names))
    alone, pairs = (tuple(share for share in named if len(share.names) == count) for count in (1, 2))
    return Importance(summary.name, summary.standings.metric.name, known.valued, alone, pairs, _named(rest, names))


def _named(share: VarianceShare, names: Sequence[str]) -> Share:
    figures = (round(figure, 4) for figure in (share.share, share.low, share.high))
    return Share(tuple(names[place] for place in share.of), *figures)


def _basis(parameter: Parameter, column: "np.ndarray[Any, np.dtype[np.int32]]") -> Array:
    """Return the columns, (n, k), that effects of a parameter are sums of; none where it never changes.

    `column`, (n,), are its value indexes, -1 where it has no value.
    """
    found, counts = np.unique(column, return_counts=True)
    if len(found) < 2:
        return np.empty((len(column), 0))
    if isinstance(parameter, Choice) or len(found) <= _DEGREE + 1:
        # The rarest words of many are one level.
        levels = found[np.argsort(-counts, kind="stable")][: _LEVELS - 1]
        words: Array = (column[:, None] == levels[None, :]).astype(np.float64)
        return words
    there = column >= 0
    ends = column[there].min(), column[there].max()
    places = np.where(there, 2.0 * (column - ends[0]) / (ends[1] - ends[0]) - 1.0, 0.0)
    columns: Array = legvander(places, _DEGREE)[:, 1:] * there[:, None]
    return columns if there.all() else np.column_stack([columns, ~there])
