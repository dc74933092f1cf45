"""The identity of runs: the series of a run, and its id within the study.

Storage and folders contain both as text, which only this module writes and reads.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

_SEPARATOR = ":"
_ROUND = re.compile(r"(?P<kind>[a-z]+)-(?P<of>.+)-(?P<round>[0-9]{2,})-(?P<side>[0-9]+)", re.DOTALL)


class SeriesKind(StrEnum):
    """The purpose of the runs of a series."""

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

    @property
    def purpose(self) -> str:
        """The purpose of the runs in plain words."""
        return _PURPOSES.get(self, self.label)


_PURPOSES = {
    SeriesKind.SELECT: "choosing the winner",
    SeriesKind.VERDICT: "the verdict",
    SeriesKind.DUET: "the verdict, side by side",
    SeriesKind.ABLATE: "ablation",
    SeriesKind.SIMPLIFY: "ablation",
    SeriesKind.WORKLOAD: "inputs of weight 0",
    SeriesKind.CELL: "the decision table",
    SeriesKind.SIZE: "right-sizing",
    SeriesKind.WATCH: "watching the winner",
    SeriesKind.ASIDE: "runs set aside",
}


@dataclass(frozen=True)
class Series:
    """Runs with one purpose: tuning, warm-up, or one of the comparisons after tuning.

    Warm-up runs do not count. Runs that were set aside no longer count, but stay in the log.

    Attributes:
        kind: The purpose.
        of: Distinguishes series of one kind: by the compared trials, an input, or a digest of the configurations. For
            runs that were set aside, it is the series that they belonged to.
    """

    kind: SeriesKind = SeriesKind.TUNING
    of: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the stored text, for example `verdict:12`; empty for tuning."""
        return _SEPARATOR.join((self.kind.value, *self.of))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the stored text.

        Raises:
            ValueError: The text names an unknown kind of series.
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
        """Return the series that measures the worth of each changed option of the winner."""
        return cls(SeriesKind.ABLATE, (str(winner),))

    @classmethod
    def simplify(cls, winner: int, digest: str) -> Self:
        """Return the series that compares the winner with one without some options; `digest` stands for these."""
        return cls(SeriesKind.SIMPLIFY, (str(winner), digest))

    @classmethod
    def workload(cls, name: str, digest: str, winner: int) -> Self:
        """Return the series that compares winner and default on an input of weight 0 with this digest."""
        return cls(SeriesKind.WORKLOAD, (name, digest, str(winner)))

    @classmethod
    def sweep(cls, digest: str) -> Self:
        """Return the series that sweeps parameters of a configuration; the digest is that of both."""
        return cls(SeriesKind.SWEEP, (digest,))

    @classmethod
    def cell(cls, digest: str) -> Self:
        """Return the series that compares settings with the default in the context with this digest."""
        return cls(SeriesKind.CELL, (digest,))

    @classmethod
    def watch(cls, winner: int, check: int) -> Self:
        """Return the series of a check whether the winner still wins; the first check is 1."""
        return cls(SeriesKind.WATCH, (str(winner), str(check)))

    @property
    def aside(self) -> "Series":
        """The series for runs of this one that are set aside."""
        return Series(SeriesKind.ASIDE, (self.kind.label, *self.of))

    @property
    def before(self) -> "Series":
        """The original series of runs that were set aside; for others, the series itself."""
        if self.kind is not SeriesKind.ASIDE:
            return self
        label, *of = self.of
        return Series(next(kind for kind in SeriesKind if kind.label == label), tuple(of))

    @property
    def is_tuning(self) -> bool:
        """Whether trials are judged by its runs."""
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
    """The id of a run in its study. Its text names the run's folder, job and lease.

    Attributes:
        series: The series of the run.
        trial: The trial of a tuning run.
        number: The number of the trial's earlier runs, or the step that this run goes to.
        round: The round of a comparison.
        side: The configuration's place in that round.
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
        """Read a name. The series is inexact for an input whose name contains a colon or a comma.

        Raises:
            ValueError: The text is not the name of a run.
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
