"""AskTell: an open study whose runs other programs ask for and make."""

import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Self

from autotune.asktell.errors import ClosedError, FinishedError, InvalidRequestError
from autotune.asktell.lease import LeaseClock, LeasedRun, Reply
from autotune.asktell.replies import Replies
from autotune.asktell.report import RunReport
from autotune.asktell.requests import AskRequest, CloseRequest, RenewRequest, Request, TellRequest
from autotune.asktell.work_queue import WorkQueue
from autotune.coordination.session_settings import SessionSettings
from autotune.display.console import Status
from autotune.errors import AutotuneError, CannotRunHereError, NothingWorkedError, StorageError
from autotune.held_folders import temporary_folder
from autotune.locks import IfHeld
from autotune.machines.this_machine import this_machine
from autotune.statistics.standings import Standings
from autotune.studyfile import StudyFile
from launchers.local import local_launcher

LEASE_S = 600.0
"""The default duration of a lease, in seconds."""

_LONGEST_S = 30 * 24 * 3600.0
_LONGEST_WAIT_S = 3600.0
_LONGEST_WHO = 200
# How long a report waits for a new session to resume its run, in seconds.
_PATIENCE_S = 20.0

# A session that ends with one of these errors has stored all results.
_AFTER_STORING = (FinishedError, ClosedError, NothingWorkedError, CannotRunHereError)


class AskTell:
    """An open study. Any thread may ask for runs and report their results.

    The search is that of `autotune study`. First it repeats the default configuration alone until the noise is known.
    Then come new configurations, and repeats that can change a decision. At the end come the pairs of runs that compare
    the winner with the default. The clients decide how many runs are in flight.
    """

    def __init__(self, study: StudyFile, settings: SessionSettings, queue: WorkQueue, window: "_StatusView") -> None:
        """Start the session in a thread of its own; use `open`."""
        self._study, self._settings, self._queue, self._window = study, settings, queue, window
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._over = False
        self._ending: Exception | None = None
        queue.ready = self._ready.set
        self._thread = threading.Thread(target=self._work, name=f"asktell {settings.name}", daemon=True)

    @classmethod
    def open(  # noqa: PLR0913  by keyword
        cls,
        study: StudyFile,
        url: str,
        name: str | None = None,
        *,
        file: Path | None = None,
        if_held: IfHeld = IfHeld.LEAVE,
        say: Callable[[str], None] = lambda _: None,
        clock: LeaseClock | None = None,
    ) -> Self:
        """Open a study; create it if it is missing. Runs that were handed out before stay handed out.

        Args:
            study: The study file.
            url: The address of the storage.
            name: The study's name in the storage; the study file's name if None.
            file: The path of the study file.
            if_held: What to do if another process has the study open.
            say: Gets a line for each event.
            clock: The clock of leases; if None, one that changes of the wall clock do not affect.

        Raises:
            AutotuneError: The study file is wrong or its runs are not made by another program, the storage cannot be
                used, or another process has the study open.
        """
        window = _StatusView(say)
        queue = WorkQueue(answers=Replies(lambda: window.standings))
        if clock is not None:
            queue.clock = clock
        # Warm-up runs would be useless: which client makes the next run is unknown.
        repeats = study.repeats.model_copy(update={"warm_up_runs": 0})
        runs = Path(tempfile.gettempdir())
        settings = SessionSettings(
            url, name or study.name, runs, this_machine(), local_launcher(), file, if_held=if_held, external=queue
        )
        opened = cls(study.model_copy(update={"repeats": repeats}), settings, queue, window)
        opened._start()
        return opened

    def ask(self, lease_s: float = LEASE_S, *, wait_s: float = 0.0, who: str = "", key: str = "") -> LeasedRun | None:
        """Return a run to make; None if there was nothing to do for `wait_s` seconds.

        Args:
            lease_s: The time to report on the run, in seconds; later another client may get it.
            wait_s: How long to wait for a run, in seconds.
            who: The client's name, stored with the run.
            key: The client's key of this request. If the answer is lost, asking again with the same key returns the
                same run, while its lease lasts.

        Raises:
            FinishedError: There is nothing more to do.
            AutotuneError: The study cannot continue: nothing works, or its storage cannot be used.
        """
        return self.ask_future(lease_s, wait_s=wait_s, who=who, key=key).result()

    def ask_future(
        self, lease_s: float = LEASE_S, *, wait_s: float = 0.0, who: str = "", key: str = ""
    ) -> Future[LeasedRun | None]:
        """Ask for a run; return the future of the answer."""
        _check_lease(lease_s)
        if not 0.0 <= wait_s <= _LONGEST_WAIT_S:
            msg = f"wait_s is {wait_s!r}: it must be a time from 0 to {_LONGEST_WAIT_S:g} s"
            raise InvalidRequestError(msg)
        if len(key) > _LONGEST_WHO:
            msg = f"key has {len(key)} characters: at most {_LONGEST_WHO} are allowed"
            raise InvalidRequestError(msg)
        request = AskRequest(lease_s, time.monotonic() + wait_s, who[:_LONGEST_WHO], key=key)
        self._post(request)
        return request.future

    def tell(self, lease: str, report: RunReport) -> Reply:
        """Report the result of a run; return when it is stored. Repeating a report returns the same reply.

        Raises:
            InvalidRequestError: The report is not valid; the lease continues.
            LeaseConflictError: The lease has another result already.
            LeaseGoneError: The lease ran out, and another client got the run.
            AutotuneError: The study cannot continue; report again when it is open.
        """
        return self.tell_future(lease, report).result()

    def tell_future(self, lease: str, report: RunReport) -> Future[Reply]:
        """Report a result; return the future of the reply."""
        request = TellRequest(lease, report, time.monotonic() + _PATIENCE_S)
        self._post(request)
        return request.future

    def renew(self, lease: str, lease_s: float = LEASE_S) -> float:
        """Extend a lease to `lease_s` seconds from now; return its new end, in seconds since 1970.

        Raises:
            LeaseConflictError: The result of the run was reported already.
            LeaseGoneError: The lease ran out, and another client got the run.
        """
        _check_lease(lease_s)
        request = RenewRequest(lease, lease_s)
        self._post(request)
        return request.future.result()

    def close(self) -> None:
        """Close the study. Reported results are stored; runs in flight can be reported when it is open again."""
        with self._lock:
            closing = not self._over
        if closing:
            self._queue.post(CloseRequest())
        self._thread.join()

    @property
    def ended(self) -> Exception | None:
        """The error that ended the study, `FinishedError` if it is finished; None while it is open."""
        return self._ending

    @property
    def status(self) -> Status | None:
        """The newest status of the study; None before its first run."""
        return self._window.status

    def __enter__(self) -> Self:
        """Use the study in a context, which closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the study."""
        self.close()

    def _start(self) -> None:
        self._thread.start()
        self._ready.wait()
        if self._ending is not None and not isinstance(self._ending, FinishedError):
            error = self._ending
            self.close()
            raise error

    def _post(self, request: Request) -> None:
        with self._lock:
            if self._over:
                raise _closed_error()
            self._queue.post(request)

    def _work(self) -> None:
        """Run the session, then answer requests with its end until the study is closed."""
        ending = self._session()
        finished, closed = isinstance(ending, FinishedError), isinstance(ending, ClosedError)
        self._ending = None if closed else ending
        self._queue.end(ending, stored=isinstance(ending, _AFTER_STORING))
        self._ready.set()
        if not closed:
            self._queue.serve_ended(ending, finished=finished)
        with self._lock:
            self._over = True
        self._queue.drain(_closed_error())

    def _session(self) -> Exception:
        """Run the session to its end; return the error that ended it."""
        # Imported here, since Optuna takes a second to import and earlier errors should appear at once.
        from autotune.tuning.session import run_study  # noqa: PLC0415

        try:
            # The runs have no folders, but the session looks for old ones in the folder of runs.
            with temporary_folder("asktell") as runs:
                run_study(self._study, replace(self._settings, runs=runs), self._window)
        except AutotuneError as error:
            return error
        except OSError as error:
            return StorageError(str(error))
        except Exception as error:  # noqa: BLE001  after any error, clients must not wait for ever
            return RuntimeError(f"the study stopped by an internal error: {type(error).__name__}: {error}")
        return FinishedError(f"study {self._settings.name!r} is finished: there is nothing more to ask for")


class _StatusView:
    """The display of a session: keeps its newest status, and passes its lines on."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.status: Status | None = None
        self.line = say

    @property
    def standings(self) -> Standings | None:
        """The newest standings; None before the first status."""
        return self.status.standings if self.status is not None else None

    def detail(self, text: str) -> None:
        """Drop the line: the client that made a run knows how it ended."""

    def update(self, status: Status) -> None:
        """Keep a status."""
        self.status = status

    def waits(self, text: str) -> None:
        """Pass on a message about waiting."""
        self.line(text)

    def close(self) -> None:
        """Do nothing."""


def _closed_error() -> ClosedError:
    return ClosedError("the study was closed: report runs in flight when it is open again")


def _check_lease(lease_s: float) -> None:
    if not (isfinite(lease_s) and 0.0 < lease_s <= _LONGEST_S):
        msg = f"lease_s is {lease_s!r}: it must be a time above 0 and up to {_LONGEST_S:g} s"
        raise InvalidRequestError(msg)
