"""After an upgrade a search begins with the winner of the earlier study, and follows its values where runs agree."""

from dataclasses import replace

import numpy as np
import pytest
from optuna.study import StudyDirection

from autotune.performance.earlier_study import EarlierStudy
from autotune.performance.warm_start import find_earlier_study, warm_start
from autotune.records.limit import Limit
from autotune.records.measurement import Judged, Measured, Setting
from autotune.search.base import History
from autotune.search.gp_sampler import ValidSetSampler
from autotune.statistics.kept_limits import KeptLimits
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind, Metric
from spaces import Choice, Integer, Space
from tests.autotune.pictures.studies import trial
from tests.support.fakes import ListDisplay, definition, failed, took

TIME = Metric("wall_s", "s", kind="time")
X, Y = Integer.range("x", 1, 30, default=25), Choice("mode", ("a", "b"), default="a")
SPACE = Space([X, Y])
FACTS = {"cores": 8, "compiler": "gcc 12"}
OLD = Setting("solve", "box, gcc 12", "solve 1.0", TIME, FACTS, source="study solve", identity="1.0")
NEW = replace(OLD, machine="box", machine_facts={"cores": 8}, workload="solve 1.1", source="study b", identity="1.1")


def seconds(best, configuration):
    return 1.0 + abs(configuration["x"] - best) / 10 + (configuration["mode"] == "a")


def measured(setting, best=8, xs=(1, 5, 8, 12, 20, 25, 30)):
    configurations = [{"x": x, "mode": mode} for x in xs for mode in ("a", "b")]
    return [Measured(setting, one, seconds(best, one)) for one in configurations]


def judged(rows, best, *, holds=True):
    winner = next(row.configuration for row in rows if row.configuration == {"x": best, "mode": "b"})
    said = Judged(winner, SPACE.default(), holds=holds, confidence=0.95, said=(1.5, 1.4, 1.6))
    return [replace(row, judged=said) for row in rows]


def test_the_newest_study_of_the_program_on_this_machine_is_the_earlier_one():
    newer = measured(replace(OLD, identity="1.0.1", source="study solve-again"), best=12)
    found = EarlierStudy.find(SPACE, NEW, [*measured(OLD), *newer])
    assert (found.source, found.winner) == ("study solve-again", {"x": 12, "mode": "b"})
    # A winner that a verdict has confirmed is worth more than a newer one.
    confirmed = judged(measured(OLD), 8)
    found = EarlierStudy.find(SPACE, NEW, [*confirmed, *newer])
    assert (found.source, found.winner, found.gain.value) == ("study solve", {"x": 8, "mode": "b"}, 1.5)
    # So is a newer study whose verdict kept the default.
    kept = judged(newer, 12, holds=False)
    assert EarlierStudy.find(SPACE, NEW, [*confirmed, *kept]).source == "study solve-again"


def test_few_values_and_imports_do_not_displace_a_study():
    few = measured(replace(OLD, source="study few"), best=12)[:7]
    imported = measured(replace(OLD, source="a page"), best=12)
    assert EarlierStudy.find(SPACE, NEW, few) is None
    assert EarlierStudy.find(SPACE, NEW, [*measured(OLD), *few, *imported]).source == "study solve"


def test_another_input_counts_only_if_it_has_the_same_sizes_and_then_last():
    here, there = replace(NEW, input="small.dat"), replace(OLD, input="large.dat")
    assert EarlierStudy.find(SPACE, here, measured(there)) is None
    sizes = {"workload_facts": {"atoms": 100}}
    here, same, other = replace(here, **sizes), replace(OLD, input="small.dat", **sizes), replace(there, **sizes)
    other = replace(other, source="study other")
    known, display = judged(measured(other), 8), ListDisplay()
    assert not EarlierStudy.find(SPACE, here, [*measured(same), *known]).has_other_input
    store = StudyStore.in_memory(definition(SPACE))
    warm_start(store, SPACE, here, known, display, earlier=EarlierStudy.find(SPACE, here, known))
    assert "from study other (another input), whose winner was" in display.lines[0]


def test_the_winner_keeps_the_limits_and_is_the_one_that_the_verdict_confirmed():
    memory = Metric("rss_gib", "GiB")
    known = [replace(row, told={"rss_gib": 10.0 if row.configuration["x"] == 8 else 1.0}) for row in measured(OLD)]
    found = EarlierStudy.find(SPACE, NEW, known, (Limit(memory, high=5.0),))
    assert found.winner == {"x": 5, "mode": "b"}
    assert found.values.has_held(SPACE.indices([SPACE.default(), found.winner]), np.array([1.0, 0.0]))
    # A trial that was lucky in tuning, and not compared, does not displace the winner.
    lucky = [row if row.configuration["x"] == 8 else replace(row, judged=None) for row in judged(measured(OLD), 8)]
    lucky = [replace(row, value=0.9) if row.configuration == {"x": 1, "mode": "b"} else row for row in lucky]
    assert EarlierStudy.find(SPACE, NEW, lucky).winner == {"x": 8, "mode": "b"}


def test_a_winner_that_the_verdict_rejected_is_not_proposed():
    known, display = judged(measured(OLD), 8, holds=False), ListDisplay()
    store = StudyStore.in_memory(definition(SPACE))
    assert not warm_start(store, SPACE, NEW, known, display, earlier=EarlierStudy.find(SPACE, NEW, known)).proposals
    assert display.lines == ["warm start: nothing was better than the default in study solve"]
    # Without a verdict there is no winner.
    display, store = ListDisplay(), StudyStore.in_memory(definition(SPACE))
    warm_start(store, SPACE, NEW, measured(OLD), display, earlier=EarlierStudy.find(SPACE, NEW, measured(OLD)))
    assert "from study solve, whose best trial looked 3.7 times as fast as the default" in display.lines[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"program": "other"},
        {"machine": "another box, gcc 12"},
        {"metric": Metric("rate", "1/s", "maximize")},
        {"workload_facts": {"atoms": 100}},
        {"machine_facts": {**FACTS, "nodes": 2}},
    ],
)
def test_what_an_upgrade_does_not_change_must_agree(changes):
    assert EarlierStudy.find(SPACE, NEW, measured(replace(OLD, **changes))) is None


def test_a_study_of_another_space_counts_as_far_as_its_configurations_are_valid_here():
    wider = Space([X, Y, Integer("new", (1, 2), default=2)])
    assert EarlierStudy.find(wider, NEW, measured(OLD)).winner == {"x": 8, "mode": "b", "new": 2}
    narrower = Space([X, Choice("mode", ("a", "c"), default="a")])
    more = measured(OLD, xs=(1, 5, 8, 12, 15, 20, 25, 30))
    assert EarlierStudy.find(narrower, NEW, more).winner == {"x": 8, "mode": "a"}
    # Each value of x was measured with both modes, so no row says what x alone would do.
    assert EarlierStudy.find(Space([X]), NEW, measured(OLD)) is None


def search(best, count=8):
    """Return the first `count` configurations of a study whose optimum is at x = `best`."""
    sampler, earlier = ValidSetSampler(SPACE, seed=1), EarlierStudy.find(SPACE, NEW, measured(OLD))
    sampler.set_earlier_values(earlier.values)
    sampler.start_with([earlier.winner])
    rows, seen = np.empty((0, 2), dtype=np.int32), []
    for _ in range(count):
        rows = np.concatenate([rows, SPACE.indices([sampler.propose(History(rows, seen, StudyDirection.MINIMIZE))])])
        seen.append(Observation(value=seconds(best, SPACE.decode(rows[-1:])[0])))
    return SPACE.decode(rows)


def test_the_winner_runs_after_the_default_and_its_neighbours_follow():
    default, first, *others = search(best=8)
    assert default == SPACE.default()
    assert first == {"x": 8, "mode": "b"}
    assert all(abs(one["x"] - 8) <= 4 for one in others[:2])


def test_where_the_optimum_has_moved_it_is_found_all_the_same():
    for best in (11, 20):
        assert {"x": best, "mode": "b"} in search(best, count=10)


def test_an_earlier_default_that_was_best_is_said():
    known, display = measured(OLD, best=25, xs=(1, 5, 8, 12, 15, 20, 25, 30)), ListDisplay()
    known = [one for one in known if one.configuration["mode"] == "a"]
    store = StudyStore.in_memory(definition(SPACE))
    assert not warm_start(store, SPACE, NEW, known, display, earlier=EarlierStudy.find(SPACE, NEW, known)).proposals
    assert display.lines == ["warm start: nothing was better than the default in study solve"]


def test_a_resumed_study_keeps_the_earlier_study_that_it_began_with():
    later = judged(measured(replace(OLD, identity="1.2", source="study later"), best=12), 12)
    store = StudyStore.in_memory(definition(SPACE))
    first = find_earlier_study(store, SPACE, NEW, measured(OLD))
    warm_start(store, SPACE, NEW, measured(OLD), ListDisplay(), earlier=first)
    assert find_earlier_study(store, SPACE, NEW, [*measured(OLD), *later]).source == "study solve"
    # A study that began with nothing is not guided by one that began after it.
    alone = StudyStore.in_memory(definition(SPACE))
    warm_start(alone, SPACE, NEW, [], ListDisplay())
    assert find_earlier_study(alone, SPACE, NEW, later) is None


def test_what_came_of_the_earlier_winner_is_said():
    display = ListDisplay()
    known = judged(measured(OLD), 8)
    store = StudyStore.in_memory(definition(SPACE))
    start = warm_start(store, SPACE, NEW, known, display, earlier=EarlierStudy.find(SPACE, NEW, known))
    assert "from study solve, whose winner was 1.5 times as fast as the default: x=8 mode=b" in display.lines[0]

    def said(*trials):
        return start.sentence(Standings({one.number: one for one in trials}, TIME))

    default, winner = trial(0, took(3.7), **SPACE.default()), trial(1, took(2.0), x=8, mode="b")
    assert said(default).endswith("here it has not run")
    assert said(default, winner).endswith("here it looks 1.85x: still right, within 2% of the best of 2 trials")
    slow = trial(1, took(3.2), x=8, mode="b")
    assert said(default, slow).endswith("here it looks 1.16x: within 2% of the best of 2 trials, but it gains less")
    better = trial(2, took(1.5), x=9, mode="b")
    assert said(default, winner, better).endswith("no longer within 8% of the best of 3 trials")
    assert said(default, trial(1, failed(FailureKind.APPLICATION_ERROR), x=8, mode="b")).endswith(
        "here it failed or was stopped"
    )
    broken = trial(0, failed(FailureKind.APPLICATION_ERROR), **SPACE.default())
    assert said(broken, winner).endswith("here it cannot be compared: the default failed")
    # Runs that differ by 5 % cannot show a loss of 4 %.
    noisy = trial(0, took(3.5), took(3.7), took(3.9), **SPACE.default())
    near = trial(2, took(1.92), x=9, mode="b")
    assert "still right, within" in said(noisy, winner, near)
    limit = Limit(Metric("wall_s", "s", kind="time"), high=1.9)
    trials = {one.number: one for one in (default, winner)}
    assert start.sentence(Standings(trials, TIME, limits=KeptLimits((limit,)))).endswith("1.85x, but breaks a limit")
