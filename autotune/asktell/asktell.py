"""AskTell: one open study; other programs ask for its runs and make them."""

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
"""How long a lease is unless told otherwise."""

_LONGEST_S = 30 * 24 * 3600.0
_LONGEST_WAIT_S = 3600.0
_LONGEST_WHO = 200
# How long a result waits for a session that has just begun and is not yet at its run.
_PATIENCE_S = 20.0

# A session that ends by one of these has stored all results.
_AFTER_STORING = (FinishedError, ClosedError, NothingWorkedError, CannotRunHereError)


class AskTell:
    """One study that is open: any thread may ask for runs, and tell what came of them.

    The search is that of `autotune study`: the default configuration first and alone, as often as it takes to know the
    noise; then new configurations, repeats where they can change a decision, and at the end the pairs of runs that
    compare the winner with the default. The clients decide how many runs are in flight.
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
        """Open a study for asking, and make it if it is not in the storage at `url`.

        `name` is what it is called there, if not as in the study file, which was read from `file`. `say` is given a
        line for everything that happens. Leases go by `clock`: unless given, one that nobody can set. What was out when
        the study was last open is still out.

        Raises:
            AutotuneError: the study file is wrong or not about runs that another program makes, the storage cannot be
                used, or another process has the study open.
        """
        window = _StatusView(say)
        queue = WorkQueue(answers=Replies(lambda: window.standings))
        if clock is not None:
            queue.clock = clock
        # A run warms up whatever makes it, which is not known here.
        repeats = study.repeats.model_copy(update={"warm_up_runs": 0})
        runs = Path(tempfile.gettempdir())
        settings = SessionSettings(
            url, name or study.name, runs, this_machine(), local_launcher(), file, if_held=if_held, external=queue
        )
        opened = cls(study.model_copy(update={"repeats": repeats}), settings, queue, window)
        opened._start()
        return opened

    def ask(self, lease_s: float = LEASE_S, *, wait_s: float = 0.0, who: str = "", key: str = "") -> LeasedRun | None:
        """Return a run to be made; None if there is nothing to do now, and was nothing for `wait_s` seconds.

        Report on it within `lease_s` seconds, else another client may get it. `who` is stored with the run. Who has not
        heard the answer asks again with the same `key`, and gets the same run as long as that is out.

        Raises:
            FinishedError: there is nothing more to do.
            AutotuneError: the study cannot go on: nothing works, or its storage cannot be used.
        """
        return self.ask_future(lease_s, wait_s=wait_s, who=who, key=key).result()

    def ask_future(
        self, lease_s: float = LEASE_S, *, wait_s: float = 0.0, who: str = "", key: str = ""
    ) -> Future[LeasedRun | None]:
        """Ask without waiting for the answer."""
        _check_duration("lease_s", lease_s, _LONGEST_S)
        if not 0.0 <= wait_s <= _LONGEST_WAIT_S:
            msg = f"wait_s is {wait_s!r}: it is a time from 0 to {_LONGEST_WAIT_S:g} s"
            raise InvalidRequestError(msg)
        if len(key) > _LONGEST_WHO:
            msg = f"key has {len(key)} characters: at most {_LONGEST_WHO} are allowed"
            raise InvalidRequestError(msg)
        request = AskRequest(lease_s, time.monotonic() + wait_s, who[:_LONGEST_WHO], key=key)
        self._post(request)
        return request.future

    def tell(self, lease: str, told: RunReport) -> Reply:
        """Store the result of a run before returning. Telling the same result again returns the same reply.

        Raises:
            InvalidRequestError: it is not valid; the lease goes on.
            LeaseConflictError: something else was told before.
            LeaseGoneError: the lease ran out, and the run was given to somebody else.
            AutotuneError: the study cannot go on; tell it again when it does.
        """
        return self.tell_future(lease, told).result()

    def tell_future(self, lease: str, told: RunReport) -> Future[Reply]:
        """Tell without waiting for the answer."""
        request = TellRequest(lease, told, time.monotonic() + _PATIENCE_S)
        self._post(request)
        return request.future

    def renew(self, lease: str, lease_s: float = LEASE_S) -> float:
        """Keep a run for another `lease_s` seconds from now; return when that is over, in seconds since 1970.

        Raises:
            LeaseConflictError: the run was told already.
            LeaseGoneError: the lease ran out, and the run was given to somebody else.
        """
        _check_duration("lease_s", lease_s, _LONGEST_S)
        request = RenewRequest(lease, lease_s)
        self._post(request)
        return request.future.result()

    def close(self) -> None:
        """Let the study go. What is out can be told when it is open again; what was told is stored."""
        with self._lock:
            closing = not self._over
        if closing:
            self._queue.post(CloseRequest())
        self._thread.join()

    @property
    def ended(self) -> Exception | None:
        """Why there is nothing to ask for: `FinishedError`, or what keeps the study from going on; None: it is open."""
        return self._ending

    @property
    def status(self) -> Status | None:
        """How the study stood when last something happened; None before its first run."""
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
                raise _closed()
            self._queue.post(request)

    def _work(self) -> None:
        """Run the session, then answer that it is over until the study is closed."""
        ending = self._session()
        finished, closed = isinstance(ending, FinishedError), isinstance(ending, ClosedError)
        self._ending = None if closed else ending
        self._queue.end(ending, stored=isinstance(ending, _AFTER_STORING))
        self._ready.set()
        if not closed:
            self._queue.serve_ended(ending, finished=finished)
        with self._lock:
            self._over = True
        self._queue.drain(_closed())

    def _session(self) -> Exception:
        """Run the session to its end; return why it ended."""
        # Optuna takes a second to import: errors before it are reported at once.
        from autotune.tuning.session import run_study  # noqa: PLC0415

        try:
            # No run has a folder; what an earlier session left is looked for where those of this one would be.
            with temporary_folder("asktell") as runs:
                run_study(self._study, replace(self._settings, runs=runs), self._window)
        except AutotuneError as error:
            return error
        except OSError as error:
            return StorageError(str(error))
        except Exception as error:  # noqa: BLE001  clients must not wait for ever, whatever the error
            return RuntimeError(f"the study stopped by an error of its own: {type(error).__name__}: {error}")
        return FinishedError(f"study {self._settings.name!r} is finished: there is nothing more to ask for")


class _StatusView:
    """Keeps the newest status of a study."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.status: Status | None = None
        self.line = say

    @property
    def standings(self) -> Standings | None:
        """How the trials stand."""
        return self.status.standings if self.status is not None else None

    def update(self, status: Status) -> None:
        """Take note of how things are."""
        self.status = status

    def waits(self, text: str) -> None:
        """Pass on what the session waits for."""
        self.line(text)

    def close(self) -> None:
        """Do nothing."""


def _closed() -> ClosedError:
    return ClosedError("the study was closed: what is out can be told when it is open again")


def _check_duration(name: str, value: float, most: float) -> None:
    if not (isfinite(value) and 0.0 < value <= most):
        msg = f"{name} is {value!r}: it is a time above 0 and up to {most:g} s"
        raise InvalidRequestError(msg)
