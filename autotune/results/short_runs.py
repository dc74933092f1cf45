"""What short runs told of whole ones in a study, what start-up and pace they show, and for which length a winner holds.

Of a configuration with runs of two lengths the time is taken to be a start-up and a pace: a line through both. A run
that told its steps shows both lengths by itself. How sure what follows is comes from the noise of repeated runs. That
another configuration wins at the production length is said only where it is ahead by three standard errors, since the
best of many is looked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import expm1, inf, sqrt
from statistics import median
from typing import Any

from autotune.records.outcome import Outcome
from autotune.records.short_runs import short_runs
from autotune.records.study import Run, State, TrialRecord
from autotune.statistics.measured_part import measured_parts_s
from autotune.statistics.pace import LEAST, time_at
from autotune.statistics.rank_correlation import RankCorrelation, rank_correlation
from autotune.statistics.standings import Standings
from autotune.storage.readable import ReadableStudy
from autotune.studyfile.fidelity import FidelitySection
from objectives.base import Metric

_SURE = 3.0


@dataclass(frozen=True)
class Line:
    """The time of a trial by its length: `startup` and `pace`, that of a step, both in a unit that all lines share.

    Of a rate, the time is a length over it.
    """

    trial: int
    startup: float
    pace: float
    noise: float
    short: float
    whole: float
    runs: int
    lengths: tuple[int, int]

    @classmethod
    def through(
        cls, trial: int, values: tuple[float, float], runs: int, noise: float, lengths: tuple[int, int]
    ) -> "Line":
        """Return the line through the times of a short and a whole run, the latter the middle of several."""
        (short, whole), (low, high) = values, lengths
        pace = (whole - short) / (high - low)
        return cls(trial, short - pace * low, pace, noise, short, whole, runs, lengths)

    def at(self, length: int) -> tuple[float, float]:
        """Return the time of a run of this length, and its standard error."""
        low, high = self.lengths
        share = (length - low) / (high - low)
        error = self.noise * sqrt((share * self.whole) ** 2 / self.runs + ((1.0 - share) * self.short) ** 2)
        return self.startup + self.pace * length, error

    @property
    def is_sure(self) -> bool:
        """Whether a longer run surely takes longer: a short one that had to wait for others shows no pace."""
        return self.whole - self.short > _SURE * self.noise * sqrt(self.whole**2 / self.runs + self.short**2)

    def meets(self, other: "Line") -> float:
        """Return the length from which on the other one is faster; inf where none is."""
        return (other.startup - self.startup) / (self.pace - other.pace) if self.pace > other.pace else inf


@dataclass(frozen=True)
class ShortRunFinding:
    """What came of the short runs: `tried` trials had one, `left` were left after it, and `pairs` have whole ones, too.

    `without` are later trials with a whole run alone; a short one took that `share` of a whole one, the median; runs
    that `tell` their steps need none. `winner` is the best trial by whole runs, if there is one; `lines` are those of
    the pairs, and of runs that told their steps, the best whole run first.
    """

    section: FidelitySection
    tried: int
    left: int
    without: int
    share: float
    tell: bool
    correlation: RankCorrelation | None
    winner: int | None
    lines: tuple[Line, ...]

    @property
    def at_production(self) -> tuple[Line, float] | None:
        """The trial that is surely ahead of the best at the production length, and by how much; None without one."""
        length = self.section.production
        if length is None or not self._is_known:
            return None
        first, error = self.lines[0].at(length)
        best, ahead = None, 0.0
        for line in self.lines[1:]:
            value, own = line.at(length)
            if line.is_sure and first - value > max(ahead, _SURE * sqrt(error**2 + own**2)):
                best, ahead = line, first - value
        return None if best is None else (best, first / best.at(length)[0] - 1.0)

    @property
    def _is_known(self) -> bool:
        """Whether lengths can be compared: the winner has a line that is sure, and another trial has one."""
        return len(self.lines) > 1 and self.lines[0].trial == self.winner and self.lines[0].is_sure

    def sentences(self) -> list[str]:
        """Say it to a person."""
        section, ranks = self.section, self.correlation
        if self.tell and not self.tried:
            said = ["no short runs were made: the program tells its steps, and whole runs are stopped by their pace"]
            return [*said, *self._length_sentences()]
        told = "too few trials have both to say how they rank" if ranks is None else f"rank correlation {ranks.words()}"
        made = f"short runs ({section.parameter} = {section.low}): {self.tried} trials, {self.left} left after it"
        said = [f"{made}; with whole runs ({section.high}): {told}"]
        if self.without:
            said.append(
                f"short runs save too little here, and take {self.share:.0%} of a whole one: "
                f"{self.without} later trials were made whole without one"
            )
        return [*said, *self._length_sentences()]

    def _length_sentences(self) -> list[str]:
        section = self.section
        if section.production is not None and self.winner is not None and not self._is_known:
            length = f"{section.parameter} = {section.production}"
            return [f"nothing is known for {length}: trial {self.winner}, the best, or all others do not show a pace"]
        return [self._length_sentence(self.lines[0])] if self.lines and self.lines[0].trial == self.winner else []

    def _length_sentence(self, best: Line) -> str:
        section = self.section
        share = min(1.0, max(0.0, best.startup) / best.whole)
        parts = f"trial {best.trial}: about {share:.0%} of a whole run is start-up"
        if section.production is None:
            return f"{parts}; it is the best for {section.parameter} = {section.high}"
        other = self.at_production
        if other is None:
            return f"{parts}; for {section.parameter} = {section.production} no other trial is surely better"
        line, gain = other
        since = best.meets(line)
        from_on = f", from about {float(f'{since:.3g}'):.0f} on" if section.high < since < inf else ""
        return (
            f"{parts}; for {section.parameter} = {section.production} trial {line.trial} is expected to be {gain:.1%} "
            f"faster{from_on}: tune with a greater high"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        ranks, other = self.correlation, self.at_production
        return {
            "tried": self.tried,
            "left": self.left,
            "without": self.without,
            "share": self.share,
            "rank_correlation": None if ranks is None else vars(ranks),
            "lines": [{"trial": one.trial, "startup": one.startup, "pace": one.pace} for one in self.lines],
            "at_production": None if other is None else {"trial": other[0].trial, "gain": other[1]},
            "sentences": self.sentences(),
        }


def short_run_finding(store: ReadableStudy, standings: Standings) -> ShortRunFinding | None:
    """Return what short runs told in a study; None for one without them."""
    given = store.definition.study.get("fidelity")
    return None if not given else finding(store.runs(), standings, FidelitySection(**given))


def finding(runs: Sequence[Run], standings: Standings, section: FidelitySection) -> ShortRunFinding:
    """Return what short runs told of the trials of `standings`."""
    name, trials = standings.metric.name, standings.trials
    made = {number: run for number, run in short_runs(runs, section.low, section.high).items() if number in trials}
    values = {number: run.outcome.metrics[name] for number, run in made.items() if run.outcome.complete}
    both = sorted((number for number in values if trials[number].complete), key=standings.effects.center)
    whole = [standings.effects.center(number) for number in both]
    shares = [
        made[number].outcome.usage.elapsed_s / trials[number].runs[-1].outcome.usage.elapsed_s
        for number in both
        if trials[number].runs[-1].outcome.usage.elapsed_s > 0.0
    ]
    ranking = [trial.number for trial in standings.ranking]
    told = {trial.number: trial.told for trial in standings.ranking if trial.told is not None}
    short_shares = _short_shares(told, standings.metric, section)
    lines = (_line(number, values.get(number), short_shares.get(number), standings, section) for number in ranking)
    return ShortRunFinding(
        section,
        len(made),
        sum(trials[number].state is State.SHORT for number in made),
        sum(_is_without(trial, made.keys(), standings) for trial in trials.values()) if made else 0,
        median(shares) if shares else 0.0,
        any(len(outcome.timeline) >= LEAST for trial in standings.measured for outcome in trial.outcomes),
        rank_correlation([standings.to_log(values[number]) for number in both], whole),
        next(iter(ranking), None),
        tuple(line for line in lines if line is not None),
    )


def _short_shares(told: Mapping[int, Outcome], metric: Metric, section: FidelitySection) -> dict[int, float]:
    """Return what share of a whole run's measured time a short one takes, where runs of trials told their steps."""
    shares = {}
    for number, part_s in measured_parts_s(told, metric).items():
        timeline = told[number].timeline
        low_s, (last, last_s) = time_at(timeline, section.low), timeline[-1]
        if low_s is not None and last > section.low:
            left_s = (last_s - low_s) / (last - section.low) * (section.high - section.low)
            shares[number] = 1.0 - left_s / part_s
    return shares


def _line(
    number: int, short: float | None, short_share: float | None, standings: Standings, section: FidelitySection
) -> Line | None:
    """Return the line of a trial by its short run, or else by the share that one would take; None without either."""
    whole = _time(_value(number, standings), section.high, standings)
    if short is not None:
        short = _time(short, section.low, standings)
    elif short_share is not None:
        short = whole * short_share
    else:
        return None
    trial, noise = standings.trials[number], expm1(standings.effects.noise)
    return Line.through(number, (short, whole), len(trial.runs), noise, (section.low, section.high))


def _is_without(trial: TrialRecord, made: object, standings: Standings) -> bool:
    return bool(trial.runs) and trial is not standings.default and trial.number not in made  # type: ignore[operator]


def _value(number: int, standings: Standings) -> float:
    return standings.value(standings.trials[number])


def _time(value: float, length: int, standings: Standings) -> float:
    """Return what is in proportion to the time of a run of a length: of a rate, the length over it."""
    return length / value if standings.metric.direction == "maximize" else value
