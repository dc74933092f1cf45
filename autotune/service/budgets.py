"""Budgets of the studies that an agent starts. The owner of the service sets them; the agent cannot change them."""

from collections.abc import Collection
from dataclasses import dataclass

from autotune.durations import parse_duration_s
from autotune.errors import AutotuneError


@dataclass(frozen=True)
class AgentBudgets:
    """The limits of an agent. Its studies are counted in storage, so a new connection does not bring a new budget.

    Attributes:
        studies: The most studies.
        trials: The most trials of a study.
        time_s: The longest time for starting trials in a study.
        prefix: The start of the names of its studies.
    """

    studies: int = 1
    trials: int = 50
    time_s: float = 3600.0
    prefix: str = "agent-"

    def name_of(self, wanted: str, there: Collection[str]) -> str:
        """Return the name of a new study.

        Args:
            wanted: The requested name, with or without the prefix.
            there: The names of the existing studies.

        Raises:
            AutotuneError: the name is taken, or the agent already has all its studies.
        """
        name = wanted if wanted.startswith(self.prefix) else f"{self.prefix}{wanted}"
        if name in there:
            msg = f"study {name!r} exists already, and only its owner can resume or delete it; choose another name"
            raise AutotuneError(msg)
        count = sum(each.startswith(self.prefix) for each in there)
        if count >= self.studies:
            msg = (
                f"{count} studies begin with {self.prefix!r}, and an agent may have {self.studies}: "
                "only the owner can raise this limit"
            )
            raise AutotuneError(msg)
        return name

    def trials_of(self, wanted: int | None) -> int:
        """Return the number of trials of a new study.

        Raises:
            AutotuneError: the agent asks for too many.
        """
        if wanted is not None and wanted > self.trials:
            msg = f"trials: {wanted} was given; an agent may have {self.trials}"
            raise AutotuneError(msg)
        return wanted or self.trials

    def time_of(self, wanted: str | None) -> str:
        """Return the time in which a new study may start trials.

        Raises:
            AutotuneError: the requested text is not a duration, or the time is too long.
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
