"""Studies in storage: Optuna's tables, with what Optuna does not keep in attributes.

One coordinator writes. A trial is told in two steps, its outcome as an attribute and then its state, so that whatever
dies in between, `recover` can finish what is there; a trial that was asked but not launched is set aside.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Self

import optuna
import sqlalchemy.exc
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

from autotune.errors import StorageError
from autotune.outcome import Outcome
from autotune.records import Definition, TrialRecord
from autotune.search.distributions import distributions_of
from autotune.search.sampler import ABANDONED, SpaceExhaustedError, ValidSetSampler
from autotune.storage_url import shown, sqlite_path
from spaces import Space

DEFINITION = "definition"
VERDICT = "verdict"
_OUTCOME = "outcome"
_JOB = "job"
_BUSY_TIMEOUT_S = 60


class StudyStore:
    """One study in a storage. Everything that is written is on disk when a method returns."""

    def __init__(self, url: str, storage: RDBStorage, study: optuna.Study) -> None:
        """Wrap an open study; use `create`, `resume` or `read`."""
        self._url = url
        self._storage = storage
        self._study = study

    @classmethod
    def create(cls, url: str, name: str, definition: Definition) -> Self:
        """Open the study called `name` for writing, and make it if it is not there.

        Raises:
            StorageError: storage cannot be used, or the study there is about something else.
        """
        with _storage_errors(url):
            _prepare_sqlite(url)
            storage = _connect(url)
            study = optuna.create_study(
                storage=storage,
                study_name=name,
                direction=definition.target.direction,
                load_if_exists=True,
            )
            if DEFINITION not in study.user_attrs:
                study.set_user_attr(DEFINITION, definition.to_dict())
            store = cls(url, storage, study)
            differences = store.definition.differences(definition)
        if differences:
            lines = "\n".join(f"  {line}" for line in differences)
            msg = (
                f"study {name!r} in {shown(url)} is about something else, "
                f"its measurements cannot be continued:\n{lines}\n"
                "start another one with --name NEW-NAME, or use another --storage"
            )
            raise StorageError(msg)
        return store

    @classmethod
    def read(cls, url: str, name: str) -> Self:
        """Open the study called `name` for reading.

        Raises:
            StorageError: storage cannot be read, or there is no such study.
        """
        with _storage_errors(url):
            storage = _connect(url, read_only=True)
            names = optuna.get_all_study_names(storage)
            if name not in names:
                known = ", ".join(names) or "none"
                msg = f"no study {name!r} in {shown(url)}; there: {known}"
                raise StorageError(msg)
            study = optuna.load_study(study_name=name, storage=storage)
            if DEFINITION not in study.user_attrs:
                msg = f"study {name!r} in {shown(url)} was not made by autotune, or was interrupted while it was made"
                raise StorageError(msg)
            return cls(url, storage, study)

    @classmethod
    def read_if_ours(cls, url: str, name: str) -> Self | None:
        """Open a study for reading; None if another program made it, or it was killed while it was made."""
        with _storage_errors(url):
            study = optuna.load_study(study_name=name, storage=_connect(url, read_only=True))
            return cls.read(url, name) if DEFINITION in study.user_attrs else None

    @property
    def name(self) -> str:
        """The study's name."""
        return self._study.study_name

    @property
    def definition(self) -> Definition:
        """What the study is about."""
        with _storage_errors(self._url):
            return Definition.from_dict(self._study.user_attrs[DEFINITION])

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """What was stored of the winner's comparison with the baseline."""
        with _storage_errors(self._url):
            found: Mapping[str, Any] | None = self._study.user_attrs.get(VERDICT)
        return found

    def set_verdict(self, verdict: Mapping[str, Any]) -> None:
        """Store the state of the comparison."""
        with _storage_errors(self._url):
            self._study.set_user_attr(VERDICT, dict(verdict))

    def trials(self) -> list[TrialRecord]:
        """Return every trial that was proposed, by number."""
        with _storage_errors(self._url):
            frozen = self._study.get_trials(deepcopy=False)
        return [_record(trial) for trial in frozen if ABANDONED not in trial.user_attrs]

    def use(self, sampler: ValidSetSampler) -> None:
        """Ask `sampler` from now on."""
        self._study.sampler = sampler

    def ask(self, space: Space) -> TrialRecord | None:
        """Propose a new trial; None when every valid configuration has been proposed."""
        with _storage_errors(self._url):
            try:
                trial = ask(self._study, space)
            except SpaceExhaustedError:
                self.recover()
                return None
            return TrialRecord(trial.number, dict(trial.params))

    def lease(self, number: int, job: Mapping[str, Any]) -> None:
        """Record the job of a trial, before it is launched."""
        with _storage_errors(self._url):
            self._storage.set_trial_user_attr(self._id(number), _JOB, dict(job))

    def tell(self, number: int, outcome: Outcome) -> None:
        """Record how a trial ended."""
        with _storage_errors(self._url):
            self._storage.set_trial_user_attr(self._id(number), _OUTCOME, outcome.to_dict())
            self._finish(number, outcome)

    def recover(self) -> None:
        """Bring a study that was interrupted at any instant to order; running trials with a job stay as they are."""
        with _storage_errors(self._url):
            for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                if _OUTCOME in trial.user_attrs:
                    self._finish(trial.number, Outcome.from_dict(trial.user_attrs[_OUTCOME]))
                elif _JOB not in trial.user_attrs:
                    self._storage.set_trial_user_attr(self._id(trial.number), ABANDONED, True)
                    self._study.tell(trial.number, state=TrialState.FAIL)

    def _finish(self, number: int, outcome: Outcome) -> None:
        if outcome.failure is None:
            self._study.tell(number, outcome.metrics[self.definition.target.name])
        else:
            self._study.tell(number, state=TrialState.FAIL)

    def _id(self, number: int) -> int:
        study_id = self._storage.get_study_id_from_name(self.name)
        return self._storage.get_trial_id_from_study_id_trial_number(study_id, number)


def study_names(url: str) -> list[str]:
    """Return the names of all studies in a storage.

    Raises:
        StorageError: storage cannot be read.
    """
    with _storage_errors(url):
        return list(optuna.get_all_study_names(_connect(url, read_only=True)))


def ask(study: optuna.Study, space: Space) -> optuna.Trial:
    """Ask for a trial and give it the parameters that its sampler proposed.

    Raises:
        SpaceExhaustedError: every valid configuration has been proposed; the empty trial is still there.
    """
    trial = study.ask()
    distributions = distributions_of(space)
    for name in trial.relative_params:
        _suggest(trial, name, distributions[name])
    return trial


def _suggest(trial: optuna.Trial, name: str, distribution: optuna.distributions.BaseDistribution) -> None:
    match distribution:
        case optuna.distributions.IntDistribution(low=low, high=high, step=step):
            trial.suggest_int(name, low, high, step=step)
        case optuna.distributions.FloatDistribution(low=low, high=high, log=log):
            trial.suggest_float(name, low, high, log=log)
        case optuna.distributions.CategoricalDistribution(choices=choices):
            trial.suggest_categorical(name, choices)


def _record(trial: FrozenTrial) -> TrialRecord:
    outcome = trial.user_attrs.get(_OUTCOME)
    return TrialRecord(
        number=trial.number,
        configuration=dict(trial.params),
        outcome=Outcome.from_dict(outcome) if outcome else None,
        job=trial.user_attrs.get(_JOB),
        started=trial.datetime_start,
        ended=trial.datetime_complete,
    )


def _prepare_sqlite(url: str) -> None:
    path = sqlite_path(url)
    if path is None:
        return
    with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S)) as connection:
        # Readers (list, show, a dashboard) must not block the coordinator, nor it them.
        connection.execute("PRAGMA journal_mode=WAL")


def _connect(url: str, *, read_only: bool = False) -> RDBStorage:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = sqlite_path(url)
    if path is None:
        return RDBStorage(url, engine_kwargs={"pool_pre_ping": True})
    if read_only:
        if not path.is_file():
            msg = f"no storage at {path}; `autotune study` makes it, --storage or AUTOTUNE_STORAGE names another"
            raise StorageError(msg)
        url = f"sqlite:///file:{path.absolute()}?mode=ro&uri=true"
    return RDBStorage(url, engine_kwargs={"connect_args": {"timeout": _BUSY_TIMEOUT_S}}, skip_table_creation=read_only)


@contextmanager
def _storage_errors(url: str) -> Iterator[None]:
    try:
        yield
    except (
        sqlalchemy.exc.SQLAlchemyError,
        sqlite3.Error,
        optuna.exceptions.StorageInternalError,
        ImportError,
    ) as error:
        cause = error.__cause__ or error
        reason = str(getattr(cause, "orig", None) or cause).splitlines()[0]
        msg = (
            f"storage {shown(url)} cannot be used: {reason}; what was finished before is safe, "
            "mend it (disk full? read-only? another program's file?) and use the same command again"
        )
        raise StorageError(msg) from error
