"""Scopes: what the holder of a token may do."""

from enum import StrEnum

# Methods that change nothing, and the paths of questions that have a body and change nothing either.
CHANGES_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})
QUESTIONS = frozenset({"/predict", "/estimate"})
_ASKING = ("/ask", "/tell", "/renew", "/hints")


class Scope(StrEnum):
    """The rights of a token; each scope includes those before it."""

    LOOK = "look"
    ASK = "ask"
    OPERATE = "operate"

    def allows(self, other: "Scope") -> bool:
        """Return whether this scope includes the other one."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


def needed_scope(method: str, path: str) -> Scope:
    """Return the scope that a request needs: the largest, unless a smaller one is known to be enough."""
    if method in CHANGES_NOTHING or path in QUESTIONS:
        return Scope.LOOK
    return Scope.ASK if method == "POST" and path.endswith(_ASKING) else Scope.OPERATE
