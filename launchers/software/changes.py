"""What loading software changes in an environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Changes:
    """Variables that are set, and variables that are removed."""

    variables: Mapping[str, str] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()

    def then(self, later: "Changes") -> "Changes":
        """Return these changes followed by others."""
        kept = {name: value for name, value in self.variables.items() if name not in later.unset}
        unset = frozenset((self.unset | later.unset) - later.variables.keys())
        return Changes(kept | dict(later.variables), unset)

    def applied(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with these changes."""
        return {name: value for name, value in environment.items() if name not in self.unset} | dict(self.variables)


NOTHING = Changes()
