"""What others took from the runs of a study, run by run, and in a sentence."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from autotune.records.outcome import DISTURBED
from autotune.records.study import Run


@dataclass(frozen=True)
class TakenShare:
    """The `share` of a run's time that others took, `at_s` seconds after the first run; and whether it is set aside."""

    at_s: float
    share: float
    trial: int | None
    purpose: str
    is_disturbed: bool


def taken_shares(runs: Iterable[Run]) -> tuple[TakenShare, ...]:
    """Return what others took of each run, if that is known, in the order in which the runs began."""
    known: list[tuple[datetime, Run, float]] = []
    for run in runs:
        share = run.outcome.disturbance.taken_share
        with suppress(ValueError):  # stored by another program
            if share is not None:
                known.append((datetime.fromisoformat(run.started).replace(tzinfo=UTC), run, share))
    known.sort(key=lambda entry: entry[0])
    return tuple(
        TakenShare(
            (began - known[0][0]).total_seconds(),
            share,
            run.trial,
            run.series.before.kind.label,
            run.outcome.code == DISTURBED,
        )
        for began, run, share in known
    )


def disturbance_sentence(taken: Sequence[TakenShare]) -> str:
    """Say how much others took; empty where nobody knows."""
    if not taken:
        return ""
    shares, disturbed = [one.share for one in taken], sum(one.is_disturbed for one in taken)
    said = f"others kept runs from running for {median(shares):.1%} of their time (median), {max(shares):.0%} at most"
    return f"{said}; of {len(taken)} runs, {disturbed} set aside for that" if disturbed else said
