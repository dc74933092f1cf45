"""Studies: those in storage and those that were started here, and the actions that each allows."""

import socket
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from autotune.coordination.upkeep import unused
from autotune.display.status_file import ENDED, STARTING
from autotune.errors import BusyError, StorageError, StudyFileError
from autotune.pictures import Chart
from autotune.records.labels import Labels
from autotune.results.estimate import Estimate
from autotune.results.summary import Summary
from autotune.service.asktell_studies import AskTellStudies
from autotune.service.catalogue import Catalogue, CatalogueStudy
from autotune.service.hub import LIST, News, Troubles
from autotune.service.json_values import json_value, with_tilde
from autotune.service.models.orders import NewStudy
from autotune.service.models.studies import Known, RunningRun, StudyBrief, StudyDetail
from autotune.service.ordering import again_of, free_name, order_of, orderable
from autotune.service.problems import ProblemError
from autotune.service.study_manager import ReadOnlyManager, StudyManager
from autotune.service.summaries import StudySummaries, detail_of, own_name
from autotune.storage.address import lock_path
from autotune.storage.study_lock import works_here
from autotune.storage.study_store import StudyStore
from autotune.supervision import DesiredState, NameTakenError, Order, StateName, StudyState, StudySupervisor, Task

_RESUMABLE_IDLE = "it was not started from a study in the catalogue, so it cannot be resumed here"
_TOLD = "other programs make its runs; those that compare the winner with the default are handed out to them, too"


@dataclass(frozen=True)
class StudiesSnapshot:
    """All studies at one moment.

    `versions` are those in storage, `ordered` those that run as processes of their own, `open` those whose runs an
    outside program makes; `workers` says who else of this host works on the others.
    """

    versions: Mapping[str, int]
    ordered: Mapping[str, StudyState]
    open: Mapping[str, StudyState]
    workers: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """All studies, by name."""
        return sorted({*self.versions, *self.ordered, *self.open})

    def state(self, name: str) -> StudyState:
        """Return the state of a study; a study that is only in storage is idle, whoever works on it."""
        known = self.ordered.get(name) or self.open.get(name)
        return known or StudyState(name, StateName.IDLE, self.workers.get(name, ""))


class Studies:
    """What the routes need of studies."""

    def __init__(
        self,
        catalogue: Catalogue,
        reading: StudySummaries,
        supervisor: StudySupervisor | ReadOnlyManager,
        opened: AskTellStudies | ReadOnlyManager,
    ) -> None:
        """Combine the catalogue, the storage, the supervisor and the ask-and-tell studies."""
        self._catalogue = catalogue
        self._reading = reading
        self._supervisor = supervisor
        self._opened = opened
        self._troubles = Troubles()

    def look(self) -> StudiesSnapshot:
        """Return all studies as they stand now."""
        versions, ordered, opened = self._reading.versions(), self._supervisor.states(), self._opened.states()
        workers = {}
        for name in versions.keys() - ordered.keys() - opened.keys():
            holder = works_here(lock_path(self._reading.shelf.url, name))
            if holder is not None:
                workers[name] = f"autotune (process {holder.pid}) works on it since {holder.since}"
        return StudiesSnapshot(versions, ordered, opened, workers)

    def briefs(self) -> list[StudyBrief]:
        """Return all studies in short, by name."""
        look = self.look()
        return [self._brief(look, name) for name in look.names]

    def brief(self, name: str) -> StudyBrief:
        """Return a study in short; a problem if there is none."""
        return self._brief(self._found(name), name)

    def detail(self, name: str) -> StudyDetail:
        """Return a study; a problem if there is none."""
        return self._detail(self._found(name), name)

    def summary(self, name: str) -> Summary:
        """Return what storage has of a study; a problem if it has nothing."""
        summary = self._reading.get(name)
        if summary is not None:
            return summary
        self._found(name)
        raise ProblemError(404, f"study {name!r} has not measured anything yet")

    def known(self) -> list[Known]:
        """Return what is known to work: the best configuration of each program on each machine."""
        return self._reading.known()

    def start(self, new: NewStudy, by: str) -> StudyBrief:
        """Start a study of the catalogue."""
        entry = self._entry_of(new.study)
        order = order_of(entry, new, by)
        look = self.look()
        before = look.state(order.name)
        if before.order is not None and before.order.study != entry.name:
            raise NameTakenError(order.name, before.order.study)
        if order.name in look.versions and before.state is StateName.IDLE:
            self._check_same(order.name, entry)
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
        """Resume a study; also one that was made from the command line, if the catalogue knows it."""
        look = self._found(name)
        manager = self._manager_in(look, name)
        if manager is not None:
            manager.resume(name, by)
        else:
            order = self._ordered(look, name)
            self._manager_for(self._entry_of(order.study)).submit(order.model_copy(update={"by": by}))
        return self.brief(name)

    def extend(self, name: str, trials: int, by: str) -> StudyBrief:
        """Make `trials` more trials of a study that does not run, and confirm the best anew."""
        look = self._found(name)
        order = self._ordered(look, name)
        made = self._brief(look, name).trials
        manager = self._manager_in(look, name) or self._manager_for(self._entry_of(order.study))
        manager.submit(order.tuning(by, made + trials))
        return self.brief(name)

    def compare(self, name: str, task: Task, by: str) -> StudyBrief:
        """Compare the winner of a study that does not run with the default in fresh runs, or take it apart."""
        look = self._found(name)
        order, summary = self._ordered(look, name), self.summary(name)
        if name in look.open or self._entry_of(order.study).ask_tell:
            raise ProblemError(409, f"study {name!r}: {_TOLD}")
        if summary.definition.replay:
            raise ProblemError(409, f"study {name!r} is a replay of recorded runs: no other runs can be made of it")
        if summary.best is None or not summary.best.complete:
            raise ProblemError(409, f"study {name!r} has no winner yet: no valid trial is complete")
        self._supervisor.submit(order.comparing(task, by, self._left(look, name, order)))
        return self.brief(name)

    def estimate(self, new: NewStudy) -> Estimate | None:
        """Return what a study would still cost, by what was measured of its study file; None where nothing was."""
        entry, look = self._entry_of(new.study), self.look()
        name, budget = new.name or entry.study.name, entry.study.budget
        briefs = [self._brief(look, one) for one in look.versions]
        like = [brief for brief in briefs if brief.study == entry.study.name and brief.trials and not brief.replay]
        made = next((brief.trials for brief in like if brief.name == name), 0)
        wanted = new.trials if isinstance(new.trials, int) else budget.most
        # Of the same study first, then of this machine, then of the one that knows most.
        here = socket.gethostname()
        like.sort(key=lambda brief: (brief.name == name, brief.machine == here, brief.trials), reverse=True)
        workers = new.workers or budget.workers
        found = (self._reading.estimate(brief.name, max(0, wanted - made), workers) for brief in like)
        return next(filter(None, found), None)

    def label(self, name: str, labels: Labels) -> StudyBrief:
        """Note tags, a text, and whether a stored study is archived."""
        if name not in self._found(name).versions:
            raise ProblemError(409, f"study {name!r} has not measured anything yet: there is nothing to note of it")
        self._reading.note(name, labels)
        return self.brief(name)

    def delete(self, name: str) -> None:
        """Delete a study that does not run; the folders of its runs stay where they are."""
        look = self._found(name)
        manager = self._manager_in(look, name)
        if manager is not None:
            manager.release(name)
        with unused(self._reading.shelf.url, name, "deleted") if name in look.versions else nullcontext():
            if manager is not None:
                manager.forget(name)
            if name in look.versions:
                self._reading.remove(name)

    def charts(self, name: str) -> Mapping[str, Chart]:
        """Return the charts that a study has, by name; a problem if there is none."""
        self._found(name)
        self.summary(name)
        return self._reading.charts(name)

    def chart(self, name: str, picture: str) -> Chart | None:
        """Return one of them; None where a study does not have it."""
        self.summary(name)
        return self._reading.chart(name, picture)

    def store(self, name: str) -> StudyStore:
        """Return what storage has of a study; a problem if there is none."""
        self._found(name)
        return self._reading.shelf.open(name)

    def log(self, name: str, lines: int) -> str:
        """Return the last lines of a study's log."""
        look = self._found(name)
        if name not in look.ordered:
            return ""
        return with_tilde(self._supervisor.log(name, lines))

    def news(self, stamps: Mapping[str, str]) -> Mapping[str, News]:
        """Return the news of topics whose stamps have changed: see `hub.Look`."""
        look = self.look()
        changed = {}
        for topic, stamp in stamps.items():
            newest = self._stamp(look, topic)
            if newest != stamp:
                with self._troubles.apart(topic):
                    changed[topic] = self._news(look, topic, newest)
        return changed

    def _news(self, look: StudiesSnapshot, topic: str, stamp: str) -> News:
        if topic == LIST:
            return News(stamp, "studies", [self._brief(look, name).model_dump(mode="json") for name in look.names])
        if topic in look.names:
            return News(stamp, "study", self._detail(look, topic).model_dump(mode="json"))
        return News(stamp, "gone", {"name": topic})

    def _stamp(self, look: StudiesSnapshot, topic: str) -> str:
        """Return a word that changes when there is news on a topic."""
        names = look.names if topic == LIST else [topic]
        parts = [
            f"{name} {look.versions.get(name)} {look.state(name).state} {look.state(name).message}" for name in names
        ]
        if topic in look.ordered:
            parts.append(str(self._supervisor.status(topic).get("written")))
        return blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()

    def _found(self, name: str) -> StudiesSnapshot:
        look = self.look()
        if name not in look.names:
            raise ProblemError(404, f"there is no study {name!r}")
        return look

    def _manager(self, name: str, verb: str) -> StudyManager:
        manager = self._manager_in(self._found(name), name)
        if manager is None:
            raise ProblemError(409, f"study {name!r} is idle: {verb} needs one that was started here")
        return manager

    def _manager_in(self, look: StudiesSnapshot, name: str) -> StudyManager | None:
        """Return the manager that has a study; None for a study that only storage knows."""
        if name in look.open:
            return self._opened
        return self._supervisor if name in look.ordered else None

    def _manager_for(self, entry: CatalogueStudy) -> StudyManager:
        """Return the manager that starts a study of the catalogue."""
        return self._opened if entry.ask_tell else self._supervisor

    def _entry_of(self, study: str) -> CatalogueStudy:
        """Return a study of the catalogue; a problem if it has none of that name."""
        entry = self._catalogue.find(study)
        if entry is None:
            known = ", ".join(one.name for one in self._catalogue.entries()) or "nothing"
            raise ProblemError(404, f"the catalogue has no study {study!r}; it has: {known}")
        return entry

    def _ordered(self, look: StudiesSnapshot, name: str) -> Order:
        """Return the order of a study, or one as resumes it; a problem if it is from no study of the catalogue."""
        order = look.state(name).order
        if order is not None:
            return order
        entry = self._origin(name)
        if entry is None:
            raise ProblemError(409, f"study {name!r} is idle: {_RESUMABLE_IDLE}")
        return Order(study=entry.name, file=entry.file, name=name)

    def _left(self, look: StudiesSnapshot, name: str, order: Order) -> DesiredState | None:
        """Return how a study's tuning stands, for when a comparison is done: paused, stopped, or finished (None)."""
        if order.task is not Task.TUNE:
            return order.left
        match look.state(name).state:
            case StateName.PAUSED:
                return DesiredState.PAUSE
            case StateName.STOPPED | StateName.FAILED:
                return DesiredState.STOP
            case StateName.IDLE:
                brief = self._brief(look, name)
                return DesiredState.STOP if brief.trials < (brief.budget or 0) else None
            case _:
                return None

    def _origin(self, name: str) -> CatalogueStudy | None:
        """Return the study of the catalogue from which a stored study was made."""
        summary = self._reading.get(name)
        return None if summary is None else self._catalogue.find(own_name(summary))

    def _check_same(self, name: str, entry: CatalogueStudy) -> None:
        summary = self._reading.get(name)
        if summary is not None and summary.definition.objective != entry.study.objective:
            there = summary.definition.objective
            raise BusyError(
                f"there is a study {name!r} of objective {there!r}, not {entry.study.objective!r}: choose another name"
            )

    def _brief(self, look: StudiesSnapshot, name: str) -> StudyBrief:
        return StudyBrief(**self._brief_fields(look, name))

    def _brief_fields(self, look: StudiesSnapshot, name: str) -> dict[str, Any]:
        state = look.state(name)
        version = look.versions.get(name)
        entry = self._entry(state.order) if version is None else None
        fields: dict[str, Any] = {
            "study": state.order.study if state.order is not None else "",
            "objective": entry.study.objective if entry is not None else "",
            "metric": None,
            "trials": 0,
            "budget": entry.study.budget.most if entry is not None else None,
            "failures": {},
            **dict.fromkeys(("baseline", "best", "speed_up", "interval", "verdict")),
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
                fields |= self._reading.brief(name, version)
            except StorageError as error:
                unread = str(error)  # the others can be listed all the same
        if state.order is not None:
            fields["by"] = state.order.by or fields["by"]
        if state.order is not None and isinstance(state.order.trials, int):
            fields["budget"] = state.order.trials
        # Whatever ended it: a study in which nothing worked has failed.
        failed = state.state is StateName.FINISHED and fields["trouble"]
        return fields | {
            "name": name,
            "state": (StateName.FAILED if failed else state.state).value,
            "message": with_tilde("\n".join(filter(None, (state.message, unread)))),
            "ask_tell": name in look.open,
        }

    def _entry(self, order: Order | None) -> CatalogueStudy | None:
        """Return the study that was ordered; None if its file was removed from the catalogue meanwhile."""
        try:
            return self._catalogue.find(order.study) if order is not None else None
        except StudyFileError:
            return None

    def _detail(self, look: StudiesSnapshot, name: str) -> StudyDetail:
        fields = self._brief_fields(look, name)
        version = look.versions.get(name)
        if version is None:
            own: dict[str, Any] = {"ledger": {}, "workload": {}, "noise": ""}
            own |= dict.fromkeys(("incumbent", "default", "simplified", "verdict_detail", "first_error"))
        else:
            own = detail_of(self._reading.summary(name, version))
        status = self._status(look, name)
        return StudyDetail(
            **fields,
            **own,
            again=self._again(look, name, fields),
            version=version or 0,
            phase=str(status.get("phase", "")),
            left_s=status.get("left_s"),
            running=[RunningRun(**json_value(run)) for run in status.get("running", ())],
        )

    def _again(self, look: StudiesSnapshot, name: str, fields: Mapping[str, Any]) -> NewStudy | None:
        order, study = look.state(name).order, fields["study"]
        if not self._catalogue.has(order.study if order is not None else study):
            return None
        # Of a study from the command line it is known what it was made of, and how large it is.
        if order is None:
            return orderable(study=study, name=free_name(name, look.names), trials=fields["budget"])
        return again_of(order, look.names)

    def _status(self, look: StudiesSnapshot, name: str) -> Mapping[str, Any]:
        manager = self._manager_in(look, name)
        status = manager.status(name) if manager is not None else {}
        # What runs again has not written anew yet how it stands.
        starts = look.state(name).state is StateName.RUNNING and status.get("phase", ENDED) == ENDED
        return {"phase": STARTING} if starts else status
