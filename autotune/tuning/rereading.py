"""Read the kept outputs of ended runs again, as the study file now says.

So a change of how outputs are read needs no new runs. All changes are stored in one transaction, and reading twice
gives the same result. If an output is gone, or its run was stopped early, the run keeps its old values. It is set aside
and made again if the metric itself has changed, or if it is compared with a run that was read again, because values
that were read in two ways must not be compared.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from autotune.coordination.places import hold_study
from autotune.coordination.session_settings import SessionSettings
from autotune.display.console import Display
from autotune.errors import StudyFileError
from autotune.execution.run_folder import kept_output
from autotune.execution.segments import Segment, join_segments
from autotune.execution.task import WRONG_ANSWER, read_outcome
from autotune.planning.prepare import Prepared, prepare
from autotune.records.outcome import Outcome
from autotune.records.series import Series, SeriesKind
from autotune.records.study import STOPPED, Run
from autotune.storage.readable_study import CONCLUSIONS, DEFINITION, READINGS, check_same
from autotune.storage.run_corrections import RunCorrections
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile
from autotune.studyfile.definition import changed_readings
from launchers import EndReason
from objectives import registry
from objectives.base import Answer, Output, Plan

# Runs on inputs of weight 0 are read by plans of their own, and their names contain the way of reading.
_NOT_READ = frozenset({SeriesKind.WARM_UP, SeriesKind.WORKLOAD, SeriesKind.ASIDE})


@dataclass(frozen=True)
class Rereading:
    """The result of reading runs again.

    Attributes:
        changed: Names of the readings whose rules have changed.
        read: Runs that were read.
        other: Runs of these whose outcome changed.
        valid: Runs of these that have become valid.
        invalid: Runs of these that are no longer valid.
        kept: Runs that keep their old values.
        aside: Runs that are set aside, to be made again.
        warm_ups: Warm-up runs, which are not read because they count for nothing.
        verified: Runs on inputs of weight 0, which are not read because the next comparison makes its own.
        removed: Runs of `kept` and `aside` without a folder.
    """

    changed: tuple[str, ...] = ()
    read: int = 0
    other: int = 0
    valid: int = 0
    invalid: int = 0
    kept: int = 0
    aside: int = 0
    warm_ups: int = 0
    verified: int = 0
    removed: int = 0

    def sentence(self) -> str:
        """Return a one-line summary."""
        why = f"the way of reading has changed ({', '.join(self.changed)}): " if self.changed else ""
        values = self.other - self.valid - self.invalid
        changes = [
            *([f"{self.valid} of them valid now"] if self.valid else []),
            *([f"{self.invalid} valid no more"] if self.invalid else []),
            *([f"{values} with another value or message"] if values else []),
        ]
        parts = [", ".join([f"{_runs(self.read)} read again", *(changes or ["none has changed"])])]
        if self.kept:
            parts.append(f"{_runs(self.kept)} as before, since the output is gone or the run was stopped early")
        if self.aside:
            parts.append(f"{_runs(self.aside)} to be made again, since an output is gone or a run was stopped early")
        if self.removed:
            parts.append(
                f"{_runs(self.removed)} of these without a folder here (`autotune storage clean` removes them)"
            )
        left = [
            *([f"{self.warm_ups} of warming up"] if self.warm_ups else []),
            *([f"{self.verified} on inputs of weight 0 (a comparison makes its own)"] if self.verified else []),
        ]
        if left:
            parts.append(f"not read: {' and '.join(left)}")
        return why + "; ".join(parts)


def reread_study(study: StudyFile, settings: SessionSettings, display: Display) -> Rereading:
    """Read the runs of a stored study again, wherever they were made, without running anything.

    Raises:
        AutotuneError: The study is busy, differs from the stored study, or has no outputs to read.
    """
    if registry.runs(study.objective) != "launched":
        msg = f"study {settings.name!r} (objective = {study.objective!r}) has no outputs here that could be read again"
        raise StudyFileError(msg)
    with hold_study(settings, display, makes_runs=False):
        store = StudyStore.read(settings.url, settings.name, read_only=False)
        prepared = prepare(study, settings.machine, settings.launcher, settings.plan, described=settings.facts)
        # The machine and the number of cores here do not change what was measured.
        stored = store.definition
        here = replace(prepared.definition, machine_identity=stored.machine_identity, space=stored.space)
        check_same(settings.url, settings.name, stored, here)
        found = reread(store, prepared, always=True)
    assert found is not None
    return found


def reread(store: StudyStore, prepared: Prepared, *, always: bool = False) -> Rereading | None:
    """Read the runs of a study again if the way of reading changed, or `always`; return None if nothing was read."""
    stored, now = store.definition, prepared.definition
    changed = changed_readings(stored, now)
    if not changed and not always:
        return None
    reader = _Reader(prepared.plan, prepared.whole, _default(store))
    stored_runs = store.runs_by_key()
    runs = {key: run for key, run in stored_runs.items() if run.series.kind not in _NOT_READ}
    kinds = Counter(run.series.kind for run in stored_runs.values())
    read = reader.all(runs)
    other = {key: outcome for key, outcome in read.items() if _text(outcome) != _text(runs[key].outcome)}
    aside = _find_incomparable(runs, read.keys(), other.keys(), changed)
    found = Rereading(
        changed,
        len(read),
        len(other),
        sum(outcome.complete and not runs[key].outcome.complete for key, outcome in other.items()),
        sum(runs[key].outcome.complete and not outcome.complete for key, outcome in other.items()),
        len(runs.keys() - read.keys() - aside),
        len(aside),
        kinds[SeriesKind.WARM_UP],
        kinds[SeriesKind.WORKLOAD],
        sum(_is_removed(run) for key, run in runs.items() if key not in read),
    )
    if not (changed or other):
        return found
    definition = replace(stored, reading=now.reading, metrics=now.metrics, options=now.options, study=now.study)
    read_anew = (runs[key] for key in (*other, *aside) if runs[key].series.is_tuning)
    affected = {run.trial for run in read_anew if run.trial is not None}
    before = (store.attribute(READINGS) or {}).get("readings", [])
    entry = {
        "at": datetime.now(UTC).isoformat(),
        "before": {name: stored.reading.get(name) for name in changed},
        "read": found.read,
        "valid": found.valid,
        "invalid": found.invalid,
        "kept": found.kept,
    }
    conclusions = dict.fromkeys(CONCLUSIONS) if other or aside else {}
    store.correct_runs(
        RunCorrections(
            outcomes=other,
            aside=aside,
            reopened=sorted(affected),
            attributes={
                DEFINITION: definition.to_dict(),
                READINGS: {"readings": [*before, entry]},
                **conclusions,
            },
        )
    )
    return found


@dataclass
class _Reader:
    """Reads runs; their answers must agree with the default's or, in a sweep without one, the base configuration's."""

    plan: Plan
    whole: Segment | None
    default: int | None
    read: dict[int, Outcome] = field(default_factory=dict)
    # For programs that work in steps: the newest outcome of each trial, which the next run continues.
    before: dict[int, Outcome] = field(default_factory=dict)

    def all(self, runs: Mapping[int, Run]) -> dict[int, Outcome]:
        """Return the outcomes of the runs that can be read, by key."""
        default = {key: run for key, run in runs.items() if run.series.is_tuning and run.trial == self.default}
        answer = self._reference(default)
        bases: dict[Series, Answer | None] = {}
        for series in {run.series for run in runs.values() if run.series.kind is SeriesKind.SWEEP and not answer}:
            its = {key: run for key, run in sorted(runs.items()) if run.series == series}
            # A sweep runs its base configuration first.
            base = next(iter(its.values())).configuration
            bases[series] = self._reference({key: run for key, run in its.items() if run.configuration == base})
        for key, run in sorted(runs.items()):
            if key not in self.read:
                self._read(key, run, answer or bases.get(run.series))
        return self.read

    def _reference(self, runs: Mapping[int, Run]) -> Answer | None:
        """Read the runs that others are compared with; return their answer, or the stored one if none can be read."""
        answer = None
        for key, run in sorted(runs.items()):
            outcome = self._read(key, run, answer)
            if outcome is not None and outcome.complete:
                answer = answer or outcome.answer
        kept = (run.outcome.answer for key, run in sorted(runs.items()) if key not in self.read)
        return answer or next((stored for stored in kept if stored is not None), None)

    def _read(self, key: int, run: Run, reference: Answer | None) -> Outcome | None:
        outcome = self._outcome(run, reference)
        if outcome is not None:
            self.read[key] = outcome
        if run.steps is not None and run.trial is not None:
            self.before[run.trial] = outcome or run.outcome
        return outcome

    def _outcome(self, run: Run, reference: Answer | None) -> Outcome | None:
        """Return the outcome of a run as it is read now; None if it cannot be read."""
        old, folder = run.outcome, run.job.get("folder")
        if old.capped or not folder:
            return None
        output = kept_output(Path(folder), old.usage, self.plan.output_files)
        if output is None:
            return None
        segment = self.whole
        if run.steps is not None and run.of is not None:
            segment = Segment(run.steps, run.of, self.plan.objective.metrics[0])
        if output.status.reason is EndReason.CANCELLED:
            if segment is None:
                return None
            output = _as_ended_by_itself(output)
        new = self._read_against(output, reference, segment)
        if new.retryable or (reference is None and new.answer is not None and old.code == WRONG_ANSWER):
            return None
        if segment is not None:
            if STOPPED in old.details and new.complete:
                new = replace(new, details={**new.details, STOPPED: old.details[STOPPED]})
            new = join_segments(self.before.get(run.trial) if run.trial is not None else None, new, segment)
        return replace(new, timeline=old.timeline, conditions=old.conditions, usage=old.usage, attempts=old.attempts)

    def _read_against(self, output: Output, reference: Answer | None, segment: Segment | None) -> Outcome:
        new = read_outcome(self.plan.objective, output, None, segment)
        if new.answer is None or reference is None:
            return new
        # The tolerances may have changed since the reference was read.
        return read_outcome(self.plan.objective, output, reference.with_tolerances_of(new.answer), segment)


def _as_ended_by_itself(output: Output) -> Output:
    """Return the output of a run that was stopped at its step as if it had ended by itself."""
    return replace(output, status=replace(output.status, reason=EndReason.EXITED, exit_code=0))


def _find_incomparable(
    runs: Mapping[int, Run], read: Collection[int], other: Collection[int], changed: Collection[str]
) -> frozenset[int]:
    """Return the runs that must be made again: others that they are compared with are now read in another way."""
    # With several inputs, the name of the input follows that of the metric.
    is_another_metric = any(name.partition("[")[0] == "metrics" for name in changed)
    series = {runs[key].series for key in other if runs[key].series.is_comparison}
    aside = {
        key
        for key, run in runs.items()
        if key not in read and (run.series in series or (is_another_metric and run.outcome.failure is None))
    }
    # A trial starts over as a whole: runs are named by their number, and those of a program in steps continue one
    # another.
    anew = {runs[key].trial for key in aside if runs[key].series.is_tuning}
    return frozenset(aside | {key for key, run in runs.items() if run.series.is_tuning and run.trial in anew})


def _default(store: StudyStore) -> int | None:
    return min((trial.number for trial in store.trials()), default=None)


def _text(outcome: Outcome) -> str:
    """Return an outcome as JSON after a round trip, so that tuples and whole numbers are as storage returns them."""
    stored = Outcome.from_dict(json.loads(json.dumps(outcome.to_dict())))
    return json.dumps(stored.to_dict(), sort_keys=True)


def _is_removed(run: Run) -> bool:
    folder = run.job.get("folder") or ""
    return folder != "" and not Path(folder).exists()


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
