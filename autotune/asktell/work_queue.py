"""The work queue: an executor whose runs other programs ask for and make.

The tuner starts a run when a client asks for one; the run ends when its result is reported. All of this happens in the
session's thread. Other threads put their requests into a queue and wait for the answers. So two threads never disagree
about a lease, and the results that several clients report at the same time are stored in one transaction. A run whose
lease ran out goes to the next client that asks; until then its result is still accepted.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from queue import Empty, SimpleQueue
from typing import Any

from autotune.asktell.errors import ClosedError, InvalidRequestError, LaterError
from autotune.asktell.lease import LeaseClock, LeasedRun, Ticket
from autotune.asktell.replies import DIGEST, LEASE, Replies, already_reported, lease_gone
from autotune.asktell.requests import AskRequest, CloseRequest, RenewRequest, Request, TellRequest
from autotune.coordination.lease_record import LeaseRecord
from autotune.errors import AutotuneError
from autotune.execution.executor import Executor
from autotune.execution.task import PREEMPTED, Task
from autotune.records.outcome import Outcome
from autotune.records.study import REPORTER, Run
from autotune.statistics.standings import Standings
from autotune.storage.leases import Lease, LeaseBook, NewLease
from objectives.base import FailureKind

# After this time in seconds, requests are handled again, even if more proposals are due.
_SLICE_S = 0.05
_CORES, _ELSEWHERE = "cores", "elsewhere"

MOST_LAPSED = 5
"""After this many lapsed leases in a row, a configuration counts as one that crashes its clients."""


@dataclass
class HandedOut:
    """A run that a client has, or that waits for a client: then it has no `ticket`."""

    task: Task
    record: Mapping[str, Any]
    ticket: Ticket | None = None


def lease_of(record: Mapping[str, Any]) -> str | None:
    """Return the lease of a run in flight; None if no client has asked for it."""
    ticket = Ticket.of(record)
    return ticket.lease if ticket is not None else None


def repeated_lease(
    request: AskRequest, record: Mapping[str, Any], ticket: Ticket | None, now: float
) -> LeasedRun | None:
    """Return a run in flight again if this request repeats the one that it was handed out for; else None."""
    if ticket is None or ticket.expires_at <= now or not request.repeats(ticket.who, ticket.key):
        return None
    return ticket.leased_run(record, ticket.expires_at - now)


def lapsed_outcome(ticket: Ticket) -> Outcome:
    """Return the outcome of a run whose lease ran out: retry it, unless too many clients have failed to end it."""
    count = ticket.lapsed + 1
    if count >= MOST_LAPSED:
        words = f"the leases of {count} clients ran out, one after the other"
        return Outcome(failure=FailureKind.TIMED_OUT, code="lapsed", message=words)
    words = f"the lease of {ticket.who or 'its client'} ran out"
    return Outcome(failure=FailureKind.INFRASTRUCTURE_ERROR, code=PREEMPTED, message=words)


@dataclass
class TicketedLeases:
    """The leases of a work queue, with the tickets of the clients.

    Attributes:
        book: The stored leases.
        take_runs: Stores the leases of runs with tickets.
        left: Gets the leases that an earlier session left.
    """

    book: LeaseBook
    take_runs: Callable[[Mapping[str, NewLease]], None]
    left: Callable[[list[Lease]], None]

    def take(self, runs: Mapping[str, NewLease]) -> None:
        """Store the leases of runs before they are handed out."""
        self.take_runs(runs)

    def note_job(self, place: str, job_id: str) -> None:
        """Store the job id of a run."""
        self.book.note_job(place, job_id)

    def release(self, place: str) -> None:
        """Remove the lease of a run, handed out or not."""
        self.book.release(place)

    def all(self) -> list[Lease]:
        """Return every lease of the study, by place."""
        leases = self.book.all()
        self.left(leases)
        return leases


@dataclass
class WorkQueue(Executor):
    """Hands out the runs of one study. Any thread may call `post`; only the session's thread calls the rest.

    Attributes:
        answers: The reported results.
        ready: Called when the queue starts to answer requests.
        clock: The clock of the leases.
    """

    answers: Replies
    ready: Callable[[], None] = lambda: None
    clock: LeaseClock = field(default_factory=LeaseClock.of_this_boot)
    _requests: SimpleQueue[Request] = field(default_factory=SimpleQueue)
    _askers: deque[AskRequest] = field(default_factory=deque)
    _out: dict[str, HandedOut] = field(default_factory=dict)
    # By place: started runs whose lease is stored and that are not handed out yet.
    _started: dict[str, tuple[Mapping[str, Any], AskRequest | None]] = field(default_factory=dict)
    _offered: dict[str, HandedOut] = field(default_factory=dict)
    # By lease: the records of an earlier session's runs that this session has not resumed yet.
    _left: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _lapsed: dict[str, int] = field(default_factory=dict)
    _early: list[TellRequest] = field(default_factory=list)
    _take: Callable[[Mapping[str, NewLease]], None] = lambda _: None
    _closing: bool = False
    # When to handle requests again; None until the first proposal is made.
    _look_at: float | None = None

    def post(self, request: Request) -> None:
        """Put a request into the queue, from any thread."""
        self._requests.put(request)

    def leases(self, book: LeaseBook) -> LeaseBook:
        """Return the leases of the study, with tickets."""
        self._take = book.take
        return TicketedLeases(book, self.take, self.expect_runs)

    def recall(self, runs: Iterable[Run], standings: Standings) -> None:
        """Load the runs that were reported before this session, and the standings."""
        self.answers.recall(runs, standings)

    def expect_runs(self, leases: Iterable[Lease]) -> None:
        """Remember an earlier session's runs, which this session will resume."""
        for lease in leases:
            if lease.job_id is not None:
                self._left[lease.job_id] = lease.record

    def end_jobs(self, job_ids: Sequence[str]) -> None:
        """Forget leases whose runs the session will not resume."""
        for lease in job_ids:
            self._left.pop(lease, None)

    def waiting(self) -> int:
        """Return the number of clients that wait for a run."""
        return len(self._askers)

    def max_in_flight(self, most: int, in_flight: int) -> int:
        """Return how many runs may be in flight: one for each waiting client, beside the `in_flight` ones."""
        del most
        self.answers.confirm_stored()
        now = time.monotonic()
        self._look_at = self._look_at or now + _SLICE_S
        if self._next_asker() is not None and now >= self._look_at:
            # Proposals take time. A client with a result must not wait for the proposals for all other clients.
            for asker in self._askers:
                asker.tried = False
            return in_flight
        return max(1, in_flight + len(self._askers))

    def max_starts(self, room: int) -> int:
        """Return how many runs to start at once: all, since one transaction stores their leases."""
        return room

    def take(self, runs: Mapping[str, NewLease]) -> None:
        """Store the leases of runs before they start, and assign them to the waiting clients in order."""
        askers = iter([asker for asker in self._askers if not asker.future.cancelled()])
        asked = {place: next(askers, None) for place in runs}
        given = {
            place: record if (asker := asked[place]) is None else self._ticket(place, asker).on(record)
            for place, (record, _) in runs.items()
        }
        self._take({place: (record, lease_of(record)) for place, record in given.items()})
        self._started.update((place, (given[place], asked[place])) for place in runs)
        served = {id(asker) for asker in asked.values()}
        self._askers = deque(asker for asker in self._askers if id(asker) not in served)

    def made_with(self, job: Mapping[str, Any], outcome: Outcome) -> Mapping[str, Any]:
        """Return the resources and the host of a run, as far as its client reported them."""
        details = outcome.details
        resources = job["resources"] | {"cores": details.get(_CORES, 1)}
        return {"resources": resources | {"hosts": [details.get(REPORTER) or _ELSEWHERE]}}

    # The executor.

    def submit(self, task: Task) -> None:
        """Hand a run to the client that asked for it, or to the next one; a client that has the run keeps it."""
        if task.job_id is not None:
            record = self._left.pop(task.job_id)
            self._out[task.job_id] = HandedOut(task, record, self.clock.read(Ticket.of(record)))
            return
        record, asker = self._started.pop(task.job.name)
        if asker is None:
            self._offered[task.job.name] = HandedOut(task, record)
        else:
            self._hand_out(HandedOut(task, record, self.clock.read(Ticket.of(record))), asker)

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        """Answer requests for at most `timeout_s` seconds; return runs that were reported or whose leases ran out.

        Raises:
            ClosedError: The study was closed.
        """
        self.answers.confirm_stored()
        self.ready()
        self._look_at = None
        if self._closing:
            msg = "the study was closed: report runs in flight when it is open again"
            raise ClosedError(msg)
        until = time.monotonic() + timeout_s
        ended = self._end_early_reports()
        while True:
            self._receive(0.0 if ended else self._patience_s(until), ended)
            self._serve_offered()
            ended += self._expire_leases()
            if ended or self._closing or not all(asker.tried for asker in self._askers):
                for asker in self._askers:
                    asker.tried = True
                return ended
            self._answer_overdue_asks()
            if time.monotonic() >= until:
                return ended

    def why_waits(self, run: str) -> str:
        """Return that no client has the run yet; empty if one makes it."""
        return "no program has asked for it yet" if run in self._offered else ""

    def cancel_all(self) -> None:
        """Forget all runs without reporting them."""
        self.leave()

    def leave(self) -> None:
        """Forget all runs; the next session accepts their results. A client that was about to get one keeps waiting."""
        self._askers.extend(asker for _, asker in self._started.values() if asker is not None)
        for known in (self._out, self._offered, self._started, self._left):
            known.clear()

    # After the session.

    def end(self, error: Exception, *, stored: bool) -> None:
        """Refuse all waiting requests with `error`; `stored` says whether the last results are surely stored."""
        if stored:
            self.answers.confirm_stored()
        else:
            self.answers.refuse_unstored(error)
        waiting: list[AskRequest | TellRequest] = [*self._early, *self._askers]
        for request in waiting:
            request.refuse(error)
        self._early.clear()
        self._askers.clear()

    def serve_ended(self, error: Exception, *, finished: bool) -> None:
        """Answer requests after the end of the session, until the study is closed."""
        while not self._closing:
            self._answer_without_session(self._requests.get(), error, finished=finished)

    def drain(self, error: Exception) -> None:
        """Refuse all requests in the queue."""
        with suppress(Empty):
            while True:
                self._answer_without_session(self._requests.get_nowait(), error, finished=False)

    def _answer_without_session(self, request: Request, error: Exception, *, finished: bool) -> None:
        if isinstance(request, CloseRequest):
            self._closing = True
        elif isinstance(request, TellRequest) and request.lease in self.answers:
            self.answers.repeat(request)
        elif isinstance(request, AskRequest) or not finished:
            request.refuse(error)
        else:
            request.refuse(lease_gone(request.lease))

    # Requests.

    def _patience_s(self, until: float) -> float:
        """Return how long to wait for the next request, in seconds."""
        nearest = min((asker.wait_until for asker in self._askers), default=inf)
        fresh = any(not asker.tried for asker in self._askers)
        return 0.0 if fresh else max(0.0, min(until, nearest) - time.monotonic())

    def _receive(self, timeout_s: float, ended: list[tuple[Task, Outcome]]) -> None:
        """Wait for a request, then handle all that are in the queue."""
        with suppress(Empty):
            request = self._requests.get(timeout=timeout_s) if timeout_s > 0.0 else self._requests.get_nowait()
            while True:
                try:
                    ended += self._handle(request)
                except Exception as error:
                    # The error ends the session; the client must not wait for ever.
                    if not isinstance(request, CloseRequest) and not request.future.done():
                        request.refuse(error if isinstance(error, AutotuneError) else RuntimeError(repr(error)))
                    raise
                request = self._requests.get_nowait()

    def _handle(self, request: Request) -> list[tuple[Task, Outcome]]:
        """Handle a request; return the run that it ended, if any."""
        match request:
            case AskRequest():
                self._ask(request)
            case TellRequest():
                return self._tell(request)
            case RenewRequest():
                self._renew(request)
            case CloseRequest():
                self._closing = True
        return []

    def _ask(self, request: AskRequest) -> None:
        """Let a client wait for a run, unless it repeats the request that got it one."""
        for asker in [asker for asker in self._askers if request.repeats(asker.who, asker.key)]:
            self._askers.remove(asker)
            asker.resolve(None)
        leased = self._earlier_lease(request) if request.key else None
        if leased is None:
            self._askers.append(request)
        else:
            request.resolve(leased)

    def _earlier_lease(self, request: AskRequest) -> LeasedRun | None:
        out = [(known.record, known.ticket) for known in self._out.values()]
        left = [(record, self.clock.read(Ticket.of(record))) for record in self._left.values()]
        now = self.clock()
        again = (repeated_lease(request, record, ticket, now) for record, ticket in (*out, *left))
        return next(filter(None, again), None)

    def _tell(self, request: TellRequest) -> list[tuple[Task, Outcome]]:
        """Handle a report; return the run if the report ends it."""
        lease = request.lease
        if lease in self.answers:
            self.answers.repeat(request)
            return []
        if lease in self._left:
            self._early.append(request)
            return []
        out = self._out.get(lease)
        if out is None or out.ticket is None:
            request.refuse(lease_gone(lease))
            return []
        try:
            outcome = self._outcome(request, out, out.ticket)
        except InvalidRequestError as error:
            request.refuse(error)
            return []
        del self._out[lease]
        self._lapsed.pop(out.task.job.name, None)
        self.answers.note(request, out.record["purpose"]["trial"])
        return [(out.task, outcome)]

    def _outcome(self, request: TellRequest, out: HandedOut, ticket: Ticket) -> Outcome:
        purpose, standings = LeaseRecord.from_dict(out.record).purpose, self.answers.now
        default = standings.default if standings is not None else None
        cappable = purpose.series.is_tuning and purpose.trial != (default.number if default is not None else 0)
        report = request.report
        outcome = report.outcome(out.task.objective, self.clock() - ticket.asked_at, cappable=cappable)  # type: ignore[arg-type]
        facts = {LEASE: ticket.lease, DIGEST: report.digest, REPORTER: ticket.who, _CORES: report.cores}
        return replace(outcome, details=facts, attempts=out.task.attempt)

    def _end_early_reports(self) -> list[tuple[Task, Outcome]]:
        """Return resumed runs whose results were reported before the session resumed them."""
        early, self._early = self._early, []
        ended = [run for request in early for run in self._tell(request)]
        now = time.monotonic()
        for request in [request for request in self._early if now >= request.until]:
            self._early.remove(request)
            request.refuse(
                LaterError("the study has not resumed the run of this lease yet: report it again in a moment")
            )
        return ended

    def _renew(self, request: RenewRequest) -> None:
        lease, out = request.lease, self._out.get(request.lease)
        record = out.record if out is not None else self._left.get(lease)
        ticket = self.clock.read(Ticket.of(record)) if record is not None else None
        if record is None or ticket is None:
            request.refuse(already_reported(lease) if lease in self.answers else lease_gone(lease))
            return
        ticket = replace(ticket, expires_at=self.clock() + request.lease_s)
        record = ticket.on(record)
        self._take({record["name"]: (record, ticket.lease)})
        if out is not None:
            out.record, out.ticket = record, ticket
        else:
            self._left[lease] = record
        request.resolve(ticket.expires_at)

    # The clients that ask.

    def _next_asker(self) -> AskRequest | None:
        """Return the first request whose client still waits; it stays first until it has a lease."""
        self._askers = deque(asker for asker in self._askers if not asker.future.cancelled())
        return self._askers[0] if self._askers else None

    def _ticket(self, place: str, asker: AskRequest) -> Ticket:
        return self.clock.ticket(asker.who, asker.lease_s, self._lapsed.get(place, 0), asker.key)

    def _hand_out(self, out: HandedOut, asker: AskRequest) -> None:
        assert out.ticket is not None
        if not asker.resolve(out.ticket.leased_run(out.record, asker.lease_s)):
            # The client has left meanwhile, so the next one gets the run.
            out.ticket = replace(out.ticket, expires_at=-inf)
        self._out[out.ticket.lease] = out

    def _serve_offered(self) -> None:
        """Hand the offered runs to waiting clients."""
        for place, out in list(self._offered.items()):
            asker = self._next_asker()
            if asker is None:
                return
            ticket = self._ticket(place, asker)
            record = ticket.on(out.record)
            self._take({place: (record, ticket.lease)})
            self._askers.popleft()
            del self._offered[place]
            self._hand_out(HandedOut(out.task, record, ticket), asker)

    def _expire_leases(self) -> list[tuple[Task, Outcome]]:
        """Return runs whose leases ran out, at most one for each waiting client."""
        now = self.clock()
        over = sorted(
            (out.ticket.expires_at, lease)
            for lease, out in self._out.items()
            if out.ticket is not None and out.ticket.expires_at <= now
        )
        return [self._lapse(self._out.pop(lease)) for _, lease in over[: len(self._askers)]]

    def _lapse(self, out: HandedOut) -> tuple[Task, Outcome]:
        assert out.ticket is not None
        self._lapsed[out.task.job.name] = out.ticket.lapsed + 1
        return out.task, lapsed_outcome(out.ticket)

    def _answer_overdue_asks(self) -> None:
        """Answer None to clients whose waiting time is over."""
        now = time.monotonic()
        for asker in [asker for asker in self._askers if asker.wait_until <= now]:
            self._askers.remove(asker)
            asker.resolve(None)
