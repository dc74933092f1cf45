"""An input that is not optimised: the winner is compared with the default on it."""

from dataclasses import dataclass

from launchers.software.digest import text_digest
from objectives.base import Plan
from spaces import Space


@dataclass(frozen=True)
class VerifiedInput:
    """An input of weight 0, made ready."""

    name: str
    plan: Plan
    space: Space

    @property
    def digest(self) -> str:
        """Changes with whatever makes measurements of the input comparable."""
        return text_digest(repr((sorted(self.plan.identity.items()), sorted(self.plan.reading.items()))))
