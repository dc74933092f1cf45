"""An input of weight 0, on which the winner is only compared with the default."""

from dataclasses import dataclass

from launchers.software.digest import text_digest
from objectives.base import Plan
from spaces import Space


@dataclass(frozen=True)
class VerifiedInput:
    """An input of weight 0 with its plan and its space."""

    name: str
    plan: Plan
    space: Space

    @property
    def digest(self) -> str:
        """A digest of everything that makes measurements of the input comparable."""
        return text_digest(repr((sorted(self.plan.identity.items()), sorted(self.plan.reading.items()))))
