"""The decision from a wish and an observed state: a pure function, tested over all values."""

import signal
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autotune.errors import ExitCode
from autotune.supervision import DesiredState, StateName
from autotune.supervision.observed_state import describe_end
from autotune.supervision.reconcile import GIVEN_UP_AFTER, Action, Decision, Ended, ExitClass, ObservedState, decide

wishes = st.sampled_from(DesiredState)
ends = st.one_of(
    st.builds(Ended, code=st.one_of(st.sampled_from([int(code) for code in ExitCode]), st.integers(0, 255))),
    st.builds(Ended, signal=st.integers(1, 64)),
    st.builds(Ended, error=st.text(min_size=1)),
)
realities = st.builds(
    ObservedState,
    alive=st.booleans(),
    waiting=st.booleans(),
    asked=st.none() | wishes,
    overdue=st.booleans(),
    current=st.booleans(),
    ended=st.none() | ends,
    deaths=st.integers(0, 2 * max(GIVEN_UP_AFTER.values())),
    too_soon=st.booleans(),
    left=st.sampled_from([None, DesiredState.PAUSE, DesiredState.STOP]),
)


@given(wishes, realities)
def test_nothing_is_started_beside_what_runs_and_nothing_signalled_that_does_not(wish, reality):
    action = decide(wish, reality).action
    assert action in (
        {Action.NOTHING, Action.PAUSE, Action.STOP, Action.KILL} if reality.alive else {Action.NOTHING, Action.START}
    )


@given(wishes, realities)
def test_only_who_wants_a_study_to_run_has_it_started_and_it_is_never_disturbed(wish, reality):
    action = decide(wish, reality).action
    assert action is Action.NOTHING or (action is Action.START) == (wish is DesiredState.RUN)


@given(wishes, realities)
def test_whether_something_runs_or_is_going_to_is_told_by_the_state(wish, reality):
    found = decide(wish, reality)
    over = {StateName.PAUSED, StateName.STOPPED, StateName.FINISHED, StateName.FAILED}
    assert (found.state in over) == (
        not reality.alive and found.action is Action.NOTHING and found.state is not StateName.WAITING
    )
    assert found.state is not StateName.OPEN


@given(wishes, realities)
def test_what_was_asked_is_not_asked_again(wish, reality):
    told = replace(reality, alive=True, asked=wish, overdue=False)
    assert decide(wish, told).action is Action.NOTHING


@given(realities)
def test_a_wish_to_run_again_starts_whatever_became_of_the_one_before(reality):
    assert decide(DesiredState.RUN, replace(reality, alive=False, current=False)).action is Action.START


@given(realities)
def test_a_wish_is_carried_out_when_nothing_runs_any_more_unless_the_study_ended_by_itself(reality):
    reality = replace(reality, alive=False)
    own = reality.current and reality.ended is not None and reality.ended.fate in {ExitClass.FINISHED, ExitClass.FAILED}
    for wish, state in ((DesiredState.PAUSE, StateName.PAUSED), (DesiredState.STOP, StateName.STOPPED)):
        assert own or decide(wish, reality).state is state


deaths = (
    st.none() | st.builds(Ended, code=st.sampled_from([1, 5, 130, 137])) | st.builds(Ended, signal=st.integers(1, 64))
)


@given(deaths, st.integers(1, 100))
@example(Ended(code=5), 29)
@example(Ended(code=5), 30)
@example(None, 4)
@example(None, 5)
def test_a_study_that_dies_again_and_again_is_given_up_and_no_sooner(ended, count):
    found = decide(DesiredState.RUN, ObservedState(current=True, ended=ended, deaths=count))
    given_up = count >= (30 if ended == Ended(code=5) else 5)
    assert found == (Decision(StateName.FAILED) if given_up else Decision(StateName.RUNNING, Action.START))


DEAD = {"alive": False, "current": True, "deaths": 1}


@pytest.mark.parametrize(
    ("wish", "reality", "expected"),
    [
        (DesiredState.RUN, ObservedState(), Decision(StateName.RUNNING, Action.START)),
        (DesiredState.RUN, ObservedState(alive=True, waiting=True), Decision(StateName.WAITING)),
        (DesiredState.PAUSE, ObservedState(alive=True), Decision(StateName.PAUSING, Action.PAUSE)),
        (
            DesiredState.STOP,
            ObservedState(alive=True, asked=DesiredState.PAUSE),
            Decision(StateName.STOPPING, Action.STOP),
        ),
        (
            DesiredState.STOP,
            ObservedState(alive=True, asked=DesiredState.STOP, overdue=True),
            Decision(StateName.STOPPING, Action.KILL),
        ),
        (DesiredState.RUN, ObservedState(**DEAD, ended=Ended(0)), Decision(StateName.FINISHED)),
        (DesiredState.PAUSE, ObservedState(**DEAD, ended=Ended(0)), Decision(StateName.FINISHED)),
        (
            DesiredState.RUN,
            ObservedState(**DEAD, ended=Ended(0), left=DesiredState.PAUSE),
            Decision(StateName.PAUSED),
        ),
        (
            DesiredState.RUN,
            ObservedState(**DEAD, ended=Ended(0), left=DesiredState.STOP),
            Decision(StateName.STOPPED),
        ),
        (DesiredState.RUN, ObservedState(**DEAD, ended=Ended(3)), Decision(StateName.FAILED)),
        (DesiredState.RUN, ObservedState(**DEAD, ended=Ended(7)), Decision(StateName.STOPPED)),
        (DesiredState.RUN, ObservedState(**DEAD, ended=Ended(8)), Decision(StateName.PAUSED)),
        (DesiredState.STOP, ObservedState(**DEAD, ended=Ended(8)), Decision(StateName.STOPPED)),
        (DesiredState.RUN, ObservedState(**DEAD, ended=Ended(1)), Decision(StateName.RUNNING, Action.START)),
        (DesiredState.RUN, ObservedState(**DEAD, ended=Ended(130)), Decision(StateName.RUNNING, Action.START)),
        (DesiredState.RUN, ObservedState(**DEAD, ended=Ended(signal=9), too_soon=True), Decision(StateName.WAITING)),
        (DesiredState.RUN, ObservedState(**DEAD), Decision(StateName.RUNNING, Action.START)),
        (DesiredState.STOP, ObservedState(**DEAD, ended=Ended(130)), Decision(StateName.STOPPED)),
        (DesiredState.PAUSE, ObservedState(**DEAD, ended=Ended(signal=9)), Decision(StateName.PAUSED)),
    ],
)
def test_what_follows(wish, reality, expected):
    assert decide(wish, reality) == expected


@given(st.none() | ends)
def test_every_end_has_words(ended):
    assert describe_end(ended)


@pytest.mark.parametrize("code", ExitCode)
def test_every_exit_code_has_words_of_its_own(code):
    assert "crashed" not in describe_end(Ended(int(code)))


def test_signals_are_named():
    assert describe_end(Ended(signal=signal.SIGKILL)) == "its process was killed by SIGKILL"
    assert describe_end(Ended(code=1)) == "its process crashed (exit code 1)"
