"""The identity of runs: the series that a run belongs to, and which run of its study it is.

Storage and folders hold both as text; only this module writes that text and reads it back.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

_SEPARATOR = ":"
_ROUND = re.compile(r"(?P<kind>[a-z]+)-(?P<of>.+)-(?P<round>[0-9]{2,})-(?P<side>[0-9]+)", re.DOTALL)


class SeriesKind(StrEnum):
    """What the runs of a series are for."""

    TUNING = ""
    WARM_UP = "warm-up"
    SELECT = "select"
    VERDICT = "verdict"
    DUET = "duet"
    ABLATE = "ablate"
    SIMPLIFY = "simplify"
    WORKLOAD = "workload"
    SWEEP = "sweep"
    SIZE = "size"
    CELL = "cell"
    WATCH = "watch"
    ASIDE = "aside"

    @property
    def label(self) -> str:
        """The kind in one word."""
        return self.value or "tuning"


@dataclass(frozen=True)
class Series:
    """Runs with one purpose: tuning, a warm-up that counts for nothing, or one of the comparisons after tuning.

    `of` tells series of one kind apart: the trials that are compared, an input, a digest of the configurations. Runs
    that were set aside count for nothing any more, and stay in the log: their `of` is the series that they were of.
    """

    kind: SeriesKind = SeriesKind.TUNING
    of: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the text that is stored, for example `verdict:12`; empty for tuning."""
        return _SEPARATOR.join((self.kind.value, *self.of))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text that is stored.

        Raises:
            ValueError: there is no such kind of series.
        """
        kind, *of = text.split(_SEPARATOR)
        return cls(SeriesKind(kind), tuple(of))

    @classmethod
    def select(cls, trials: Sequence[int]) -> Self:
        """Return the series that chooses the winner among trials."""
        return cls(SeriesKind.SELECT, (",".join(map(str, trials)),))

    @classmethod
    def verdict(cls, winner: int) -> Self:
        """Return the series that compares the winner with the default configuration."""
        return cls(SeriesKind.VERDICT, (str(winner),))

    @classmethod
    def duet(cls, winner: int) -> Self:
        """Return the series that compares the winner with the default configuration side by side."""
        return cls(SeriesKind.DUET, (str(winner),))

    @classmethod
    def ablate(cls, winner: int) -> Self:
        """Return the series that takes the winner apart."""
        return cls(SeriesKind.ABLATE, (str(winner),))

    @classmethod
    def simplify(cls, winner: int, digest: str) -> Self:
        """Return the series that compares the winner with itself less some options, which have this digest."""
        return cls(SeriesKind.SIMPLIFY, (str(winner), digest))

    @classmethod
    def workload(cls, name: str, digest: str, winner: int) -> Self:
        """Return the series that compares winner and default on an input of weight 0, which has this digest."""
        return cls(SeriesKind.WORKLOAD, (name, digest, str(winner)))

    @classmethod
    def sweep(cls, digest: str) -> Self:
        """Return the series that sweeps parameters of a configuration, which have this digest together."""
        return cls(SeriesKind.SWEEP, (digest,))

    @classmethod
    def cell(cls, digest: str) -> Self:
        """Return the series that compares settings with the default in the context with this digest."""
        return cls(SeriesKind.CELL, (digest,))

    @classmethod
    def watch(cls, winner: int, check: int) -> Self:
        """Return the series of a check of whether the winner still wins; the first is 1."""
        return cls(SeriesKind.WATCH, (str(winner), str(check)))

    @property
    def aside(self) -> "Series":
        """The series of its runs that are set aside."""
        return Series(SeriesKind.ASIDE, (self.kind.label, *self.of))

    @property
    def before(self) -> "Series":
        """The series that its runs were of before they were set aside; itself if they were not."""
        if self.kind is not SeriesKind.ASIDE:
            return self
        label, *of = self.of
        return Series(next(kind for kind in SeriesKind if kind.label == label), tuple(of))

    @property
    def is_tuning(self) -> bool:
        """Whether its runs are what trials are judged by."""
        return self.kind is SeriesKind.TUNING

    @property
    def is_comparison(self) -> bool:
        """Whether its runs compare configurations after tuning."""
        return self.kind not in {SeriesKind.TUNING, SeriesKind.WARM_UP, SeriesKind.ASIDE}


TUNING = Series()
SIZE = Series(SeriesKind.SIZE, ("runs",))
WARM_UP = Series(SeriesKind.WARM_UP)


@dataclass(frozen=True)
class RunId:
    """Which run of its study it is. Its text names the run's folder, its job and its lease.

    A run of tuning is one of a `trial`; its `number` counts the trial's runs before it, or is the step that it goes to.
    A run of a comparison is that of a `side` in a `round`.
    """

    series: Series = TUNING
    trial: int | None = None
    number: int = 0
    round: int = 0
    side: int = 0

    def __str__(self) -> str:
        """Return the name, for example `00012-1` or `verdict-12-03-1`."""
        if self.trial is not None:
            return f"{self.trial:05d}" + (f"-{self.number}" if self.number else "")
        if self.series.kind is SeriesKind.WARM_UP:
            return str(self.series)
        return f"{_in_a_name(self.series)}-{self.round:02d}-{self.side}"

    @classmethod
    def parse(cls, name: str) -> Self:
        """Read a name. A series is not told exactly if it is about an input whose name has a colon or a comma.

        Raises:
            ValueError: no run is named so.
        """
        trial, _, number = name.partition("-")
        if trial.isdigit() and (number.isdigit() or not number):
            return cls(trial=int(trial), number=int(number or 0))
        if name == str(WARM_UP):
            return cls(WARM_UP)
        found = _ROUND.fullmatch(name)
        if found is None or found["kind"] not in set(SeriesKind):
            msg = f"{name!r} is not the name of a run, which looks like 00012-1 or verdict-12-03-1"
            raise ValueError(msg)
        return cls(
            _of_a_name(SeriesKind(found["kind"]), found["of"]), round=int(found["round"]), side=int(found["side"])
        )


def _in_a_name(series: Series) -> str:
    return str(series).replace(_SEPARATOR, "-").replace(",", "-")


def _of_a_name(kind: SeriesKind, text: str) -> Series:
    match kind:
        case SeriesKind.SELECT:
            return Series(kind, (text.replace("-", ","),))
        case SeriesKind.WORKLOAD:
            return Series(kind, tuple(text.rsplit("-", 2)))
        case _:
            return Series(kind, tuple(text.split("-")))
