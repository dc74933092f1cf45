"""Another problem for the program of a study."""

from dataclasses import dataclass

from launchers.software.digest import text_digest
from objectives.base import Plan
from spaces import Space


@dataclass(frozen=True)
class Workload:
    """Another problem for the program of a study, made ready."""

    name: str
    plan: Plan
    space: Space

    @property
    def digest(self) -> str:
        """Changes with whatever makes measurements of the workload comparable."""
        return text_digest(repr((sorted(self.plan.identity.items()), sorted(self.plan.reading.items()))))
