"""A study in storage: Optuna's tables, extra data in Optuna's attributes, and the log of runs beside them.

A trial is stored before it is launched, stays open during its race, and is ended once, when it is settled. Its runs are
in the log as soon as they end. So a trial without a run must still be run, whichever session stored it.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, wraps
from itertools import count
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import optuna
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import StorageError
from autotune.records.study import Run, TrialRecord
from autotune.storage.address import hide_password, place
from autotune.storage.connection import Patience, database_errors, storage_errors, write_transaction
from autotune.storage.leases import Fence, LeaseBook
from autotune.storage.observation import Observation
from autotune.storage.optuna_storage import log_engine, open_for_reading, open_for_writing
from autotune.storage.readable_study import ABANDONED, DEFINITION, HOME, MARK, check_same, runs_of_tuning, study_key
from autotune.storage.run_corrections import RunCorrections, correct_runs
from autotune.storage.run_log import MemoryRunLog, RunLog, SqlRunLog, Throttle, remove_deleted_studies
from autotune.storage.trial_table import TrialEnding, TrialTable, as_open, trial_table
from autotune.studyfile.definition import Definition
from spaces import Configuration, Space

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _patient(use: "Callable[Concatenate[StudyStore, _P], _R]") -> "Callable[Concatenate[StudyStore, _P], _R]":
    """Make a method of `StudyStore` retry with the study's patience."""

    @wraps(use)
    def waiting(store: "StudyStore", /, *args: _P.args, **more: _P.kwargs) -> _R:
        return store.patiently(lambda: use(store, *args, **more))

    return waiting


class StudyStore:
    """One study in a storage.

    When a method returns, its changes survive a crash of the process; stored runs also survive a crash of the machine.
    """

    def __init__(self, url: str, storage: BaseStorage, study: optuna.Study, log: RunLog) -> None:
        """Wrap an open study; use `create`, `in_memory` or `read`."""
        self._url = url
        self._storage = storage
        self._study = study
        self._log = log
        self._ids: dict[int, int] = {}
        self._patience = Patience()
        self._read: tuple[Mapping[str, Any], Definition] | None = None

    def set_patience(self, patience: Patience) -> None:
        """Use `patience` from now on when the storage does not answer."""
        self._patience = patience
        if isinstance(self._log, SqlRunLog):
            self._log.patience = patience

    def set_fence(self, fence: Fence) -> None:
        """Call `fence` from now on in every transaction that writes runs or leases."""
        if isinstance(self._log, SqlRunLog):
            self._log.fence = fence

    def patiently(self, use: Callable[[], _R]) -> _R:
        """Return what `use` returns; retry it while the storage does not answer."""
        return self._patience(use)

    @classmethod
    def create(cls, url: str, name: str, definition: Definition) -> Self:
        """Open the study called `name` for writing; create it if it is missing.

        Raises:
            StorageError: The storage cannot be used.
            DifferentStudyError: The stored study has another definition.
        """
        with storage_errors(url):
            storage = open_for_writing(url, SqlRunLog.create_table)
            study = optuna.create_study(
                storage=storage,
                study_name=name,
                direction=definition.target.direction,
                load_if_exists=True,
            )
            if DEFINITION not in study.user_attrs:
                study.set_user_attr(MARK, secrets.token_hex(4))
                study.set_user_attr(HOME, place(url))
                study.set_user_attr(DEFINITION, definition.to_dict())
                with write_transaction(url) as connection:
                    remove_deleted_studies(connection)
            log = SqlRunLog(url, log_engine(url, storage), _key(storage, study))
            store = cls(url, storage, study, log)
            stored = store.definition
            check_same(url, name, stored, definition)
            if stored.study != definition.study:
                # Settings that do not affect measurements (budget, verdict) are those of the newest session.
                study.set_user_attr(DEFINITION, replace(stored, study=definition.study).to_dict())
        return store

    @classmethod
    def read(cls, url: str, name: str, *, read_only: bool = True) -> Self:
        """Open the stored study called `name`; without `read_only`, its leases and attributes can be changed.

        Raises:
            StorageError: The storage cannot be read, or has no such study.
        """
        with storage_errors(url):
            storage = open_for_reading(url) if read_only else open_for_writing(url, SqlRunLog.create_table)
            names = optuna.get_all_study_names(storage)
            if name not in names:
                known = ", ".join(names) or "none"
                msg = f"no study {name!r} in {hide_password(url)}; there: {known}"
                raise StorageError(msg)
            study = optuna.load_study(study_name=name, storage=storage)
            if DEFINITION not in study.user_attrs:
                address = hide_password(url)
                msg = f"study {name!r} in {address} was not made by autotune, or was interrupted while it was made"
                raise StorageError(msg)
            return cls(url, storage, study, _log(url, storage, study))

    @classmethod
    def in_memory(cls, definition: Definition) -> Self:
        """Return a study in memory, for simulations."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        storage = InMemoryStorage()
        study = optuna.create_study(storage=storage, direction=definition.target.direction)
        study.set_user_attr(DEFINITION, definition.to_dict())
        return cls("memory", storage, study, MemoryRunLog())

    @classmethod
    def read_if_ours(cls, url: str, name: str) -> Self | None:
        """Open a study for reading; None if another program made it, or its creation was interrupted."""
        with storage_errors(url):
            storage = open_for_reading(url)
            study = optuna.load_study(study_name=name, storage=storage)
            return cls(url, storage, study, _log(url, storage, study)) if DEFINITION in study.user_attrs else None

    @contextmanager
    def memory_copy(
        self, paced: Callable[[Callable[[], None]], Callable[[], object]] = Throttle
    ) -> Iterator["StudyStore"]:
        """Provide a copy in memory, whose changes are written from time to time and when the context ends.

        For replays: their runs take no time, so most of it would go into transactions. `paced` gets the function
        that writes, and returns the function to call after each run.
        """

        def write() -> None:
            with storage_errors(self._url):
                self._catch_up(study.get_trials(deepcopy=False), copy.runs())
                for name, value in study.user_attrs.items():
                    if self._study.user_attrs.get(name) != value:
                        self._study.set_user_attr(name, value)

        with storage_errors(self._url):
            storage, log = InMemoryStorage(), MemoryRunLog(paced(write))
            known = {"from_storage": self._storage, "to_storage": storage}
            optuna.copy_study(from_study_name=self.name, to_study_name=self.name, **known)
            study = optuna.load_study(study_name=self.name, storage=storage)
            copy = StudyStore(self._url, storage, study, log)
            log.extend(self._log.runs())
        try:
            yield copy
        finally:
            write()

    @property
    def url(self) -> str:
        """The address of the study's storage."""
        return self._url

    @property
    def name(self) -> str:
        """The study's name."""
        return self._study.study_name

    @property
    def mark(self) -> str:
        """The mark that identifies this study among others of its name, whose runs may be in the same folder."""
        with storage_errors(self._url):
            return str(self._study.user_attrs.get(MARK, "memory"))

    @property
    def key(self) -> str:
        """The key of this study's runs and leases in its storage."""
        return study_key(self._study_id, self._study.user_attrs.get(MARK))

    @property
    def home(self) -> str:
        """The location of the storage that the study was made in, to which the folders of its runs belong."""
        with storage_errors(self._url):
            return str(self._study.user_attrs.get(HOME, "another storage"))

    @property
    def definition(self) -> Definition:
        """The definition of the study."""
        with storage_errors(self._url):
            stored = self._study.user_attrs[DEFINITION]
        # Another session may have stored its settings meanwhile; what is unchanged is not parsed again.
        if self._read is None or self._read[0] != stored:
            self._read = stored, Definition.from_dict(stored)
        return self._read[1]

    @_patient
    def attribute(self, name: str) -> Mapping[str, Any] | None:
        """Return a stored attribute, such as `VERDICT` or `ABLATION`; None if it is not stored."""
        with storage_errors(self._url):
            return cast("Mapping[str, Any] | None", self._study.user_attrs.get(name))

    @_patient
    def set_attribute(self, name: str, value: Mapping[str, Any]) -> None:
        """Store an attribute."""
        with storage_errors(self._url):
            self._study.set_user_attr(name, dict(value))

    @_patient
    def runs(self) -> list[Run]:
        """Return every run of the study, in the order in which they ended."""
        with storage_errors(self._url):
            return self._log.runs()

    @_patient
    def runs_by_key(self) -> Mapping[int, Run]:
        """Return every run by its key in the log, for `RunCorrections`."""
        with storage_errors(self._url):
            return self._log.by_key()

    def correct_runs(self, corrections: RunCorrections) -> None:
        """Apply corrections in one transaction; the caller must hold the study's lock."""
        assert isinstance(self._storage, RDBStorage)
        with storage_errors(self._url):
            correct_runs(log_engine(self._url, self._storage), self._study_id, self.key, corrections)
            # Optuna's cache of finished trials is out of date now.
            self._study = optuna.load_study(study_name=self.name, storage=self._storage)

    @_patient
    def trials(self) -> list[TrialRecord]:
        """Return every proposed trial by number, each with the runs that count for it."""
        runs = runs_of_tuning(self.runs())
        with storage_errors(self._url):
            frozen = self._study.get_trials(deepcopy=False)
        self._ids.update((trial.number, trial._trial_id) for trial in frozen)
        return [
            TrialRecord.of(trial.number, dict(trial.params), runs[trial.number], settled=trial.state.is_finished())
            for trial in frozen
            if ABANDONED not in trial.user_attrs
        ]

    @contextmanager
    def as_optuna(self) -> Iterator[optuna.Study]:
        """Provide Optuna's study, for samplers to read."""
        with database_errors(self._url):
            yield self._study

    def add_trial(self, configuration: Configuration, distributions: Mapping[str, BaseDistribution]) -> int:
        """Store a new trial to run, atomically; return its number."""
        return self.add_trials([configuration], distributions)[0]

    def add_trials(
        self, configurations: Sequence[Configuration], distributions: Mapping[str, BaseDistribution]
    ) -> list[int]:
        """Store new trials to run, each atomically; return their numbers."""
        tries = count()

        def stored() -> list[int]:
            with database_errors(self._url):
                # Each configuration is proposed only once. If a retry finds it stored, only the answer was lost.
                trials = self._study.get_trials(deepcopy=False) if next(tries) > 0 else []
                known = [next((t.number for t in trials if t.params == dict(one)), None) for one in configurations]
                missing = [one for one, number in zip(configurations, known, strict=True) if number is None]
                made = self._table.create(missing, distributions)
            self._ids.update(made)
            numbers = iter(made)
            return [next(numbers)[0] if number is None else int(number) for number in known]

        return self._patience(stored)

    @_patient
    def add_runs(self, runs: Sequence[Run], places: Sequence[str] = ()) -> None:
        """Store runs that ended, and remove the leases of `places`, in one transaction.

        Raises:
            BusyError: Another session has taken the study over.
        """
        with database_errors(self._url):
            self._log.extend(runs, places)

    def leases(self) -> LeaseBook:
        """Return the leases of the runs in flight."""
        return self._log.leases()

    @_patient
    def settle_all(self, observations: Mapping[int, Observation]) -> None:
        """End trials with a value, a bound or neither, by number; skip those that have ended before.

        Optuna cannot change a finished trial. The later runs of a capped trial are in the log of runs only.
        """
        with database_errors(self._url):
            self._table.end_trials({self._id(number): TrialEnding.of(one) for number, one in observations.items()})

    @_patient
    def recover(self, space: Space) -> None:
        """Mark open trials outside the space as abandoned: another program made them, perhaps incompletely."""
        with storage_errors(self._url):
            for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING, TrialState.WAITING)):
                if not space.contains(trial.params):
                    self._set(trial.number, ABANDONED, value=True)
                    self._storage.set_trial_state_values(self._id(trial.number), TrialState.FAIL)

    def _catch_up(self, trials: Sequence[FrozenTrial], runs: Sequence[Run]) -> None:
        """Write the news of a copy to this study; store runs before the trials that they settle."""
        self._study.add_trials([as_open(trial) for trial in trials[self._table.count() :]])
        self._log.extend(runs[self._log.count() :])
        stored = self._study.get_trials(deepcopy=False)
        news = [(old, new) for old, new in zip(stored, trials, strict=False) if not old.state.is_finished()]
        for old, new in news:
            for name, value in new.user_attrs.items():
                if old.user_attrs.get(name) != value:
                    self._set(old.number, name, value=value)
        ended = (new for _, new in news if new.state.is_finished())
        self._table.end_trials({self._id(one.number): TrialEnding.of_trial(one) for one in ended})

    def _set(self, number: int, name: str, *, value: object) -> None:
        self._storage.set_trial_user_attr(self._id(number), name, value)

    def _id(self, number: int) -> int:
        """Return the storage's key of a trial; cached, since it never changes."""
        if number not in self._ids:
            self._ids[number] = self._storage.get_trial_id_from_study_id_trial_number(self._study_id, number)
        return self._ids[number]

    @cached_property
    def _table(self) -> TrialTable:
        return trial_table(self._storage, self._study_id)

    @cached_property
    def _study_id(self) -> int:
        return _study_id(self._storage, self._study)


def study_names(url: str) -> list[str]:
    """Return the names of all studies in a storage.

    Raises:
        StorageError: The storage cannot be read.
    """
    with storage_errors(url):
        return list(optuna.get_all_study_names(open_for_reading(url)))


def _log(url: str, storage: RDBStorage, study: optuna.Study) -> RunLog:
    return SqlRunLog(url, storage.engine, _key(storage, study))


def _key(storage: BaseStorage, study: optuna.Study) -> str:
    return study_key(_study_id(storage, study), study.user_attrs.get(MARK))


def _study_id(storage: BaseStorage, study: optuna.Study) -> int:
    return storage.get_study_id_from_name(study.study_name)
