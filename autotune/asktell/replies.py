"""Replies: the result that each lease has, and the clients that wait until it is stored."""

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
    """The reports so far; a repeated report gets the same reply. `standings` returns how the trials stand, if known."""

    standings: Callable[[], Standings | None]
    _before: Standings | None = None
    _told: dict[str, tuple[str, int]] = field(default_factory=dict)
    _storing: set[str] = field(default_factory=set)
    _waiting: list[TellRequest] = field(default_factory=list)

    def __contains__(self, lease: str) -> bool:
        """Whether the result of a lease was told."""
        return lease in self._told

    @property
    def now(self) -> Standings | None:
        """How the trials stand now, or stood before this session."""
        return self.standings() or self._before

    def recall(self, runs: Iterable[Run], standings: Standings) -> None:
        """Take note of the stored runs, and of how the trials stand."""
        self._before = standings
        for run in runs:
            details = run.outcome.details
            if LEASE in details:
                self._told[details[LEASE]] = details[DIGEST], -1 if run.trial is None else run.trial

    def note(self, request: TellRequest, trial: int) -> None:
        """Take note of a report on a run of `trial`; it is answered once it is stored."""
        self._told[request.lease] = request.told.digest, trial
        self._storing.add(request.lease)
        self._waiting.append(request)

    def repeat(self, request: TellRequest) -> None:
        """Answer a report that was told before; refuse a different one for the same lease."""
        digest, trial = self._told[request.lease]
        if digest != request.told.digest:
            msg = f"lease {request.lease} has another result already: the first result counts"
            request.refuse(LeaseConflictError(msg))
        elif request.lease in self._storing:
            self._waiting.append(request)
        else:
            request.resolve(self._answer(trial))

    def confirm_stored(self) -> None:
        """Answer the waiting reports: they are stored by now."""
        waiting, self._waiting = self._waiting, []
        self._storing.clear()
        for request in waiting:
            request.resolve(self._answer(self._told[request.lease][1]))

    def refuse_unstored(self, error: Exception) -> None:
        """Refuse the waiting reports with an error: whether they are stored is unknown."""
        for lease in self._storing:
            del self._told[lease]
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
    """Return what is said of a lease that nobody knows."""
    msg = f"lease {lease} is not known: it ran out and somebody else has the run, or it is of another study; ask again"
    return LeaseGoneError(msg)


def already_reported(lease: str) -> LeaseConflictError:
    """Return what is said of a lease that is to be renewed after its run was told."""
    return LeaseConflictError(f"lease {lease} was told already: there is nothing to renew")
