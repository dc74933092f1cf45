"""Requests of clients to an open study, each with the future of its answer."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from autotune.asktell.lease import LeasedRun, Reply
from autotune.asktell.report import RunReport

_Result = TypeVar("_Result")


@dataclass(kw_only=True)
class _Answered(Generic[_Result]):
    """A request that is answered, unless its client has gone."""

    future: Future[_Result] = field(default_factory=Future)

    def resolve(self, answer: _Result) -> bool:
        """Answer; False if the client no longer waits."""
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
    """A client asks for a run, and waits until `wait_until`, by the monotonic clock.

    It is `tried` when all that could be started for it was. With a `key` it may be one that was made before.
    """

    lease_s: float
    wait_until: float
    who: str
    tried: bool = False
    key: str = ""

    def repeats(self, who: str, key: str) -> bool:
        """Whether it is the same request as one of `who` with this key."""
        return bool(self.key) and (self.key, self.who) == (key, who)


@dataclass
class TellRequest(_Answered[Reply]):
    """A client reports on a run, and is answered once the result is stored.

    A report on a run that the session has not come to yet waits `until` then, by the monotonic clock.
    """

    lease: str
    told: RunReport
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
