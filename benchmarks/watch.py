"""Simulate `autotune watch`: the rate of false alarms, and how often it detects a loss of 5 %.

    python -m benchmarks.watch --seeds 2000

The logarithm of a run time is normal with the given noise; each day shifts both sides by a random effect, and their
ratio by a fifth of it. The verdict has the default number of pairs of `autotune study`, and a check that of `autotune
watch`. False alarms are counted in 20 checks without a loss. A loss begins right after the verdict, after 5 checks or
after 10, in the winner alone or in both sides, and has to be detected within five checks. `outliers` is the share of
runs that take 30 % longer. Takes a minute or two on one core.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np
from numpy.typing import NDArray

from autotune.comparison.pairs import pairs_wanted
from autotune.comparison.watching.judgement import Quantity, pairs_of_a_check
from autotune.statistics.change import explanations
from autotune.studyfile import VerdictSection
from objectives.base import Metric

METRIC = Metric("elapsed_s", "s", "minimize")
SECTION = VerdictSection()
LOSS, WITHIN, CHECKS = 0.05, 5, 20
BEFORE = (0, 5, 10)
_BOTH, _WINNER = (1.0, 1.0), (0.0, 1.0)

# Logarithms of run times: [side, pair] or [history, side, pair].
Runs = NDArray[np.float64]


@dataclass(frozen=True)
class Machine:
    """Standard deviations of runs and of days (of logarithms), and the share of outliers."""

    noise: float
    day: float
    outliers: float = 0.0

    def pairs(self, rng: np.random.Generator, count: int, sizes: Sequence[int] = ()) -> Runs:
        """Draw the pairs of one day."""
        day = rng.normal(0.0, self.day, (*sizes, 1, 1))
        of_ratio = rng.normal(0.0, self.day / 5, (*sizes, 1, 1)) * np.array([[0.0], [1.0]])
        shape = (*sizes, 2, count)
        late = np.where(rng.random(shape) < self.outliers, log1p(0.3), 0.0)
        return np.asarray(day + of_ratio + rng.normal(0.0, self.noise, shape) + late)

    def verdict(self, rng: np.random.Generator) -> Runs:
        """Draw the pairs of a verdict until its precision is reached."""
        most = self.pairs(rng, SECTION.max_pairs)
        return most[:, : pairs_wanted(_pairs(most), SECTION, METRIC)]


def alarms(history: Sequence[Runs]) -> NDArray[np.bool_]:
    """Return for each history whether its last check raises an alarm."""
    found = []
    for quantity in Quantity:
        values = [runs[..., 0, :] - runs[..., 1, :] for runs in history]
        if quantity is not Quantity.GAIN:
            values = [runs[..., 0 if quantity is Quantity.DEFAULT else 1, :] for runs in history]
        found.append(explanations(values, quantity.check_effect).ratios.sum(axis=(-1, -2)) > quantity.evidence)
    return np.any(found, axis=0)


def _pairs(runs: Runs) -> list[tuple[float, float]]:
    first, second = np.exp(runs).tolist()
    return list(zip(first, second, strict=True))


def simulate(machine: Machine, seeds: int) -> dict[str, float]:
    """Simulate histories; return the rates of alarms in percent, and the mean number of pairs of a check."""
    rng = np.random.default_rng(
        [seeds, *(round(1e4 * value) for value in (machine.noise, machine.day, machine.outliers))]
    )
    groups: dict[tuple[int, int], list[Runs]] = defaultdict(list)
    for _ in range(seeds):
        verdict = machine.verdict(rng)
        groups[verdict.shape[-1], pairs_of_a_check(_pairs(verdict), METRIC)].append(verdict)
    counts: dict[str, float] = defaultdict(float)
    for (_, size), verdicts in groups.items():
        history = [np.stack(verdicts)]
        ever = np.zeros(len(verdicts), dtype=bool)
        for number in range(CHECKS):
            if number in BEFORE:
                for name, sides in (("winner", _WINNER), ("both", _BOTH)):
                    counts[f"{name} after {number}"] += _count_detections(machine, rng, history, size, sides)
            history.append(machine.pairs(rng, size, (len(verdicts),)))
            raised = alarms(history)
            counts["false"] += float(raised.sum())
            ever |= raised
        counts["histories"] += float(ever.sum())
        counts["pairs"] += size * len(verdicts)
    rates = {name: 100.0 * count / seeds for name, count in counts.items()}
    return rates | {"false": rates["false"] / CHECKS, "pairs": rates["pairs"] / 100.0}


def _count_detections(
    machine: Machine, rng: np.random.Generator, before: Sequence[Runs], size: int, sides: tuple[float, float]
) -> int:
    history, found = list(before), np.zeros(len(before[0]), dtype=bool)
    for _ in range(WITHIN):
        history.append(machine.pairs(rng, size, (len(before[0]),)) + log1p(LOSS) * np.array(sides)[:, None])
        found |= alarms(history)
    return int(found.sum())


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.01, 0.02, 0.03, 0.05])
    parser.add_argument("--day", type=float, nargs="+", default=[0.0, 0.01, 0.02])
    parser.add_argument("--outliers", type=float, nargs="+", default=[0.0])
    options = parser.parse_args()
    columns = [
        "pairs",
        "false",
        "histories",
        *(f"{name} after {number}" for name in ("winner", "both") for number in BEFORE),
    ]
    print("|".join(["", "noise", "day", "outliers", *columns, ""]))
    print("|---" * (3 + len(columns)) + "|")
    for outliers in options.outliers:
        for noise in options.noise:
            for day in options.day:
                rates = simulate(Machine(noise, day, outliers), options.seeds)
                figures = [f"{rates[name]:.2f}" if name == "false" else f"{rates[name]:.1f}" for name in columns]
                print("|".join(["", f"{noise:.0%}", f"{day:.0%}", f"{outliers:.0%}", *figures, ""]), flush=True)


if __name__ == "__main__":
    main()
