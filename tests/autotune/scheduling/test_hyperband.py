from math import ceil, floor, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.scheduling.hyperband import Bracket, Entry, Race, brackets, halving_bracket, plan_brackets

budgets = st.tuples(st.integers(1, 400), st.integers(1, 20), st.integers(2, 10)).filter(lambda b: b[1] <= b[0])


def test_the_table_of_the_paper():
    # Li et al. 2018, table 1: R = 81, eta = 3.
    assert [(b.sizes, b.steps) for b in brackets(81, 1, 3)] == [
        ((81, 27, 9, 3, 1), (1, 3, 9, 27, 81)),
        ((34, 11, 3, 1), (3, 9, 27, 81)),
        ((15, 5, 1), (9, 27, 81)),
        ((8, 2), (27, 81)),
        ((5,), (81,)),
    ]


@pytest.mark.parametrize(("most", "eta", "count"), [(243, 3, 6), (1000, 10, 4), (27, 3, 4), (1, 3, 1), (2, 3, 1)])
def test_no_bracket_is_lost_to_rounding(most, eta, count):
    assert len(brackets(most, 1, eta)) == count


@given(budgets)
def test_a_bracket_goes_from_many_with_few_steps_to_few_with_all(budget):
    most, least, eta = budget
    found = brackets(most, least, eta)
    for place, bracket in enumerate(found):
        s = len(found) - 1 - place
        assert len(bracket.sizes) == len(bracket.steps) == s + 1
        assert bracket.sizes[0] == ceil(len(found) * eta**s / (s + 1))
        assert bracket.steps[-1] == most
        assert least <= bracket.steps[0]
        assert all(floor(a / eta) == b or b == 1 for a, b in zip(bracket.sizes, bracket.sizes[1:], strict=False))
        assert list(bracket.steps) == sorted(set(bracket.steps))


@given(budgets, st.integers(1, 500))
def test_every_trial_has_a_place(budget, trials):
    found = plan_brackets(trials, *budget)
    assert sum(bracket.sizes[0] for bracket in found) == trials
    assert all(bracket.steps[-1] == budget[0] for bracket in found)


def test_more_trials_leave_whole_rounds_as_they_were():
    first, second, *_ = brackets(27, 1, 3)
    assert plan_brackets(132, 27, 1, 3)[:3] == plan_brackets(66, 27, 1, 3) == (first, first, second)


def value(number, rung):
    """Return a value: lower numbers are better, at every rung."""
    return number + rung / 100


def played(bracket, eta=3, *, eager=False, workers=1, failing=(), early=()):
    """Play a bracket to its end with some workers; return the rungs that each trial reached, and the order."""
    entries: dict[int, Entry] = {}
    running: list[int] = []
    order: list[tuple[int, int]] = []
    started = 0
    for _ in range(10_000):
        while len(running) < workers:
            race = Race(bracket, tuple(entries.values()), eta, started == bracket.sizes[0], eager)
            chosen = race.next_promotion(idle=False)
            if chosen is None and started < bracket.sizes[0]:
                chosen = Entry(started)
                started += 1
            chosen = chosen or race.next_promotion(idle=True)
            if chosen is None:
                break
            assert chosen.number not in running
            entries[chosen.number] = Entry(chosen.number, chosen.values, busy=True)
            running.append(chosen.number)
            order.append((chosen.number, chosen.level))
        if not running:
            break
        number = running.pop(0)
        entry = entries[number]
        if (number, entry.level) in failing:
            entries[number] = Entry(number, out=True)
        elif (number, entry.level) in early:
            values = tuple(value(number, rung) for rung in range(len(bracket.sizes)))
            entries[number] = Entry(number, values, out=True, passed=entry.level)
        else:
            entries[number] = Entry(number, (*entry.values, value(number, entry.level)))
    race = Race(bracket, tuple(entries.values()), eta, full=True, eager=eager)
    assert all(race.is_over(entry) for entry in race.entries)
    return entries, order


@given(st.integers(1, 60), st.integers(2, 4), st.integers(1, 4))
def test_the_best_go_on_and_every_rung_is_filled(trials, eta, workers):
    bracket = halving_bracket(trials, 27, 1, eta)
    entries, _ = played(bracket, eta, workers=workers)
    for rung, size in enumerate(bracket.sizes):
        reached = [number for number, entry in entries.items() if entry.level > rung]
        assert len(reached) == size
        if workers == 1:
            assert reached == list(range(size))
    assert entries[0].level == len(bracket.sizes)


@given(st.integers(1, 60), st.integers(1, 4))
def test_asha_promotes_without_waiting_and_the_best_gets_to_the_top(trials, workers):
    bracket = halving_bracket(trials, 27, 1, 3)
    entries, order = played(bracket, eager=True, workers=workers)
    assert len(entries) == trials
    assert entries[0].level == len(bracket.sizes)
    if trials >= 6 and workers == 1:
        first = next(place for place, (_, level) in enumerate(order) if level == 1)
        assert first == 3


def test_who_fails_makes_room_for_the_next_and_is_never_promoted():
    bracket = Bracket((9, 3, 1), (1, 3, 9))
    entries, order = played(bracket, failing={(0, 0), (1, 1)})
    assert 0 not in {number for number, level in order if level > 0}
    assert {number for number, level in order if level == 1} == {1, 2, 3, 4}
    assert entries[2].level == 3


def test_when_all_fail_it_ends():
    entries, order = played(Bracket((9, 3, 1), (1, 3, 9)), failing={(n, 0) for n in range(9)})
    assert len(order) == 9
    assert all(entry.out for entry in entries.values())


def test_who_ended_by_itself_keeps_its_place_without_more_training():
    entries, order = played(Bracket((9, 3, 1), (1, 3, 9)), early={(0, 0)})
    assert (0, 1) not in order
    assert [number for number, level in order if level == 1] == [1, 2]
    assert entries[0].level == 3


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("level", [0, 1])
def test_bad_trials_that_ended_by_themselves_take_no_place_of_better_ones(level, eager):
    bracket = Bracket((9, 3, 1), (1, 3, 9))
    early = {(number, 0) for number in (6, 7, 8)} if level == 0 else {(2, 1)}
    entries, _ = played(bracket, early=early, eager=eager)
    assert entries[0].level == 3
    assert not entries[0].out


def test_a_value_that_is_no_number_is_never_promoted():
    entries = (Entry(0, (inf,)), Entry(1, (5.0,)), Entry(2, (6.0,)))
    race = Race(Bracket((3, 1), (1, 3)), entries, 3, full=True)
    assert race.next_promotion(idle=False).number == 1
    assert race.is_over(entries[0])
    assert race.is_over(entries[2])


def test_a_rung_that_is_not_complete_is_waited_for_unless_somebody_is_idle():
    entries = (Entry(0, (3.0,)), Entry(1, (2.0,)), Entry(2, (1.0,)), Entry(3, busy=True))
    race = Race(Bracket((4, 1), (1, 3)), entries, 3, full=True)
    assert race.next_promotion(idle=False) is None
    assert race.next_promotion(idle=True).number == 2
    assert not race.is_over(entries[0])
