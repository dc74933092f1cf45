import numpy as np
import pytest

from autotune.performance.warm_start import WarmStart, guide, stored_warm_start, warm_start
from autotune.records.measurement import Measured, Setting
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.guidance.prior_candidates import prior_candidates
from autotune.statistics.standings import Standings
from autotune.storage.study_store import StudyStore
from tests.support.fakes import ListDisplay, definition
from tests.support.machines import FACTS, SPACE, TIME, efficiency, measured, setting, time_s
from tests.support.simulated_clusters import Cluster
from tests.support.stored import add_trial

ALL = list(SPACE.configurations())


@pytest.fixture
def store():
    return StudyStore.in_memory(definition(SPACE, metrics=(TIME,)))


def known_without(machine):
    return [one for other in FACTS if other != machine for one in measured(other, ALL)]


@pytest.mark.slow
def test_what_beats_the_default_on_every_known_machine_comes_first(store):
    display = ListDisplay()
    found = warm_start(store, SPACE, setting("two"), known_without("two"), display)
    assert len(found.proposals) == 5
    assert efficiency("two", found.proposals[0]) > 1.5 * efficiency("two", SPACE.default())
    value, low, high = found.speed_up
    assert 1.0 < low <= value <= high
    assert "is predicted" in display.lines[0]
    assert len(display.lines) == 6
    asker = Asker(store, ValidSetSampler(SPACE))
    asker.sampler.start_with(found.proposals)
    assert [asker.ask().configuration for _ in range(6)] == [SPACE.default(), *found.proposals]


@pytest.mark.full
def test_what_failed_in_another_study_of_the_same_setting_is_not_tried_first(store):
    usual = warm_start(store, SPACE, setting("two"), known_without("two"), ListDisplay()).proposals
    wrong = [Measured(setting("two"), one, failure="invalid result: another sum") for one in usual[:2]]
    again = StudyStore.in_memory(definition(SPACE, metrics=(TIME,)))
    found = warm_start(again, SPACE, setting("two"), known_without("two") + wrong, ListDisplay())
    assert found.proposals
    assert not [one for one in found.proposals if one in usual[:2]]


@pytest.mark.slow
def test_it_is_asked_once_and_the_answer_stays(store):
    first = warm_start(store, SPACE, setting("two"), known_without("two"), ListDisplay())
    again = ListDisplay()
    assert warm_start(store, SPACE, setting("two"), known_without("one"), again) == first
    assert again.lines == []
    assert stored_warm_start(store) == first


def test_nothing_known_is_said(store):
    display = ListDisplay()
    found = warm_start(store, SPACE, setting("two"), [], display)
    assert found.proposals == ()
    assert "nothing was measured of kernel" in display.lines[0]


def test_a_study_that_has_trials_is_left_as_it_is(store):
    add_trial(store, SPACE, SPACE.default())
    found = warm_start(store, SPACE, setting("two"), known_without("two"), ListDisplay())
    assert found.proposals == ()
    assert "had trials before" in found.why


@pytest.mark.full
def test_what_does_not_beat_the_default_for_certain_is_not_tried(store):
    """On half of the machines the default is best, on the others it is worst."""
    tuned = [SPACE.default(), *(one for one in ALL if one != SPACE.default())]

    def contrary(machine, sign):
        place = Setting("kernel", machine, "image", TIME, FACTS[machine])
        return [Measured(place, one, 10.0 + sign * 9.0 * number / len(tuned)) for number, one in enumerate(tuned)]

    known = [
        row
        for machine, sign in (("one", 1), ("three", -1), ("four", 1), ("five", -1))
        for row in contrary(machine, sign)
    ]
    found = warm_start(store, SPACE, setting("two"), known, ListDisplay())
    assert found.proposals == ()
    assert "uncertainty" in found.why


@pytest.mark.slow
def test_the_guide_says_how_much_worse_than_its_best_each_machine_has_a_configuration():
    told = guide(SPACE, setting("two"), measured("one", ALL))
    fields = told.fields(SPACE.indices(ALL))
    # The expected times are one more column.
    assert fields.shape == (len(ALL), 2)
    times = [time_s("one", one) for one in ALL]
    best = min(range(len(ALL)), key=lambda place: times[place] or 1e9)
    assert fields[best, 0] == 0.0
    assert (fields >= 0.0).all()
    assert guide(SPACE, setting("two"), []) is None
    assert guide(SPACE, setting("two"), measured("one", ALL[:5])) is None


def test_what_came_of_it_is_said():
    warm = WarmStart(({"np": 1},), (1.5, 1.2, 1.9))
    assert "none of the predicted" in warm.sentence(Standings({}, TIME))
    assert WarmStart.from_dict(warm.to_dict()) == warm
    assert WarmStart(why="so").sentence(Standings({}, TIME)) == "none: so"


@pytest.mark.slow
def test_a_program_whose_costs_are_known_begins_with_them_where_nothing_was_measured():
    cluster = Cluster.of("iris", 4, "oxide", seed=0)
    fields = guide(cluster.space, cluster.setting, [])
    display = ListDisplay()
    store = StudyStore.in_memory(definition(cluster.space, metrics=(TIME,)))
    found = warm_start(store, cluster.space, cluster.setting, [], display, fields=fields)
    assert found.followed
    (best,) = found.proposals
    default, first = cluster.times_s(cluster.space.indices([cluster.space.default(), best]))
    assert first < 0.6 * default
    # Trials that the model knows nothing of keep their value.
    assert not {"bind_to", "map_by"} & best.keys()
    (line,) = display.lines
    assert "the search begins with such trials, small ones first" in line
    assert guide(SPACE, setting("two"), []) is None


@pytest.mark.slow
def test_what_failed_in_the_setting_is_worst_in_the_expected_times():
    cluster = Cluster.of("iris", 4, "oxide", seed=0)
    told = guide(cluster.space, cluster.setting, [])
    best = cluster.space.decode(prior_candidates(cluster.space, told)[:1])
    again = guide(cluster.space, cluster.setting, [Measured(cluster.setting, best[0], failure="out of memory")])
    assert np.isposinf(again.fields(cluster.space.indices(best))).all()


def test_what_came_of_following_the_expected_times_is_said():
    warm = WarmStart(({"np": 1},), (1.5, 1.2, 1.9), followed=True)
    assert warm.sentence(Standings({}, TIME)).endswith("and the search followed it; no trial ended")
    assert WarmStart.from_dict(warm.to_dict()) == warm
