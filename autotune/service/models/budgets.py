"""Budgets: what the holder of a token, or an agent, may start. The owner of the service sets them."""

from collections.abc import Collection
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.durations import parse_duration_s
from autotune.errors import AutotuneError
from autotune.studyfile import NAME

LONGEST_NAME = 100


class Budget(BaseModel):
    """The limits of the studies that somebody starts.

    They are counted by the prefix of their names, also those in storage, so a new connection brings no new budget.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    studies: int = Field(1, ge=0, description="The most studies whose names begin with `prefix`.")
    trials: int = Field(50, ge=1, description="The most trials of each.")
    time_s: float = Field(
        3600.0, gt=0, allow_inf_nan=False, description="The longest time in which each starts trials."
    )
    prefix: str = Field(
        default="agent-",
        pattern=NAME,
        max_length=80,
        description="The start of their names; it is added to a name without it.",
    )

    def name_of(self, wanted: str, there: Collection[str]) -> str:
        """Return the name of a new study.

        Args:
            wanted: The requested name, with or without the prefix.
            there: The names of the existing studies.

        Raises:
            AutotuneError: the name is taken or too long, or the budget of studies is used.
        """
        name = self.with_prefix(wanted)
        if len(name) > LONGEST_NAME:
            msg = f"name: {name!r} has {len(name)} characters; it must have {LONGEST_NAME} at most"
            raise AutotuneError(msg)
        if name in there:
            msg = f"study {name!r} exists already, and only its owner can resume or delete it; choose another name"
            raise AutotuneError(msg)
        count = sum(each.startswith(self.prefix) for each in there)
        if count >= self.studies:
            msg = (
                f"{count} studies begin with {self.prefix!r}, and the budget allows {self.studies}: "
                "only the owner of the service can raise it"
            )
            raise AutotuneError(msg)
        return name

    def with_prefix(self, wanted: str) -> str:
        """Return a name that begins with the prefix."""
        return wanted if wanted.startswith(self.prefix) else f"{self.prefix}{wanted}"

    def trials_of(self, wanted: int | Literal["auto"] | None, most: int) -> int:
        """Return the number of trials of a new study, whose study file allows `most`.

        Raises:
            AutotuneError: more are wanted.
        """
        if wanted == "auto" or (wanted is not None and wanted > self.trials):
            msg = f"trials: {wanted} was given; the budget allows {self.trials}"
            raise AutotuneError(msg)
        return wanted or min(self.trials, most)

    def time_of(self, wanted: str | None, longest_s: float | None) -> str:
        """Return the time in which a new study may start trials, whose study file allows `longest_s`.

        Raises:
            AutotuneError: the requested text is not a duration, or the time is too long.
        """
        try:
            seconds = min(self.time_s, longest_s or self.time_s) if wanted is None else parse_duration_s(wanted)
        except ValueError as error:
            msg = f"timeout: {error}"
            raise AutotuneError(msg) from None
        if seconds > self.time_s:
            msg = f"timeout: {wanted} was given; the budget allows {self.time_s:g}s"
            raise AutotuneError(msg)
        return f"{seconds:.15g}s"
