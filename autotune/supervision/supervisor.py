"""The supervisor carries out orders, even after it or the studies were killed."""

import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from autotune.errors import BusyError, StorageError
from autotune.files import discard, sweep_discarded
from autotune.locks import HeldError, LockFile
from autotune.studyfile import NAME
from autotune.supervision.desired_state import DesiredState, Order
from autotune.supervision.observed_state import StudyView, SupervisorMemory, observe, state_and_message
from autotune.supervision.problems import BrokenOrderError, NameTakenError, NotAllowedError, UnknownStudyError
from autotune.supervision.reconcile import Action, StateName
from autotune.supervision.shim import limit_log, lives
from autotune.supervision.spawn import Starter, StartError, send
from autotune.supervision.study_folder import StudyFolder

ALLOWED: Mapping[str, frozenset[StateName]] = {
    "pause": frozenset({StateName.RUNNING, StateName.WAITING, StateName.PAUSING}),
    "stop": frozenset({StateName.RUNNING, StateName.WAITING, StateName.PAUSING, StateName.STOPPING}),
    "resume": frozenset({StateName.PAUSED, StateName.STOPPED, StateName.FAILED}),
    "delete": frozenset({StateName.PAUSED, StateName.STOPPED, StateName.FAILED, StateName.FINISHED}),
}
"""The states that allow an action, by the verb of the action."""

_LOCK = "service.lock"
_ACTIVE = frozenset({StateName.RUNNING, StateName.WAITING, StateName.PAUSING, StateName.STOPPING})


@dataclass(frozen=True)
class StudyState:
    """The state of a study.

    Attributes:
        name: Its name.
        state: Its state; "failed" if its order cannot be read.
        message: Details that the state leaves out: why it failed, or what it waits for.
        order: Its order; None if that cannot be read.
    """

    name: str
    state: StateName
    message: str = ""
    order: Order | None = None


@dataclass(frozen=True)
class SupervisorSettings:
    """The limits and the clock of a supervisor.

    Attributes:
        pause_s: Seconds before a study that died is started again; doubled with each death, up to a minute.
        log_bytes: Size limit of each of the two parts of a log.
        clock: A monotonic clock, in seconds.
    """

    pause_s: float = 1.0
    log_bytes: int = 10 * 2**20
    clock: Callable[[], float] = time.monotonic


class StudySupervisor:
    """Supervises the studies of one service folder; thread-safe.

    The methods that change a study also act at once; `tick` does the rest.
    """

    def __init__(
        self, folder: Path, url: str, *, cwd: Path | None = None, settings: SupervisorSettings | None = None
    ) -> None:
        """Lock the service folder, and create it if it is missing. Nothing is started before the first `tick`.

        Args:
            folder: The service folder.
            url: The storage of its studies.
            cwd: The folder in which studies run, and keep their state if the storage is not a file; by default the
                current one.
            settings: The limits and the clock.

        Raises:
            BusyError: Another supervisor has the folder; the message names it.
            StorageError: The folder cannot be used.
        """
        self._settings = settings or SupervisorSettings()
        self._folder = _prepare_folder(folder)
        self._lock_file: LockFile | None = _lock_folder(self._folder)
        sweep_discarded(self._folder / "studies")
        self._starter = Starter(url, (cwd or Path.cwd()).resolve(), self._settings.log_bytes)
        self._memories: dict[str, SupervisorMemory] = {}
        self._lock = threading.RLock()

    def close(self) -> None:
        """Unlock the folder; the studies continue."""
        with self._lock:
            if self._lock_file is not None:
                self._lock_file.close()
                self._lock_file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, order: Order) -> StudyState:
        """Start a study, or resume a stopped one with the new order.

        Submitting an order again that is being carried out changes nothing.

        Raises:
            NotAllowedError: The study runs by another order.
            NameTakenError: The name belongs to another study of the catalogue.
            StorageError: The order cannot be stored.
        """
        with self._lock:
            folder = StudyFolder(self._folder / "studies" / order.name)
            known = _readable(folder)
            if known is not None and known.study != order.study:
                raise NameTakenError(order.name, known.study)
            if known is not None:
                now = self.state(order.name)
                if now.state in _ACTIVE:
                    if known.asks_the_same(order):
                        return now
                    raise NotAllowedError(order.name, "another order", now.state, ALLOWED["delete"])
            return self._order(folder, order, known)

    def pause(self, name: str, by: str = "") -> StudyState:
        """Let the runs in flight end, and start no others.

        Raises:
            UnknownStudyError: No such study was ordered here.
            BrokenOrderError: The order cannot be read.
            NotAllowedError: The study's state does not allow it.
            StorageError: The wish cannot be stored.
        """
        return self._wish(name, "pause", DesiredState.PAUSE, by)

    def resume(self, name: str, by: str = "") -> StudyState:
        """Resume a study that was paused or stopped, or has failed. Raises the errors of `pause`.

        This resumes an interrupted comparison, or the tuning if the comparison has ended.
        """
        return self._wish(name, "resume", DesiredState.RUN, by)

    def stop(self, name: str, by: str = "") -> StudyState:
        """Stop a study and end its runs in flight at once. Raises the errors of `pause`."""
        return self._wish(name, "stop", DesiredState.STOP, by)

    def release(self, name: str) -> None:
        """Check that a study may be deleted: its process has ended, so nothing holds it.

        Raises:
            UnknownStudyError: No such study was ordered here.
            NotAllowedError: The study runs, or is about to.
        """
        now = self.state(name)
        if now.state not in ALLOWED["delete"]:
            raise NotAllowedError(name, "delete", now.state, ALLOWED["delete"])

    def forget(self, name: str) -> None:
        """Remove the files of a study that does not run; the study stays in storage.

        Raises:
            UnknownStudyError: No such study was ordered here.
            NotAllowedError: The study runs, or is about to.
            StorageError: The files cannot be removed.
        """
        with self._lock:
            self.release(name)
            folder = self._find(name)
            try:
                # In one step, because a partly removed folder could look like another study, or like this one without
                # its order.
                discard(folder.path)
            except OSError as error:
                msg = f"cannot remove study {name!r} from the service folder: {error.strerror}"
                raise StorageError(msg) from error
            self._memories.pop(name, None)

    def state(self, name: str) -> StudyState:
        """Return the state of a study.

        Raises:
            UnknownStudyError: No such study was ordered here.
        """
        folder = self._find(name)
        try:
            view = self._view(folder)
        except BrokenOrderError as error:
            process = folder.process()
            active = process is not None and process.target is not None
            return StudyState(name, StateName.RUNNING if active else StateName.FAILED, str(error))
        return StudyState(name, *state_and_message(view, self._memory(name), folder), view.order)

    def _memory(self, name: str) -> SupervisorMemory:
        return self._memories.get(name) or SupervisorMemory()

    def _view(self, folder: StudyFolder) -> StudyView:
        return observe(folder, self._memory(folder.path.name), self._settings.clock(), self._settings.pause_s)

    def states(self) -> dict[str, StudyState]:
        """Return the states of all studies that were ordered here, by name in alphabetical order.

        A study with a broken order has a message that says so. Folders without a study are skipped.
        """
        known: dict[str, StudyState] = {}
        for name in self._names():
            with suppress(UnknownStudyError):  # it was deleted just now
                known[name] = self.state(name)
        return known

    def log(self, name: str, lines: int = 200) -> str:
        """Return the last lines of a study's log.

        Raises:
            UnknownStudyError: No such study was ordered here.
        """
        return "".join(f"{line}\n" for line in self._find(name).log(lines))

    def status(self, name: str) -> dict[str, Any]:
        """Return the status that a study's process wrote last; empty if it has written none.

        Keys: `phase`, `message`, `running` (a list of `trial`, `configuration`, `elapsed_s`, `step`, `metrics`), `more`
            (number of other runs), `left_s`, `finished`, `budget`, `open_ended`, `written` (seconds since the epoch),
            `pid`, `process`.

        Raises:
            UnknownStudyError: No such study was ordered here.
        """
        return self._find(name).status()

    def tick(self) -> list[str]:
        """Bring studies from their observed to their desired state; return what was done, in words.

        Call it once at the start, and then about once a second.
        """
        done = []
        for name in self._names():
            with self._lock, suppress(UnknownStudyError, BrokenOrderError):  # `state` says that it is broken
                done += self._reconcile(self._find(name))
        return done

    def _names(self) -> list[str]:
        folders: list[str] = []
        # If the folder was removed, it has no studies; `submit` then fails with a message that orders cannot be stored.
        with suppress(OSError), os.scandir(self._folder / "studies") as entries:
            folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        return sorted(name for name in folders if self._holds_order(name))

    def _holds_order(self, name: str) -> bool:
        return re.fullmatch(NAME, name) is not None and StudyFolder(self._folder / "studies" / name).known

    def _find(self, name: str) -> StudyFolder:
        if not self._holds_order(name):
            raise UnknownStudyError(name)
        return StudyFolder(self._folder / "studies" / name)

    def _wish(self, name: str, verb: str, wish: DesiredState, by: str) -> StudyState:
        with self._lock:
            folder = self._find(name)
            order, now = folder.order(), self.state(name)
            if now.state not in ALLOWED[verb]:
                raise NotAllowedError(name, verb, now.state, ALLOWED[verb])
            if order.wish is wish is not DesiredState.RUN:
                return now
            if wish is DesiredState.RUN and order.left is not None and self._view(folder).reality.is_done:
                return self._order(folder, order.tuning(by), order)
            return self._order(folder, order.wishing(wish, by), order)

    def _order(self, folder: StudyFolder, order: Order, before: Order | None) -> StudyState:
        if order.wish is DesiredState.RUN:
            process = folder.process()
            newest = max(before.serial if before else 0, process.serial if process else 0)
            order = order.model_copy(update={"serial": newest + 1})
        folder.write_order(order)
        self._reconcile(folder)
        return self.state(order.name)

    def _reconcile(self, folder: StudyFolder) -> list[str]:
        """Bring one study to its desired state; return what was done, in words."""
        name, now = folder.path.name, self._settings.clock()
        memory = self._memories.setdefault(name, SupervisorMemory())
        memory.note(folder.process(), now)
        view = observe(folder, memory, now, self._settings.pause_s)
        action, process = view.decision.action, view.process
        if process is not None and not lives(process.warden):
            limit_log(os.fspath(folder.path), self._settings.log_bytes)
        if action is Action.START:
            return self._start(folder, view, memory) if now >= memory.later else []
        if action is Action.NOTHING or process is None:
            return []
        send(action, process)
        memory.asked = view.order.wish
        return [f"study {name!r}: {action.value}"]

    def _start(self, folder: StudyFolder, view: StudyView, memory: SupervisorMemory) -> list[str]:
        name = folder.path.name
        try:
            self._starter.start(folder.path, view.order, view.reality.deaths)
        except StartError as error:
            memory.trouble, memory.later = str(error), self._settings.clock() + self._settings.pause_s
            return [f"study {name!r} cannot be started: {error}"]
        memory.trouble = ""
        return [f"study {name!r}: {Action.START.value}"]


def _readable(folder: StudyFolder) -> Order | None:
    try:
        return folder.order() if folder.known else None
    except BrokenOrderError:
        return None


def _prepare_folder(folder: Path) -> Path:
    """Make the folder private to this user; return its absolute path.

    Raises:
        StorageError: The folder cannot be used.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            msg = f"the service folder {folder} belongs to another user: use --folder to name another one"
            raise StorageError(msg)
        folder.chmod(0o700)
        (folder / "studies").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        msg = f"cannot use the service folder {folder}: {error.strerror}; use --folder to name another one"
        raise StorageError(msg) from error
    return folder.resolve()


def _lock_folder(folder: Path) -> LockFile:
    """Lock the folder; return the lock, which lasts until it is closed or this process ends.

    Raises:
        BusyError: Another process has the lock; the message names it.
        StorageError: The folder cannot be written.
    """
    path = folder / _LOCK
    try:
        return LockFile.hold(path)
    except HeldError as held:
        msg = f"the service folder {folder} is held by {held}: stop that service, or use --folder to name another one"
        raise BusyError(msg) from None
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror}; use --folder to name another folder"
        raise StorageError(msg) from error
