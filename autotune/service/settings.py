"""Settings: what the operator of a service chose."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """Limits of requests and connections.

    Attributes:
        body_bytes: longest body of a request.
        headers_s: seconds in which the headers of a request have to arrive.
        body_s: seconds in which its body has to arrive.
        at_once: requests in work, for this user and for all other holders of tokens each.
        followers: clients that follow events or wait for a run, counted like `at_once`.
        anonymous_connections: connections that have shown no token.
        token_connections: connections of holders of a token of `autotune serve token`.
    """

    body_bytes: int = 64 * 1024
    headers_s: float = 10.0
    body_s: float = 20.0
    at_once: int = 128
    followers: int = 1000
    # Few, since each may send requests all the time; but several times as many as are accepted in a turn of the loop
    # (8), so that a flood of connections does not close a new one before it has shown its token.
    anonymous_connections: int = 64
    token_connections: int = 2048


@dataclass(frozen=True)
class Settings:
    """A service: where studies are kept (`url`), which may be started, and which clients may ask.

    `catalogue` is the folder of the study files that may be started, None for those that ship with autotune; `folder`
    is for the service's own files. A `read_only` service changes nothing: not the storage, and no study. A client
    that sends the `start_token` has this user's rights; if it is None, this user gets in only by the Unix socket.
    """

    url: str
    folder: Path
    catalogue: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8642
    limits: Limits = field(default_factory=Limits)
    read_only: bool = False
    start_token: str | None = field(default=None, repr=False)

    @property
    def loopback(self) -> bool:
        """Whether only this host can reach the service."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def audit(self) -> Path:
        """The file of orders."""
        return self.folder / "orders.jsonl"

    @property
    def tokens(self) -> Path:
        """The file of the tokens' digests."""
        return self.folder / "tokens.json"
