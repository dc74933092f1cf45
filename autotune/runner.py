"""The study runner: the coordinator's loop from the first trial to the last."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from statistics import fmean

from autotune.agenda import WARM_UP, WARM_UP_LIMIT_S, Agenda, Step
from autotune.bench import Bench, Launched
from autotune.checkpoints import Checkpoints
from autotune.display import Running, Status, quantity, shown
from autotune.errors import CannotRunHereError, NothingWorkedError
from autotune.front import second_metric
from autotune.hyperband import Bracket
from autotune.legs import Curve, Leg, best_until, continued, curve_of
from autotune.outcome import Outcome
from autotune.patience import Outlook, can_tell, is_due, look_ahead, stored_outlook
from autotune.records import STOPPED, Purpose, State, TrialRecord
from autotune.sameness import Sameness
from autotune.search.observation import Observation
from autotune.search.store import BRACKETS, StudyStore
from autotune.staging import Staging, extended
from autotune.standings import Standings
from autotune.studyfile import StoppingSection, StudyFile
from autotune.trial import Task
from launchers import STDOUT, LineReader
from objectives.base import Progress, ProgressReader
from spaces import Configuration, Space

_TICK_S = 0.25
# That many runs in a row without a working machine under them: it is the machine.
_BROKEN_AFTER = 3


class Ending(Enum):
    """Why a session stopped tuning."""

    BUDGET = "the budget is used"
    PAYS_NO_MORE = "more search no longer pays"
    EXHAUSTED = "every valid configuration has been measured"
    TIMEOUT = "the time given is over"


@dataclass
class _InFlight:
    step: Step
    launched: Launched
    lines: LineReader
    read: ProgressReader
    lost: Curve = ()
    since: float = field(default_factory=time.monotonic)
    progress: Progress | None = None

    def follow(self) -> None:
        with suppress(OSError):
            for line in self.lines.new_lines():
                self.progress = self.read(line) or self.progress


@dataclass(frozen=True)
class _Ready:
    """A run that waits for cores."""

    step: Step
    task: Task
    purpose: Purpose
    lost: Curve = ()


class StudyRunner:
    """Runs the trials of one study until its budget is used."""

    def __init__(
        self,
        store: StudyStore,
        space: Space,
        bench: Bench,
        study: StudyFile,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Work on `store` with `bench`, as `study` says; nothing runs before `tune`. The `clock` is the bench's."""
        self._store = store
        self._space = space
        self._bench = bench
        self._study = study
        self._budget = study.budget
        self._statistic = study.repeats.statistic
        self._clock = clock or bench.clock
        self._metric = store.definition.target
        self._checkpoints = Checkpoints(bench.runs, store.mark)
        repeats = study.repeats if study.tradeoff is None else study.repeats.without_races
        self._agenda: Agenda | Staging = Agenda(repeats, second_metric(store.definition))
        if study.stopping is not None:
            self._agenda = Staging(study.stopping, self._metric, _brackets(store, study, study.stopping))
        self._trials: dict[int, TrialRecord] = {}
        self._standings = Standings({}, self._metric, self._statistic)
        self._in_flight: dict[int, _InFlight] = {}
        self._waiting: list[_Ready] = []
        self._machine_faults = 0
        self._ends_at = float("inf")
        self._ending = Ending.BUDGET
        self._outlook: Outlook | None = None

    def tune(self) -> Ending:
        """Run trials until there are as many as the budget says, and until every race is over.

        Raises:
            NothingWorkedError: the first trials all failed.
            CannotRunHereError: runs fail for reasons that are not the configurations'.
        """
        self._store.recover()
        self._trials = {trial.number: trial for trial in self._store.trials()}
        self._agenda.block = 1 + max((run.block for trial in self._trials.values() for run in trial.runs), default=-1)
        self._take_stock()
        known = stored_outlook(self._store)
        if known is not None and known.holds(self._standings, self._study):
            self._outlook, self._ending = known, Ending.PAYS_NO_MORE
        self._settle()
        self._checkpoints.sweep(number for number, trial in self._trials.items() if trial.settled)
        for trial in self._trials.values():
            if not trial.settled and not trial.runs:
                self._bench.display.line(f"trial {trial.number}: was interrupted, runs again")
        if self._budget.timeout_s is not None:
            self._ends_at = self._clock() + self._budget.timeout_s
        while True:
            while len(self._in_flight) < self._workers() and self._launch_next():
                pass
            if not self._in_flight:
                self._settle()  # what waited for trials that did not come
                return self._ending
            for task, outcome in self._bench.executor.wait(_TICK_S):
                self._ended(task, outcome)
            self._bench.display.update(self.status())

    def _workers(self) -> int:
        """Return how many runs may go on now: the default configuration runs alone, and its answer is the reference."""
        return self._budget.workers if self._agenda.ready(self._standings) else 1

    def _launch_next(self) -> bool:
        if not self._waiting and (ready := self._next()):
            self._waiting.append(ready)
        if not self._waiting:
            return False
        launched = self._bench.start(self._waiting[0].task, self._waiting[0].purpose)
        if launched is None:
            return False
        self._follow(self._waiting.pop(0), launched)
        return True

    def _follow(self, ready: _Ready, launched: Launched) -> None:
        lines = LineReader(launched.task.job.folder / STDOUT)
        read = self._bench.objective.progress_reader()
        self._in_flight[ready.step.trial.number] = _InFlight(ready.step, launched, lines, read, ready.lost)

    def _next(self) -> _Ready | None:
        if self._clock() >= self._ends_at:
            self._ending = Ending.TIMEOUT
            return None
        if self._nothing_to_do():
            return None
        step = self._agenda.next(self._standings, self._busy())
        if step is None and (self._agenda.ready(self._standings) or not self._trials):
            proposed = self._propose()
            ask = self._agenda.next if proposed else self._agenda.idle
            step = ask(self._standings, self._busy())
        return self._prepare(step) if step else None

    def _nothing_to_do(self) -> bool:
        """Whether only the default configuration could be run again, for nobody's benefit."""
        all_settled = all(trial.settled for trial in self._trials.values())
        return self._has_enough() and all_settled and not self._agenda.deserving(self._standings)

    def _has_enough(self) -> bool:
        """Whether no further trial is to be proposed."""
        return len(self._trials) >= self._budget.most or (self._outlook is not None and self._outlook.stopped)

    def look_ahead(self, *, due: bool = False) -> Outlook | None:
        """Return what more search would gain, and store it; None where nobody knows. A `due` look may end tuning."""
        if can_tell(len(self._trials), self._space.size):
            self._outlook = look_ahead(self._store, self._observations(), self._standings, self._study, due=due)
        return self._outlook

    def _busy(self) -> set[int]:
        return {*self._in_flight, *(ready.step.trial.number for ready in self._waiting)}

    def _propose(self) -> bool:
        if self._has_enough():
            return False
        size = self._space.size
        exhausted = size.exact and len(self._trials) >= size.value
        if self._budget.auto and not exhausted and is_due(len(self._trials), size):
            self.look_ahead(due=True)
            if self._has_enough():
                self._ending = Ending.PAYS_NO_MORE
                return False
        proposed = None if exhausted else self._store.ask(self._space, self._observations(), self._shows_nothing())
        if proposed is None:
            self._ending = Ending.EXHAUSTED
            return False
        self._trials[proposed.number] = proposed
        self._take_stock()
        return True

    def _shows_nothing(self) -> Callable[[Configuration], bool] | None:
        """Return what tells whether a configuration would show nothing new; None where that is not known of any."""
        sameness = Sameness.of(self._trials.values(), self._bench.alike)

        def tell(configuration: Configuration) -> bool:
            twin = sameness.twin(configuration)
            if twin is not None:
                text = f"passed over, the same in effect as trial {twin.number}: {shown(configuration)}"
                self._bench.display.line(text)
            return twin is not None

        return tell if sameness.inert or sameness.alike else None

    def _observations(self) -> dict[int, Observation]:
        return {number: self._agenda.observation(trial, self._standings) for number, trial in self._trials.items()}

    def _prepare(self, step: Step) -> _Ready:
        trial, counts = step.trial, not step.series
        self._agenda.starts(step, self._standings)
        reference = self._standings.baseline or next((t for t in self._trials.values() if t.complete), None)
        again = step.leg.steps if step.leg else len(trial.runs)
        place = f"{trial.number:05d}" + (f"-{again}" if again else "")
        leg, lost = self._leg(step, place) if step.leg else (None, ())
        task = self._bench.prepare(
            trial.number,
            trial.configuration,
            place if counts else step.series,
            reference=reference.answer if reference else None,
            cap=self._agenda.cap(trial, self._standings) if counts else None,
            leg=leg,
        )
        if step.series == WARM_UP:
            limit = min(WARM_UP_LIMIT_S, task.job.time_limit_s or WARM_UP_LIMIT_S)
            task = replace(task, job=replace(task.job, time_limit_s=limit))
        elif not trial.runs:
            self._store.lease(trial.number)
        elif trial.state is State.CAPPED:
            self._trials[trial.number] = replace(trial, settled=False)
            self._take_stock()
        block = self._agenda.block
        until = (leg.steps, leg.of) if leg else (None, None)
        return _Ready(step, task, Purpose(trial.configuration, trial.number, step.series, 0, block, *until), lost)

    def _leg(self, step: Step, place: str) -> tuple[Leg, Curve]:
        """Return the leg of a step with what it goes on from, and the curve of its runs that were killed."""
        assert step.leg is not None
        number, metric = step.trial.number, step.leg.metric
        lost = self._checkpoints.started(number, place, self._bench.objective, metric)
        before = curve_of(step.trial.runs[-1].outcome) if step.trial.runs else ()
        best = best_until((*before, *lost), step.leg.steps, metric)
        return replace(step.leg, checkpoint=self._checkpoints.folder(number), best=best), lost

    def _ended(self, task: Task, outcome: Outcome) -> None:
        flight = self._in_flight.pop(task.key)
        step = flight.step
        if step.leg is not None:
            before = self._trials[step.trial.number].runs
            outcome = continued(before[-1].outcome if before else None, outcome, step.leg, flight.lost)
        run = self._bench.ended(flight.launched, outcome)
        if outcome.retryable:
            self._retry(flight, outcome)
            return
        self._machine_faults = 0
        self._store.add_run(run)
        if step.series:
            self._bench.display.line(f"{step.series}: {self._said(outcome)}, does not count")
        else:
            trial = self._trials[step.trial.number]
            self._trials[trial.number] = trial.with_run(run)
        best_before = self._standings.incumbent
        if not step.series:
            self._take_stock()
        self._agenda.ended(step, self._standings)
        if not step.series:
            self._report(self._trials[step.trial.number], outcome)
        self._settle()
        best = self._standings.incumbent
        if best is not None and best_before is not None and best.number != best_before.number:
            self._bench.display.line(f"best so far: trial {best.number}, {self._value(best)}")
        self._check_hope()

    def _take_stock(self) -> None:
        self._standings = Standings(dict(self._trials), self._metric, self._statistic)

    def _settle(self) -> None:
        """Close the races that are over; closing one may change the incumbent of the next."""
        busy = self._busy()
        for number, trial in list(self._trials.items()):
            if not trial.settled and number not in busy and self._agenda.is_settled(trial, self._standings, busy):
                self._store.settle(number, self._agenda.observation(trial, self._standings))
                self._checkpoints.forget(number)
                self._trials[number] = replace(trial, settled=True)
                self._take_stock()

    def _report(self, trial: TrialRecord, outcome: Outcome) -> None:
        again = f", run {len(trial.runs)}" if len(trial.runs) > 1 else ""
        text = f"trial {trial.number}{again}: {self._said(outcome)}"
        if outcome.complete and self._standings.default is trial:
            text += " (the default configuration)"
        elif trial.complete:
            gain = self._standings.gain(trial)
            text += f", {gain:.2f}x" if gain is not None else ""
        self._bench.display.line(f"{text}  {shown(trial.configuration)}" if len(trial.runs) == 1 else text)

    def _said(self, outcome: Outcome) -> str:
        if outcome.failure is not None:
            return f"{outcome.failure.value}: {outcome.message}"
        if outcome.capped:
            return f"capped: {outcome.message}"
        curve = curve_of(outcome)
        at = f" at step {curve[-1][0]}" if curve else ""
        stopped = ", stopped" if STOPPED in outcome.details else ""
        return f"{quantity(outcome.metrics[self._metric.name], self._metric)}{at}{stopped}"

    def _value(self, trial: TrialRecord) -> str:
        runs = len(trial.measured(self._metric.name))
        value = quantity(self._standings.value(trial), self._metric)
        gain = self._standings.gain(trial)
        return value + (f", {self._statistic} of {runs}" if runs > 1 else "") + (f", {gain:.2f}x" if gain else "")

    def _retry(self, flight: _InFlight, outcome: Outcome) -> None:
        """Run again; or leave the trial open, as one that was interrupted: its configuration has shown nothing."""
        number, task, lost = flight.step.trial.number, flight.launched.task, flight.lost
        if task.leg is not None:
            lost = self._checkpoints.started(number, task.job.name, self._bench.objective, task.leg.metric)
        again = self._bench.again(flight.launched)
        if again is not None:
            self._bench.display.line(f"trial {number}: {outcome.message}; tried again")
            self._waiting.append(_Ready(flight.step, again, flight.launched.purpose, lost))
            return
        self._machine_faults += 1
        self._agenda.leave_alone(flight.step.trial)
        self._bench.display.line(f"trial {number}: could not be run: {outcome.message}")
        if self._machine_faults >= _BROKEN_AFTER:
            msg = (
                f"{self._machine_faults} trials in a row could not be run, whatever their configuration; "
                f"the last: {outcome.message}\nmend that, then use the same command again"
            )
            raise CannotRunHereError(msg)

    def _check_hope(self) -> None:
        ended = [trial for trial in self._trials.values() if trial.runs]
        if len(ended) >= self._budget.give_up_after and all(trial.state is State.FAILED for trial in ended):
            raise NothingWorkedError(why_nothing_worked(ended))

    def status(self) -> Status:
        """Return how the study stands now."""
        for flight in self._in_flight.values():
            flight.follow()
        running = tuple(
            Running(number, flight.step.trial.configuration, time.monotonic() - flight.since, flight.progress)
            for number, flight in self._in_flight.items()
        )
        finished = sum(trial.settled for trial in self._trials.values())
        return Status(
            standings=self._standings,
            budget=self._budget.most,
            finished=finished,
            running=running,
            left_s=None if self._budget.auto else self._left_s(finished),
            open_ended=self._budget.auto,
        )

    def _left_s(self, finished: int) -> float | None:
        spent = [
            sum(outcome.usage.elapsed_s for outcome in trial.outcomes)
            for trial in self._trials.values()
            if trial.settled
        ]
        return fmean(spent) * (self._budget.most - finished) / self._budget.workers if spent else None


def _brackets(store: StudyStore, study: StudyFile, rules: StoppingSection) -> tuple[Bracket, ...]:
    """Return the brackets of a study, for as many trials as it may have now."""
    stored = store.attribute(BRACKETS) or {}
    known = [Bracket(tuple(one["sizes"]), tuple(one["steps"])) for one in stored.get("brackets", ())]
    found = extended(known, study.budget.most - 1, rules)
    if len(found) > len(known):
        tables = [{"sizes": list(bracket.sizes), "steps": list(bracket.steps)} for bracket in found]
        store.set_attribute(BRACKETS, {"brackets": tables})
    return found


def why_nothing_worked(ended: list[TrialRecord]) -> str:
    """Say why every run failed: each reason once, the most frequent first."""
    reasons = Counter(trial.message for trial in ended)
    lines = [f"  {count} times: {message}" for message, count in reasons.most_common(5)]
    return "\n".join([f"all of the first {len(ended)} runs failed:", *lines])
