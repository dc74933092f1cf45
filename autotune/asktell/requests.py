"""Requests of clients to an open study, each with the future of its answer."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from autotune.asktell.lease import LeasedRun, Reply
from autotune.asktell.report import RunReport

_Result = TypeVar("_Result")


@dataclass(kw_only=True)
class _Answered(Generic[_Result]):
    """A request with the future of its answer; the client may have cancelled it."""

    future: Future[_Result] = field(default_factory=Future)

    def resolve(self, answer: _Result) -> bool:
        """Answer the client; return False if it no longer waits."""
        waited_for = self.future.set_running_or_notify_cancel()
        if waited_for:
            self.future.set_result(answer)
        return waited_for

    def refuse(self, error: Exception) -> None:
        """Answer with an error; each waiting client raises a copy of it, in its own thread."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(type(error)(*error.args))


@dataclass
class AskRequest(_Answered[LeasedRun | None]):
    """A client asks for a run.

    Attributes:
        lease_s: The duration of the lease, in seconds.
        wait_until: When the client stops waiting, by the monotonic clock.
        who: The client's name.
        tried: Whether the tuner has already started all that it could for this request.
        key: The client's key, by which a repeated request gets the same run.
    """

    lease_s: float
    wait_until: float
    who: str
    tried: bool = False
    key: str = ""

    def repeats(self, who: str, key: str) -> bool:
        """Whether this repeats a request of `who` with the given key."""
        return bool(self.key) and (self.key, self.who) == (key, who)


@dataclass
class TellRequest(_Answered[Reply]):
    """A client reports on a run, and is answered once the result is stored.

    Attributes:
        lease: The lease of the run.
        report: The report.
        until: How long the report waits for the session to resume the run, by the monotonic clock.
    """

    lease: str
    report: RunReport
    until: float


@dataclass
class RenewRequest(_Answered[float]):
    """A client needs more time; the answer is the new end of its lease, in seconds since 1970."""

    lease: str
    lease_s: float


@dataclass
class CloseRequest:
    """The study is to be closed."""


Request = AskRequest | TellRequest | RenewRequest | CloseRequest
