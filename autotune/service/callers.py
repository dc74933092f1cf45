"""Callers: who sent a request, as far as that was found out."""

from dataclasses import dataclass
from enum import Enum

from starlette.requests import Request


class CallerKind(Enum):
    """How a request was let in. Requests of one kind cannot take the room of another."""

    OWN = "this user"
    TOKEN = "a token"  # noqa: S105  no token
    ANYBODY = "anybody"


@dataclass(frozen=True)
class Caller:
    """Who sent a request."""

    kind: CallerKind


def is_own(request: Request) -> bool:
    """Whether a request is this user's, who may see what the commands print."""
    caller: Caller = request.scope["state"]["caller"]
    return caller.kind is CallerKind.OWN
