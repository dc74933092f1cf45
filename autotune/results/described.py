"""What a summary says of verdicts, as JSON, and of a decision table."""

from collections.abc import Sequence
from typing import Any

from autotune.comparison.findings import InputComparison
from autotune.comparison.limit_verdict import NO_LIMITS, LimitVerdict
from autotune.formatting import listed
from autotune.records.study import Definition
from autotune.statistics.verdict import Verdict
from autotune.studyfile.stored import study_of
from objectives.base import Metric


def described(
    verdict: Verdict | None, metric: Metric, on_limits: LimitVerdict = NO_LIMITS, tuned: Sequence[float] = ()
) -> dict[str, Any] | None:
    """Return a verdict with its sentence and its interval; None without one."""
    if verdict is None:
        return None
    values = verdict.to_dict() | {"sentence": on_limits.sentence(verdict, metric)}
    if on_limits.limits:
        values |= {"limits": on_limits.to_dict()}
    if verdict.known:
        speed, low, high = verdict.interval(metric)
        values |= {
            "speed_up": speed,
            "low": low,
            "high": high,
            "significant": verdict.significant(metric),
            "doubt": verdict.doubt(metric, tuned),
        }
    return values


def described_input(comparison: InputComparison, metric: Metric) -> dict[str, Any]:
    """Return the verdict on an input of weight 0, with the keys of those that are optimised."""
    return (described(comparison.verdict, metric) or {}) | {
        "share": 0.0,
        "loses": comparison.verdict.slower(metric),
        "sentence": comparison.sentence(metric),
        "facts": dict(comparison.facts),
    }


def table_sentence(name: str, definition: Definition) -> str | None:
    """Say that a study has a decision table, and how it is seen; None where it looks for one winner."""
    section = study_of(definition).decisions
    if section is None:
        return None
    return f"No single winner: a decision table over {listed(section.over)}; `autotune best {name}` prints it."
