"""Replies: the reported result of each lease, and the clients that wait until their results are stored."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from autotune.asktell.errors import LeaseConflictError, LeaseGoneError
from autotune.asktell.lease import Reply
from autotune.asktell.requests import TellRequest
from autotune.records.study import Run, State
from autotune.statistics.standings import Standings

LEASE, DIGEST = "lease", "digest"
"""The details of a run's outcome that hold its lease, and the digest of its report."""


@dataclass
class Replies:
    """The reports so far; a repeated report gets the same reply. `standings` returns the newest standings."""

    standings: Callable[[], Standings | None]
    _before: Standings | None = None
    _reported: dict[str, tuple[str, int]] = field(default_factory=dict)
    _storing: set[str] = field(default_factory=set)
    _waiting: list[TellRequest] = field(default_factory=list)

    def __contains__(self, lease: str) -> bool:
        """Whether the result of a lease was reported."""
        return lease in self._reported

    @property
    def now(self) -> Standings | None:
        """The newest standings, or those before this session."""
        return self.standings() or self._before

    def recall(self, runs: Iterable[Run], standings: Standings) -> None:
        """Load the reports of stored runs, and the standings before this session."""
        self._before = standings
        for run in runs:
            details = run.outcome.details
            if LEASE in details:
                self._reported[details[LEASE]] = details[DIGEST], -1 if run.trial is None else run.trial

    def note(self, request: TellRequest, trial: int) -> None:
        """Add a report on a run of `trial`, to be answered once it is stored."""
        self._reported[request.lease] = request.report.digest, trial
        self._storing.add(request.lease)
        self._waiting.append(request)

    def repeat(self, request: TellRequest) -> None:
        """Answer a repeated report; refuse a different one for the same lease."""
        digest, trial = self._reported[request.lease]
        if digest != request.report.digest:
            msg = f"lease {request.lease} has another result already: the first result counts"
            request.refuse(LeaseConflictError(msg))
        elif request.lease in self._storing:
            self._waiting.append(request)
        else:
            request.resolve(self._answer(trial))

    def confirm_stored(self) -> None:
        """Answer the waiting reports, which are stored now."""
        waiting, self._waiting = self._waiting, []
        self._storing.clear()
        for request in waiting:
            request.resolve(self._answer(self._reported[request.lease][1]))

    def refuse_unstored(self, error: Exception) -> None:
        """Refuse the waiting reports with an error; they may or may not be stored."""
        for lease in self._storing:
            del self._reported[lease]
        self._storing.clear()
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            request.refuse(error)

    def _answer(self, number: int) -> Reply:
        standings = self.now
        trial = standings.trials.get(number) if standings is not None else None
        best = standings.incumbent if standings is not None else None
        state = trial.state if trial is not None else State.RUNNING
        return Reply(number, state.value, best is not None and best.number == number)


def lease_gone(lease: str) -> LeaseGoneError:
    """Return the error for an unknown lease."""
    msg = f"lease {lease} is not known: it ran out and another client has the run, or it is of another study; ask again"
    return LeaseGoneError(msg)


def already_reported(lease: str) -> LeaseConflictError:
    """Return the error for renewing a lease whose result was reported."""
    return LeaseConflictError(f"the result of lease {lease} was reported already: there is nothing to renew")
