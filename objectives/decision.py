"""Decision: the setting to use in one cell of a decision table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spaces import Configuration, Value


@dataclass(frozen=True)
class Decision:
    """What to use where the contexts have these values, at this point; a study without points has None there.

    `chosen` and `default` are values of the parameters that are no contexts. `ratio` is how many times better `chosen`
    is than `default` there, with the ends of its interval from as many `pairs` of runs: the best estimate so far, with
    no pairs, before they were compared in fresh runs; None where one of them has not run. Where `chosen` is the
    default, nothing was shown to be better than it.
    """

    contexts: Mapping[str, Value]
    point: float | None
    chosen: Configuration
    default: Configuration
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0

    @property
    def is_default(self) -> bool:
        """Whether it is what the program does by itself."""
        return dict(self.chosen) == dict(self.default)

    @property
    def is_confirmed(self) -> bool:
        """Whether it was compared with the default in fresh pairs of runs."""
        return self.pairs > 0


Rules = Callable[[Sequence[Decision], Mapping[str, Value]], Mapping[str, str]]
"""Writes a decision table for a program, given the study's facts: the texts of files by their names.

Raises:
    PlanError: the program has no form for this table; the message says why.
"""
