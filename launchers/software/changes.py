"""Changes of an environment by which software is loaded."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock


@dataclass(frozen=True)
class Changes:
    """Variables to set and variables to remove."""

    variables: Mapping[str, str] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()

    def then(self, later: "Changes") -> "Changes":
        """Return these changes followed by others."""
        kept = {name: value for name, value in self.variables.items() if name not in later.unset}
        unset = frozenset((self.unset | later.unset) - later.variables.keys())
        return Changes(kept | dict(later.variables), unset)

    def apply_to(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with these changes."""
        return {name: value for name, value in environment.items() if name not in self.unset} | dict(self.variables)


NO_CHANGES = Changes()

_ONE_AT_A_TIME = RLock()


@contextmanager
def changes_in_effect(changes: Changes) -> Iterator[None]:
    """Apply changes to this process's own environment during the block, for finding programs and libraries.

    All threads share the environment, so other threads that want changes wait.
    """
    with _ONE_AT_A_TIME:
        before = {name: os.environ.get(name) for name in {*changes.variables, *changes.unset}}
        try:
            for name in changes.unset:
                os.environ.pop(name, None)
            os.environ.update(changes.variables)
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
