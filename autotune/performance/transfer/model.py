"""Transfer: which configurations of a space should be best on a machine, by measurements of it on other machines.

No time is predicted, only how near a configuration comes to the best. Each known machine is predicted without its own
data, too, which tells how certain a prediction is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.prediction import Interval
from autotune.performance.regression.similarity import squared_distances, vendors
from autotune.performance.transfer.portfolio import portfolio
from autotune.performance.transfer.sources import FLOOR, Source
from autotune.performance.transfer.stacking import Stack, StackEvidence
from autotune.records.measurement import Setting
from spaces import Space
from spaces.valid_set.valid_set import Indices

# The most configurations that a stack learns from; the best of each machine are among them.
_LEARNT = 6_000
_BEST_SHARE = 0.15
# Proposals are chosen among this number: the best that are expected, and the best on each machine.
_CHOSEN_FROM = 250
_LEAST = 0.05
# With fewer machines a stack cannot learn how they differ.
_STACKED = 3


@dataclass(frozen=True, eq=False)
class Transfer:
    """The expected efficiencies of configurations, `rows` (n, p), on a machine.

    The first of them is the default. `expected` are efficiencies, (n,); `surprises`, (m, n), how far m known machines
    were from their expected efficiencies without their data; `proposals` are indices of rows, the best first. `gains`
    are the logarithms of the speed-ups over the default of the first proposal for each known machine, made likewise.
    `is_floored`: on some machine the default was slower than the floor of efficiency, so by how much is unknown.
    """

    rows: Indices
    expected: FloatArray
    surprises: FloatArray
    proposals: tuple[int, ...]
    gains: FloatArray
    is_floored: bool

    def speed_up(self, index: int) -> Interval | None:
        """Return the speed-up of a configuration over the default; None with fewer than two known machines.

        The ends of its interval assume surprises as large as on the known machines, and include the gains of the first
        proposals there: a new machine lies between the ends of m others in a share (m - 1) / (m + 1) of cases.
        """
        m = len(self.surprises)
        if m < 2:
            return None
        surprised = self.expected[[index, 0]] + self.surprises[:, [index, 0]]
        logs = np.log(np.clip(surprised, _LEAST, 1.0))
        seen = logs[:, 0] - logs[:, 1]
        value = float(np.log(self.expected[index] / self.expected[0]))
        ends = np.concatenate([seen, self.gains]) if index in self.proposals[:1] else seen
        low, high = min(value, float(ends.min())), max(value, float(ends.max()))
        return Interval(float(np.exp(value)), float(np.exp(low)), float(np.exp(high)), (m - 1) / (m + 1))


def transfer(  # noqa: PLR0913, PLR0917  they have little in common
    space: Space,
    setting: Setting,
    sources: Sequence[Source],
    rows: Indices,
    count: int,
    chances: FloatArray | None = None,
) -> Transfer:
    """Return the transfer from at least one source to `rows`, (n, p), the first being the default configuration.

    `chances`, (n,), are those that a row works, if they are known: a proposal is good by its efficiency times that.
    """
    evidence = _evidence(space, setting, sources, rows)
    known = np.flatnonzero(_known(evidence))
    learnt = evidence.at(_worth_learning(evidence, known))
    expected, surprises, gains = _judged(evidence, learnt)
    worth = expected if chances is None else expected * chances
    chosen = _candidates(worth, evidence.whole)
    # The default is measured anyway; where nothing is expected to beat it there is nothing to propose.
    chosen = chosen[chosen > 0]
    picked: list[int] = []
    if len(chosen) and expected[chosen].max() > expected[0]:
        rng = np.random.default_rng(0)
        picked = portfolio(worth[chosen], surprises[:, chosen], evidence.traits[chosen], count, rng)
    proposals = tuple(int(chosen[index]) for index in picked)
    floored = bool((evidence.whole[:, 0] <= np.log(FLOOR)).any())
    return Transfer(rows, expected, surprises, proposals, gains, floored)


def _evidence(space: Space, setting: Setting, sources: Sequence[Source], rows: Indices) -> StackEvidence:
    known = np.array([source.measured_at(rows) for source in sources])
    smooth = np.array([source.smooth_at(rows) for source in sources])
    facts = [*(source.setting.machine_facts for source in sources), setting.machine_facts]
    whole = np.where(np.isnan(known), smooth, known)
    return StackEvidence(known, whole, smooth, squared_distances(facts), vendors(facts), space.traits_of(rows))


def _judged(evidence: StackEvidence, learnt: StackEvidence) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the expected efficiencies, (n,), the surprises of known machines, (m, n), and the gains there."""
    m = len(evidence.whole)
    true = np.exp(evidence.whole)
    if m < _STACKED:
        weights = np.exp(-evidence.near[m, :m] / 2.0)
        expected = weights @ true / weights.sum()
        if m == 1:
            return expected, true[:0], np.zeros(0)
        return expected, true - expected, _gains(true, true[::-1])
    expected = Stack.fitted(learnt, range(m)).predict(evidence, m)
    left_out = []
    for out in range(m):
        others = [machine for machine in range(m) if machine != out]
        left_out.append(Stack.fitted(learnt, others).predict(evidence, out))
    return expected, true - np.array(left_out), _gains(true, np.array(left_out))


def _gains(true: FloatArray, guessed: FloatArray) -> FloatArray:
    """Return the logarithms of the speed-ups, (m,), of the best guess for each machine over the default."""
    first = guessed.argmax(axis=1)
    gains: FloatArray = np.log(true[np.arange(len(first)), first] / true[:, 0])
    return gains


def _known(evidence: StackEvidence) -> npt.NDArray[np.bool_]:
    there: npt.NDArray[np.bool_] = np.any(~np.isnan(evidence.known), axis=0)
    return there


def _worth_learning(evidence: StackEvidence, known: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    if len(known) <= _LEARNT:
        return known
    logs = np.where(np.isnan(evidence.known), np.log(FLOOR), evidence.known)
    best = np.unique(np.argsort(-logs, axis=1)[:, : int(_BEST_SHARE * _LEARNT)])
    others = np.setdiff1d(known, best)
    drawn = np.random.default_rng(0).permutation(others)[: max(0, _LEARNT - len(best))]
    return np.union1d(best, drawn)


def _candidates(expected: FloatArray, whole: FloatArray) -> npt.NDArray[np.intp]:
    each = max(1, _CHOSEN_FROM // len(whole))
    best = [np.argsort(-logs, kind="stable")[:each] for logs in whole]
    return np.unique(np.concatenate([np.argsort(-expected, kind="stable")[:_CHOSEN_FROM], *best]))
