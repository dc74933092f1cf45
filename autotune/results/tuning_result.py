"""The result of tuning in a few words and figures: the gain, the trials, the time and the cost of a stored study."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf

from autotune.decisions.table import DecisionTable, table_of
from autotune.records.series import SeriesKind
from autotune.records.study import Run
from autotune.results.known_configurations import known_configuration
from autotune.results.summary import summarise
from autotune.storage.readable_study import ReadableStudy

_PAUSE_S = 300.0
_NOTHING = "no valid measurement yet"
_REPLAY = "a replay: nothing ran"


@dataclass(frozen=True)
class TuningResult:
    """The result of tuning a study.

    Attributes:
        over_the_default: The verdict or the decision table in a few words.
        trials: The number of settled trials.
        runs: The number of runs.
        took_s: How long the study was at work, in seconds.
        spent_core_s: The core-seconds of its runs.
        saved_core_s: The core-seconds saved by stopping runs that had lost and by not repeating clear ones.
    """

    over_the_default: str
    trials: int
    runs: int
    took_s: float
    spent_core_s: float
    saved_core_s: float


NOT_TUNED = TuningResult("not tuned here", 0, 0, 0.0, 0.0, 0.0)
"""The result of a study that was never tuned here."""


def tuning_result_of(store: ReadableStudy) -> TuningResult:
    """Return the result of a stored study."""
    summary = summarise(store)
    if summary.definition.replay:
        return replace(NOT_TUNED, over_the_default=_REPLAY)
    # The cost of later checks by a watch is not part of the study's.
    runs = [run for run in store.runs() if run.series.kind is not SeriesKind.WATCH]
    known, table, ledger = known_configuration(store, summary), table_of(store), summary.ledger
    if table is not None:
        sentence = _of_cells(table)
    else:
        sentence = summary.verdict_sentence() or _NOTHING if known is None else known.gain
    return TuningResult(
        over_the_default=sentence.rstrip("."),
        trials=summary.finished,
        runs=len(runs),
        took_s=took_s(runs),
        spent_core_s=ledger.spent,
        saved_core_s=ledger.saved_by_caps + ledger.spared_by_racing,
    )


def _of_cells(table: DecisionTable) -> str:
    """Return in how many cells of a decision table another setting is better, and the gain over all cells."""
    text = f"{len(table.changed)} of {len(table.decisions)} cells better than the default"
    if table.overall is None:
        return text
    ratio, low, high = table.overall
    return f"{text}; {ratio:.3f}x ({low:.3f} to {high:.3f}) over all"


def took_s(runs: Iterable[Run]) -> float:
    """Return how long a study was at work, in seconds.

    Gaps between runs count up to five minutes; longer ones are pauses. The time to start autotune and to install
    programs is not included.
    """
    times = [(began_s, began_s + run.outcome.usage.elapsed_s) for run in runs if (began_s := _began_s(run)) is not None]
    total_s, until_s = 0.0, -inf
    for began_s, ended_s in sorted(times):
        since_s = began_s if began_s - until_s > _PAUSE_S else until_s
        total_s += max(0.0, ended_s - since_s)
        until_s = max(until_s, ended_s)
    return total_s


def _began_s(run: Run) -> float | None:
    try:
        began = datetime.fromisoformat(run.started)
    except ValueError:
        return None
    return (began if began.tzinfo is not None else began.replace(tzinfo=UTC)).timestamp()
