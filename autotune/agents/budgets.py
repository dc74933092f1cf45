"""Budgets: what an agent may spend on studies that it starts. The owner sets them; the agent cannot change them."""

from collections.abc import Collection
from dataclasses import dataclass

from autotune.durations import parse_duration_s
from autotune.errors import AutotuneError


@dataclass(frozen=True)
class AgentBudgets:
    """At most `studies` studies, whose names begin with `prefix`, each with `trials` trials and `time_s` seconds.

    Studies are counted where they are stored, so that a new connection brings no new budget.
    """

    studies: int = 1
    trials: int = 50
    time_s: float = 3600.0
    prefix: str = "agent-"

    def name_of(self, wanted: str, there: Collection[str]) -> str:
        """Return the name of a new study; `there` are the studies that exist.

        Raises:
            AutotuneError: the name is taken, or there are as many as there may be.
        """
        name = wanted if wanted.startswith(self.prefix) else f"{self.prefix}{wanted}"
        if name in there:
            msg = f"there is a study {name!r}: its owner resumes or deletes it; choose another name for a new one"
            raise AutotuneError(msg)
        count = sum(each.startswith(self.prefix) for each in there)
        if count >= self.studies:
            msg = f"{count} studies begin with {self.prefix!r}, and an agent may have {self.studies}: the owner decides"
            raise AutotuneError(msg)
        return name

    def trials_of(self, wanted: int | None) -> int:
        """Return how many trials a study gets.

        Raises:
            AutotuneError: too many were asked for.
        """
        if wanted is not None and wanted > self.trials:
            msg = f"trials: {wanted} was given; an agent may have {self.trials}"
            raise AutotuneError(msg)
        return wanted or self.trials

    def time_of(self, wanted: str | None) -> str:
        """Return how long a study may start trials.

        Raises:
            AutotuneError: it is no duration, or too long.
        """
        try:
            seconds = self.time_s if wanted is None else parse_duration_s(wanted)
        except ValueError as error:
            msg = f"timeout: {error}"
            raise AutotuneError(msg) from None
        if seconds > self.time_s:
            msg = f"timeout: {wanted} was given; an agent may have {self.time_s:g}s"
            raise AutotuneError(msg)
        return f"{seconds:.15g}s"
