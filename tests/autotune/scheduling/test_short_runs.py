import json
from dataclasses import replace
from math import exp

from autotune.execution import simulated_executor
from autotune.records.outcome import Outcome
from autotune.records.series import SeriesKind
from autotune.records.study import State
from autotune.statistics.standings import Standings
from autotune.studyfile.fidelity import FidelitySection
from autotune.tuning.schedulers import scheduler_of
from objectives.base import FailureKind
from spaces import Integer, Space
from tests.support.fakes import SECONDS
from tests.support.lengths import STEPS, LengthSimulation
from tests.support.simulated import study_file, told

SPACE = Space([Integer.range("a", 0, 5, default=2), Integer.range("b", 0, 3, default=1)])
SECTION = FidelitySection(parameter=STEPS, low=100, high=1000, production=100_000)


def pace(configuration):
    return 0.01 * (1.0 + abs(configuration["a"] - 1) + 0.3 * configuration["b"])


def steady(configuration, steps):
    return 1.0 + pace(configuration) * steps


def simulated(seconds, *, trials=24, short=True, seed=0, every=0):
    """Return a study; its runs tell one step in `every`."""

    def drawn(configuration, rng, _worker):
        steps = int(configuration[STEPS]) or SECTION.high
        seconds_of = seconds(configuration, steps)
        if isinstance(seconds_of, Outcome):
            return told(seconds_of)
        factor = exp(0.005 * rng.standard_normal())
        points = range(every, steps + 1, every) if every else ()
        lines = [(seconds(configuration, step) * factor, json.dumps({"step": step})) for step in points]
        run = told(seconds_of * factor)
        return replace(run, lines=(*lines, *run.lines))

    study = study_file(trials=trials, seed=seed)
    study = study.model_copy(update={"fidelity": SECTION}) if short else study
    return LengthSimulation.of(SPACE, simulated_executor.SimulatedExecutor(drawn, seed), study)


def tuned(seconds, **options):
    simulation = simulated(seconds, **options)
    simulation.tune()
    return simulation, Standings.of(simulation.store.trials(), SECONDS)


def best_of(seconds, standings):
    return min(seconds(trial.configuration, SECTION.high) for trial in standings.trials.values())


def test_most_trials_are_left_after_a_short_run_and_the_winner_is_the_same():
    whole, _ = tuned(steady, short=False)
    short, standings = tuned(steady)
    assert short.executor.spent_s < whole.executor.spent_s
    assert steady(standings.incumbent.configuration, SECTION.high) == best_of(steady, standings)
    left = {trial.number for trial in standings.trials.values() if trial.state is State.SHORT}
    assert len(left) >= 6
    # What was only foretold is no value.
    assert not left & {trial.number for trial in standings.measured}
    assert all(trial.settled for trial in standings.trials.values())


def test_where_short_runs_rank_the_wrong_way_round_the_winner_is_the_best_nevertheless():
    def fooling(configuration, steps):
        wrong = 0.06 - pace(configuration)
        return 1.0 + (wrong if steps < SECTION.high else pace(configuration)) * steps

    _, standings = tuned(fooling)
    assert fooling(standings.incumbent.configuration, SECTION.high) <= 1.02 * best_of(fooling, standings)


def test_a_value_with_a_slow_start_of_its_own_wins_nevertheless():
    def hidden(configuration, steps):
        is_hidden = configuration["a"] == 5
        return 1.0 + 5.0 * is_hidden + (0.004 if is_hidden else pace(configuration)) * steps

    _, standings = tuned(hidden)
    assert hidden(standings.incumbent.configuration, SECTION.high) == best_of(hidden, standings)


def test_a_session_that_goes_on_makes_no_short_run_again():
    simulation, _ = tuned(steady, trials=8)
    before = len(simulation.store.runs())
    simulation.tune(9)
    runs = simulation.store.runs()
    short = [run.trial for run in runs if run.series.kind is SeriesKind.SHORT and run.trial != 0]
    assert len(runs) > before
    assert len(short) == len(set(short))


def test_what_fails_when_it_is_short_is_run_whole():
    def too_short(configuration, steps):
        if steps < SECTION.high and configuration["b"] == 0:
            return Outcome(failure=FailureKind.APPLICATION_ERROR, code="x", message="too short")
        return steady(configuration, steps)

    _, standings = tuned(too_short)
    assert steady(standings.incumbent.configuration, SECTION.high) == best_of(steady, standings)
    assert "application-error" not in standings.counts


def test_the_default_has_short_runs_now_and_then_each_with_a_name_of_its_own():
    simulation, _ = tuned(steady)
    runs = [run for run in simulation.store.runs() if run.series.kind is SeriesKind.SHORT]
    trials = [run.trial for run in runs]
    assert trials.count(0) == 1 + (len(trials) - trials.count(0) - 1) // 10
    assert [place for place, number in enumerate(trials) if number == 0][:2] == [0, 11]


def test_where_the_machine_drifts_the_default_runs_more_often_and_nothing_is_capped():
    def drifting(simulation):
        def seconds(configuration, steps):
            return steady(configuration, steps) * (1.3 if int(simulation[0].executor.spent_s / 60) % 2 else 1.0)

        return seconds

    def made(seconds, holder=None):
        simulation = simulated(seconds)
        if holder is not None:
            holder.append(simulation)
        simulation.tune()
        return simulation.store.trials()

    holder = []
    moved, still = made(drifting(holder), holder), made(steady)
    assert len(moved[0].runs) > len(still[0].runs)


def test_where_twelve_whole_runs_do_not_show_that_short_ones_rank_no_more_are_made_though_most_are_capped():
    def alike(configuration, steps):
        same = 2.0 + 0.002 * ((7 * configuration["a"] + 3 * configuration["b"]) % 5)
        return same if steps < SECTION.high else steady(configuration, steps)

    simulation, standings = tuned(alike)
    short = {run.trial for run in simulation.store.runs() if run.series.kind is SeriesKind.SHORT} - {0}
    capped = {trial.number for trial in standings.trials.values() if trial.state is State.CAPPED}
    assert capped & short
    assert len(short) <= 13
    assert sum(bool(trial.runs) for trial in standings.trials.values()) == 24


def test_where_a_short_run_takes_nearly_as_long_as_a_whole_one_only_the_default_has_one():
    def dear(configuration, steps):
        return 20.0 + steady(configuration, steps)

    whole, _ = tuned(dear, short=False)
    simulation, standings = tuned(dear)
    short = [run for run in simulation.store.runs() if run.series.kind is SeriesKind.SHORT]
    assert [run.trial for run in short] == [0]
    # Nothing is left uncapped to be learnt from.
    assert any(trial.state is State.CAPPED for trial in standings.trials.values())
    spent_s = simulation.executor.spent_s - short[0].outcome.usage.elapsed_s
    assert spent_s < 1.02 * whole.executor.spent_s


def test_that_the_best_gets_better_and_caps_come_earlier_does_not_hide_that_short_runs_rank():
    def close(configuration, steps):
        return 1.0 + 0.4 * configuration["b"] + 0.01 * (1.0 + 0.02 * configuration["a"]) * steps

    whole, _ = tuned(close, short=False)
    simulation, standings = tuned(close)
    short = {run.trial for run in simulation.store.runs() if run.series.kind is SeriesKind.SHORT} - {0}
    assert len(short) == 23
    assert simulation.executor.spent_s < whole.executor.spent_s
    assert close(standings.incumbent.configuration, SECTION.high) <= 1.02 * best_of(close, standings)


def test_runs_that_tell_their_steps_need_no_short_ones_and_are_stopped_by_their_paces():
    whole, _ = tuned(steady, short=False)
    simulation, standings = tuned(steady, every=50)
    assert all(run.series.kind is not SeriesKind.SHORT for run in simulation.store.runs())
    assert simulation.executor.spent_s < 0.8 * whole.executor.spent_s
    assert steady(standings.incumbent.configuration, SECTION.high) <= 1.02 * best_of(steady, standings)


def test_a_start_that_hides_the_best_does_not_have_it_stopped_by_its_pace():
    def hidden(configuration, steps):
        is_hidden = configuration["a"] == 5
        late = 3.0 * min(steps, 200) / 200 if is_hidden else 0.0
        return 1.0 + late + (0.004 if is_hidden else pace(configuration)) * steps

    _, standings = tuned(hidden, every=50)
    assert hidden(standings.incumbent.configuration, SECTION.high) == best_of(hidden, standings)


def test_races_wait_until_there_are_no_new_trials():
    simulation, standings = tuned(steady)
    runs = [run for run in simulation.store.runs() if run.trial != 0]
    last_new = max(place for place, run in enumerate(runs) if run.series.kind is SeriesKind.SHORT)
    seen = set()
    repeated = [p for p, run in enumerate(runs) if run.series.is_tuning and (run.trial in seen or seen.add(run.trial))]
    assert repeated
    assert min(repeated) > last_new
    assert len(standings.incumbent.runs) >= 3


def test_a_whole_run_that_the_machine_loses_is_left_for_another_session():
    simulation, _ = tuned(steady)
    trials = simulation.store.trials()
    scheduler = scheduler_of(simulation.store, simulation.study, SPACE)
    bare = {run.trial for run in simulation.store.runs() if run.series.is_tuning} - {0}
    standings = Standings.of([replace(one, runs=()) if one.number in bare else one for one in trials], SECONDS)
    for number in bare:
        scheduler.leave_alone(standings.trials[number])
    while (step := scheduler.idle(standings, ())) is not None:
        scheduler.leave_alone(step.trial)
    assert not any(scheduler.is_settled(standings.trials[number], standings, ()) for number in bare)


def test_without_caps_short_runs_are_made_of_a_program_that_tells_its_steps():
    simulation = simulated(steady, every=100)
    repeats = simulation.study.repeats.model_copy(update={"caps": False})
    simulation = replace(simulation, study=simulation.study.model_copy(update={"repeats": repeats}))
    simulation.tune()
    assert sum(run.series.kind is SeriesKind.SHORT for run in simulation.store.runs()) > 5
