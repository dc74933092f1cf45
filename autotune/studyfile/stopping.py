"""The section of a study whose program works in steps."""

from typing import Literal, Self

from pydantic import Field, model_validator

from autotune.studyfile.section import Section


class StoppingSection(Section):
    """How far trials run whose program works in steps (epochs): the better ones continue, the others are stopped.

    No trial makes more than `max_steps` steps, and none is judged before `min_steps`; at every rung one in `eta`
    continues. `hyperband` mixes brackets from many short trials to few long ones. `asha` is the bracket with most
    trials, and does not wait for a rung to be complete. `median` stops a trial that is worse than the median of others
    at its step.
    """

    rule: Literal["hyperband", "asha", "median", "none"] = "hyperband"
    max_steps: int = Field(ge=1)
    min_steps: int = Field(default=1, ge=1)
    eta: int = Field(default=3, ge=2)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_steps > self.max_steps:
            msg = f"min_steps is {self.min_steps}, more than max_steps, {self.max_steps}"
            raise ValueError(msg)
        return self
