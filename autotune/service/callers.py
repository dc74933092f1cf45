"""Callers: who sent a request, as far as that was found out."""

from dataclasses import dataclass
from enum import Enum


class CallerKind(Enum):
    """How a request was let in. Requests of one kind cannot take the room of another."""

    OWN = "this user"
    TOKEN = "a token"  # noqa: S105  no token
    ANYBODY = "anybody"


@dataclass(frozen=True)
class Caller:
    """Who sent a request; `key` is the same for all requests of one caller."""

    kind: CallerKind
    key: str
