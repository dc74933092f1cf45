"""How the winner is chosen and compared with the default configuration at the end of a study."""

from typing import Literal, Self

from pydantic import Field, model_validator

from autotune.statistics.signed_rank import least_pairs
from autotune.studyfile.section import Section

VerdictMode = Literal["interleaved", "duet", "auto"]


class VerdictSection(Section):
    """How the winner is chosen among the best `candidates`, in `rounds`, and compared with the baseline.

    The comparison takes from `pairs` to `max_pairs` pairs of runs, until the half-width of the interval is at most
    `precision` (relative) or `of_gain` of the gain, whichever is larger. The pairs are spread over at least `nodes`
    nodes. By `mode`, the two runs of a pair are made one after the other or side by side; `auto` decides that on a
    machine that other processes use.
    """

    candidates: int = Field(default=3, ge=1)
    rounds: int = Field(default=4, ge=2)
    pairs: int = Field(default=8, ge=3)
    max_pairs: int = Field(default=20, ge=3)
    precision: float = Field(default=0.05, gt=0)
    of_gain: float = Field(default=0.25, ge=0, lt=1)
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    nodes: int | None = Field(default=None, ge=1)
    mode: VerdictMode = "auto"

    @model_validator(mode="after")
    def _enough(self) -> Self:
        least = least_pairs(self.confidence)
        if self.pairs < least:
            msg = f"a {self.confidence:.0%} interval needs at least {least} pairs, pairs is {self.pairs}"
            raise ValueError(msg)
        if self.max_pairs < self.pairs:
            msg = f"max_pairs is {self.max_pairs}, less than pairs, {self.pairs}"
            raise ValueError(msg)
        if self.nodes is not None and self.nodes > self.pairs:
            msg = f"{self.pairs} pairs are on {self.pairs} nodes at most, nodes is {self.nodes}; ask for more pairs"
            raise ValueError(msg)
        if self.mode == "duet" and (self.nodes or 1) > 1:
            msg = f"a duet is on one node, nodes is {self.nodes}; use mode = 'interleaved'"
            raise ValueError(msg)
        return self
