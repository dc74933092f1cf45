"""Two machines compared: the ratio, its interval, and where nobody knows."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from autotune.performance.crossover.comparison import Answer
from autotune.performance.crossover.question import CrossoverError, crossover
from autotune.records.measurement import Measured, Setting
from objectives.base import Metric

TIME = Metric("took_s", "s", kind="time")
SIZES = (64, 128, 256, 512, 1024, 2048)
OTHERS = 16


def facts(lanes, start_s):
    return {"vendor": "a", "lanes": lanes, "start_s": start_s}


def seconds(size, machine):
    """What the made-up program takes: a machine with more lanes starts later, and computes faster."""
    return machine["start_s"] + size / machine["lanes"]


@pytest.fixture(scope="module")
def known():
    rng = np.random.default_rng(3)
    machines = {f"m{at}": facts(4 * 2 ** (at // 2) * 1.1 ** (at % 2), 0.5 * 2 ** (at // 2)) for at in range(OTHERS)}
    return [
        Measured(
            Setting("solver", name, f"n{size}", TIME, machine, {"n": size}),
            {},
            seconds(size, machine) * math.exp(0.02 * rng.normal()),
        )
        for name, machine in machines.items()
        for size in SIZES
    ]


NARROW, WIDE = facts(8.5, 1.05), facts(270, 33.0)


def test_swapping_the_machines_inverts_the_ratios(known):
    there = crossover(known, {"narrow": NARROW, "wide": WIDE}, {}, "n").ratios
    back = crossover(known, {"wide": WIDE, "narrow": NARROW}, {}, "n").ratios
    for one, other in zip(there, back, strict=True):
        inverted = (1.0 / other.speed.value, 1.0 / other.speed.high, 1.0 / other.speed.low)
        assert (one.speed.value, one.speed.low, one.speed.high) == pytest.approx(inverted, rel=1e-6)


def test_from_which_size_on_the_other_one_is_faster(known):
    found = crossover(known, {"narrow": NARROW, "wide": WIDE}, {}, "n")
    assert found.ratios[0].answer is Answer.FIRST
    assert found.ratios[-1].answer is Answer.SECOND
    assert re.fullmatch(r"wide is faster from n=\d+ on; narrow is faster up to n=\d+", found.sentence())
    for ratio in found.ratios:
        size = ratio.case.facts["n"]
        true = seconds(size, WIDE) / seconds(size, NARROW)
        assert ratio.answer in {Answer.NOT_KNOWN, Answer.FIRST if true > 1.0 else Answer.SECOND}


def test_machines_alike_are_not_told_apart(known):
    found = crossover(known, {"one": WIDE, "twin": dict(WIDE)}, {})
    assert all(ratio.speed.low < 1.0 < ratio.speed.high for ratio in found.ratios)
    assert found.sentence() == "which of one and twin is faster is not known"


def test_what_was_measured_on_both_counts_as_it_is(known):
    found = crossover(known, {"m0": known[0].setting.machine_facts, "m15": known[-1].setting.machine_facts}, {"n": 64})
    (ratio,) = found.ratios
    assert ratio.measured
    assert ratio.speed.value == pytest.approx(known[-len(SIZES)].value / known[0].value)


def test_a_size_that_was_never_measured_is_predicted_within_a_factor_of_two(known):
    (near,) = crossover(known, {"narrow": NARROW, "wide": WIDE}, {"n": 3000}).ratios
    assert near.answer is Answer.SECOND
    (far,) = crossover(known, {"narrow": NARROW, "wide": WIDE}, {"n": 100_000}).ratios
    assert far.answer is Answer.NOT_KNOWN
    assert far.why == "n 100000 is more than a factor of two outside of what was measured"


def test_a_machine_unlike_all_others_is_not_judged(known):
    strange = {"vendor": "c", "lanes": 1_000_000, "start_s": 1e-6}
    (ratio,) = crossover(known, {"narrow": NARROW, "strange": strange}, {"n": 64}).ratios
    assert ratio.answer is Answer.NOT_KNOWN
    assert ratio.why == "strange has nothing in common with the machines that were measured"


def test_three_other_machines_do_not_tell_how_far_a_ratio_is_off(known):
    few = [row for row in known if row.setting.machine in {"m0", "m7", "m15"}]
    (ratio,) = crossover(few, {"narrow": NARROW, "wide": WIDE}, {"n": 64}).ratios
    assert ratio.speed is None
    assert ratio.why == "4 other machines must be known to tell the error, and 3 are"


def some(machines, sizes=SIZES, metric=TIME):
    """Return measurements of made-up machines: name -> facts."""
    return [
        Measured(Setting("solver", name, f"n{size}", metric, own, {"n": size}), {}, seconds(size, own))
        for name, own in machines.items()
        for size in sizes
    ]


def test_nodes_and_builds_of_one_machine_are_one_other_machine():
    nodes = {"big": [{**facts(8 * count, 1.0), "nodes": count} for count in (1, 2, 4, 8)]}
    builds = {f"small, {word}": {**facts(16, 1.0), "compiler": word} for word in ("gcc", "icc", "nvc")}
    rows = [row for name, each in nodes.items() for own in each for row in some({name: own})] + some(builds)
    (ratio,) = crossover(rows, {"narrow": NARROW, "wide": WIDE}, {"n": 64}).ratios
    assert ratio.why == "4 other machines must be known to tell the error, and 2 are"
    # Those of an asked machine are no others at all.
    (ratio,) = crossover(rows, {"big, 16 nodes": {**facts(128, 1.0), "nodes": 16}, "wide": WIDE}, {"n": 64}).ratios
    assert ratio.why == "4 other machines must be known to tell the error, and 0 are"


def test_machines_on_which_nothing_the_same_was_measured_back_no_interval():
    machines = [(f"m{at}", facts(4 * 2**at, 0.5 * 2**at)) for at in range(9)]
    rows = [
        row for (name, own), size in zip(machines, range(64, 73), strict=True) for row in some({name: own}, (size,))
    ]
    rows += some(dict(machines[:2]), (128,))
    (ratio,) = crossover(rows, {"narrow": NARROW, "wide": WIDE}, {"n": 128}).ratios
    assert ratio.why == "4 other machines must be known to tell the error, and 2 are"


def test_swapping_inverts_the_ratio_of_a_known_and_a_new_machine_too(known):
    own = known[0].setting.machine_facts
    (there,) = crossover(known, {"m0": own, "wide": WIDE}, {"n": 64}).ratios
    (back,) = crossover(known, {"wide": WIDE, "m0": own}, {"n": 64}).ratios
    assert (there.speed.low, there.speed.high) == pytest.approx((1.0 / back.speed.high, 1.0 / back.speed.low), rel=1e-6)


def test_machines_are_compared_by_what_was_measured_most_of_the_two():
    cpu = Metric("cpu_s", "s", kind="time")
    two = {"a": facts(4, 1.0), "b": facts(8, 1.0)}
    rows = [*some(two), *some({"c": facts(16, 1.0), "a": facts(4, 1.0)}, range(1, 20), cpu)]
    found = crossover(rows, two, {"n": 64})
    assert (found.metric, found.ratios[0].measured) == (TIME, True)
    assert crossover(rows, two, {"n": 5}, metric="cpu_s").metric == cpu
    with pytest.raises(CrossoverError, match="no measurement is of a metric called 'wall_s'; there is: cpu_s, took_s"):
        crossover(rows, two, {}, metric="wall_s")


def test_what_was_measured_counts_of_machines_that_nobody_described():
    rows = some({"a": facts(4, 1.0), "b": facts(8, 1.0)}, (64,))
    bare = [replace(row, setting=replace(row.setting, machine_facts={"nodes": 4})) for row in rows]
    (ratio,) = crossover(bare, {"a, 4 nodes": {"nodes": 4}, "b, 4 nodes": {"nodes": 4}}, {}).ratios
    assert ratio.measured


def test_a_higher_rate_is_better():
    rate = Metric("rate", "1/s", "maximize", "rate")
    rows = [
        Measured(Setting("solver", name, "w", rate, {"cores": 4}), {"np": np}, value * np)
        for name, value in (("a", 1.0), ("b", 3.0))
        for np in (1, 2)
    ]
    found = crossover(rows, {"a": {"cores": 4}, "b": {"cores": 4}}, {})
    assert found.sentence() == "b is faster"
    (ratio,) = crossover(rows, {"a": {"cores": 4}, "b": {"cores": 4}}, {"np": 1}).ratios
    assert ratio.speed.value == pytest.approx(1.0 / 3.0)


def test_an_unknown_size_is_refused_by_name(known):
    with pytest.raises(CrossoverError, match=r"called 'size'; there is: n"):
        crossover(known, {"narrow": NARROW, "wide": WIDE}, {"size": 3})
