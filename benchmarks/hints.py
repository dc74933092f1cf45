"""What proposals from outside cost or save: simulated studies with good and bad proposers, and with none.

    python benchmarks/hints.py [--seeds 20] [--first 0] [--problems tiles,pools] [--json FILE]

A study runs until its best value is within 5 % of the best of the space (at most 150 trials). Hints come all at once,
after the default, in a random order. Proposers: `good` draws from the best 5 % of the valid configurations, `random`
from all, `worst` from the worst 5 %, `failing` proposes what crashes, `turncoat` three good ones and then the worst,
and `ladder` knows every value and improves on the best by as little as possible. The ratio of the trials is to the same
seed without hints.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles

import numpy as np
from numpy.typing import NDArray
from optuna.study import StudyDirection

sys.path.insert(0, str(Path(__file__).parent.parent))

from autotune.search.asker import worth_trying
from autotune.search.base import History, Rows, keys
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.observation import Observation
from benchmarks.proposing import SPACE as TILES
from spaces import Choice, Constraint, Integer, Space

WITHIN = 1.05
MOST = 150
NOISE = 0.01
COUNT = 40

POOLS = Space(
    [
        Integer.range("ranks", 1, 48, default=1),
        Integer.range("pools", 1, 24, default=1),
        Integer.powers_of_two("threads", 1, 16, default=1),
        Choice("blas", ("reference", "fast", "faster"), default="reference"),
        Choice("fft", ("one", "two"), default="one"),
    ],
    [
        Constraint("whole pools", "ranks % pools == 0", "every pool has as many ranks"),
        Constraint("cores", "ranks * threads <= 48", "a core for each thread"),
    ],
)


def tiles(configuration: dict[str, object]) -> float:
    numbers = [np.log2(value) for value in configuration.values() if isinstance(value, int)]
    order = {"ijk": 1.6, "ikj": 1.0, "jik": 1.5, "jki": 2.0, "kij": 1.1, "kji": 2.2}[str(configuration["order"])]
    wanted = np.array([6.0, 7.0, 5.0, 3.0, 2.0, 3.0])
    return float(order * np.exp(0.06 * np.sum((np.array(numbers) - wanted) ** 2)))


def pools(configuration: dict[str, object]) -> float:
    ranks, groups, threads = (int(configuration[name]) for name in ("ranks", "pools", "threads"))  # type: ignore[call-overload]
    speed = {"reference": 1.0, "fast": 2.2, "faster": 2.6}[str(configuration["blas"])]
    compute = 100.0 / (ranks * threads**0.85) / speed
    fourier = (2.0 if configuration["fft"] == "one" else 1.5) * (ranks / groups) ** 0.6
    unbalanced = 1.0 + 0.15 * abs(np.log2(groups / 6.0))
    return float((compute * unbalanced + fourier + 0.05 * ranks) * (1.0 + 0.3 * (threads > 4)))


PROBLEMS: dict[str, tuple[Space, Callable[[dict[str, object]], float]]] = {
    "tiles": (TILES, tiles),
    "pools": (POOLS, pools),
}


class Landscape:
    """All valid configurations of a problem, (n, p), with their values, (n,)."""

    def __init__(self, space: Space, value: Callable[[dict[str, object]], float]) -> None:
        self.space = space
        self.rows: Rows = space.all_indices()
        self.values: NDArray[np.float64] = np.array([value(dict(one)) for one in space.decode(self.rows)])
        self.order = np.argsort(self.values)
        self.places = {key: place for place, key in enumerate(keys(self.rows))}

    def hints(self, proposer: str, rng: np.random.Generator) -> Rows:
        few = max(COUNT, len(self.rows) // 20)
        good, bad = (rng.permutation(part)[:COUNT] for part in (self.order[:few], self.order[-few:]))
        chosen = {
            "none": good[:0],
            "good": good,
            "random": rng.permutation(len(self.rows))[:COUNT],
            "worst": bad,
            "failing": bad,
            "turncoat": np.concatenate([good[:3], bad]),
            "ladder": good[:0],
        }[proposer]
        return self.rows[chosen]

    def step_below(self, best: float) -> Rows:
        """Return the configuration that is better than `best` by as little as possible."""
        better = self.order[: int(np.searchsorted(self.values[self.order], best * (1.0 - 3.0 * NOISE)))]
        return self.rows[better[-1:]]


def trials_needed(land: Landscape, proposer: str, seed: int) -> int:
    """Return how many trials a study takes to a value within 5 % of the best."""
    rng = np.random.default_rng([seed, 7])
    hints = land.hints(proposer, rng)
    sampler = ValidSetSampler(land.space, seed=seed)
    rows: list[NDArray[np.int32]] = []
    seen: list[Observation] = []
    goal = land.values.min() * WITHIN
    failing = set(keys(hints)) if proposer == "failing" else set()
    for number in range(1, MOST + 1):
        known = np.array(rows, dtype=np.int32).reshape(len(rows), land.rows.shape[1])
        history = History(known, seen, StudyDirection.MINIMIZE)
        if proposer == "ladder" and rows:
            tried = [land.values[land.places[key]] for key in keys(known)]
            hints = np.concatenate([hints, land.step_below(min(tried))])
        sampler.heed(hints)
        is_led = not rows or sampler.follows_hints(history)
        given = known[:0] if is_led else worth_trying(land.space.decode(hints), land.space, history)
        row = given[0] if len(given) else land.space.indices([sampler.propose(history)])[0]
        key = keys(row[None, :])[0]
        value = land.values[land.places[key]]
        rows.append(row)
        seen.append(Observation() if key in failing else Observation(float(value * np.exp(NOISE * rng.normal()))))
        if key not in failing and value <= goal:
            return number
    return MOST


def spread(numbers: Sequence[float]) -> str:
    low, middle, high = quantiles(numbers, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--proposers", default="good,random,worst,failing,turncoat,ladder")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    found: dict[str, dict[str, list[int]]] = {}
    for name in options.problems.split(","):
        land = Landscape(*PROBLEMS[name])
        default = land.values[land.places[keys(land.space.indices([land.space.default()]))[0]]]
        print(f"{name}: {len(land.rows)} valid configurations, the best {default / land.values.min():.1f}x the default")
        without = [trials_needed(land, "none", seed) for seed in seeds]
        found[name] = {"none": without}
        print(f"  {'none':9} median {median(without):5.1f} trials, quartiles {spread(without)}", flush=True)
        for proposer in options.proposers.split(","):
            needed = [trials_needed(land, proposer, seed) for seed in seeds]
            found[name][proposer] = needed
            ratios = [one / other for one, other in zip(needed, without, strict=True)]
            overall = median(needed) / median(without)
            print(
                f"  {proposer:9} median {median(needed):5.1f} trials, {overall:.2f} of the median without; "
                f"by seed {spread(ratios)}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
