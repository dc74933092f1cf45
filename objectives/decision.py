"""A decision: the setting to use in one cell of a decision table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spaces import Configuration, Value


@dataclass(frozen=True)
class Decision:
    """The setting to use where the contexts have these values, at this point.

    Args:
        contexts: The values of the contexts.
        point: The point, such as a message size; None in a study without points.
        chosen: The values to use for the other parameters. The default's if nothing was shown to be better.
        default: The default's values of the same parameters.
        ratio: How many times better `chosen` is than `default` here; None if one of them has not run.
        low: The lower end of the ratio's interval; None before fresh pairs of runs have compared both.
        high: Its upper end.
        pairs: The number of fresh pairs; 0 means that `ratio` is only the best estimate so far.
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
        """Whether it is what the program does without tuning."""
        return dict(self.chosen) == dict(self.default)

    @property
    def is_confirmed(self) -> bool:
        """Whether fresh pairs of runs compared it with the default."""
        return self.pairs > 0


Rules = Callable[[Sequence[Decision], Mapping[str, Value]], Mapping[str, str]]
"""Writes a decision table for a program, given the study's facts: the texts of files by their names.

Raises:
    PlanError: The program has no form for this table; the message says why.
"""
