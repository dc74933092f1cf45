"""Scopes: what a token may be used for."""

from enum import StrEnum

# What changes nothing, and what is asked with a body and changes nothing either.
CHANGES_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})
QUESTIONS = frozenset({"/predict", "/estimate"})
_ASKING = ("/ask", "/tell", "/renew", "/hints")


class Scope(StrEnum):
    """What somebody may do; each may also do what those before it may."""

    LOOK = "look"
    ASK = "ask"
    OPERATE = "operate"

    def allows(self, other: "Scope") -> bool:
        """Whether who may do this may do the other, too."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


def needed(method: str, path: str) -> Scope:
    """Return what a request needs: whatever is not known to need less needs all."""
    if method in CHANGES_NOTHING or path in QUESTIONS:
        return Scope.LOOK
    return Scope.ASK if method == "POST" and path.endswith(_ASKING) else Scope.OPERATE
