"""The right size: the best candidate under limits, and the front of time against core-hours."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from autotune.formatting import configuration_text
from autotune.performance.regression.table import Places
from autotune.performance.rightsizing.candidates import Candidates
from autotune.performance.rightsizing.limits import HOUR_S, Limits
from autotune.performance.rightsizing.time_prior import TimePrior, Times
from autotune.performance.run_times.model import RunTimes
from spaces import Configuration
from spaces.expressions.quantities import FloatArray

CONFIDENCE = 0.9
"""The probability with which a run must keep the limits."""

# Do not make a run whose expected gain is below this share of the cost.
_WORTH = 0.001
# Divide a gain by this power of the run's cost: cheap runs go first, but not only because they are cheap.
_COST_POWER = 0.5
# Another division into ranks and threads than the usual one must save this share of the cost.
_DIVISION_SAVES = 0.05
# A slower size is pointed out if it takes at most this many times the least time, and saves at least this share.
_SLOWER, _SAVED = 2.0, 0.05


@dataclass(frozen=True)
class Size:
    """A candidate as reported: its time with an interval, the chance that it keeps the limits, its joules if known."""

    configuration: Configuration
    nodes: int
    cores: int
    time_s: float
    low_s: float
    high_s: float
    chance: float
    measured: bool
    joules: float | None = None

    @property
    def core_hours(self) -> float:
        """The expected core-hours of a run."""
        return self.cores * self.time_s / HOUR_S

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {**vars(self), "configuration": dict(self.configuration), "core_hours": self.core_hours}


@dataclass(frozen=True)
class RightSize:
    """The result of right-sizing.

    Attributes:
        chosen: The size to use.
        front: The front of time against core-hours, fastest first, including the chosen size.
        keeps: Whether the chosen size keeps the limits with enough probability; if not, it is the most likely to.
        probes: The number of runs made to find it.
        probe_core_hours: The core-hours of these runs.
        grounds: Sentences on what the expectation is based on.
        doubts: Sentences on how the question lies outside the measurements.
        division: A sentence that advises to keep the usual division into ranks and threads; "" without the evidence.
    """

    chosen: Size
    front: tuple[Size, ...]
    keeps: bool
    probes: int = 0
    probe_core_hours: float = 0.0
    grounds: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    division: str = ""

    def by(self, model: RunTimes | None) -> "RightSize":
        """Return the result with the grounds and doubts of the model that gave its expected times."""
        return self if model is None else replace(self, grounds=(model.grounds,), doubts=model.doubts)

    def sentence(self) -> str:
        """Return the conclusion in words."""
        size = self.chosen
        energy = "" if size.joules is None else f", {size.joules:.3g} J"
        what = (
            f"{size.nodes} node{'s' * (size.nodes != 1)}, {size.cores} core{'s' * (size.cores != 1)} "
            f"({configuration_text(size.configuration)}): {_interval(size)}, {size.core_hours:.3g} core-hours{energy}"
        )
        if self.keeps:
            return f"take {what}; it keeps the limits with a chance of {percent(size.chance)}"
        fastest = self.front[0]
        also = (
            ""
            if fastest == size
            else f"; the fastest is {configuration_text(fastest.configuration)}, {_interval(fastest)}"
        )
        return (
            f"nothing keeps the limits with a chance of {CONFIDENCE:.0%}; the likeliest, with {percent(size.chance)}, "
            f"is {what}{also}; allow more, or more nodes"
        )

    def trade_off(self) -> str:
        """Return what a slower size saves that keeps the limits, in words; "" if it saves little.

        It must be cheaper than the chosen size, and take at most twice the time of the fastest that keeps them.
        """
        keeping = [size for size in self.front if size.chance >= CONFIDENCE]
        if not keeping:
            return ""
        fastest = keeping[0]
        unit = "core-hours" if fastest.joules is None else "joules"

        def cost(size: Size) -> float:
            return size.core_hours if size.joules is None else size.joules

        slower = min((size for size in keeping if size.time_s <= _SLOWER * fastest.time_s), key=cost)
        saved = 1.0 - cost(slower) / cost(fastest)
        if saved < _SAVED or cost(slower) >= cost(self.chosen):
            return ""
        more = max(0.01, slower.time_s / fastest.time_s - 1.0)
        return (
            f"accept {more:.0%} more time, and a run takes {saved:.0%} fewer {unit} "
            f"({configuration_text(slower.configuration)} instead of {configuration_text(fastest.configuration)})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "keeps": self.keeps,
            "trade_off": self.trade_off(),
            "division": self.division,
            "chosen": self.chosen.to_dict(),
            "front": [size.to_dict() for size in self.front],
            "probes": self.probes,
            "probe_core_hours": self.probe_core_hours,
            "grounds": list(self.grounds),
            "doubts": list(self.doubts),
        }


@dataclass(frozen=True)
class Decision:
    """The rating of each candidate under limits, and the choice among them.

    Attributes:
        cost: The expected cost of each, (n,), which should be least.
        chance: The probability that each keeps the limits, (n,).
        chosen: The index of the cheapest candidate that keeps the limits with enough probability, or else of the one
            most likely to keep them. Both have the usual division into ranks and threads unless another saves 5 %.
        usual: The index, (n,), of the cheapest candidate of as many nodes and cores with the usual division.
        rivals: The chance, (n,), that each saves 5 % of the cost of that one; 1 for those with the usual division.
    """

    cost: FloatArray
    chance: FloatArray
    chosen: int
    usual: Places
    rivals: FloatArray

    @property
    def keeps(self) -> bool:
        """Whether the chosen candidate keeps the limits with enough probability."""
        return bool(self.chance[self.chosen] >= CONFIDENCE)


def decide(candidates: Candidates, times: Times, limits: Limits, power_w: FloatArray | None = None) -> Decision:
    """Choose among candidates by the distribution of their times."""
    chance = times.chance(limits.longest(candidates, power_w))
    price = limits.price(candidates, power_w)
    cost = times.middle * price
    usual = candidates.usual(cost)
    usual_division = (candidates.doublings == 0.0) | (usual == np.arange(len(usual)))
    enough = (1.0 - _DIVISION_SAVES) * cost[usual]
    rivals = np.where(usual_division, 1.0, times.chance(np.log(enough / price)))
    as_usual_or_cheaper = usual_division | (cost <= enough)
    keeping = np.flatnonzero((chance >= CONFIDENCE) & (as_usual_or_cheaper | (chance[usual] < CONFIDENCE)))
    # Another division may be the likeliest to keep the limits only because less is known of it.
    likeliest = np.where(as_usual_or_cheaper, chance, -1.0).argmax()
    chosen = keeping[cost[keeping].argmin()] if len(keeping) else likeliest
    return Decision(cost, chance, int(chosen), usual, rivals)


def front(times: Times, price: FloatArray) -> Places:
    """Return the candidates, fastest first, that no other is expected to match in time at less cost, time x `price`."""
    order = np.lexsort((price, times.middle))
    cost = (times.middle * price)[order]
    least = np.minimum.accumulate(np.concatenate([[np.inf], cost[:-1]]))
    return np.asarray(order[cost < least])


def next_probe(
    candidates: Candidates,
    times: Times | None,
    limits: Limits,
    probes: Collection[int],
    power_w: FloatArray | None = None,
) -> int | None:
    """Return the index of the candidate to run next, after those at `probes`; None if no run is worth its cost.

    If `times` is None, nothing is known of times, and the first run is of a medium size. Later runs are chosen by their
    expected saving over their own cost; while no candidate is known to keep the limits, by their chance to keep them.
    """
    if times is None:
        cores = np.log(candidates.cores)
        apart = np.abs(cores - np.median(cores)) + np.log(candidates.nodes) + np.abs(candidates.doublings)
        return int(apart.argmin())
    decision = decide(candidates, times, limits, power_w)
    spent = (times.middle * candidates.cores) ** _COST_POWER
    if not decision.keeps:
        if (ran := np.isin(np.arange(len(candidates)), list(probes))).all():
            return None
        return int(np.where(ran, -np.inf, decision.chance / spent).argmax())
    best = float(decision.cost[decision.chosen])
    gain = times.gain(limits.longest(candidates, power_w), limits.price(candidates, power_w), best)
    gain[decision.rivals < 1.0 - CONFIDENCE] = 0.0
    worth = gain / spent
    if not (gain > _WORTH * best).any():
        return None
    return int(worth.argmax())


@dataclass(frozen=True)
class Knowledge:
    """The knowledge about candidates under limits: those that ran, with their times, and those that failed, by index.

    `power_w` has the watts of each core in the runs whose energy is known.
    """

    candidates: Candidates
    limits: Limits
    times_s: Mapping[int, Sequence[float]] = field(default_factory=dict)
    failed: frozenset[int] = frozenset()
    power_w: Mapping[int, Sequence[float]] = field(default_factory=dict)

    def next(self) -> Configuration | None:
        """Return the configuration to run next; None if no run is worth its cost."""
        candidates, ran, power_w = self._working()
        if not len(candidates):
            return None
        place = next_probe(candidates, self._estimate_times(candidates, ran), self.limits, ran, power_w)
        return None if place is None else candidates.configurations[place]

    def right_size(self) -> RightSize | None:
        """Return the right size; None if nothing is known about times."""
        candidates, ran, power_w = self._working()
        times = self._estimate_times(candidates, ran) if len(candidates) else None
        if times is None:
            return None
        decision = decide(candidates, times, self.limits, power_w)
        (low, high), middle = times.interval(), times.middle
        joules = None if power_w is None else middle * candidates.cores * power_w

        def size_at(place: int) -> Size:
            return Size(
                candidates.configurations[place],
                int(candidates.nodes[place]),
                int(candidates.cores[place]),
                float(middle[place]),
                float(low[place]),
                float(high[place]),
                float(decision.chance[place]),
                place in ran,
                None if joules is None else float(joules[place]),
            )

        held = power_w * candidates.cores if self.limits.least_energy and power_w is not None else candidates.cores
        places = {*front(times, held).tolist(), decision.chosen}
        ordered = sorted(places, key=lambda place: (middle[place], candidates.cores[place]))
        return RightSize(
            size_at(decision.chosen),
            tuple(size_at(place) for place in ordered),
            decision.keeps,
            division=self._advice_on_division(candidates, decision, ran),
        )

    def _working(self) -> tuple[Candidates, dict[int, Sequence[float]], FloatArray | None]:
        """Return the candidates that have not failed, the times of those that ran, and the watts of all, if known."""
        working = [place for place in range(len(self.candidates)) if place not in self.failed]
        candidates = self.candidates.at(working)
        ran, drawn = (
            {number: known[place] for number, place in enumerate(working) if place in known}
            for known in (self.times_s, self.power_w)
        )
        power_w = TimePrior.of_power(candidates).after(drawn).middle if drawn else None
        return candidates, ran, power_w

    def _advice_on_division(self, candidates: Candidates, decision: Decision, ran: Collection[int]) -> str:
        """Return the advice to keep the usual division into ranks and threads; "" if another may save 5 %.

        It needs a run with another division, or a model of the program. No advice is given on energy: at one size, the
        power of divisions differs more than their times.
        """
        is_known = candidates.has_useful_times or candidates.doublings[list(ran)].any()
        others = np.flatnonzero((decision.usual == decision.chosen) & (candidates.doublings != 0.0))
        if not is_known or self.limits.needs_energy or not len(others):
            return ""
        if decision.rivals[others].max() > 1.0 - CONFIDENCE:
            return ""
        best = others[decision.cost[others].argmin()]
        more = decision.cost[best] / decision.cost[decision.chosen] - 1.0
        return (
            f"leave ranks x threads as they are: no other division of {candidates.cores[best]:.0f} cores should save "
            f"{_DIVISION_SAVES:.0%} of the time (the best, {configuration_text(candidates.configurations[best])}, "
            f"should take {abs(more):.0%} {'more' if more >= 0.0 else 'less'})"
        )

    @staticmethod
    def _estimate_times(candidates: Candidates, ran: Mapping[int, Sequence[float]]) -> Times | None:
        return TimePrior.of(candidates).after(ran) if ran or candidates.has_useful_times else None


def _interval(size: Size) -> str:
    return f"{size.time_s:.4g} s ({size.low_s:.3g} to {size.high_s:.3g})"


def percent(chance: float) -> str:
    """Return a probability for reading."""
    return "over 99%" if chance > 0.99 else "under 1%" if chance < 0.01 else f"{chance:.0%}"
