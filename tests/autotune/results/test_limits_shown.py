import pytest

from autotune.display.console import Status
from autotune.display.messages import Messages
from autotune.pictures.chart import Line, Points
from autotune.pictures.progress import progress
from autotune.records.outcome import Outcome
from autotune.records.study import Run, TrialRecord
from autotune.report.headline import headline
from autotune.report.results import figures
from autotune.results.summary import summarise
from autotune.service.summaries import brief_of, rows_of
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from launchers import Usage
from objectives.base import Metric
from tests.autotune.display.test_console import drawn
from tests.support.fakes import SECONDS, definition, small_space, study_file
from tests.support.stored import add_trial

P99 = Metric("p99", "ms")


@pytest.fixture
def shown(tmp_path):
    """Return the summary of a study of these trials, (seconds, p99), the default first."""

    def made(*trials, most=20):
        study = study_file(limits={"p99": {"max": most}}).model_dump(mode="json")
        known = definition(small_space(), metrics=(SECONDS, P99), study=study)
        store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", known)
        for place, (seconds, p99) in enumerate(trials):
            outcome = Outcome(metrics={"wall_s": seconds, "p99": p99}, usage=Usage(elapsed_s=seconds))
            add_trial(store, small_space(), {"np": 8 - place}, outcome, worth=Observation(value=seconds))
        return summarise(store)

    return made


def test_every_view_shows_that_a_trial_breaks_a_limit(shown):
    summary = shown((3.0, 10.0), (1.0, 31.0), (2.0, 20.0))
    (default, fast, best), _ = rows_of(summary, -1, 10)
    assert (fast.state, fast.value, fast.breaks) == ("complete", 1.0, "p99 <= 20 ms: 31 ms")
    assert (default.breaks, best.breaks) == ("", "")
    assert brief_of(summary)["best"] == 2.0
    assert "limits: p99 <= 20 ms; 2 of 3 trials with a value keep them" in summary.best_text()
    assert ("limits", "p99 <= 20 ms; 2 of 3 trials with a value keep them") in figures(summary, [])
    trial = summary.trials[1]
    assert "breaks p99 <= 20 ms: 31 ms" in Messages(summary.standings).run_ended(trial, trial.outcomes[0])
    marks = progress(summary).panels[0].marks
    line = next(mark for mark in marks if isinstance(mark, Line) and mark.label == "best so far")
    assert line.y == pytest.approx((3.0, 2.0, 2.0))
    points = next(mark for mark in marks if isinstance(mark, Points) and mark.label == "breaks a limit")
    assert (points.x, points.y) == ((1.0,), pytest.approx((1.0,)))
    assert "breaks p99 <= 20 ms: 31 ms" in points.hover[0]


def test_the_nearest_trial_is_named_if_none_keeps_the_limits(shown):
    summary = shown((3.0, 40.0), (1.0, 31.0))
    sentence = "No feasible configuration found; the nearest is trial 1, which breaks p99 <= 20 ms: 31 ms"
    assert brief_of(summary)["verdict"] == sentence
    assert brief_of(summary)["best"] is None
    assert headline(summary).kind == "nothing"
    assert "nothing keeps the limits yet; trial 1 breaks p99 <= 20 ms: 31 ms" in drawn(Status(summary.standings, 10, 2))
    assert progress(summary).description == "2 trials did not keep the limits."


def test_runs_that_only_now_and_then_break_a_limit_say_so_though_the_trial_keeps_it(shown):
    summary = shown((3.0, 10.0))
    outcomes = [Outcome(metrics={"wall_s": 1.0, "p99": p99}) for p99 in (18.0, 19.0, 25.0)]
    trial = TrialRecord(1, {"np": 4}, tuple(Run({"np": 4}, 1, outcome=one) for one in outcomes), settled=True)
    summary.standings.update(trial)
    assert summary.standings.incumbent is trial
    assert "breaks" in Messages(summary.standings).run_ended(trial, outcomes[-1])
