from dataclasses import replace
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.records.outcome import Outcome
from autotune.records.study import Run, TrialRecord
from autotune.statistics.standings import Standings
from launchers import Usage
from objectives.base import FailureKind, Metric

SECONDS = Metric("value", "s", kind="time")
RATE = Metric("value", "1/s", "maximize", "rate")
KERNEL = Metric("value", "ms")
METRICS = [SECONDS, RATE]
BESIDE_OTHERS = [(2.0, (0.0, 0.5, 0.3)), (3.0, (0.0,)), (1.5, (0.8,))]
FAILED, LOST = FailureKind.OUT_OF_MEMORY, "lost"


def run(value, block=0, elapsed_s=1.0, taken=0.0):
    """Return a run: a value, a kind of failure, or (LOST, bound); `taken` is the share of its time that others took."""
    usage = Usage(elapsed_s=elapsed_s)
    if isinstance(value, FailureKind):
        outcome = Outcome(failure=value, usage=usage)
    elif isinstance(value, tuple):
        outcome = Outcome(bound=value[1], usage=usage)
    else:
        outcome = Outcome(metrics={"value": value}, usage=usage)
    return Run({}, outcome=replace(outcome, conditions={"taken_share": taken}), block=block)


def trial(number, *values, settled=True, block=0, taken=0.0):
    return TrialRecord(number, {}, tuple(run(value, block, taken=taken) for value in values), settled)


def stand(*trials, metric=SECONDS, statistic="median"):
    return Standings.of(trials, metric, statistic)


@pytest.mark.parametrize(("metric", "order"), [(SECONDS, [1, 0, 2]), (RATE, [2, 0, 1])])
def test_the_best_comes_first_in_either_direction(metric, order):
    found = stand(trial(0, 2.0), trial(1, 1.0), trial(2, 3.0), metric=metric)
    assert [one.number for one in found.ranking] == order
    assert found.incumbent.number == order[0]


def test_trials_are_compared_by_what_their_runs_would_have_taken_alone():
    alone, beside, lost = trial(0, 2.0), trial(1, 3.0, 3.2, 2.8, taken=0.5), trial(2, (LOST, 4.0), taken=0.8)
    found = stand(alone, beside, lost)
    assert found.incumbent is beside
    assert found.gain(beside) == pytest.approx(4.0 / 3.0 / 1.05, rel=0.01)
    assert [found.value(beside), found.bound_of(lost)] == pytest.approx([3.0, 4.0]), "what is shown was measured"
    assert found.trials_capped_below(log(found.undisturbed_value(beside))) == [lost], "it runs again"
    assert exp(found.recent_slowdown) == pytest.approx(0.95 / 0.2), "the next cap is as much later"
    rates = stand(trial(0, 2.0), trial(1, 1.5, taken=0.5), metric=RATE)
    assert [one.number for one in rates.ranking] == [1, 0]


def of_effect(number, value, effect, *shares):
    """Return a trial whose runs suffer from others by a power of what a thread suffers."""
    return TrialRecord(number, {}, tuple(run(value * (1.0 - share) ** -effect, taken=share) for share in shares), True)


@pytest.mark.parametrize("effect", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("metric", [SECONDS, KERNEL])
def test_how_much_values_suffer_from_others_is_learnt_from_repeated_runs(metric, effect):
    default, slow, fast = (of_effect(n, value, effect, *shares) for n, (value, shares) in enumerate(BESIDE_OTHERS))
    one_by_one = stand(metric=metric)
    for new in (fast, slow, default):
        one_by_one.update(new)
    for found in (stand(default, slow, fast, metric=metric), one_by_one):
        assert [trial.number for trial in found.ranking] == [2, 0, 1]
        assert found.undisturbed_value(fast) == pytest.approx(1.5, rel=0.25)
        assert found.gain(fast) == pytest.approx(2.0 / 1.5, rel=0.25)


def test_before_anything_was_repeated_only_times_and_rates_of_a_run_suffer():
    assert stand(trial(0, 2.0), trial(1, 3.0, taken=0.5)).incumbent.number == 1
    assert stand(trial(0, 2.0), trial(1, 3.0, taken=0.5), metric=KERNEL).incumbent.number == 0


@pytest.mark.parametrize(("metric", "taken"), [(SECONDS, 0.05), (Metric("value", "", kind="loss"), 0.5)])
def test_a_little_load_and_values_that_load_cannot_change_are_left_as_measured(metric, taken):
    found = stand(trial(0, 2.0), trial(1, 2.1, taken=taken), metric=metric)
    assert found.incumbent.number == 0
    assert found.recent_slowdown == 0.0


def test_of_equals_the_earlier_one_leads():
    assert stand(trial(3, 1.0), trial(2, 1.0)).incumbent.number == 2


@pytest.mark.parametrize("value", [FAILED, (LOST, 0.1)])
def test_a_failed_or_a_capped_trial_leads_nothing(value):
    found = stand(trial(0, 2.0), trial(1, value))
    assert [one.number for one in found.ranking] == [0]
    assert found.incumbent.number == 0
    assert found.gain(found.trials[1]) is None


def test_a_trial_whose_race_goes_on_is_no_incumbent_yet():
    assert stand(trial(0, 2.0), trial(1, 1.0, settled=False)).incumbent.number == 0


def test_while_no_race_is_over_the_best_leads():
    assert stand(trial(0, 2.0, settled=False), trial(1, 1.0, settled=False)).incumbent.number == 1


def test_without_a_measurement_nothing_leads():
    found = stand(trial(0, FAILED), trial(1))
    assert (found.incumbent, found.baseline, found.ranking) == (None, None, [])
    assert found.default.number == 0


@pytest.mark.parametrize("metric", METRICS)
@given(values=st.lists(st.floats(0.01, 1000), min_size=1, max_size=5))
def test_a_value_is_the_median_of_its_runs_in_either_direction(metric, values):
    odd = values if len(values) % 2 else values[:-1]
    found = stand(trial(0, *odd), metric=metric)
    assert found.value(found.trials[0]) == pytest.approx(sorted(odd)[len(odd) // 2])


def test_the_mean_is_that_of_the_logarithms():
    found = stand(trial(0, 1.0, 4.0, 2.0), statistic="mean")
    assert found.value(found.trials[0]) == pytest.approx(2.0)


@pytest.mark.parametrize(("metric", "gain"), [(SECONDS, 2.0), (RATE, 0.5)])
def test_the_gain_over_the_baseline_is_above_one_for_the_better(metric, gain):
    found = stand(trial(0, 4.0), trial(1, 2.0), metric=metric)
    assert found.gain(found.trials[1]) == pytest.approx(gain)
    assert found.gain(found.trials[0]) == pytest.approx(1.0)


def test_without_a_baseline_there_is_no_gain():
    found = stand(trial(0, FAILED), trial(1, 2.0))
    assert found.gain(found.trials[1]) is None


def test_the_baseline_is_the_first_trial_there_is():
    assert stand(trial(2, 1.0), trial(1, 3.0)).baseline.number == 1


@pytest.mark.parametrize("metric", METRICS)
def test_the_bound_of_a_capped_trial_is_that_of_its_cap(metric):
    found = stand(trial(0, 2.0), trial(1, (LOST, 3.0)), metric=metric)
    assert found.bound_of(found.trials[1]) == pytest.approx(3.0)


@pytest.mark.parametrize("metric", METRICS)
def test_earlier_values_and_failures_of_a_capped_trial_are_weighed_in(metric):
    found = stand(trial(0, 2.0), trial(1, 2.0, 4.0, FAILED, (LOST, 9.0)), metric=metric)
    assert found.bound_of(found.trials[1]) == pytest.approx(4.0)


def test_what_failed_is_counted_by_kind_and_what_was_capped_beside_it():
    found = stand(trial(0, 1.0), trial(1, FAILED), trial(2, FAILED), trial(3, (LOST, 2.0)), trial(4))
    assert found.counts == {"out of memory": 2, "capped": 1}


def test_a_trial_of_which_most_runs_worked_is_not_counted_as_failed():
    found = stand(trial(0, 1.0, FAILED, 1.0))
    assert found.counts == {}
    assert found.baseline is not None


def test_the_noise_is_that_of_repeated_runs():
    runs = [trial(n, *(exp(log(1 + n) + 0.1 * x) for x in (-1.0, 1.0))) for n in range(60)]
    # Differences of 0.2 in the logarithm: a standard deviation of 0.2 / sqrt(2).
    assert stand(*runs).noise == pytest.approx(exp(0.2 / 2**0.5) - 1.0, rel=0.15)


@pytest.mark.parametrize("metric", METRICS)
def test_a_drift_is_noticed_and_values_stay_what_was_measured(metric):
    sign = 1.0 if metric is SECONDS else -1.0

    def ran(number, *places):
        """Runs in later blocks are a quarter worse; every other run is a little better."""
        runs = [run(exp(sign * (0.25 * (block > 2) + 0.002 * (-1) ** i)), block) for i, block in enumerate(places)]
        return TrialRecord(number, {}, tuple(runs), settled=True)

    found = stand(ran(0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5), ran(1, 0, 0), ran(2, 5, 5), metric=metric)
    assert found.effects.drifts
    ratio = found.value(found.trials[2]) / found.value(found.trials[1])
    assert ratio == pytest.approx(exp(sign * 0.25), abs=0.03)


def test_the_overhead_is_what_jobs_take_beside_their_metric():
    runs = [TrialRecord(n, {}, (run(10.0, elapsed_s=10.0 + more),), True) for n, more in enumerate((1.0, 2.0, 50.0))]
    assert stand(*runs, trial(3, FAILED), trial(4, (LOST, 5.0))).overhead_s == pytest.approx(2.0)
    assert stand(trial(0, 10.0)).overhead_s == 0.0
    assert stand().overhead_s == 0.0


BEFORE_AND_AFTER = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.lists(st.sampled_from([1.0, 1.1, 2.0, 3.5, FAILED, (LOST, 1.5), (LOST, 0.5)]), max_size=4),
        st.booleans(),
    ),
    max_size=12,
)


@given(BEFORE_AND_AFTER, st.sampled_from(METRICS))
def test_what_changed_counts_as_if_it_had_always_been_so(changes, metric):
    found, newest = stand(metric=metric), {}
    for number, values, settled in changes:
        newest[number] = trial(number, *values, settled=settled, block=len(newest) % 2)
        found.update(newest[number])
    afresh = stand(*newest.values(), metric=metric)
    assert [one.number for one in found.ranking] == [one.number for one in afresh.ranking]
    best = [one.incumbent.number if one.incumbent else None for one in (found, afresh)]
    assert best[0] == best[1]
    assert found.counts == afresh.counts
    assert list(found.open) == list(afresh.open) == sorted(n for n, one in newest.items() if not one.settled)
    assert found.settled == afresh.settled
    assert found.overhead_s == afresh.overhead_s
    assert found.spent_s == pytest.approx(afresh.spent_s)
    assert found.nothing_worked == afresh.nothing_worked
    assert found.noise == afresh.noise
    assert found.effects.offsets == afresh.effects.offsets
    assert [one.number for one in found.trials_capped_below(log(1.2))] == [
        one.number for one in afresh.trials_capped_below(log(1.2))
    ]


def test_a_capped_trial_is_found_by_its_bound_only_while_it_is_capped():
    found = stand(trial(2, (LOST, 0.5)), trial(0, 1.0), trial(1, (LOST, 0.7)), trial(3, (LOST, 2.0)))
    assert [one.number for one in found.trials_capped_below(log(1.0))] == [1, 2]
    found.update(trial(1, (LOST, 0.7), 0.8))
    assert [one.number for one in found.trials_capped_below(log(1.0))] == [2]


def test_it_counts_as_nothing_worked_only_while_every_trial_that_ran_failed():
    found = stand(trial(0, FAILED), trial(1, FAILED), trial(2))
    assert found.nothing_worked == 2
    found.update(trial(2, (LOST, 1.0)))
    assert found.nothing_worked == 0


def test_disturbed_runs_of_the_default_do_not_tell_the_pace_of_the_machine_while_tuning():
    default = TrialRecord(0, {}, (run(2.0), run(5.0, taken=0.6), run(2.1)), settled=True)
    assert stand(default).tuned_default == [2.0, 2.1]
    assert stand().tuned_default == []
