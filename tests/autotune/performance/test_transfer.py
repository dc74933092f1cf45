from dataclasses import replace

import numpy as np
import pytest

from autotune.performance.model import Fields, PerformanceModel
from autotune.performance.regression.similarity import fact_columns, groups_sharing_word, squared_distances
from autotune.performance.transfer.model import Evidence, Transfer, Worlds, portfolio, transfer
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


@pytest.mark.full
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
    assert told.low == pytest.approx(told.value * min(1.0, np.exp(found.misses.min())))
    assert told.low <= told.value <= told.high
    assert told.confidence == pytest.approx(3 / 5)
    assert found.speed_up(0) is None


@pytest.mark.parametrize(("surprise", "promising"), [(0.0, True), (0.3, False)])
def test_nothing_is_promised_that_may_lose_to_the_default(monkeypatch, surprise, promising):
    """The first proposals won on all known machines, but what is proposed here was overestimated on one of them."""

    def surprised(_space, _setting, _sources, rows, _count, _chances, _machines):
        expected = np.full(len(rows), 0.4)
        expected[:2] = 0.5, 0.6
        surprises = np.zeros((3, len(rows)))
        surprises[0, 1] = -surprise
        gains, misses = np.array([0.2, 0.3, 0.1]), np.full(3, np.log(1.0 - surprise / 0.6))
        return Transfer(rows, expected, surprises, (1,), gains, misses, 0.9, is_floored=False, machines=3)

    monkeypatch.setattr("autotune.performance.model.transfer", surprised)
    found = PerformanceModel(tuple(known_without("one"))).best(SPACE, setting("one"), 1)
    assert found.promising is promising
    assert any("may be slower than the default: 0.6 times" in doubt for doubt in found.doubts) is not promising


def test_a_space_of_the_default_alone_has_no_other_to_propose():
    place = setting("one")
    found = transfer(SPACE, place, sources(SPACE, place, known_without("one")), DEFAULT_FIRST[:1], 1)
    assert (found.proposals, found.chance) == ((0,), 0.0)


def test_predict_says_that_the_default_comes_first_and_why():
    best = {"x": 64, "y": 2, "unroll": 2, "layout": "columns"}
    parameters = [replace(parameter, default=best[parameter.name]) for parameter in SPACE.parameters]
    space = Space(parameters, SPACE.constraints)
    found = PerformanceModel(tuple(known_without("five"))).best(space, setting("five"), 3)
    assert (found.proposals[0].configuration, found.proposals[0].speed_up) == (best, None)
    assert len(found.proposals) == 3
    assert not found.promising
    assert any(doubt.startswith("the default comes first: the best other beats it") for doubt in found.doubts)


def of_workloads(machine, *workloads):
    rows = measured(machine, ALL)
    return [
        replace(row, setting=replace(row.setting, workload=workload, machine_facts={**FACTS[machine], "nodes": nodes}))
        for nodes, workload in enumerate(workloads, 1)
        for row in rows
    ]


def test_all_of_a_machine_is_left_out_together_and_counts_once():
    known = sources(SPACE, setting("one"), [*of_workloads("two", "image", "video"), *of_workloads("five", "image")])
    apart, together = (
        transfer(SPACE, setting("one"), known, DEFAULT_FIRST, 5, machines=machines) for machines in (None, (0, 0, 1))
    )
    efficiencies = [np.exp(source.efficiencies_at(DEFAULT_FIRST)) for source in known]
    # Machine two is known by another workload, unless that is left out, too.
    assert together.surprises[0] == pytest.approx(efficiencies[0] - efficiencies[2])
    assert np.abs(apart.surprises[0]).max() < 0.5 * np.abs(together.surprises[0]).max()
    shares = [found.speed_up(found.proposals[0]).confidence for found in (apart, together)]
    assert shares == pytest.approx([2 / 4, 1 / 3])
    one = transfer(SPACE, setting("one"), known[:2], DEFAULT_FIRST, 5, machines=(0, 0))
    assert one.speed_up(one.proposals[0]) is None


@pytest.mark.parametrize(
    ("machine", "together"),
    [
        ("one", (0, 0, 1)),
        ("two", (0, 1, 2)),  # what is new is the workload
    ],
)
def test_what_is_left_out_is_the_machine_where_it_is_new(monkeypatch, machine, together):
    told = []

    def spied(*given):
        told.append(given[-1])
        return transfer(*given)

    monkeypatch.setattr("autotune.performance.model.transfer", spied)
    monkeypatch.setattr("autotune.performance.model.RunTimes.fit", lambda *_: None)
    known = (*of_workloads("two", "sound", "video"), *of_workloads("five", "sound"))
    found = PerformanceModel(known).best(SPACE, setting(machine), 1)
    assert told == [together]
    assert found.grounds[0].startswith("the same space was measured on 2 machines: two, two, 2 nodes, five")


def test_workloads_of_one_machine_are_no_three_machines(monkeypatch):
    class Times:
        abstains = False

    monkeypatch.setattr("autotune.performance.model.RunTimes.fit", lambda *_: Times())
    five = tuple(of_workloads("two", *"abcde"))
    assert Fields.of(PerformanceModel(five), SPACE, setting("one")).expected is not None
    assert Fields.of(PerformanceModel(five), SPACE, setting("two")).expected is None
    others = (*five, *of_workloads("three", "a"), *of_workloads("four", "a"))
    assert Fields.of(PerformanceModel(others), SPACE, setting("one")).expected is None


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


def test_installations_on_one_machine_are_sources_of_their_own():
    known = [
        replace(row, setting=replace(row.setting, machine_facts={**row.setting.machine_facts, "framework": name}))
        for name, share in (("quick", ALL[:40]), ("slow", ALL[40:50]))
        for row in measured("one", share)
    ]
    assert [len(one.rows) for one in sources(SPACE, setting("five"), known)] == [40]


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
    told = found.efficiencies_at(SPACE.indices([ALL[0], ALL[30], ALL[31], ALL[32]]))
    assert told[:2].tolist() == pytest.approx([0.0, -np.log(4.0)])
    assert np.isnan(told[2])
    assert told[3] == pytest.approx(np.log(FLOOR))


def test_a_portfolio_begins_with_the_best_on_the_average_and_adds_what_is_good_in_other_worlds():
    """Two kinds of machines: the second choice is for the other kind, though the first kind's second best is better."""
    worlds = np.array([[1.0, 0.95, 0.1, 0.1], [1.0, 0.95, 0.1, 0.1], [0.2, 0.3, 0.9, 1.0]])
    chances = np.array([0.4, 0.3, 0.3])
    with_default = np.column_stack([np.full(3, 0.6), worlds])
    assert portfolio(with_default, chances, 2) == (1, 4)
    assert portfolio(with_default, chances, 2, (0,)) == (0, 1)
    assert sorted(portfolio(with_default, chances, 9)) == [1, 2, 3, 4]


@pytest.mark.parametrize("asked", ["one", "five"])
def test_the_default_comes_first_where_nothing_is_likely_to_beat_it(asked):
    # What is best on the machines of one vendor costs the other a third; nothing beats it where it is best.
    best = {"a": (32, 4, "rows"), "b": (64, 2, "columns")}[FACTS[asked]["gpu_vendor"]]
    default = {"x": best[0], "y": best[1], "unroll": 2, "layout": best[2]}
    rows = np.array(sorted(DEFAULT_FIRST.tolist(), key=lambda row: SPACE.decode(np.array([row]))[0] != default))
    known = sources(SPACE, setting(asked), known_without(asked))
    found = transfer(SPACE, setting(asked), known, rows.astype(DEFAULT_FIRST.dtype), 3)
    assert found.chance < 0.5
    assert (found.proposals[0], len(set(found.proposals))) == (0, 3)
    weak = transferred(asked, known_without(asked))
    assert weak.chance > 0.8
    assert 0 not in weak.proposals


def test_in_one_world_a_machine_is_like_those_of_its_vendor():
    rows = DEFAULT_FIRST
    known = known_without("five")
    evidence = Evidence.of(SPACE, setting("five"), sources(SPACE, setting("five"), known), rows)
    worlds = Worlds.of(evidence, evidence, range(4), 4)
    alike = np.exp(evidence.smooth[3])
    assert any(np.allclose(world, alike / alike.max()) for world in worlds.efficiencies)
    assert worlds.efficiencies.max(axis=1) == pytest.approx(1.0)
    assert worlds.chances.sum() == pytest.approx(1.0)


def test_machines_of_one_vendor_and_size_are_near():
    near = squared_distances(list(FACTS.values()))
    assert np.allclose(near, near.T)
    assert (np.diag(near) == 0).all()
    assert near[0, 1] < near[0, 2] < near[0, 4]
    assert (squared_distances([{"cores": 2}, {"memory_bytes": 2}]) == 0).all()


def test_machines_that_share_a_word_make_a_group_unless_all_share_it():
    known = [{"vendor": "a", "kind": "x"}, {"vendor": "a", "kind": "y"}, {"vendor": "b", "kind": "x"}]
    assert groups_sharing_word(known, {"vendor": "a", "kind": "z"}) == [(0, 1)]
    assert groups_sharing_word(known, {"vendor": "a", "kind": "x"}) == [(0, 1), (0, 2)]
    assert groups_sharing_word(known[:2], {"vendor": "a"}) == []
    assert groups_sharing_word(known, {}) == []


def test_the_facts_of_machines_are_columns_of_sizes_and_of_words():
    columns = fact_columns(
        [{"cores": 1, "vendor": "a", "l2": 5}, {"cores": 4, "vendor": "b"}, {"cores": 4, "vendor": "a"}]
    )
    assert columns == pytest.approx(np.array([[0.0, 1.0, 0.0], [np.log(4), 0.0, 1.0], [np.log(4), 1.0, 0.0]]))
    assert fact_columns([{}, {"cores": 2}]).shape == (2, 0)


def test_value_indexes_of_other_spaces_fit_or_do_not():
    space = Space([Integer("n", (1, 2, 4), default=1), Choice("kind", ("a",), optional=True)])
    rows, fits = space.fitting([{"n": 2}, {"n": 3}, {"n": 4, "kind": "a"}, {"n": 1, "m": 1}, {"kind": "a"}])
    assert fits.tolist() == [True, False, True, False, False]
    assert space.decode(rows[fits]) == [{"n": 2}, {"n": 4, "kind": "a"}]
