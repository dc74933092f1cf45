"""The kinds of callers, each with limits of its own."""

from enum import Enum

from starlette.requests import Request


class CallerKind(Enum):
    """How a request was let in. Callers of one kind cannot use up what another kind has."""

    OWN = "this user"
    TOKEN = "a token"  # noqa: S105  no token
    ANONYMOUS = "anonymous"


def is_own(request: Request) -> bool:
    """Whether the service's own user sent a request."""
    return request.scope["state"]["caller"] is CallerKind.OWN
