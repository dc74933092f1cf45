"""The accuracy of predictions for left-out machines and workloads, on simulated machines with known truth."""

import math
from dataclasses import replace

import pytest

from autotune.performance.accuracy import judge_held_out
from autotune.performance.model import PerformanceModel
from autotune.records.measurement import Measured
from tests.support.machines import FACTS, SPACE, efficiency, measured, setting

pytestmark = [
    pytest.mark.full,
]

# Enough configurations for a transfer, few enough to be quick.
TRIED = [one for one in SPACE.configurations() if one["unroll"] == 1 and one["layout"] == "rows"]
DEFAULT = SPACE.default()


def known_of(machines=tuple(FACTS)):
    found = [row for machine in machines for row in measured(machine, TRIED)]
    return [replace(row, default=row.configuration == DEFAULT) for row in found]


@pytest.fixture(scope="module")
def every():
    return known_of()


@pytest.fixture(scope="module")
def judged(every):
    return list(judge_held_out(every, "machine"))


def relative(machine, configuration=DEFAULT):
    return efficiency(machine, configuration) / max(efficiency(machine, one) for one in TRIED)


def test_every_machine_is_left_out_once(every, judged):
    assert [held.setting.machine for held in judged] == list(FACTS)
    for held in judged:
        told = [row for row in every if row.setting.machine == held.setting.machine and row.value is not None]
        assert held.values == len(told)
        assert held.choice is not None
        assert 0.0 < held.choice.first <= held.choice.best <= 1.0
        assert held.choice.best > 0.9


def test_installations_are_judged_apart(every):
    here = [row for row in every if row.setting.machine == "one"]
    slow = [
        replace(row, setting=replace(row.setting, workload_facts={**row.setting.workload_facts, "framework": "slow"}))
        for row in here
    ]
    known = [*here, *slow, *(row for row in every if row.setting.machine == "two")]
    assert [held.values for held in judge_held_out(known, "machine")][:2] == [len(here), len(slow)]


def test_the_efficiency_of_the_default(judged):
    for held in judged:
        assert held.default == pytest.approx(relative(held.setting.machine))


def test_predicted_times_come_with_intervals(judged):
    for held in judged:
        assert held.times is not None
        assert len(held.times.predicted) == held.values
        inside = [low <= value <= high for value, _, low, high in held.times.predicted]
        assert held.times.covered == pytest.approx(sum(inside) / len(inside))
        assert all(low < middle < high for _, middle, low, high in held.times.predicted)
        assert held.times.correlation > 0.5
        away = sorted(abs(middle / value - 1.0) for value, middle, *_ in held.times.predicted)
        assert away[0] <= held.times.error <= away[-1]
        assert held.times.width > 1.0


def proposals_when(known, monkeypatch):
    """Return the proposals for the left-out first machine, and their judgement."""
    best, told = PerformanceModel.best, []

    def spied(model, space, asked, top):
        told.append(best(model, space, asked, top))
        return told[-1]

    monkeypatch.setattr(PerformanceModel, "best", spied)
    held = next(judge_held_out(known, "machine"))
    monkeypatch.undo()
    return told[0], held


def poisoned(row, number):
    """Return absurd rows: values upside down, bounds and failures where there were values."""
    match number % 4:
        case 0:
            return replace(row, value=1e-9 * (number + 1), failure="")
        case 1:
            return replace(row, value=None, bound=1e9)
        case 2:
            return replace(row, value=None, failure="it broke")
        case _:
            return replace(row, value=1e9, failure="")


def test_what_was_measured_on_the_machine_itself_is_never_used(every, monkeypatch):
    own = [row for row in every if row.setting.machine == "one"]
    others = [row for row in every if row.setting.machine != "one"]
    truth, held = proposals_when([*own, *others], monkeypatch)
    told, judged_by_lies = proposals_when([*map(poisoned, own, range(len(own))), *others], monkeypatch)
    assert truth.setting.machine == "one"
    assert told == truth
    assert truth.proposals
    assert judged_by_lies.choice != held.choice


def test_nor_what_was_measured_there_of_another_workload(every, monkeypatch):
    truth, _ = proposals_when(every, monkeypatch)
    absurd = [
        replace(row, setting=replace(row.setting, workload="video"), value=row.value and 1.0 / row.value)
        for row in known_of(["one"])
    ]
    told, _ = proposals_when([*every, *absurd], monkeypatch)
    assert told == truth


def test_nor_what_was_measured_there_under_another_name(every, monkeypatch):
    node = {**FACTS["one"], "cpu_model": "Epyc", "cores_per_node": 8}
    own = [
        replace(row, setting=replace(row.setting, machine="Epyc, 8 cores", machine_facts=node))
        for row in every
        if row.setting.machine == "one"
    ]
    absurd = [
        replace(row, setting=replace(row.setting, machine="lab-7"), value=row.value and 1.0 / row.value) for row in own
    ]
    others = [row for row in every if row.setting.machine != "one"]
    truth, _ = proposals_when([*own, *others], monkeypatch)
    told, _ = proposals_when([*own, *absurd, *others], monkeypatch)
    assert told == truth


def test_a_workload_under_two_names_is_one(every):
    sized = [replace(row, setting=replace(row.setting, workload_facts={"pixels": 9})) for row in every]
    called_otherwise = [replace(row, setting=replace(row.setting, workload="9 pixels")) for row in sized]
    assert list(judge_held_out([*sized, *called_otherwise], "workload")) == []


def test_names_that_no_space_can_have_are_judged_like_others():
    def renamed(row):
        new = {"x": "block-size", "y": "lambda"}
        return replace(row, configuration={new.get(name, name): value for name, value in row.configuration.items()})

    known = known_of(["one", "two", "three"])
    first, second = (list(judge_held_out(rows, "machine")) for rows in (known, list(map(renamed, known))))
    assert [held.choice for held in second] == [held.choice for held in first]


def test_a_default_that_fails_there_has_no_efficiency(every):
    known = [
        replace(row, value=None, failure="broken") if row.default and row.setting.machine == "one" else row
        for row in every
    ]
    one = next(judge_held_out(known, "machine"))
    assert (one.setting.machine, one.default) == ("one", None)


def test_by_workload_another_workload_of_the_machine_is_known():
    known = known_of(["one", "two"])
    video = [
        replace(row, setting=replace(row.setting, workload="video"), value=row.value and 3.0 * row.value)
        for row in known
    ]
    found = list(judge_held_out([*known, *video], "workload"))
    assert [(held.setting.workload, held.setting.machine) for held in found] == [
        ("image", "one"),
        ("image", "two"),
        ("video", "one"),
        ("video", "two"),
    ]
    assert all(not any("measured on" in doubt for doubt in held.doubts) for held in found)
    assert all(held.choice is not None and held.choice.first > 0.95 for held in found)
    assert list(judge_held_out(known, "workload")) == []


def test_too_few_values_are_not_judged():
    known = known_of(["one", "two"])
    two = [row for row in known if row.setting.machine == "one" and row.value is not None][:2]
    failed = [Measured(setting("one"), one, failure="broken") for one in TRIED[5:9]]
    others = [row for row in known if row.setting.machine == "two"]
    assert [held.setting.machine for held in judge_held_out([*two, *failed, *others], "machine")] == ["two"]


def test_one_machine_alone_cannot_be_left_out(every):
    assert list(judge_held_out([row for row in every if row.setting.machine == "one"], "machine")) == []
    assert list(judge_held_out([], "machine")) == []


def test_where_the_model_abstains_there_are_no_times():
    strange = {"gpu_vendor": "c", "gpu_lanes": 7000, "gpu_bandwidth_bytes_per_s": 1e20}
    alien = [
        replace(row, setting=replace(row.setting, machine="alien", machine_facts=strange)) for row in known_of(["one"])
    ]
    held = next(judge_held_out([*alien, *known_of(["two", "three"])], "machine"))
    assert held.setting.machine == "alien"
    assert held.times is None
    assert any("nothing was measured on alien" in doubt for doubt in held.doubts)


def test_where_too_little_is_known_the_model_declines():
    few = next(judge_held_out([*known_of(["one"]), *known_of(["two"])[:4]], "machine"))
    assert few.setting.machine == "one"
    assert (few.choice, few.times) == (None, None)
    assert few.doubts


def test_values_that_are_all_the_same_have_no_correlation():
    known = known_of(["one", "two"])
    flat = [replace(row, value=row.value and 2.0) if row.setting.machine == "two" else row for row in known]
    held = list(judge_held_out(flat, "machine"))[-1]
    assert held.setting.machine == "two"
    assert held.times is not None
    assert math.isnan(held.times.correlation)
    assert held.choice is not None
    assert held.choice.first == pytest.approx(1.0)
