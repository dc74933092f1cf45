"""Requests: what others want of an open study, each with the place where its answer comes to lie."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from autotune.asktell.lease import LeasedRun, Reply
from autotune.asktell.report import RunReport

_Result = TypeVar("_Result")


@dataclass(kw_only=True)
class _Answered(Generic[_Result]):
    """Gets an answer, unless the client that waits for it has gone."""

    future: Future[_Result] = field(default_factory=Future)

    def resolve(self, answer: _Result) -> bool:
        """Answer; False if nobody waits any more."""
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
    """Somebody asks for a run, and waits for one until `wait_until`, by the monotonic clock.

    It is `tried` when all that could be started for it was.
    """

    lease_s: float
    wait_until: float
    who: str
    tried: bool = False


@dataclass
class TellRequest(_Answered[Reply]):
    """Somebody tells what came of a run; it is answered once that is stored, and refused `until` then."""

    lease: str
    told: RunReport
    until: float


@dataclass
class RenewRequest(_Answered[float]):
    """Somebody needs longer; answered is when the lease then runs out, in seconds since 1970."""

    lease: str
    lease_s: float


@dataclass
class CloseRequest:
    """The study is to be closed."""


Request = AskRequest | TellRequest | RenewRequest | CloseRequest
