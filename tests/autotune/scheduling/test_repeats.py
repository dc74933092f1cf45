from dataclasses import replace

import pytest

from autotune.records.limit import Limit
from autotune.records.outcome import Outcome
from autotune.records.series import TUNING, WARM_UP
from autotune.records.study import Purpose, Run, TrialRecord
from autotune.scheduling.repeats import RepeatScheduler
from autotune.statistics.kept_limits import KeptLimits
from autotune.statistics.standings import Standings
from autotune.studyfile import RepeatsSection
from launchers import Usage
from objectives.base import FailureKind, Metric

SECONDS = Metric("wall_s", "s", kind="time")
RATE = Metric("wall_s", "s", "maximize", "rate")
OTHER = Metric("wall_s", "s")
FAILS = Outcome(failure=FailureKind.OUT_OF_MEMORY, usage=Usage(elapsed_s=1.0))


def took(seconds, steps=0):
    timeline = tuple((step, seconds * step / steps) for step in range(1, steps + 1))
    return Outcome(metrics={"wall_s": seconds}, timeline=timeline, usage=Usage(elapsed_s=seconds + 1.0))


class Session:
    """A session that makes its runs at once; `outcomes` are by trial, the last one again and again."""

    def __init__(self, outcomes, trials=(), metric=SECONDS, limits=(), **repeats):
        self.limits = limits
        self.agenda = RepeatScheduler(RepeatsSection(**repeats))
        self.metric = metric
        self.trials = {trial.number: trial for trial in trials}
        self.outcomes = {number: list(ends) for number, ends in outcomes.items()}

    @property
    def standings(self):
        return Standings(dict(self.trials), self.metric, limits=KeptLimits(self.limits))

    def propose(self, number):
        self.trials[number] = TrialRecord(number, {"n": number})

    def next(self, busy=()):
        return self.agenda.next(self.standings, busy)

    def make(self, step):
        """Make one run; return its trial, its series and its block."""
        self.agenda.start(step, self.standings)
        number, block = step.trial.number, self.agenda.block
        if step.series.is_tuning:
            ends = self.outcomes[number]
            outcome = ends.pop(0) if len(ends) > 1 else ends[0]
            self.trials[number] = self.trials[number].with_run(Run({"n": number}, number, outcome=outcome, block=block))
        self.agenda.finish(Purpose({}, number, step.series), self.standings)
        for trial in list(self.trials.values()):
            if not trial.settled and self.agenda.is_settled(trial, self.standings):
                self.trials[trial.number] = replace(trial, settled=True)
        return number, step.series, block

    def run(self, trials):
        """Propose the trials one after the other; return all runs that were made."""
        made = []
        while True:
            step = self.next()
            if step is None and len(self.trials) < trials:
                self.propose(len(self.trials))
                step = self.next()
            if step is None:
                return made
            made.append(self.make(step))


def settled(number, *outcomes, block=0):
    runs = tuple(Run({"n": number}, number, outcome=outcome, block=block) for outcome in outcomes)
    return TrialRecord(number, {"n": number}, runs, settled=True)


def under_way(trials, metric=SECONDS, **settings):
    """Return a session that is past its start, with those trials."""
    session = Session({}, trials, metric, warm_up_runs=0, **settings)
    session.agenda.finish(Purpose({}, trials[0].number), session.standings)
    return session


def test_a_session_begins_with_the_warm_up_and_the_baseline():
    made = Session({0: [took(1.0)]}, warm_up_runs=2, baseline_runs=3).run(trials=1)
    assert made == [(0, WARM_UP, 0)] * 2 + [(0, TUNING, 0)] * 3


def test_nothing_else_starts_before_the_baseline_is_known():
    session = Session({0: [took(1.0)]})
    assert session.next() is None
    session.propose(0)
    session.propose(1)
    assert not session.agenda.is_ready(session.standings)
    assert session.next(busy={0}) is None
    assert session.next().trial.number == 0


def test_a_session_that_goes_on_warms_up_and_measures_the_baseline_once_more():
    session = Session({0: [took(1.0)]}, [settled(0, took(1.0), took(1.0), took(1.0))])
    assert session.run(trials=1) == [(0, WARM_UP, 0), (0, TUNING, 0)]


def test_a_session_that_goes_on_completes_a_baseline_that_was_interrupted():
    interrupted = replace(settled(0, took(1.0)), settled=False)
    session = Session({0: [took(1.0)]}, [interrupted], baseline_runs=4, warm_up_runs=0)
    assert session.run(trials=1) == [(0, TUNING, 0)] * 3


def test_a_default_that_fails_does_not_hold_up_the_others():
    made = Session({0: [FAILS], 1: [took(1.0)]}, warm_up_runs=0).run(trials=2)
    assert made[:2] == [(0, TUNING, 0), (1, TUNING, 0)]


def test_the_baseline_is_measured_again_after_so_many_runs_and_opens_a_block():
    outcomes = {0: [took(1.0)]} | {number: [took(9.0)] for number in range(1, 7)}
    made = Session(outcomes, warm_up_runs=0, baseline_runs=2, baseline_every=3).run(trials=7)
    order = [0, 0, 1, 2, 3, 0, 4, 5, 6, 0]
    blocks = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert [(number, block) for number, _, block in made] == list(zip(order, blocks, strict=True))


def test_the_baseline_is_not_measured_again_when_that_is_not_wanted():
    outcomes = {0: [took(1.0)]} | {number: [took(9.0)] for number in range(1, 9)}
    made = Session(outcomes, warm_up_runs=0, baseline_runs=1, baseline_every=0).run(trials=9)
    assert [number for number, _, _ in made] == list(range(9))


def test_what_clearly_lost_runs_once_and_what_ties_again_and_again():
    noise = [1.0, 1.03, 0.98, 1.01, 0.99, 1.02, 0.97, 1.0]
    outcomes = {0: [took(x) for x in noise], 1: [took(5.0)], 2: [took(x) for x in noise[::-1]]}
    made = Session(outcomes, warm_up_runs=0, baseline_every=0).run(trials=3)
    runs = [number for number, _, _ in made]
    assert runs.count(1) == 1
    assert runs.count(2) > 1


def test_no_trial_runs_more_often_than_allowed():
    outcomes = {0: [took(1.0)]} | {number: [took(x) for x in (0.98, 0.99) * 9] for number in (1, 2)}
    made = Session(outcomes, max_runs=4, error_rate=0.001, warm_up_runs=0, baseline_every=0).run(trials=3)
    runs = [number for number, _, _ in made]
    assert runs.count(1) <= 4
    assert runs.count(2) <= 4


@pytest.mark.parametrize(("challenger", "incumbent", "next_is"), [(1, 3, 1), (3, 3, 1), (4, 3, 0), (9, 8, 1)])
def test_of_two_that_race_the_one_with_fewer_runs_is_repeated(challenger, incumbent, next_is):
    rival = settled(0, *[took(1.0)] * incumbent)
    open_trial = replace(settled(1, *[took(0.99)] * challenger), settled=False)
    session = under_way([rival, open_trial], max_runs=8)
    assert session.next().trial.number == next_is


def test_while_the_incumbent_runs_its_rival_does():
    rival, open_trial = settled(0, *[took(1.0)] * 3), replace(settled(1, *[took(0.99)] * 5), settled=False)
    session = under_way([rival, open_trial])
    assert session.next().trial.number == 0
    assert session.next(busy={0}).trial.number == 1
    assert session.next(busy={0, 1}) is None


def test_a_trial_that_the_machine_failed_is_not_proposed_again():
    session = under_way([settled(0, *[took(1.0)] * 3)], baseline_every=0)
    session.propose(1)
    session.propose(2)
    session.agenda.leave_alone(session.trials[1])
    assert session.next().trial.number == 2
    session.agenda.leave_alone(session.trials[2])
    assert session.next() is None


def test_a_default_that_the_machine_failed_does_not_hold_up_the_others():
    session = Session({})
    session.propose(0)
    session.propose(1)
    session.agenda.leave_alone(session.trials[0])
    assert session.next().trial.number == 1


def test_an_incumbent_that_the_machine_failed_is_not_run_for_a_race():
    rival, open_trial = settled(0, *[took(1.0)] * 3), replace(settled(1, *[took(0.99)] * 5), settled=False)
    session = under_way([rival, open_trial])
    session.agenda.leave_alone(rival)
    assert session.next().trial.number == 1


def test_a_default_that_the_machine_failed_is_not_measured_again():
    session = under_way([settled(0, *[took(1.0)] * 3), settled(1, took(2.0))], baseline_every=1)
    session.agenda.finish(Purpose({}, session.trials[1].number), session.standings)
    assert session.next().trial.number == 0
    session.agenda.leave_alone(session.trials[0])
    assert session.next() is None


def test_a_capped_or_failed_trial_is_settled_at_once():
    session = under_way([settled(0, *[took(1.0)] * 3)])
    for outcome in (FAILS, Outcome(bound=2.0)):
        assert session.agenda.is_settled(settled(1, outcome), session.standings)


def test_a_challenger_is_capped_where_it_would_have_lost():
    session = under_way([settled(0, *[took(10.0)] * 3), TrialRecord(1, {})])
    cap = session.agenda.cap(session.trials[1], session.standings)
    assert 10.0 < cap.bound < 12.0
    # The jobs take a second beside what they measure, and this one may take two.
    assert cap.elapsed_s == pytest.approx(cap.bound + 2.0)


def test_a_run_beyond_its_cap_would_have_been_settled():
    session = under_way([settled(0, *[took(10.0)] * 3), TrialRecord(1, {})])
    bound = session.agenda.cap(session.trials[1], session.standings).bound
    for seconds, over in ((1.0001 * bound, True), (0.9999 * bound, False)):
        session.trials[1] = settled(1, took(seconds))
        assert session.agenda.is_settled(session.trials[1], session.standings) is over


def test_a_cap_is_later_where_others_took_time_from_the_last_runs():
    disturbed = Outcome(bound=40.0, conditions={"taken_share": 0.525})
    session = under_way([settled(0, *[took(10.0)] * 3), settled(1, disturbed), TrialRecord(2, {})])
    assert 20.0 < session.agenda.cap(session.trials[2], session.standings).bound < 24.0


def test_neither_the_incumbent_nor_the_default_is_capped():
    session = under_way([settled(0, *[took(10.0)] * 3), settled(1, took(5.0)), TrialRecord(2, {})])
    capped = [session.agenda.cap(trial, session.standings) is not None for trial in session.trials.values()]
    assert capped == [False, False, True]


@pytest.mark.parametrize(("repeats", "metric"), [({"caps": False}, SECONDS), ({"min_runs": 2}, SECONDS), ({}, OTHER)])
def test_there_is_no_cap_where_none_is_wanted_or_none_can_be_told(repeats, metric):
    session = under_way([settled(0, *[took(10.0)] * 3), TrialRecord(1, {})], metric, **repeats)
    assert session.agenda.cap(session.trials[1], session.standings) is None


def test_without_an_incumbent_there_is_no_cap():
    session = under_way([settled(0, FAILS), TrialRecord(1, {})])
    assert session.agenda.cap(session.trials[1], session.standings) is None


def paced(*others, metric=SECONDS):
    session = under_way([settled(0, *[took(10.0, steps=5)] * 3), *others, TrialRecord(9, {})], metric)
    return session.agenda.cap(session.trials[9], session.standings)


def test_a_run_that_was_stopped_brings_the_next_baseline_nearer_by_the_part_that_it_took():
    # Stopped after a tenth of the 2 s that a run of the best takes.
    lost = Outcome(bound=1.0, usage=Usage(elapsed_s=0.2))
    outcomes = {0: [took(1.0)]} | {number: [lost] for number in range(1, 31)}
    made = Session(outcomes, warm_up_runs=0, baseline_runs=1, baseline_every=2).run(31)
    assert [number for number, _, block in made if number == 0 and block] == [0]
    assert [number for number, _, _ in made].index(0, 1) == 21


def test_the_pace_is_that_of_the_incumbent():
    pace = paced(settled(1, took(5.0, steps=5)), settled(2, took(7.0, steps=5))).pace
    assert (pace.value, pace.elapsed_s, len(pace.timeline)) == (5.0, 6.0, 5)


def test_runs_of_different_numbers_of_steps_have_no_common_pace():
    cap = paced(settled(1, took(12.0, steps=6)))
    assert (cap.pace, cap.elapsed_s is not None) == (None, True)


def test_one_configuration_does_not_tell_whether_all_take_as_many_steps():
    assert paced().pace is None


def test_a_run_that_failed_on_its_way_says_nothing_about_the_number_of_steps():
    failed = replace(FAILS, timeline=((1, 1.0), (2, 2.0)))
    assert paced(settled(1, took(5.0, steps=5)), settled(2, failed), settled(3, took(7.0, steps=5))).pace is not None


def test_a_rate_is_capped_by_the_pace_if_there_is_one():
    assert paced(metric=RATE) is None
    cap = paced(settled(1, took(5.0, steps=5)), settled(2, took(4.0, steps=5)), metric=RATE)
    assert cap.elapsed_s is None
    # The incumbent is the one with the higher rate.
    assert cap.pace.value == 10.0
    assert 8.0 < cap.bound < 10.0


def test_what_surely_breaks_a_limit_is_not_repeated_however_good_it_is_and_what_may_keep_it_is():
    def served(seconds, p99):
        return Outcome(metrics={"wall_s": seconds, "p99": p99}, usage=Usage(elapsed_s=seconds))

    outcomes = {
        0: [served(2.0, 10.0), served(2.02, 10.1), served(1.98, 9.9)],
        1: [served(1.0, 40.0)],
        2: [served(1.0, 20.1), served(1.0, 19.8)],
    }
    limits = (Limit(Metric("p99", "ms"), high=20.0),)
    session = Session(outcomes, limits=limits, warm_up_runs=0, baseline_runs=3, baseline_every=0)
    made = [number for number, _, _ in session.run(3)]
    assert made.count(1) == 1
    assert made.count(2) > 2
    assert session.standings.incumbent.number == 2


def test_what_was_capped_by_a_trial_that_breaks_a_limit_runs_again():
    def served(seconds, p99):
        return Outcome(metrics={"wall_s": seconds, "p99": p99}, usage=Usage(elapsed_s=seconds))

    capped = settled(2, Outcome(bound=1.1, usage=Usage(elapsed_s=1.1)))
    trials = [settled(0, *[served(2.0, 30.0)] * 3), settled(1, *[served(1.0, 25.0)] * 3), capped]
    for most, again in ((26.0, None), (20.0, 2), (31.0, None)):
        limits = (Limit(Metric("p99", "ms"), high=most),)
        session = under_way(trials, limits=limits, baseline_runs=3, baseline_every=0)
        step = session.next()
        assert (step and step.trial.number) == again
