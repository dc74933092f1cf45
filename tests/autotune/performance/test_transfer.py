from dataclasses import replace

import numpy as np
import pytest

from autotune.performance.regression.similarity import squared_distances, vendors
from autotune.performance.transfer.model import transfer
from autotune.performance.transfer.portfolio import portfolio
from autotune.performance.transfer.sources import FLOOR, sources
from autotune.records.measurement import Measured
from objectives.base import Metric
from spaces import Choice, Constraint, Integer, Space
from tests.support.machines import FACTS, SPACE, TIME, efficiency, measured, setting

pytestmark = pytest.mark.slow

ALL = list(SPACE.configurations())
DEFAULT_FIRST = np.ascontiguousarray(
    np.concatenate(
        [
            SPACE.indices([SPACE.default()]),
            [row for row in SPACE.all_indices() if SPACE.decode(row[None, :])[0] != SPACE.default()],
        ]
    )
)


def known_without(machine, share=1.0, metric=TIME):
    rng = np.random.default_rng(1)
    found = []
    for other in FACTS:
        if other != machine:
            chosen = [one for one in ALL if one == SPACE.default() or rng.uniform() < share]
            found += measured(other, chosen, metric)
    return found


def transferred(machine, known, metric=TIME):
    place = setting(machine, metric)
    return transfer(SPACE, place, sources(SPACE, place, known), DEFAULT_FIRST, 5)


def proposals(found):
    return SPACE.decode(found.rows[list(found.proposals)])


@pytest.mark.parametrize("machine", list(FACTS))
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_it_finds_what_is_good_on_a_machine_that_it_does_not_know(machine, share):
    reached = [efficiency(machine, one) for one in proposals(transferred(machine, known_without(machine, share)))]
    assert reached[0] > 0.7
    assert max(reached) > 0.9
    assert efficiency(machine, SPACE.default()) < 0.75 * max(reached)


def test_how_fast_a_machine_is_changes_no_proposal():
    known = known_without("two")
    scaled = [
        replace(one, value=one.value and one.value * (50.0 if one.setting.machine == "one" else 1.0)) for one in known
    ]
    assert proposals(transferred("two", known)) == proposals(transferred("two", scaled))


def test_a_rate_is_judged_as_the_time_that_it_is_the_reciprocal_of():
    rate = Metric("rate", "1/s", "maximize", "rate")
    assert proposals(transferred("five", known_without("five", metric=rate), rate)) == proposals(
        transferred("five", known_without("five"))
    )


def test_the_same_measurements_give_the_same_proposals():
    first, second = (transferred("one", known_without("one", 0.5)) for _ in range(2))
    assert first.proposals == second.proposals
    assert np.array_equal(first.expected, second.expected)


def test_what_failed_everywhere_is_not_proposed():
    for one in proposals(transferred("three", known_without("three"))):
        assert efficiency("three", one) > 0.0


def test_the_gains_are_those_of_the_known_machines_and_bound_the_speed_up():
    found = transferred("one", known_without("one"))
    assert len(found.gains) == 4
    assert (found.gains > 0).all()
    told = found.speed_up(found.proposals[0])
    assert told.low <= np.exp(found.gains.min())
    assert told.low <= told.value <= told.high
    assert told.confidence == pytest.approx(3 / 5)
    assert found.speed_up(0).value == pytest.approx(1.0)


def test_one_machine_has_its_best_carried_over_and_nobody_can_say_how_sure_that_is():
    found = transferred("two", measured("three", ALL))
    assert efficiency("three", proposals(found)[0]) == pytest.approx(1.0)
    assert found.speed_up(found.proposals[0]) is None


def test_sources_are_settings_elsewhere_by_the_same_metric_with_enough_values():
    other = Metric("energy_j", "J")
    known = [
        *measured("one", ALL),
        *measured("two", ALL[:10]),
        *measured("three", ALL, other),
        *measured("four", ALL, program="another"),
    ]
    assert [one.setting.machine for one in sources(SPACE, setting("five"), known)] == ["one"]


def test_a_source_may_lack_parameters_and_have_others_that_never_change():
    without = [
        replace(one, configuration={**{k: v for k, v in one.configuration.items() if k != "layout"}, "streams": 1})
        for one in measured("one", ALL)
        if one.configuration["layout"] == "rows"
    ]
    (found,) = sources(SPACE, setting("two"), without)
    assert len(found.rows) == len(without)
    changing = [
        replace(one, configuration={**one.configuration, "streams": place % 2}) for place, one in enumerate(without)
    ]
    assert sources(SPACE, setting("two"), changing) == []


def test_a_published_space_whose_default_breaks_its_own_conditions_is_compared():
    forbidden = " and ".join(f"{name} == {value!r}" for name, value in SPACE.default().items())
    published = Space(SPACE.parameters, [Constraint("condition 1", f"not ({forbidden})", "a condition of the T1 file")])
    known = [one for one in measured("one", ALL) if one.configuration != SPACE.default()]
    (found,) = sources(published, setting("two"), known)
    assert len(found.rows) == len(known)


def test_bounds_tell_at_most_how_good_a_configuration_is():
    place = setting("one")
    values = [Measured(place, one, 1.0 + number) for number, one in enumerate(ALL[:30])]
    capped = [Measured(place, ALL[30], bound=4.0), Measured(place, ALL[31], bound=0.5)]
    (found,) = sources(SPACE, setting("two"), [*values, *capped, Measured(place, ALL[32], failure="no")])
    told = found.measured_at(SPACE.indices([ALL[0], ALL[30], ALL[31], ALL[32]]))
    assert told[:2].tolist() == pytest.approx([0.0, -np.log(4.0)])
    assert np.isnan(told[2])
    assert told[3] == pytest.approx(np.log(FLOOR))


def test_a_portfolio_is_diverse_where_machines_are():
    """Two kinds of machines: each has two good configurations, alike; one of each is worth more than two of one."""
    expected = np.array([0.62, 0.61, 0.6, 0.59, 0.1])
    kind = np.array([0.35, 0.35, -0.35, -0.35, 0.0])
    surprises = np.array([kind, -kind, kind, -kind])
    traits = np.array([[0.0], [0.01], [5.0], [5.01], [9.0]])
    chosen = portfolio(expected, surprises, traits, 2, np.random.default_rng(0))
    assert len({place // 2 for place in chosen}) == 2
    assert portfolio(expected, surprises[:0], traits, 9, np.random.default_rng(0))[0] in {0, 1}


def test_machines_of_one_vendor_and_size_are_near():
    near = squared_distances(list(FACTS.values()))
    assert np.allclose(near, near.T)
    assert (np.diag(near) == 0).all()
    assert near[0, 1] < near[0, 2] < near[0, 4]
    assert vendors(list(FACTS.values())) == ("a", "a", "a", "b", "b")
    assert vendors([{}, {"cpu_vendor": "c"}]) == ("", "c")
    assert (squared_distances([{"cores": 2}, {"memory_bytes": 2}]) == 0).all()


def test_value_indexes_of_other_spaces_fit_or_do_not():
    space = Space([Integer("n", (1, 2, 4), default=1), Choice("kind", ("a",), optional=True)])
    rows, fits = space.fitting([{"n": 2}, {"n": 3}, {"n": 4, "kind": "a"}, {"n": 1, "m": 1}, {"kind": "a"}])
    assert fits.tolist() == [True, False, True, False, False]
    assert space.decode(rows[fits]) == [{"n": 2}, {"n": 4, "kind": "a"}]
