"""The right size: the candidate to take under limits, beside the front of time against core-hours."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from autotune.formatting import shown
from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.table import Places
from autotune.performance.rightsizing.candidates import Candidates
from autotune.performance.rightsizing.limits import HOUR_S, Limits
from autotune.performance.rightsizing.time_prior import TimePrior, Times
from autotune.performance.run_times.model import RunTimes
from spaces import Configuration

CONFIDENCE = 0.9
"""The probability with which the limits are to be kept."""

# A run that should gain less than this share of the cost is not worth it.
_WORTH = 0.001
# A gain counts by this power of the run's own cost: a cheap one first, but not only because it is cheap.
_COST_POWER = 0.5


@dataclass(frozen=True)
class Size:
    """A candidate as it is told: its time with its interval, and the chance that it keeps the limits."""

    configuration: Configuration
    nodes: int
    cores: int
    time_s: float
    low_s: float
    high_s: float
    chance: float
    measured: bool

    @property
    def core_hours(self) -> float:
        """The core-hours that a run is expected to take."""
        return self.cores * self.time_s / HOUR_S

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {**vars(self), "configuration": dict(self.configuration), "core_hours": self.core_hours}


@dataclass(frozen=True)
class RightSize:
    """The `chosen` size under limits, and the `front`, the fastest first, with the chosen one among them.

    It `keeps` the limits with enough probability, or is the likeliest to. `probes` ran for this, in `probe_core_hours`.
    `grounds` say what the expectation rests on, `doubts` where the question lies outside of that.
    """

    chosen: Size
    front: tuple[Size, ...]
    keeps: bool
    probes: int = 0
    probe_core_hours: float = 0.0
    grounds: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    def by(self, model: RunTimes | None) -> "RightSize":
        """Return it with what the model says of itself that its expectations are of."""
        return self if model is None else replace(self, grounds=(model.grounds,), doubts=model.doubts)

    def sentence(self) -> str:
        """Return the conclusion in words."""
        size = self.chosen
        what = (
            f"{size.nodes} node{'s' * (size.nodes != 1)}, {size.cores} core{'s' * (size.cores != 1)} "
            f"({shown(size.configuration)}): {_interval(size)}, {size.core_hours:.3g} core-hours"
        )
        if self.keeps:
            return f"take {what}; it keeps the limits with a chance of {percent(size.chance)}"
        fastest = self.front[0]
        also = "" if fastest == size else f"; the fastest is {shown(fastest.configuration)}, {_interval(fastest)}"
        return (
            f"nothing keeps the limits with a chance of {CONFIDENCE:.0%}; the likeliest, with {percent(size.chance)}, "
            f"is {what}{also}; allow more, or more nodes"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "keeps": self.keeps,
            "chosen": self.chosen.to_dict(),
            "front": [size.to_dict() for size in self.front],
            "probes": self.probes,
            "probe_core_hours": self.probe_core_hours,
            "grounds": list(self.grounds),
            "doubts": list(self.doubts),
        }


@dataclass(frozen=True)
class Decision:
    """What is known of each candidate under limits: `cost`, (n,), what is to be the least, and the `chance`, (n,).

    `chosen` is the place of the cheapest one that keeps the limits with enough probability; of the one that keeps them
    most probably, where none does.
    """

    cost: FloatArray
    chance: FloatArray
    chosen: int

    @property
    def keeps(self) -> bool:
        """Whether the chosen one keeps the limits with enough probability."""
        return bool(self.chance[self.chosen] >= CONFIDENCE)


def decide(candidates: Candidates, times: Times, limits: Limits) -> Decision:
    """Choose among candidates by what is believed of their times."""
    chance = times.chance(limits.longest(candidates))
    cost = times.middle * limits.price(candidates)
    keeping = np.flatnonzero(chance >= CONFIDENCE)
    chosen = keeping[cost[keeping].argmin()] if len(keeping) else chance.argmax()
    return Decision(cost, chance, int(chosen))


def front(candidates: Candidates, times: Times) -> Places:
    """Return the candidates, fastest first, of which no other is expected to be as fast for fewer core-seconds."""
    order = np.lexsort((candidates.cores, times.middle))
    core_s = (times.middle * candidates.cores)[order]
    least = np.minimum.accumulate(np.concatenate([[np.inf], core_s[:-1]]))
    return np.asarray(order[core_s < least])


def next_probe(
    candidates: Candidates,
    times: Times | None,
    limits: Limits,
    probes: Collection[int],
) -> int | None:
    """Return the place of the candidate that should run next, after those at `probes`; None if no run is worth it.

    The first, where nothing is known of times yet (`times` is None), is one of the middle; then counts what a run is
    expected to spare, or while nothing is known to keep the limits its chance to keep them, over its own cost.
    """
    if times is None:
        cores = np.log(candidates.cores)
        apart = np.abs(cores - np.median(cores)) + np.log(candidates.nodes)
        return int(apart.argmin())
    decision = decide(candidates, times, limits)
    spent = (times.middle * candidates.cores) ** _COST_POWER
    if not decision.keeps:
        if (ran := np.isin(np.arange(len(candidates)), list(probes))).all():
            return None
        return int(np.where(ran, -np.inf, decision.chance / spent).argmax())
    best = float(decision.cost[decision.chosen])
    gain = times.gain(limits.longest(candidates), limits.price(candidates), best)
    worth = gain / spent
    if not (gain > _WORTH * best).any():
        return None
    return int(worth.argmax())


@dataclass(frozen=True)
class Knowledge:
    """What is known of candidates under limits: the times of those that ran, by their places, and those that failed."""

    candidates: Candidates
    limits: Limits
    times_s: Mapping[int, Sequence[float]] = field(default_factory=dict)
    failed: frozenset[int] = frozenset()

    def next(self) -> Configuration | None:
        """Return what should run next; None if no run is worth what it costs."""
        candidates, ran = self._working()
        if not len(candidates):
            return None
        place = next_probe(candidates, self._estimate_times(candidates, ran), self.limits, ran)
        return None if place is None else candidates.configurations[place]

    def right_size(self) -> RightSize | None:
        """Return the right size; None where nothing is known of times."""
        candidates, ran = self._working()
        times = self._estimate_times(candidates, ran) if len(candidates) else None
        if times is None:
            return None
        decision = decide(candidates, times, self.limits)
        (low, high), middle = times.interval(), times.middle

        def told(place: int) -> Size:
            return Size(
                candidates.configurations[place],
                int(candidates.nodes[place]),
                int(candidates.cores[place]),
                float(middle[place]),
                float(low[place]),
                float(high[place]),
                float(decision.chance[place]),
                place in ran,
            )

        places = {*front(candidates, times).tolist(), decision.chosen}
        ordered = sorted(places, key=lambda place: (middle[place], candidates.cores[place]))
        return RightSize(told(decision.chosen), tuple(told(place) for place in ordered), decision.keeps)

    def _working(self) -> tuple[Candidates, dict[int, Sequence[float]]]:
        """Return the candidates without those that failed, and the times of those that ran by their places there."""
        working = [place for place in range(len(self.candidates)) if place not in self.failed]
        ran = {number: self.times_s[place] for number, place in enumerate(working) if place in self.times_s}
        return self.candidates.at(working), ran

    @staticmethod
    def _estimate_times(candidates: Candidates, ran: Mapping[int, Sequence[float]]) -> Times | None:
        return TimePrior.of(candidates).after(ran) if ran or candidates.has_useful_times else None


def _interval(size: Size) -> str:
    return f"{size.time_s:.4g} s ({size.low_s:.3g} to {size.high_s:.3g})"


def percent(chance: float) -> str:
    """Return a probability for reading."""
    return "over 99%" if chance > 0.99 else "under 1%" if chance < 0.01 else f"{chance:.0%}"
