"""Studies: the stored ones and those started here, their states, and what changes them."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple

from autotune.coordination.upkeep import delete as delete_study
from autotune.coordination.upkeep import find_removable, hold_unused
from autotune.decisions.table import DecisionTable
from autotune.display.status_file import ENDED, STARTING
from autotune.errors import BusyError, StorageError, StudyFileError
from autotune.locks import find_local_holder
from autotune.pictures import Chart
from autotune.pictures.charts import names_on_page
from autotune.records.labels import Labels
from autotune.results.estimate import Estimate
from autotune.results.summary import Summary
from autotune.service.asktell_studies import AskTellStudies
from autotune.service.callers import CallerKind
from autotune.service.catalogue import Catalogue, CatalogueStudy
from autotune.service.hub import LIST, News, TopicFailures
from autotune.service.json_values import json_value, with_tilde
from autotune.service.models.budgets import Budget
from autotune.service.models.orders import MOST_PAIRS, Comparison, NewStudy
from autotune.service.models.studies import Known, RunningRun, StudyBrief, StudyDetail
from autotune.service.ordering import free_name, new_study_or_none, order_like, order_of
from autotune.service.problems import ProblemError
from autotune.service.study_manager import ReadOnlyManager, StudyManager
from autotune.service.summaries import StudySummaries
from autotune.storage.address import lock_path
from autotune.storage.study_store import StudyStore
from autotune.supervision import DesiredState, NameTakenError, Order, StateName, StudyState, StudySupervisor, Task

_NOT_OF_CATALOGUE = "it was not started from a study in the catalogue, so it cannot be resumed here"
_NO_NAME = frozenset({"", CallerKind.OWN.value})
_ACTIVE = frozenset({"running", "waiting", "pausing", "stopping", "open"})
_WILL_COMPARE = "When the budget is used, the best is compared with the default in fresh runs."
_RUN_BY_OTHERS = "other programs make its runs, also those that compare the winner with the default"


class AnswerKey(NamedTuple):
    """The key of an answer on a stored study: its name and version, and what was asked."""

    study: str
    version: int
    asked: tuple[Any, ...]


@dataclass(frozen=True)
class StudiesSnapshot:
    """All studies at one moment.

    Attributes:
        versions: versions of the studies in storage.
        ordered: states of the studies that run as processes of their own.
        open: states of the studies whose runs an outside program makes.
        workers: for each other study that a process of this host works on, a sentence about that process.
    """

    versions: Mapping[str, int]
    ordered: Mapping[str, StudyState]
    open: Mapping[str, StudyState]
    workers: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """The names of all studies, sorted."""
        return sorted({*self.versions, *self.ordered, *self.open})

    def state(self, name: str) -> StudyState:
        """Return the state of a study; one that is only in storage runs if another process works on it."""
        known = self.ordered.get(name) or self.open.get(name)
        if known is not None:
            return known
        worker = self.workers.get(name, "")
        return StudyState(name, StateName.RUNNING if worker else StateName.STOPPED, worker)

    def is_managed(self, name: str) -> bool:
        """Whether this service looks after a study; the command line does after others."""
        return name in self.ordered or name in self.open


class Studies:
    """The studies of a service. A study that is not there, or not in the right state, raises `ProblemError`."""

    def __init__(
        self,
        catalogue: Catalogue,
        summaries: StudySummaries,
        supervisor: StudySupervisor | ReadOnlyManager,
        opened: AskTellStudies | ReadOnlyManager,
    ) -> None:
        """Combine the catalogue, the storage, the supervisor and the ask-and-tell studies."""
        self._catalogue = catalogue
        self._summaries = summaries
        self._supervisor = supervisor
        self._opened = opened
        self._failures = TopicFailures()
        self._counting = Lock()

    def snapshot(self) -> StudiesSnapshot:
        """Return all studies at this moment."""
        # States first: a study that has ended is shown with all that it stored.
        ordered, opened = self._supervisor.states(), self._opened.states()
        versions = self._summaries.versions({name for name, state in ordered.items() if state.state not in _ACTIVE})
        workers = {}
        for name in versions.keys() - ordered.keys() - opened.keys():
            holder = find_local_holder(lock_path(self._summaries.stored.url, name))
            if holder is not None:
                workers[name] = f"autotune (process {holder.pid}) works on it since {holder.since}"
        return StudiesSnapshot(versions, ordered, opened, workers)

    def briefs(self) -> list[StudyBrief]:
        """Return the briefs of all studies, sorted by name."""
        snapshot = self.snapshot()
        return [self._brief(snapshot, name) for name in snapshot.names]

    def brief(self, name: str) -> StudyBrief:
        """Return the brief of a study."""
        return self._brief(self._snapshot_with(name), name)

    def detail(self, name: str) -> StudyDetail:
        """Return the details of a study."""
        return self._detail(self._snapshot_with(name), name)

    def summary(self, name: str, version: int | None = None) -> Summary:
        """Return the summary of a stored study, at `version` or later; by default at the version that is served now."""
        summary = self._summaries.get(name, version)
        if summary is not None:
            return summary
        self._snapshot_with(name)
        raise ProblemError(404, f"study {name!r} has not measured anything yet")

    def key(self, name: str, *asked: Any) -> AnswerKey:  # noqa: ANN401  whatever tells answers apart
        """Return a key of an answer on a stored study, which changes with the study."""
        version = self._summaries.version(name)
        if version is None:
            self._snapshot_with(name)
            raise ProblemError(404, f"study {name!r} has not measured anything yet")
        return AnswerKey(name, version, asked)

    def known(self) -> list[Known]:
        """Return the best configuration of each program on each machine, with who ordered its study, if known."""
        snapshot = self.snapshot()
        orders = [(known, snapshot.state(known.study).order) for known in self._summaries.known()]
        return [
            known.model_copy(update={"who": order.by}) if order is not None and order.by not in _NO_NAME else known
            for known, order in orders
        ]

    def name_of(self, new: NewStudy, budget: Budget | None) -> str:
        """Return the name that an order to start a study gives it, also if the order is refused."""
        entry = None if new.name else self._catalogue.find(new.study)
        name = new.name or (new.study if entry is None else entry.study.name)
        return name if budget is None else budget.with_prefix(name)

    def start(self, new: NewStudy, by: str, budget: Budget | None = None) -> StudyBrief:
        """Start a study of the catalogue; with a budget only a new one, within its limits."""
        entry = self._catalogue_study(new.study)
        if budget is None:
            return self._start(entry, new, by)
        # Under one lock, requests at once start no more studies than the budget allows.
        with self._counting:
            limits = {
                "name": budget.name_of(new.name or entry.study.name, self.snapshot().names),
                "trials": budget.trials_of(new.trials, entry.study.budget.most),
                "timeout": budget.time_of(new.timeout, entry.study.budget.timeout_s),
            }
            return self._start(entry, new.model_copy(update=limits), by)

    def _start(self, entry: CatalogueStudy, new: NewStudy, by: str) -> StudyBrief:
        order = order_of(entry, new, by)
        snapshot = self.snapshot()
        before = snapshot.state(order.name)
        if before.order is not None and before.order.study != entry.name:
            raise NameTakenError(order.name, before.order.study)
        if order.name in snapshot.versions and not snapshot.is_managed(order.name):
            self._check_same_objective(order.name, entry)
        self._manager_for(entry).submit(order)
        return self.brief(order.name)

    def pause(self, name: str, by: str) -> StudyBrief:
        """Let the runs in flight end, and start no other."""
        self._manager(name, "pause").pause(name, by)
        return self.brief(name)

    def stop(self, name: str, by: str) -> StudyBrief:
        """End the runs in flight."""
        self._manager(name, "stop").stop(name, by)
        return self.brief(name)

    def resume(self, name: str, by: str) -> StudyBrief:
        """Resume a study; also one from the command line, if its study file is in the catalogue."""
        snapshot = self._snapshot_with(name)
        manager = self._manager_in(snapshot, name)
        if manager is not None:
            manager.resume(name, by)
        else:
            order = self._order_of(snapshot, name)
            self._manager_for(self._catalogue_study(order.study)).submit(order.model_copy(update={"by": by}))
        return self.brief(name)

    def extend(self, name: str, trials: int, by: str) -> StudyBrief:
        """Make `trials` more trials of a study that does not run, and compare its best with the default again.

        The winner is compared in as many more pairs of runs as a first verdict has, also if it stays the winner.
        """
        snapshot = self._snapshot_with(name)
        order, brief = self._order_of(snapshot, name), self._brief(snapshot, name)
        entry = self._catalogue_study(order.study)
        pairs = None
        if brief.fresh is not None and not brief.replay:
            pairs = min(brief.fresh.pairs + entry.study.verdict.pairs, MOST_PAIRS)
        manager = self._manager_in(snapshot, name) or self._manager_for(entry)
        manager.submit(order.tuning(by, brief.trials + trials, pairs))
        return self.brief(name)

    def compare(self, name: str, task: Task, by: str, asked: Comparison | None = None) -> StudyBrief:
        """Compare the winner of a study that does not run with the default in fresh runs, or ablate it.

        The pairs of runs that a confirmation asks for count with those that were made.
        """
        asked = asked or Comparison()
        pairs, snapshot = asked.pairs, self._snapshot_with(name)
        order, summary = self._order_of(snapshot, name), self.summary(name)
        before = summary.preference
        if asked.weights is not None:
            summary = summary.weighted(asked.weights)
        if name in snapshot.open or self._catalogue_study(order.study).ask_tell:
            raise ProblemError(409, f"study {name!r}: {_RUN_BY_OTHERS}")
        if summary.definition.replay:
            raise ProblemError(409, f"study {name!r} is a replay of recorded runs: no other runs can be made of it")
        if summary.best is None or not summary.best.complete:
            raise ProblemError(409, f"study {name!r} has no winner yet: no valid trial is complete")
        if summary.front is not None and summary.preference is None:
            raise ProblemError(409, f"study {name!r} is a trade-off. {summary.next_step('`Confirm now`')}")
        made, chosen = len(summary.fresh_pairs), summary.preference
        # Weights that choose another point are stored, even if that point was compared before.
        is_new = chosen is not None and (before is None or before.point != chosen.point)
        if task is Task.CONFIRM and made and not is_new and (pairs is None or pairs <= made):
            wanted = "" if pairs is None else f", and {pairs} were asked for"
            raise ProblemError(
                409, f"the verdict on {name!r} has {made} pairs of runs already{wanted}; ask for more pairs"
            )
        left = self._state_after(snapshot, name, order)
        weights = None if chosen is None else chosen.to_dict()
        self._supervisor.submit(order.comparing(task, by, left, pairs, weights))
        return self.brief(name)

    def estimate(self, new: NewStudy) -> Estimate | None:
        """Estimate the remaining cost of a study from trials of its study file; None without such trials."""
        entry, snapshot = self._catalogue_study(new.study), self.snapshot()
        name, budget = new.name or entry.study.name, entry.study.budget
        briefs = [self._brief(snapshot, one) for one in snapshot.versions]
        like = [brief for brief in briefs if brief.study == entry.study.name and brief.trials and not brief.replay]
        made = next((brief.trials for brief in like if brief.name == name), 0)
        wanted = new.trials if isinstance(new.trials, int) else budget.most
        # Prefer the study itself, then one of this machine, then the one with most trials.
        here = socket.gethostname()
        like.sort(key=lambda brief: (brief.name == name, brief.machine == here, brief.trials), reverse=True)
        workers = new.workers or budget.workers
        found = (self._summaries.estimate(brief.name, max(0, wanted - made), workers) for brief in like)
        return next(filter(None, found), None)

    def label(self, name: str, labels: Labels) -> StudyBrief:
        """Store the tags and the note of a study, and whether it is archived."""
        if name not in self._snapshot_with(name).versions:
            raise ProblemError(409, f"study {name!r} has not measured anything yet: there is nothing to note of it")
        self._summaries.note(name, labels)
        return self.brief(name)

    def delete(self, name: str) -> None:
        """Delete a study that does not run, and the folders of its runs."""
        snapshot = self._snapshot_with(name)
        manager = self._manager_in(snapshot, name)
        if manager is not None:
            manager.release(name)
        if name not in snapshot.versions:
            assert manager is not None
            manager.forget(name)
            return
        with hold_unused(self._summaries.stored.url, name, "deleted") as (store, _):
            found = find_removable(store)
            if manager is not None:
                manager.forget(name)
            delete_study(store, found)
        self._summaries.forget(name)

    def chart(self, name: str, version: int, picture: str) -> Chart | None:
        """Return a chart of a study at `version` or later; None if there is too little to draw."""
        known = names_on_page(self.summary(name, version))
        if picture not in known:
            raise ProblemError(404, f"study {name!r} has no picture {picture!r}; it has: {', '.join(known) or 'none'}")
        return self._summaries.chart(name, version, picture)

    def decision_table(self, name: str, version: int) -> DecisionTable | None:
        """Return the decision table of a study at `version` or later; None before enough runs have ended."""
        if not self.summary(name, version).has_decision_table:
            raise ProblemError(404, f"study {name!r} has no decision table: its study file has no [decisions]")
        return self._summaries.decision_table(name, version)

    def store(self, name: str) -> StudyStore:
        """Open a stored study for reading."""
        self._snapshot_with(name)
        return self._summaries.stored.open(name)

    def log(self, name: str, lines: int) -> str:
        """Return the last lines of a study's log."""
        snapshot = self._snapshot_with(name)
        if name not in snapshot.ordered:
            return ""
        return with_tilde(self._supervisor.log(name, lines))

    def news(self, stamps: Mapping[str, str]) -> Mapping[str, News]:
        """Return the news of topics whose stamps have changed: see `hub.ReadNews`."""
        snapshot = self.snapshot()
        changed = {}
        for topic, stamp in stamps.items():
            newest = self._stamp(snapshot, topic)
            if newest != stamp:
                with self._failures.contain(topic):
                    changed[topic] = self._news(snapshot, topic, newest)
        return changed

    def _news(self, snapshot: StudiesSnapshot, topic: str, stamp: str) -> News:
        if topic == LIST:
            briefs = [self._brief(snapshot, name).model_dump(mode="json") for name in snapshot.names]
            return News(stamp, "studies", briefs)
        if topic in snapshot.names:
            return News(stamp, "study", self._detail(snapshot, topic).model_dump(mode="json"))
        return News(stamp, "gone", {"name": topic})

    def _stamp(self, snapshot: StudiesSnapshot, topic: str) -> str:
        """Return a digest that changes when there is news on a topic."""
        names = snapshot.names if topic == LIST else [topic]
        states = {name: snapshot.state(name) for name in names}
        parts = [f"{name} {snapshot.versions.get(name)} {states[name].state} {states[name].message}" for name in names]
        if topic in snapshot.ordered:
            parts.append(str(self._supervisor.status(topic).get("written")))
        return blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()

    def _snapshot_with(self, name: str) -> StudiesSnapshot:
        snapshot = self.snapshot()
        if name not in snapshot.names:
            raise ProblemError(404, f"there is no study {name!r}")
        return snapshot

    def _manager(self, name: str, verb: str) -> StudyManager:
        manager = self._manager_in(self._snapshot_with(name), name)
        if manager is None:
            raise ProblemError(409, f"study {name!r} was not started here, so this service cannot {verb} it")
        return manager

    def _manager_in(self, snapshot: StudiesSnapshot, name: str) -> StudyManager | None:
        """Return the manager that has a study; None for a study that only storage knows."""
        if name in snapshot.open:
            return self._opened
        return self._supervisor if name in snapshot.ordered else None

    def _manager_for(self, entry: CatalogueStudy) -> StudyManager:
        """Return the manager that starts a study of the catalogue."""
        return self._opened if entry.ask_tell else self._supervisor

    def _catalogue_study(self, study: str) -> CatalogueStudy:
        """Return the study of that name in the catalogue."""
        entry = self._catalogue.find(study)
        if entry is None:
            known = ", ".join(one.name for one in self._catalogue.entries()) or "nothing"
            raise ProblemError(404, f"the catalogue has no study {study!r}; it has: {known}")
        return entry

    def _order_of(self, snapshot: StudiesSnapshot, name: str) -> Order:
        """Return the order of a study, or the order that resumes one of the command line."""
        order = snapshot.state(name).order
        if order is not None:
            return order
        entry = self._catalogue_origin(name)
        if entry is None:
            raise ProblemError(409, f"study {name!r}: {_NOT_OF_CATALOGUE}")
        return Order(study=entry.name, file=entry.file, name=name)

    def _state_after(self, snapshot: StudiesSnapshot, name: str, order: Order) -> DesiredState | None:
        """Return the state that a study has again after a comparison: paused, stopped, or finished (None)."""
        if order.task is not Task.TUNE:
            return order.left
        match self._brief(snapshot, name).state:
            case StateName.PAUSED:
                return DesiredState.PAUSE
            case StateName.STOPPED | StateName.FAILED:
                return DesiredState.STOP
            case _:
                return None

    def _catalogue_origin(self, name: str) -> CatalogueStudy | None:
        """Return the study of the catalogue that a stored study was made from."""
        summary = self._summaries.get(name)
        return None if summary is None else self._catalogue.find(summary.study.name)

    def _check_same_objective(self, name: str, entry: CatalogueStudy) -> None:
        summary = self._summaries.get(name)
        if summary is not None and summary.definition.objective != entry.study.objective:
            there = summary.definition.objective
            raise BusyError(
                f"there is a study {name!r} of objective {there!r}, not {entry.study.objective!r}: choose another name"
            )

    def _brief(self, snapshot: StudiesSnapshot, name: str) -> StudyBrief:
        return StudyBrief(**self._brief_fields(snapshot, name))

    def _brief_fields(self, snapshot: StudiesSnapshot, name: str) -> dict[str, Any]:
        state = snapshot.state(name)
        version = snapshot.versions.get(name)
        entry = self._entry_or_none(state.order) if version is None else None
        fields: dict[str, Any] = {
            "study": state.order.study if state.order is not None else "",
            "objective": entry.study.objective if entry is not None else "",
            "metric": None,
            "trials": 0,
            "budget": entry.study.budget.most if entry is not None else None,
            "configurations": None,
            "failures": {},
            **dict.fromkeys(("front", "baseline", "best", "fresh", "texts", "speed_up", "interval", "verdict")),
            "machine": "",
            "replay": False,
            "trouble": "",
            "started": "",
            "newest": "",
            "by": "",
            **Labels().to_dict(),
        }
        unread = ""
        if version is not None:
            try:
                fields |= self._summaries.brief(name, version)
            except StorageError as error:
                unread = str(error)  # the other studies are listed all the same
        if state.order is not None:
            fields["by"] = state.order.by or fields["by"]
        if state.order is not None and isinstance(state.order.trials, int):
            fields["budget"] = state.order.trials
        # No session tries more than there are.
        size = fields.pop("configurations")
        if size is not None and fields["budget"] is not None:
            fields["budget"] = min(fields["budget"], size)
        managed = snapshot.is_managed(name)
        return fields | {
            "name": name,
            "state": _state_of(state.state, managed, fields).value,
            "message": with_tilde("\n".join(filter(None, (state.message, unread)))),
            "managed": managed,
            "ask_tell": name in snapshot.open,
        }

    def _entry_or_none(self, order: Order | None) -> CatalogueStudy | None:
        """Return the study that was ordered; None if its file is no longer in the catalogue."""
        try:
            return self._catalogue.find(order.study) if order is not None else None
        except StudyFileError:
            return None

    def _detail(self, snapshot: StudiesSnapshot, name: str) -> StudyDetail:
        fields = self._brief_fields(snapshot, name)
        version = snapshot.versions.get(name)
        if version is None:
            own: dict[str, Any] = {"ledger": {}, "workload": {}, "noise": "", "disturbance": "", "next": ""}
            own |= dict.fromkeys(("incumbent", "default", "simplified", "verdict_detail", "first_error"))
            own |= {key: [] for key in ("doubts", "front_points", "metrics", "checks", "alarms", "pictures")}
        else:
            own = self._summaries.detail(name, version)
            own["next"] = self._next_step(snapshot, name, self._summaries.summary(name, version), fields | own)
        status = self._status(snapshot, name)
        return StudyDetail(
            **fields,
            **own,
            again=self._order_like(snapshot, name, fields),
            version=version or 0,
            phase=str(status.get("phase", "")),
            left_s=status.get("left_s"),
            running=[RunningRun(**json_value(run)) for run in status.get("running", ())],
        )

    def _next_step(self, snapshot: StudiesSnapshot, name: str, summary: Summary, fields: Mapping[str, Any]) -> str:
        """Return what to do next with a study, in one sentence; empty if that is to wait."""
        state, asked_by_others = fields["state"], name in snapshot.open
        if state in _ACTIVE:
            compares = fields["front"] is None and not summary.has_decision_table and not fields["verdict"]
            return _WILL_COMPARE if compares and not asked_by_others else ""
        if state == StateName.FINISHED and fields["alarms"]:
            accept = f"`autotune watch {name} --accept` accepts it"
            return f"The winner is no longer what the verdict says: tune again under another name, or {accept}."
        if state == StateName.FINISHED:
            return "" if asked_by_others else summary.next_step("`Confirm now`")
        resumes = "`Resume`" if fields["managed"] else "the same `autotune study` command"
        is_whole = fields["budget"] is not None and fields["trials"] >= fields["budget"]
        return summary.next_step(resumes) if is_whole or fields["trouble"] else f"Go on: {resumes} resumes the search."

    def _order_like(self, snapshot: StudiesSnapshot, name: str, fields: Mapping[str, Any]) -> NewStudy | None:
        order, study = snapshot.state(name).order, fields["study"]
        if not self._catalogue.has(order.study if order is not None else study):
            return None
        # A study of the command line has no order: its study file and its size are in the storage.
        if order is None:
            return new_study_or_none(study=study, name=free_name(name, snapshot.names), trials=fields["budget"])
        return order_like(order, snapshot.names)

    def _status(self, snapshot: StudiesSnapshot, name: str) -> Mapping[str, Any]:
        manager = self._manager_in(snapshot, name)
        status = manager.status(name) if manager is not None else {}
        # A study that has just been started again has not replaced its status file yet.
        starts = snapshot.state(name).state is StateName.RUNNING and status.get("phase", ENDED) == ENDED
        return {"phase": STARTING} if starts else status


def _state_of(state: StateName, managed: bool, fields: Mapping[str, Any]) -> StateName:
    """Return the state of a study with what its measurements say, whoever started it."""
    due = fields["front"] is None and fields["best"] is not None and fields["verdict"] is None
    used = fields["budget"] is not None and fields["trials"] >= fields["budget"] and not due
    low, high = fields["interval"] or (1.0, 1.0)
    if state is StateName.STOPPED and not managed and (used or low < high or fields["trouble"]):
        state = StateName.FINISHED
    # A study in which every trial failed has failed, however it ended.
    return StateName.FAILED if state is StateName.FINISHED and fields["trouble"] else state
