"""What storage holds of a study: its definition, its trials, and every run of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

from autotune.records.outcome import Outcome
from autotune.records.series import TUNING, Series, SeriesKind
from autotune.records.stored import Stored
from objectives import registry
from objectives.base import Answer, Metric
from spaces import Configuration

# Two kernels, or two nodes of one type, do not leave quite the same memory to programs.
_MEMORY, _MUCH_GIB, _OF_KERNELS = "memory_bytes", 8, 0.02
REPLAY_NOTICE = "replay of recorded measurements: times are simulated, nothing runs"
"""What every session and every summary of a replay says."""

RECORDED_CAP = "recorded-cap"
"""The code of a replayed run of which only a bound is on record: another run of it would show the same again."""


@dataclass(frozen=True)
class Definition(Stored):
    """What a study is about. Two sessions belong to the same study only if `differences` finds none.

    `space` is `Space.to_dict()`; `identity` says what makes measurements comparable (input, program version);
    `reading` says how the output of runs was read; `machine` is where they were made; `installation` names those
    `facts` that are of the program's installation, the others are of the workload; `study` is the study file of the
    newest session. All of it is JSON-able.
    """

    objective: str
    options: Mapping[str, Any]
    metrics: tuple[Metric, ...]
    space: Mapping[str, Any]
    identity: Mapping[str, str]
    facts: Mapping[str, Any]
    machine: Mapping[str, Any]
    machine_identity: Mapping[str, str]
    version: str
    study: Mapping[str, Any] = field(default_factory=dict)
    installation: tuple[str, ...] = ()
    reading: Mapping[str, str] = field(default_factory=dict)

    @property
    def workload_facts(self) -> dict[str, Any]:
        """What describes the problem."""
        return {name: value for name, value in self.facts.items() if name not in self.installation}

    @property
    def installation_facts(self) -> dict[str, Any]:
        """What describes the program as it is installed there."""
        return {name: self.facts[name] for name in self.installation}

    @property
    def replay(self) -> bool:
        """Whether its runs are recorded ones that are told again: nothing ran, and times are simulated."""
        return registry.runs(self.objective) == "recorded"

    @property
    def is_asktell(self) -> bool:
        """Whether another program makes its runs: it asks for configurations, and tells of each."""
        return registry.runs(self.objective) == "told"

    @property
    def target(self) -> Metric:
        """The metric that is optimised."""
        return self.metrics[0]

    def differences(self, other: Self) -> list[str]:
        """Say what keeps measurements of `other` from being compared with ours, however the output was read."""
        found = []
        if self.objective != other.objective:
            found.append(f"objective: {self.objective} there, {other.objective} here")
        there, here = self.identity, other.identity
        found.extend(
            f"{key}: {there.get(key, 'nothing')} there, {here.get(key, 'nothing')} here"
            for key in sorted({*there, *here})
            if there.get(key) != here.get(key)
        )
        # What a kernel does not tell is not a difference.
        found.extend(
            f"machine {key}: {self.machine_identity[key]} there, {other.machine_identity[key]} here"
            for key in sorted(self.machine_identity.keys() & other.machine_identity.keys())
            if not _is_as_large(key, self.machine_identity[key], other.machine_identity[key])
        )
        mine, its = ((one.study.get("stopping") or {}).get("max_steps", "nothing") for one in (self, other))
        if mine != its:
            found.append(f"stopping: max_steps {mine} there, {its} here")
        if not found and _common(self.space, other.space) != _common(other.space, self.space):
            found.append("the space: its parameters, values or constraints are others than before")
        return found


def _is_as_large(key: str, there: str, here: str) -> bool:
    """Whether a part of a machine is the same; of the same memory one kernel leaves a little more than another."""
    if key != "memory_gib" or not (there.isdigit() and here.isdigit()):
        return there == here
    most = max(int(there), int(here))
    return abs(int(there) - int(here)) <= max(int(most >= _MUCH_GIB), _OF_KERNELS * most)


def _common(space: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored space without the facts that the other one does not know: no rule that both have names them.

    Nor does it have what is as good as the same.
    """
    theirs = other.get("facts", {})
    facts = {name: value for name, value in space.get("facts", {}).items() if name in theirs}
    memory = [str(round(values.get(_MEMORY, 0) / 2**30)) for values in (facts, theirs)]
    if _is_as_large("memory_gib", *memory):
        facts.pop(_MEMORY, None)
    return {**space, "facts": facts}


def changed_readings(stored: Definition, now: Definition) -> tuple[str, ...]:
    """Return what is read in another way now than it was for what is stored, by name."""
    names = sorted({*stored.reading, *now.reading})
    return tuple(name for name in names if stored.reading.get(name) != now.reading.get(name))


ENDED = "ended"
"""The detail of a run that ended by itself before the step that it was asked for: it has nothing left to do."""

STOPPED = "stopped"
"""The detail of a run that was stopped since it looked worse than others at its step."""


class State(StrEnum):
    """How a trial stands. A failed one has the kind of its failure instead.

    A paused one works in steps, and was left before the last: its value cannot be compared with others' at the end.
    """

    RUNNING = "running"
    COMPLETE = "complete"
    CAPPED = "capped"
    PAUSED = "paused"
    FAILED = "failed"


@dataclass(frozen=True)
class Purpose:
    """What a run is made for.

    Runs of a comparison are made in rounds; `round` counts them. Runs of one `block` are made close together in time. A
    program that works in steps runs until it has made `steps` of them, of at most `of`.
    """

    configuration: Configuration
    trial: int | None = None
    series: Series = TUNING
    round: int = 0
    block: int = 0
    steps: int | None = None
    of: int | None = None


@dataclass(frozen=True, kw_only=True)
class Run(Purpose):
    """One run of a configuration, as it ended.

    `session` are the facts of the session (provenance), `job` is what is needed to make the run again.
    """

    outcome: Outcome
    started: str = ""
    job: Mapping[str, Any] = field(default_factory=dict)
    session: Mapping[str, str] = field(default_factory=dict)

    @property
    def paused(self) -> bool:
        """Whether the program could go on from here: it was stopped before its last step."""
        if self.steps is None or self.of is None or not self.outcome.complete:
            return False
        return STOPPED in self.outcome.details or (self.steps < self.of and ENDED not in self.outcome.details)

    @property
    def is_kept(self) -> bool:
        """Whether storage has it: one that failed for no fault of its configuration only if it is set aside."""
        return self.series.kind is SeriesKind.ASIDE or not self.outcome.retryable

    @property
    def lean(self) -> Self:
        """The run without the text of its input files, which storage has: for keeping many runs in memory."""
        return replace(self, job={name: value for name, value in self.job.items() if name != "files"})

    @property
    def core_s(self) -> float:
        """The core-seconds that the run held: its cores, for as long as its job took."""
        return self.cores * self.outcome.usage.elapsed_s

    @property
    def cores(self) -> int:
        """How many cores the run held."""
        return int(self.job.get("resources", {}).get("cores", 1))

    @property
    def host(self) -> str:
        """The host that it was started on; empty if that is not known."""
        # A batch job runs on a node that its tuner did not choose, and says which one that was.
        told = self.outcome.conditions
        elsewhere = told.get("host", "") or told.get("node", "") or self.session.get("host", "")
        hosts = self.job.get("resources", {}).get("hosts") or [elsewhere]
        return str(hosts[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form that is stored."""
        return {
            "configuration": dict(self.configuration),
            "outcome": self.outcome.to_dict(),
            "block": self.block,
            "steps": self.steps,
            "of": self.of,
            "started": self.started,
            "job": dict(self.job),
            "session": dict(self.session),
        }


@dataclass(frozen=True)
class TrialRecord:
    """One configuration with its runs so far. It is `settled` when no further run could change what it is worth.

    Of a program that works in steps the last segment tells everything; the segments before are `earlier`.
    """

    number: int
    configuration: Configuration
    runs: tuple[Run, ...] = ()
    settled: bool = False
    earlier: tuple[Run, ...] = ()

    @classmethod
    def of(cls, number: int, configuration: Configuration, runs: Iterable[Run], *, settled: bool) -> "TrialRecord":
        """Return a trial with its runs, in the order in which they ended."""
        found = cls(number, configuration, settled=settled)
        for run in runs:
            found = found.with_run(run)
        return found

    @property
    def core_s(self) -> float:
        """The core-seconds that its runs held, those included that later ones continued."""
        return sum(run.core_s for run in (*self.earlier, *self.runs))

    def with_run(self, run: Run) -> "TrialRecord":
        """Return the trial with one more run; one that went on from the last takes its place."""
        if run.steps is None:
            return replace(self, runs=(*self.runs, run))
        return replace(self, runs=(run,), earlier=(*self.earlier, *self.runs))

    @property
    def lean(self) -> "TrialRecord":
        """The trial with lean runs."""
        runs, earlier = (tuple(run.lean for run in some) for some in (self.runs, self.earlier))
        return replace(self, runs=runs, earlier=earlier)

    @property
    def outcomes(self) -> list[Outcome]:
        """How its runs ended."""
        return [run.outcome for run in self.runs]

    @cached_property
    def failure(self) -> Outcome | None:
        """The failure of a trial whose runs failed by half or more; None for others."""
        failed = [outcome for outcome in self.outcomes if outcome.failure is not None]
        return failed[-1] if failed and 2 * len(failed) >= len(self.runs) else None

    @cached_property
    def state(self) -> State:
        """How the trial stands; the newest run decides whether it is capped: it may have been given another chance."""
        if self.failure is not None:
            return State.FAILED
        ran = [outcome for outcome in self.outcomes if outcome.failure is None]
        if ran and ran[-1].capped:
            return State.CAPPED
        if self.runs and self.runs[-1].paused:
            return State.PAUSED
        return State.COMPLETE if ran else State.RUNNING

    @property
    def complete(self) -> bool:
        """Whether the trial gave valid measurements."""
        return self.state is State.COMPLETE

    @property
    def last_with_steps(self) -> Outcome | None:
        """Its newest complete run that told its steps; None without one."""
        return next((outcome for outcome in reversed(self.outcomes) if outcome.complete and outcome.timeline), None)

    @property
    def answer(self) -> Answer | None:
        """The answer of its first complete run."""
        return next((outcome.answer for outcome in self.outcomes if outcome.complete), None)

    @property
    def job(self) -> Mapping[str, Any]:
        """What its newest run was made with; empty before the first."""
        return self.runs[-1].job if self.runs else {}

    @property
    def message(self) -> str:
        """What its failure, or its cap, says; empty for a complete trial."""
        if self.failure is not None:
            return self.failure.message
        return self.outcomes[-1].message if self.state is State.CAPPED else ""

    def measured(self, name: str) -> list[float]:
        """Return the metric's values from the complete runs that report it."""
        return [outcome.metrics[name] for outcome in self.outcomes if name in outcome.metrics]
