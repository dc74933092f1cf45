"""The end of a session: the best of tuning, a trade-off's preferred point, or a decision table, against the default."""

from autotune.comparison.confirm import confirm, confirm_point
from autotune.comparison.confirm_table import confirm_table
from autotune.comparison.verified_inputs import verify_on_inputs
from autotune.coordination.run_manager import RunManager
from autotune.planning.prepare import Prepared
from autotune.records.limit import breaks
from autotune.results.summary import summarise
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile


def judge(store: StudyStore, manager: RunManager, study: StudyFile, prepared: Prepared) -> None:
    """Compare what tuning found with the default."""
    if study.decisions is not None:
        confirm_table(store, manager, study, study.decisions)
    elif study.tradeoff is not None:
        confirm_preferred(store, manager, study)
    else:
        confirm(store, manager, study)
        verify_on_inputs(store, manager, study, prepared.verified)


def confirm_preferred(store: StudyStore, manager: RunManager, study: StudyFile) -> None:
    """Confirm the preferred point; where it turns out to break a limit, the next that is chosen.

    Without weights no point matters more than others, and none is confirmed.
    """
    while True:
        summary = summarise(store)
        preference, front = summary.preference, summary.front
        if preference is None or front is None:
            return
        point = summary.standings.trials[preference.point.trial]
        confirm_point(store, manager, study, front.metrics, point)
        broken = summarise(store).standings.limits.breaches(point.number)
        if not broken:
            return
        manager.display.line(f"trial {point.number} {breaks(broken)} in fresh runs: another point is chosen")
