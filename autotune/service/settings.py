"""Settings: what the operator of a service chose."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """What one client, and all together, may ask of the service.

    `body_bytes` is the longest body; `body_s` how long it may take to arrive; `rate_per_s` and `burst` are of the
    requests of one address, `refused_per_s` of those with a wrong token; `at_once` of all requests in work, `followers`
    of those who follow events, or wait for a run.
    """

    body_bytes: int = 64 * 1024
    body_s: float = 20.0
    rate_per_s: float = 200.0
    burst: int = 400
    refused_per_s: float = 2.0
    at_once: int = 128
    followers: int = 1000


@dataclass(frozen=True)
class Settings:
    """A service: where studies are kept (`url`), which may be started, and which clients may ask.

    `catalogue` is the folder of the study files that may be started, None for those that ship with autotune; `folder`
    is for the service's own files. A `read_only` one changes nothing: not the storage, and no study.
    """

    url: str
    folder: Path
    catalogue: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8642
    limits: Limits = field(default_factory=Limits)
    read_only: bool = False

    @property
    def loopback(self) -> bool:
        """Whether only this host can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def tokens(self) -> Path:
        """The file of the tokens' digests."""
        return self.folder / "tokens.json"
