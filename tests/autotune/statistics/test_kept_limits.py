from dataclasses import replace

import pytest

from autotune.records.limit import PEAK_MEMORY, Limit
from autotune.records.outcome import Outcome
from autotune.records.series import TUNING, Series
from autotune.records.study import Run, TrialRecord
from autotune.statistics.kept_limits import KeptLimits
from autotune.statistics.racing import RaceRules, Standing
from autotune.statistics.standings import Standings
from launchers import Usage
from objectives.base import FailureKind, Metric

SECONDS, P99, AUC = Metric("wall_s", "s"), Metric("p99_ms", ""), Metric("auc", "", "maximize")
LIMIT = Limit(P99, high=20.0)
RULES = RaceRules(max_runs=5)


def run(seconds, p99, series=TUNING, trial=None):
    return Run({}, trial, series, outcome=Outcome(metrics={"wall_s": seconds, "p99_ms": p99}))


def trial(number, *runs):
    return TrialRecord(number, {"n": number}, tuple(run(*one) for one in runs), settled=True)


def stand(*trials, limits=(LIMIT,), fresh=()):
    return Standings.of(trials, SECONDS, limits=KeptLimits(limits, "median", fresh))


def test_the_best_is_the_best_of_those_that_keep_the_limits():
    found = stand(trial(0, (3.0, 10.0)), trial(1, (1.0, 20.1)), trial(2, (2.0, 20.0)))
    assert found.incumbent.number == 2
    assert [one.number for one in found.ranking] == [2, 0]
    assert [one.number for one in found.measured] == [1, 2, 0]
    assert [str(breach) for breach in found.limits.breaches(1)] == ["p99_ms <= 20: 20.1"]


def test_a_trial_that_turns_out_to_break_a_limit_leads_no_more():
    found = stand(trial(0, (3.0, 10.0)), trial(1, (1.0, 19.0)))
    assert found.incumbent.number == 1
    found.update(trial(1, (1.0, 19.0), (1.0, 22.0), (1.0, 23.0)))
    assert found.incumbent.number == 0
    found.update(trial(1, (1.0, 19.0), (1.0, 22.0), (1.0, 23.0), (1.0, 18.0), (1.0, 18.0)))
    assert found.incumbent.number == 1


def test_where_nothing_keeps_the_limits_the_nearest_is_known():
    both = (LIMIT, Limit(SECONDS, high=1.0))
    found = stand(trial(0, (3.0, 21.0)), trial(1, (1.1, 22.0)), trial(2, (0.9, 60.0)), limits=both)
    assert found.incumbent is None
    assert found.nearest.number == 1


def test_a_metric_that_was_not_measured_keeps_no_limit():
    found = stand(trial(0, (3.0, 10.0)), limits=(Limit(AUC, low=0.9),))
    assert found.incumbent is None
    assert [str(breach) for breach in found.limits.breaches(0)] == ["auc >= 0.9: not measured"]


def test_the_memory_of_a_job_may_be_limited_though_no_objective_tells_it():
    memory = Limit(PEAK_MEMORY, high=2**30)
    outcome = Outcome(metrics={"wall_s": 1.0}, usage=Usage(peak_memory_bytes=3 * 2**30))
    unknown = replace(outcome, usage=Usage())
    found = stand(
        *(TrialRecord(place, {}, (Run({}, outcome=one),), True) for place, one in enumerate((outcome, unknown))),
        limits=(memory,),
    )
    assert [str(breach) for breach in found.limits.breaches(0)] == ["peak_memory_bytes <= 1 GiB: 3 GiB"]
    assert [str(breach) for breach in found.limits.breaches(1)] == ["peak_memory_bytes <= 1 GiB: not measured"]


def test_fresh_runs_alone_decide_once_there_are_some():
    lucky = trial(1, (1.0, 19.0), (1.0, 19.0), (1.0, 19.0), (1.0, 19.0), (1.0, 19.0))
    fresh = [run(1.0, p99, Series.select([1]), 1) for p99 in (20.5, 19.5, 21.0)]
    assert stand(trial(0, (3.0, 10.0)), lucky).incumbent.number == 1
    assert stand(trial(0, (3.0, 10.0)), lucky, fresh=fresh[:1]).incumbent.number == 1
    assert stand(trial(0, (3.0, 10.0)), lucky, fresh=fresh).incumbent.number == 0


@pytest.mark.parametrize(
    ("p99", "standing"),
    [(19.9, Standing.OPEN), (20.1, Standing.OPEN), (30.0, Standing.LOST), (5.0, Standing.WON)],
)
def test_more_runs_are_made_only_where_they_could_change_whether_a_limit_is_kept(p99, standing):
    limits = KeptLimits((LIMIT,))
    for one in (trial(0, (3.0, 10.0), (3.0, 10.2), (3.0, 9.9)), trial(1, (1.0, p99))):
        limits.put(one)
    assert limits.standing(1, RULES) is standing


def test_without_limits_nothing_is_broken_and_nothing_open():
    limits = KeptLimits()
    limits.put(trial(0, (3.0, 10.0)))
    assert limits.keeps(0)
    assert limits.standing(0, RULES) is Standing.WON


def test_a_run_that_was_stopped_for_its_memory_tells_how_much_was_too_much():
    memory = Limit(PEAK_MEMORY, high=2**30)
    stopped = Outcome(failure=FailureKind.OUT_OF_MEMORY, usage=Usage(peak_memory_bytes=3 * 2**30))
    other = Outcome(failure=FailureKind.APPLICATION_ERROR, usage=Usage(peak_memory_bytes=2**29))
    limits = KeptLimits((memory, LIMIT))
    for number, outcome, known in ((0, stopped, (3.0 * 2**30, None)), (1, other, (None, None))):
        failed = TrialRecord(number, {}, (Run({}, outcome=outcome),), settled=True)
        limits.put(failed)
        assert limits.known(failed) == known
    assert limits.memory_bytes == 2**30
    assert KeptLimits((LIMIT,)).memory_bytes is None


def test_runs_that_tell_nothing_of_a_limit_are_not_made_for_ever():
    seldom = [run(1.0, 19.9), run(1.0, 20.05), *(Run({}, outcome=Outcome(metrics={"wall_s": 1.0})) for _ in range(3))]
    afresh = [run(1.0, p99, Series.select([2]), 2) for p99 in (19.5, 20.2, 19.9)]
    limits = KeptLimits((LIMIT,), "median", afresh)
    limits.put(TrialRecord(1, {"n": 1}, tuple(seldom[:4])))
    assert limits.standing(1, RULES) is Standing.OPEN
    limits.put(TrialRecord(1, {"n": 1}, tuple(seldom)))
    assert limits.standing(1, RULES) is Standing.WON
    # Fresh runs alone decide: no run of tuning changes that.
    limits.put(trial(2, (1.0, 25.0)))
    assert limits.standing(2, RULES) is Standing.WON


def test_both_ends_of_a_limit_are_written_in_the_same_way():
    assert str(Limit(PEAK_MEMORY, 2**30, 2**31)) == "1 GiB <= peak_memory_bytes <= 2 GiB"
