"""The records of a study's trials and of their runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import ConfigDict

from autotune.records.outcome import Outcome
from autotune.records.series import TUNING, Series, SeriesKind
from objectives.base import Answer
from spaces import Configuration

REPLAY_NOTICE = "replay of recorded measurements: times are simulated, nothing runs"
"""The notice in every session and every summary of a replay."""

RECORDED_CAP = "recorded-cap"
"""The code of a replayed run with only a bound on record, so that repeating it would show nothing new."""


ENDED = "ended"
"""The detail of a run that ended by itself before its last step, so that nothing is left to do."""

STOPPED = "stopped"
"""The detail of a run that was stopped because it was worse than others at its step."""


REPORTER = "who"
"""The detail of a run that another program made: the client that reported it; empty for the study's own user."""


class State(StrEnum):
    """The state of a trial.

    A paused trial works in steps and stopped before the last, so its value cannot be compared with final values.
    """

    RUNNING = "running"
    COMPLETE = "complete"
    CAPPED = "capped"
    PAUSED = "paused"
    FAILED = "failed"


@dataclass(frozen=True)
class Purpose:
    """The purpose of a run.

    Attributes:
        configuration: The configuration to run.
        trial: The number of its trial; None for a run of no trial.
        series: The series of the run.
        round: The round of a comparison.
        block: Runs of one block are made close together in time.
        steps: The step to stop at, for a program that works in steps.
        of: The last step that a trial may reach.
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
    """A run that has ended.

    Attributes:
        outcome: How it ended.
        started: When it started (ISO 8601).
        job: The description of the job, enough to make the run again.
        session: Facts about the session (provenance).
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    outcome: Outcome
    started: str = ""
    job: Mapping[str, Any] = field(default_factory=dict)
    session: Mapping[str, str] = field(default_factory=dict)

    @property
    def paused(self) -> bool:
        """Whether the program could continue, because it was stopped before its last step."""
        if self.steps is None or self.of is None or not self.outcome.complete:
            return False
        return STOPPED in self.outcome.details or (self.steps < self.of and ENDED not in self.outcome.details)

    @property
    def is_kept(self) -> bool:
        """Whether the run is stored: not after an infrastructure error, unless it was set aside."""
        return self.series.kind is SeriesKind.ASIDE or not self.outcome.retryable

    @property
    def began_s(self) -> float | None:
        """When it started, in seconds since 1970; None if it is not known, or another program stored it."""
        try:
            began = datetime.fromisoformat(self.started)
        except ValueError:
            return None
        return (began if began.tzinfo else began.replace(tzinfo=UTC)).timestamp()

    @property
    def is_set_aside(self) -> bool:
        """Whether the run does not count although it did not fail by itself: it worked, or others disturbed it."""
        return self.series.kind is SeriesKind.ASIDE and bool(self.outcome.measured or self.outcome.disturbed)

    @property
    def lean(self) -> Self:
        """The run without the text of its input files, to save memory; storage has the text."""
        return replace(self, job={name: value for name, value in self.job.items() if name != "files"})

    @property
    def core_s(self) -> float:
        """The core-seconds that the run held: its cores times the duration of its job."""
        return self.cores * self.outcome.usage.elapsed_s

    @property
    def cores(self) -> int:
        """The number of cores that the run held."""
        return int(self.job.get("resources", {}).get("cores", 1))

    @property
    def host(self) -> str:
        """The host of the run; empty if it is unknown."""
        # The batch system chooses the node of a batch job, which the job then records in its conditions.
        told = self.outcome.conditions
        elsewhere = told.get("host", "") or told.get("node", "") or self.session.get("host", "")
        hosts = self.job.get("resources", {}).get("hosts") or [elsewhere]
        return str(hosts[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able stored form."""
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
    """One configuration with its runs so far.

    Attributes:
        number: The number of the trial.
        configuration: Its configuration.
        runs: The runs that count. For a program that works in steps, the last segment, which contains all results.
        settled: Whether no further run could change the decision about the trial.
        earlier: The segments before the last.
    """

    number: int
    configuration: Configuration
    runs: tuple[Run, ...] = ()
    settled: bool = False
    earlier: tuple[Run, ...] = ()

    @classmethod
    def of(cls, number: int, configuration: Configuration, runs: Iterable[Run], *, settled: bool) -> "TrialRecord":
        """Return a trial with its runs, in the order in which they ended."""
        counting: tuple[Run, ...] = ()
        earlier: tuple[Run, ...] = ()
        for run in runs:
            counting, earlier = _with_run(counting, earlier, run)
        return cls(number, configuration, counting, settled, earlier)

    @property
    def core_s(self) -> float:
        """The core-seconds of all its runs, including earlier segments."""
        return sum(run.core_s for run in (*self.earlier, *self.runs))

    def with_run(self, run: Run) -> "TrialRecord":
        """Return the trial with one more run; a later segment replaces the one before it."""
        runs, earlier = _with_run(self.runs, self.earlier, run)
        return replace(self, runs=runs, earlier=earlier)

    @property
    def lean(self) -> "TrialRecord":
        """The trial with lean runs."""
        runs, earlier = (tuple(run.lean for run in some) for some in (self.runs, self.earlier))
        return replace(self, runs=runs, earlier=earlier)

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of its runs."""
        return [run.outcome for run in self.runs]

    @cached_property
    def failure(self) -> Outcome | None:
        """The last failure, if at least half of the runs failed; else None."""
        failed = [outcome for outcome in self.outcomes if outcome.failure is not None]
        return failed[-1] if failed and 2 * len(failed) >= len(self.runs) else None

    @cached_property
    def state(self) -> State:
        """The state of the trial. The newest run decides whether it is capped, since a capped trial may run again."""
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
        """The outcome of its newest complete run that reported steps; None if no run did."""
        return next((outcome for outcome in reversed(self.outcomes) if outcome.complete and outcome.timeline), None)

    @property
    def answer(self) -> Answer | None:
        """The answer of its first complete run."""
        return next((outcome.answer for outcome in self.outcomes if outcome.complete), None)

    @property
    def job(self) -> Mapping[str, Any]:
        """The job description of its newest run; empty before the first."""
        return self.runs[-1].job if self.runs else {}

    @property
    def message(self) -> str:
        """The message of its failure or of its cap; empty for a complete trial."""
        if self.failure is not None:
            return self.failure.message
        return self.outcomes[-1].message if self.state is State.CAPPED else ""

    def measured(self, name: str) -> list[float]:
        """Return the metric's values from the complete runs that report it."""
        return [outcome.metrics[name] for outcome in self.outcomes if name in outcome.metrics]


def _with_run(runs: tuple[Run, ...], earlier: tuple[Run, ...], run: Run) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """Return the runs that count, and the earlier segments, with one more run."""
    return ((*runs, run), earlier) if run.steps is None else ((run,), (*earlier, *runs))
