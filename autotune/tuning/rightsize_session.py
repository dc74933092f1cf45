"""The session that finds a right size. Its model takes a second to import, so no other session shares this module."""

from autotune.comparison.rightsize_probes import SizingRequest, check_target_is_time
from autotune.coordination.session_settings import SessionSettings
from autotune.display.console import Display
from autotune.performance.rightsizing.right_size import RightSize
from autotune.studyfile import StudyFile
from autotune.tuning.opening import open_run_manager, open_study
from objectives.base import Objective


def rightsize_study(
    study: StudyFile, settings: SessionSettings, display: Display, request: SizingRequest
) -> tuple[RightSize, Objective]:
    """Run a few jobs of different sizes; return the best size within the limits of `request`, and what makes its job.

    Raises:
        AutotuneError: The study is busy or cannot run here, or its target is not a time.
    """
    with open_study(
        study, settings, display, lambda prepared: check_target_is_time(prepared.definition.target)
    ) as opened:
        prepared, place = opened.prepared, opened.settings
        facts, folder = place.machine.facts, place.plan / "sizes"
        sizing = request.sizing(opened.store, prepared.plan, prepared.space, facts, folder)
        if len(sizing.probes()) < request.runs and sizing.knowledge().next() is not None:
            with open_run_manager(opened) as manager:
                sizing.probe(manager, study, request.runs)
        return sizing.right_size(), prepared.plan.objective
