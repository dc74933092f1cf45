"""Settings: what the operator of a service chose."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """What one client, and all together, may ask of the service.

    `headers_s` is how long the headers of a request may take to arrive, `body_s` its body, which has `body_bytes` at
    most; `unread_s` how long an answer may lie there without any of it being read. `at_once` is of all requests in
    work, of this user and of the others with a token apart; `anonymous_at_once` of those that need no token;
    `followers` of those who follow events, or wait for a run. `strangers` is how many connections there may be that
    have shown no token, `strangers_each` how many of one user or other host.
    """

    body_bytes: int = 64 * 1024
    headers_s: float = 10.0
    body_s: float = 20.0
    unread_s: float = 30.0
    at_once: int = 128
    anonymous_at_once: int = 16
    followers: int = 1000
    strangers: int = 1024
    strangers_each: int = 64


@dataclass(frozen=True)
class Settings:
    """A service: where studies are kept (`url`), which may be started, and which clients may ask.

    `catalogue` is the folder of the study files that may be started, None for those that ship with autotune; `folder`
    is for the service's own files. A `read_only` one changes nothing: not the storage, and no study. With
    `always_token` this user needs a token, too.
    """

    url: str
    folder: Path
    catalogue: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8642
    limits: Limits = field(default_factory=Limits)
    read_only: bool = False
    always_token: bool = False

    @property
    def loopback(self) -> bool:
        """Whether only this host can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def audit(self) -> Path:
        """The file of what was ordered."""
        return self.folder / "orders.jsonl"

    @property
    def tokens(self) -> Path:
        """The file of the tokens' digests."""
        return self.folder / "tokens.json"
