"""The section of a study whose program is told how long a run is, and what it means for the space."""

from collections.abc import Mapping
from typing import Self

from pydantic import Field, model_validator

from autotune.studyfile.section import Section


class FidelitySection(Section):
    """Short runs that tell which configurations are worth whole ones.

    `parameter` is the name that the options mention for the length of a run: `low` in a short run, `high` in a whole
    one, which is what all values are of. `production` is the length for which the winner is to be used.
    """

    parameter: str = Field(pattern=r"^[A-Za-z_]\w*$")
    low: int = Field(ge=1)
    high: int = Field(ge=2)
    production: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low >= self.high:
            msg = f"low is {self.low}, no less than high, {self.high}: a short run is shorter than a whole one"
            raise ValueError(msg)
        return self

    def derived(self, others: Mapping[str, str], length: int) -> dict[str, str]:
        """Return the derived values of a study, the length of its runs among them."""
        return {**others, self.parameter: str(length)}
