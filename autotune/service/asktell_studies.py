"""Ask-and-tell studies: outside programs make their runs; the service proposes configurations, and stores results."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

from pydantic import ValidationError

from autotune import studyfile
from autotune.asktell import AskTell, FinishedError
from autotune.display.status_file import running_row
from autotune.errors import AutotuneError, BusyError, StorageError
from autotune.files import replace_file
from autotune.service.problems import ProblemError
from autotune.supervision import DesiredState, NotAllowedError, Order, StateName, StudyState

_AGAIN_S = 10.0
_log = logging.getLogger(__name__)

_ALLOWED: Mapping[str, frozenset[StateName]] = {
    "pause": frozenset({StateName.OPEN, StateName.PAUSED}),
    "stop": frozenset({StateName.OPEN, StateName.PAUSED, StateName.STOPPED}),
    "resume": frozenset({StateName.PAUSED, StateName.STOPPED, StateName.FAILED}),
    "delete": frozenset({StateName.PAUSED, StateName.STOPPED, StateName.FAILED, StateName.FINISHED}),
}
# Studies in these states get a session soon: a service that was started again opens one after the other.
_TO_BE_OPENED = frozenset({StateName.OPEN, StateName.PAUSED, StateName.FAILED})


@dataclass
class _OpenStudy:
    """A study, with its session while it has one.

    Attributes:
        failure: why a study that should have a session has none.
        away: whether the session can be opened later without any change: the storage cannot be reached now, or another
            process has the study.
        again_at: when to try again.
    """

    order: Order
    session: AskTell | None = None
    failure: str = ""
    away: bool = False
    again_at: float = 0.0


class AskTellStudies:
    """The ask-and-tell studies of a service. Their orders are files, and outlive the service."""

    def __init__(self, folder: Path, url: str) -> None:
        """Find the orders in `folder`; `url` is the storage. Sessions begin with the first `tick`.

        Raises:
            StorageError: an order cannot be read.
        """
        self._folder = folder / "open"
        self._url = url
        # Of the dictionaries only. Each study has a lock of its own, since opening it may take long.
        self._lock = Lock()
        self._locks: dict[str, Lock] = {}
        self._known = {order.name: _OpenStudy(order) for order in _read_orders(self._folder)}

    def close(self) -> None:
        """Close all sessions. Results of leased runs are accepted when the studies are open again."""
        for name, opened in self._items():
            with self._lock_of(name):
                self._close_session(opened)

    def states(self) -> dict[str, StudyState]:
        """Return the states of the studies, by name."""
        return {name: _state(opened) for name, opened in self._items()}

    def submit(self, order: Order) -> StudyState:
        """Open a study for asking, or resume it.

        Raises:
            NotAllowedError: the study is open, by another order.
            AutotuneError: the study cannot be opened; its order is not kept.
        """
        with self._lock_of(order.name):
            known = self._known.get(order.name)
            if known is not None and _state(known).state is StateName.OPEN:
                if known.order.asks_the_same(order):
                    return _state(known)
                raise NotAllowedError(order.name, "another order", StateName.OPEN, _ALLOWED["resume"])
            if known is not None:
                self._close_session(known)  # a paused study has one, which holds the study's lock
            opened = _OpenStudy(order)
            self._open_session(opened)
            self._write(order)
            with self._lock:
                self._known[order.name] = opened
            return _state(opened)

    def pause(self, name: str, by: str) -> StudyState:
        """Give out no more runs; the results of leased runs are still accepted."""
        with self._lock_of(name):
            return _state(self._set_desired_state(name, DesiredState.PAUSE, "pause", by))

    def stop(self, name: str, by: str) -> StudyState:
        """Close a study. When it is open again, results of leased runs are accepted; expired ones are made again."""
        with self._lock_of(name):
            opened = self._set_desired_state(name, DesiredState.STOP, "stop", by)
            self._close_session(opened)
            return _state(opened)

    def resume(self, name: str, by: str) -> StudyState:
        """Resume a study."""
        with self._lock_of(name):
            opened = self._set_desired_state(name, DesiredState.RUN, "resume", by)
            if opened.session is not None and opened.session.ended is not None:
                self._close_session(opened)
            if opened.session is None:
                self._open_session(opened)
            return _state(opened)

    def release(self, name: str) -> None:
        """Close the session of a study that is to be deleted; `tick` opens none for a while."""
        with self._lock_of(name):
            opened = self._find_allowed(name, "delete")
            self._close_session(opened)
            opened.again_at = monotonic() + _AGAIN_S

    def forget(self, name: str) -> None:
        """Remove the order of a study; the storage keeps the study."""
        with self._lock_of(name):
            opened = self._find_allowed(name, "delete")
            self._close_session(opened)
            (self._folder / f"{name}.json").unlink(missing_ok=True)
            with self._lock:
                del self._known[name]

    def session(self, name: str, *, asks: bool) -> AskTell:
        """Return the session of a study for a client that `asks` or tells, without waiting.

        Raises:
            ProblemError: the study has none, or is paused and the client asks.
        """
        opened = self._known.get(name)
        if opened is None:
            raise ProblemError(404, f"no study {name!r} is open for asking; POST /studies opens one")
        session, state = opened.session, _state(opened)
        if session is None and state.state in _TO_BE_OPENED and (opened.away or not opened.failure):
            said = opened.failure or "it is being opened"
            raise ProblemError(503, f"study {name!r}: {said}", retry_after_s=5 if opened.failure else 1)
        if session is None or (asks and state.state is StateName.PAUSED):
            said = f": {state.message}" if state.message else ""
            raise ProblemError(409, f"study {name!r} is {state.state.value}{said}; POST /studies/{name}/resume")
        return session

    def status(self, name: str) -> Mapping[str, Any]:
        """Return the phase of a study and its leased runs; empty without a session."""
        opened = self._known.get(name)
        session = opened.session if opened is not None else None
        status = session.status if session is not None else None
        if status is None:
            return {}
        return {"phase": status.phase, "running": [running_row(run) for run in status.running], "left_s": None}

    def tick(self) -> list[str]:
        """Open the studies that should be open and are not: after a restart, or when the storage is back.

        A study that another thread opens or changes now is left for the next time. Returns no lines for the log.
        """
        for name, opened in self._items():
            lock = self._lock_of(name)
            if not lock.acquire(blocking=False):
                continue
            try:
                if self._known.get(name) is opened:
                    self._reopen(opened)
            finally:
                lock.release()
        return []

    def _reopen(self, opened: _OpenStudy) -> None:
        if opened.session is not None and isinstance(opened.session.ended, StorageError):
            opened.failure, opened.away = str(opened.session.ended), True
            self._close_session(opened)
        wanted = opened.order.wish is not DesiredState.STOP and opened.session is None
        if wanted and monotonic() >= opened.again_at:
            with suppress(AutotuneError):
                self._open_session(opened)

    def _items(self) -> list[tuple[str, _OpenStudy]]:
        with self._lock:
            return sorted(self._known.items(), key=lambda item: item[0])

    def _lock_of(self, name: str) -> Lock:
        """Return the lock that a thread holds while it opens or changes a study."""
        with self._lock:
            return self._locks.setdefault(name, Lock())

    def _open_session(self, opened: _OpenStudy) -> None:
        order = opened.order
        opened.again_at = monotonic() + _AGAIN_S
        try:
            study = studyfile.load(order.file, _overrides(order))
            opened.session = AskTell.open(study, self._url, order.name, file=order.file, say=_log_line_of(order.name))
            opened.failure = ""
        except AutotuneError as error:
            opened.failure, opened.away = str(error), isinstance(error, BusyError | StorageError)
            raise

    def _close_session(self, opened: _OpenStudy) -> None:
        session, opened.session = opened.session, None
        if session is not None:
            session.close()

    def _set_desired_state(self, name: str, wish: DesiredState, verb: str, by: str) -> _OpenStudy:
        opened = self._find_allowed(name, verb)
        opened.order = opened.order.wishing(wish, by)
        self._write(opened.order)
        return opened

    def _find_allowed(self, name: str, verb: str) -> _OpenStudy:
        opened = self._known.get(name)
        if opened is None:
            raise ProblemError(404, f"there is no study {name!r}")
        state = _state(opened).state
        if state not in _ALLOWED[verb]:
            raise NotAllowedError(name, verb, state, _ALLOWED[verb])
        return opened

    def _write(self, order: Order) -> None:
        path = self._folder / f"{order.name}.json"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, order.model_dump_json())
        except OSError as error:
            msg = f"the order of study {order.name!r} cannot be kept: {error.strerror or error}"
            raise StorageError(msg) from error


def _state(opened: _OpenStudy) -> StudyState:
    name, order = opened.order.name, opened.order
    session = opened.session  # read once: another thread may close it
    ended = session.ended if session is not None else None
    if order.wish is DesiredState.STOP:
        return StudyState(name, StateName.STOPPED, order=order)
    if isinstance(ended, FinishedError):
        return StudyState(name, StateName.FINISHED, order=order)
    if ended is not None or opened.failure:
        return StudyState(name, StateName.FAILED, str(ended or opened.failure), order)
    return StudyState(name, StateName.PAUSED if order.wish is DesiredState.PAUSE else StateName.OPEN, order=order)


def _read_orders(folder: Path) -> list[Order]:
    orders = []
    for path in sorted(folder.glob("*.json")):
        try:
            orders.append(Order.model_validate_json(path.read_text(encoding="utf-8")))
        except (OSError, ValidationError) as error:
            msg = f"the order of a study cannot be read from {path}: mend or remove the file"
            raise StorageError(msg) from error
    return orders


def _overrides(order: Order) -> list[str]:
    """Return the changes that an order makes to its study file."""
    overrides = {
        "budget.trials": order.trials,
        "budget.timeout_s": order.timeout_s,
        "budget.workers": order.workers,
        "sampler.seed": order.seed,
    }
    return [*(f"{key}={value}" for key, value in overrides.items() if value is not None), *order.changes]


def _log_line_of(name: str) -> Any:  # noqa: ANN401  a function of one text
    return lambda text: _log.info("%s: %s", name, text)
