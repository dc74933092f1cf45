"""Studies that stop by themselves: when they do, when they do not, and what they say."""

from dataclasses import replace
from math import exp, sin

import pytest

from autotune.display.console import Status, panel
from autotune.errors import StudyFileError
from autotune.planning.prepare import prepare
from autotune.records.expected_gain import ExpectedGain
from autotune.records.study import Run, TrialRecord
from autotune.results.summary import summarise
from autotune.scheduling.stopping import StoppingForecast, can_forecast, is_due, least_gain
from autotune.statistics.standings import Standings
from autotune.studyfile import BudgetSection, RepeatsSection, StudyFile
from autotune.tuning.loop import Ending
from autotune.tuning.session import run_study
from spaces import Count, Integer, Space
from tests.autotune.tuning import test_replay as replays
from tests.support.fakes import SECONDS, ListDisplay, took
from tests.support.simulated import SimulatedExecutor, Simulation, study_file

SQUARE = Space([Integer.range("x", 0, 24, default=12), Integer.range("y", 0, 24, default=12)])
HILLS = Space([Integer.range(name, 0, 9, default=5) for name in "abcd"])
NOISE = 0.005
AUTO = {"trials": "auto"}
NO_CAPS = {"caps": False}


def flat(configuration, rng):
    return 100.0 * exp(NOISE * rng.standard_normal())


def slope(configuration, rng):
    """Fall along four axes at once, the farther the better two of them go together."""
    a, b, c, d = (configuration[name] for name in "abcd")
    return 100.0 * exp(-0.02 * (a * b + c * d) + 0.5 * sin(a + 2 * c) + 0.5 * sin(2 * b + d) + NOISE * rng.normal())


def record(number, *seconds):
    return TrialRecord(number, {}, tuple(Run({}, outcome=took(one)) for one in seconds), settled=True)


def simulation(value_of, space=SQUARE, *, caps=False, **budget):
    file = study_file(seed=1, repeats=RepeatsSection(caps=caps))
    study = file.model_copy(update={"budget": BudgetSection(trials="auto", **budget)})
    return Simulation.of(space, SimulatedExecutor(value_of, 0), study)


@pytest.mark.slow
def test_a_flat_space_is_left_early_and_the_same_command_does_nothing():
    simulated = simulation(flat)
    assert simulated.tune() is Ending.PAYS_NO_MORE
    trials, runs = len(simulated.store.trials()), len(simulated.store.runs())
    assert 20 <= trials <= 40
    assert simulated.tune() is Ending.PAYS_NO_MORE
    assert (len(simulated.store.trials()), len(simulated.store.runs())) == (trials, runs)


@pytest.mark.slow
def test_where_there_is_a_slope_the_search_goes_on():
    simulated = simulation(slope, HILLS, max_trials=30)
    assert simulated.tune() is Ending.BUDGET
    assert len(simulated.store.trials()) == 30
    outlook = summarise(simulated.store).outlook
    assert outlook is None or not outlook.stopped


@pytest.mark.slow
def test_bounds_of_capped_trials_are_not_taken_for_knowledge():
    simulated = simulation(flat, caps=True)
    assert simulated.tune() is Ending.PAYS_NO_MORE
    trials = simulated.store.trials()
    values = sum(trial.complete for trial in trials)
    assert values + (len(trials) - values) / 6 >= 15
    assert 25 < len(trials) < 200
    steep = simulation(slope, HILLS, caps=True, max_trials=40)
    assert steep.tune() is Ending.BUDGET


def test_more_trials_can_be_asked_for_after_it_stopped():
    simulated = simulation(flat)
    simulated.tune()
    before = len(simulated.store.trials())
    assert simulated.tune(before + 3) is Ending.BUDGET
    assert len(simulated.store.trials()) == before + 3
    # The old forecast no longer describes this study.
    assert summarise(simulated.store).outlook is None


def test_a_small_space_is_judged_by_its_size():
    assert not can_forecast(19, Count(1000))
    assert can_forecast(20, Count(1000))
    assert not can_forecast(14, Count(29))
    assert can_forecast(15, Count(29))
    # An estimate may be wrong by much.
    assert not can_forecast(15, Count(29, exact=False))
    assert [n for n in range(40) if is_due(n, Count(1000))] == [20, 25, 30, 35]


def test_what_matters_is_the_least_gain_or_the_noise_and_less_where_trials_are_free():
    def of(seconds, runs, **repeats):
        trials = [record(0, *[seconds] * runs), record(1, *[0.9 * seconds] * runs)]
        study = StudyFile(name="a", objective="b", repeats=RepeatsSection(**repeats))
        return least_gain(Standings.of(trials, SECONDS), study)

    assert of(100.0, 200, min_gain=0.03) == pytest.approx(0.03)
    assert of(0.001, 200, min_gain=0.03) == pytest.approx(0.003)
    # One run each, and runs are thought to differ by 2 %.
    assert of(100.0, 1, min_gain=0.01) == pytest.approx(exp(0.02 * 2**0.5) - 1.0)
    assert of(1.0, 1, min_gain=0.01) == pytest.approx(exp(0.02 * 2**0.5) - 1.0)


def test_one_dull_look_is_not_enough():
    calm, lively = ExpectedGain(20, 0.005), ExpectedGain(20, 0.5)
    look = StoppingForecast(30, calm, 0.01)
    assert look.is_calm_after(StoppingForecast(25, calm, 0.01, due=(25, 0.005)))
    # Between them a session ended.
    assert look.is_calm_after(StoppingForecast(27, lively, 0.01, due=(25, 0.005)))
    assert not look.is_calm_after(None)
    assert not look.is_calm_after(StoppingForecast(25, calm, 0.01))
    assert not look.is_calm_after(StoppingForecast(25, lively, 0.01, due=(25, 0.5)))
    assert not StoppingForecast(30, lively, 0.01).is_calm_after(StoppingForecast(25, calm, 0.01, due=(25, 0.005)))
    # The look before was at another time.
    assert not look.is_calm_after(StoppingForecast(20, calm, 0.01, due=(20, 0.005)))


@pytest.mark.slow
def test_how_often_a_session_ends_does_not_matter():
    whole = simulation(flat)
    whole.tune()
    cut = simulation(flat)
    for trials in (22, 23, 24):
        short = cut.study.model_copy(update={"budget": BudgetSection(trials="auto", max_trials=trials)})
        replace(cut, study=short).tune()
    assert cut.tune() is Ending.PAYS_NO_MORE
    assert len(cut.store.trials()) == len(whole.store.trials())


def test_the_words():
    found = StoppingForecast(46, ExpectedGain(20, 0.004), 0.01, stopped=True)
    assert found.sentence() == (
        "stopped after 46 trials: 20 more would make the best at most 0.4% better (90% sure); 1.0% would matter"
    )
    assert StoppingForecast.from_dict(found.to_dict()) == found
    ended = StoppingForecast(50, ExpectedGain(20, 0.0), 0.01)
    assert ended.sentence() == "20 more trials would make the best less than 0.1% better (90% sure)"


def test_a_stop_holds_while_nothing_changed():
    trials = [record(number, *[100.0 + number] * 200) for number in range(3)]
    standings = Standings.of(trials, SECONDS)
    study = StudyFile(name="a", objective="b", budget=BudgetSection(trials="auto"))
    found = StoppingForecast(3, ExpectedGain(20, 0.005), 0.01, stopped=True)
    assert found.holds(standings, study)
    assert not found.holds(Standings.of(trials[:2], SECONDS), study)
    assert not found.holds(standings, study.model_copy(update={"budget": BudgetSection(trials=50)}))
    assert not found.holds(standings, study.model_copy(update={"repeats": RepeatsSection(min_gain=0.002)}))
    assert not StoppingForecast(3, ExpectedGain(20, 0.005), 0.01).holds(standings, study)


@pytest.mark.slow
def test_a_whole_study_says_why_it_stopped_and_goes_on_when_told(tmp_path):
    display = ListDisplay()
    summary = replays.replayed(tmp_path, display, budget=AUTO, repeats=NO_CAPS)
    assert "tuning ended: more search no longer pays" in display.lines
    assert summary.outlook.stopped
    assert summary.finished == summary.outlook.after < 64
    assert f"search: stopped after {summary.finished} trials: 20 more would make the best" in summary.text()
    assert summary.to_dict()["outlook"]["sentence"] == summary.outlook.sentence()
    again = ListDisplay()
    runs = len(replays.stored(tmp_path).runs())
    assert replays.replayed(tmp_path, again, budget=AUTO, repeats=NO_CAPS).best_text() == summary.best_text()
    assert len(replays.stored(tmp_path).runs()) == runs
    assert not any(line.startswith("tuning ended") for line in again.lines)
    more = replays.replayed(tmp_path, budget={"trials": summary.finished + 2}, repeats=NO_CAPS)
    assert more.finished == summary.finished + 2
    assert "search: 20 more trials would make the best" in more.text()


@pytest.mark.slow
def test_a_stop_in_the_middle_of_the_verdict_is_remembered(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("autotune.tuning.goal.OneWinner.confirm", interrupted)
        with pytest.raises(KeyboardInterrupt):
            replays.replayed(tmp_path, budget=AUTO, repeats=NO_CAPS)
    before = len(replays.stored(tmp_path).trials())
    summary = replays.replayed(tmp_path, budget=AUTO, repeats=NO_CAPS)
    assert len(summary.trials) == before
    assert summary.present_verdict is not None or summary.verdict_sentence() is not None


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"sampler": {"name": "random"}}, "needs the sampler 'autotune'"),
        ({"stopping": {"max_steps": 9}}, r"cannot be had with \[stopping\]"),
        ({"tradeoff": {"metric": "x"}}, r"cannot be had with \[tradeoff\]"),
    ],
)
def test_who_cannot_tell_when_to_stop_is_refused(tmp_path, sections, said):
    study = replays.study_file(tmp_path, budget={"trials": "auto"}, **sections)
    place = replays.settings(tmp_path)
    with pytest.raises(StudyFileError, match=rf"trials = 'auto' {said}.* @ budget.trials"):
        prepare(study, place.machine, place.launcher, tmp_path / "plan")
    with pytest.raises(StudyFileError):
        run_study(study, place, ListDisplay())


def test_the_panel_does_not_pretend_to_know_the_end():
    standings = Standings.of([record(0, 1.0)], SECONDS)
    grid = panel(Status(standings, budget=200, finished=7, left_s=None, open_ended=True)).renderables[0]
    cells = [cell for column in grid.columns for cell in column._cells]
    assert "7 of at most 200" in cells
    assert not any("left" in str(cell) for cell in cells)
