from dataclasses import replace

import numpy as np
import pytest

from autotune.performance.measurements.shipped import load_shipped_measurements
from autotune.performance.regression.table import DesignMatrix
from autotune.performance.run_times.model import Predicted, RunTimes
from autotune.performance.run_times.novelty import Novelty, folds, novelty
from autotune.records.measurement import Measured, Setting
from objectives.base import Metric
from objectives.shapes.scaling import strong_scaling
from objectives.shapes.shape import Shape, Term

WALL = Metric("wall_s", "s", "minimize", "time")
RATE = Metric("bytes_per_s", "B/s", "maximize", "other")


def setting(machine="a", size=100, metric=WALL, program="solver", **facts):
    work = {"size": size}
    for name in ("kind", "build"):
        if name in facts:
            work[name] = facts.pop(name)
    return Setting(program, machine, f"size {size} {work.get('kind', '')}", metric, {"nodes": 1, **facts}, work)


def law(machine, size, ranks, level=None):
    levels = {"a": 0.0, "b": 0.7, "c": -0.5, "d": 0.2, "e": 1.0}
    return (levels[machine] if level is None else level) + np.log(size) - 0.8 * np.log(ranks)


def rows(machines="abc", sizes=(100, 200, 400), ranks=(1, 2, 4, 8, 16), *, noise=0.02, seed=0, levels=None, **facts):
    rng = np.random.default_rng(seed)
    found = []
    for place, machine in enumerate(machines):
        for size in sizes:
            here = setting(machine, size, **facts)
            for count in ranks:
                y = law(machine, size, count, None if levels is None else levels[place])
                found.append(Measured(here, {"np": count}, float(np.exp(y + noise * rng.standard_normal()))))
    return found


def cases(here, ranks):
    return DesignMatrix.from_measurements([Measured(here, {"np": count}, 1.0) for count in ranks])


def fitted(known, here, rules=()):
    model = RunTimes.fit(known, rules, here)
    assert model is not None
    return model


def test_a_new_workload_follows_the_power_law():
    here = setting("b", 800)
    found = fitted(rows(), here).estimate(cases(here, [1, 4, 16, 30]))
    true = np.array([law("b", 800, count) for count in (1, 4, 16, 30)])
    assert found.mean == pytest.approx(true, abs=0.08)
    assert (np.abs(found.mean - true) <= found.half).all()


def test_fewer_than_six_values_are_no_model():
    known = rows("a", (100,))
    assert RunTimes.fit(known[:5], (), known[0].setting) is None
    assert RunTimes.fit(known, (), setting(metric=RATE)) is None
    assert RunTimes.fit([replace(row, value=None, failure="broken") for row in rows()], (), setting()) is None


def test_six_values_make_a_line():
    known = rows("a", (100,), (1, 2, 4, 8, 16, 32), noise=0.0)
    found = fitted(known, known[0].setting).estimate(cases(known[0].setting, [3]))
    assert found.mean[0] == pytest.approx(law("a", 100, 3), abs=0.1)
    assert 0.0 < found.half[0] < 1.0


def test_other_programs_and_metrics_do_not_count():
    known = rows()
    here = setting("b", 800)
    others = [replace(row, setting=replace(row.setting, program="other"), value=1e9) for row in known]
    alone, beside = fitted(known, here), fitted([*known, *others], here)
    asked = cases(here, [2, 8])
    assert np.array_equal(alone.estimate(asked).mean, beside.estimate(asked).mean)


def test_rates_that_should_be_high_work_alike():
    known = [replace(row, setting=replace(row.setting, metric=RATE), value=1.0 / (row.value or 1.0)) for row in rows()]
    here = setting("b", 800, RATE)
    found = fitted(known, here).estimate(cases(here, [4]))
    assert found.mean[0] == pytest.approx(-law("b", 800, 4), abs=0.1)


@pytest.mark.parametrize(("machines", "share"), [("a", 0.5), ("ab", 2 / 3), ("abcd", 0.8), ("abcdefghij", 0.9)])
def test_few_machines_promise_little_of_a_new_one(machines, share):
    here = setting("new")
    model = fitted(rows(machines, levels=np.linspace(0.0, 1.0, len(machines))), here)
    assert model.estimate(cases(here, [1, 4])).share == pytest.approx(share)
    said = f"other machines known: {len(machines)}, so an interval is to hold {share:.0%}"
    assert (said in model.grounds) is (share < 0.9)


def test_what_is_known_a_little_is_promised_nine_tenths():
    here = setting("new")
    own = [Measured(here, {"np": count}, float(np.exp(law("b", 100, count)))) for count in range(1, 13)]
    assert fitted([*rows("a"), *own], here).estimate(cases(here, [20])).share == 0.9


@pytest.mark.full
def test_intervals_hold_new_machines_nine_times_in_ten():
    inside = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        levels = 0.5 * rng.standard_normal(8)
        known = rows("abcdefg", (100, 200), (1, 4, 16), noise=0.05, seed=seed, levels=levels)
        here = setting("h", 200)
        found = fitted(known, here).estimate(cases(here, [1, 4, 16]))
        true = np.array([law("h", 200, count, levels[7]) for count in (1, 4, 16)])
        inside.append(np.mean(np.abs(found.mean - true) <= found.half))
    assert 0.75 <= np.mean(inside) <= 0.99


def test_ratios_are_surer_than_times_where_the_level_is_unknown():
    rng = np.random.default_rng(3)
    levels = rng.standard_normal(7)
    known = rows("abcdefg", (100, 200), (1, 4, 16), seed=3, levels=levels)
    here = setting("h", 200)
    model = fitted(known, here)
    ratio = model.ratio(cases(here, [1, 4, 16]), cases(here, [1]))
    assert ratio.mean == pytest.approx([0.0, -0.8 * np.log(4), -0.8 * np.log(16)], abs=0.15)
    assert (ratio.half[1:] < 0.4 * model.estimate(cases(here, [4, 16])).half).all()


@pytest.mark.slow
def test_rows_of_the_setting_itself_tell_its_level():
    levels = [0.0, 0.7, -0.5, 0.3, 0.1, 3.0]
    known = rows("abcdef", (100, 200), (1, 2, 4, 8, 16, 32), levels=levels)
    own = [row for row in known if row.setting.machine == "f" and row.setting.workload_facts["size"] == 100]
    others = [row for row in known if row.setting.machine != "f"]
    own += [
        replace(row, configuration={"np": count}, value=float(np.exp(law("f", 100, count, 3.0))))
        for row, count in zip(own, (3, 6, 12, 24, 48, 64), strict=True)
    ]
    here = own[0].setting
    new, known_a_little = fitted(others, here), fitted([*others, *own], here)
    asked = cases(here, [5, 10])
    assert known_a_little.estimate(asked).mean == pytest.approx(
        [law("f", 100, count, 3.0) for count in (5, 10)], abs=0.1
    )
    assert (known_a_little.estimate(asked).half < 0.5 * new.estimate(asked).half).all()


@pytest.mark.full
def test_intervals_hold_settings_that_are_known_a_little():
    inside = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        levels = 0.5 * rng.standard_normal(6)
        known = rows("abcdef", (100, 200), range(1, 17), noise=0.1, seed=seed, levels=levels)
        own = [row for row in known if row.setting.machine == "f"]
        told = [own[place] for place in rng.permutation(len(own))[:10]]
        asked = [row for row in own if row not in told]
        model = fitted([row for row in known if row not in own] + told, own[0].setting)
        found = model.estimate(DesignMatrix.from_measurements(asked))
        inside.append(np.mean(np.abs(found.mean - np.log([row.value or 0.0 for row in asked])) <= found.half))
    assert 0.8 <= np.mean(inside) <= 0.98


@pytest.mark.parametrize(("own", "widest"), [(2, 100.0), (3, 3.0)])
def test_after_three_values_of_its_own_a_setting_is_known_within_a_factor_of_three(own, widest):
    there = rows("d", (100,))[:own]
    assert fitted([*rows(), *there], there[0].setting).widest == widest


def test_machines_with_a_single_run_do_not_narrow_what_one_own_run_tells():
    here = setting("h", 100)
    own = Measured(here, {"np": 2}, float(np.exp(law("h", 100, 2, 0.3))))

    def half(known):
        model = RunTimes.fit([*known, own], (), here, strong_scaling("np", None))
        return model.estimate(cases(here, [4])).half[0]

    alone, beside = [], []
    for seed in range(4):
        known = rows("abcdef", (100,), noise=0.1, seed=seed, levels=np.linspace(-1.0, 1.0, 6))
        # Hidden, these machines have no run of their own, and the model is much less certain of them than of `here`.
        single = rows("opqrstuvwxyz", (100,), (2,), seed=seed, levels=np.linspace(-1.0, 1.0, 12))
        alone.append(half(known))
        beside.append(half([*known, *single]))
    assert np.mean(beside) > 0.8 * np.mean(alone)


def test_folds_are_even_and_keep_labels_together():
    labels = np.repeat(np.array(list("abcdefg"), dtype=object), [1, 1, 2, 2, 8, 9, 10])
    found = folds(Novelty("machine", "machine", labels, "g"), np.random.default_rng(0))
    assert (found[labels == "g"] == -1).all()
    assert all(len(set(found[labels == label])) == 1 for label in "abcdef")
    assert sorted(np.bincount(found[found >= 0]).tolist()) == [2, 2, 2, 8, 9]


def test_an_unseen_build_has_the_level_of_its_machine_and_is_said():
    known = rows("a", (100, 200), build="gcc", vendor="x") + [
        replace(row, value=(row.value or 0.0) * 3.0) for row in rows("b", (100, 200), build="icc", vendor="y")
    ]
    here = setting("a", 100, build="aocc", vendor="x")
    model = fitted(known, here)
    found = model.estimate(cases(here, [4]))
    assert found.mean[0] == pytest.approx(law("a", 100, 4), abs=0.2)
    assert "nothing was measured with build 'aocc'" in model.doubts


def test_doubts_are_in_words():
    known = rows("ab", kind="dense", cores_per_node=20)
    assert fitted(known, known[0].setting).doubts == ()
    far = fitted(known, setting("a", 900, kind="dense", cores_per_node=48)).doubts
    assert any("no measurement with more than 20 cores per node: 48 asked; nearest machine: a" in one for one in far)
    assert any("no measurement with more than 400 size: 900 asked" in one for one in far)
    strange = fitted(known, setting("a", 100, kind="sparse", cores_per_node=20)).doubts
    assert any("no measurement with kind 'sparse' (known: dense)" in one for one in strange)
    here = known[0].setting
    assert fitted(known, here).doubts_of(cases(here, [2, 16])) == ()
    assert fitted(known, here).doubts_of(cases(here, [64])) == ("no measurement with more than 16 np: 64 asked",)


def test_a_machine_like_none_gets_no_times():
    known = rows("ab", cores_per_node=20, vendor="x")
    assert fitted(known, setting("z", 100, cores_per_node=1000, vendor="y")).abstains
    assert fitted(known, setting("z", 100)).abstains
    assert not fitted(known, setting("z", 100, cores_per_node=1000, vendor="x")).abstains
    assert not fitted(known, setting("z", 100, cores_per_node=24, vendor="y")).abstains
    assert not fitted(known, known[0].setting).abstains


@pytest.mark.parametrize(("metric", "sign"), [(WALL, 1.0), (RATE, -1.0)])
def test_bounds_that_contradict_the_model_move_it(metric, sign):
    def turned(one, value):
        return replace(one, setting=replace(one.setting, metric=metric), value=float(np.exp(sign * np.log(value))))

    known = [turned(row, row.value) for row in rows("a", (100, 200))]
    here = known[0].setting
    high, low = (
        [Measured(here, {"np": 64 + more}, bound=float(np.exp(sign * level)), runs=3) for more in range(8)]
        for level in (6.0, -6.0)
    )
    asked = cases(here, [67])
    without = sign * fitted(known, here).estimate(asked).mean[0]
    assert sign * fitted(known + high, here).estimate(asked).mean[0] > without + 1.0
    assert sign * fitted(known + low, here).estimate(asked).mean[0] == without


def test_trees_learn_what_a_log_linear_model_cannot():
    known = rows("abcd", (100, 200, 400), range(1, 17))
    steps = [
        replace(row, value=(row.value or 0.0) * (3.0 if row.configuration["np"] in {5, 11} else 1.0)) for row in known
    ]
    here = setting("b", 800)
    assert fitted(steps, here).ratio(cases(here, [5]), cases(here, [7])).mean[0] > np.log(2.0)


@pytest.mark.parametrize("odd", [3.0, 1.0])
def test_trees_correct_costs_where_left_out_machines_show_that_they_should(odd):
    known = rows("abcde", (100, 200), range(1, 13))
    steps = [
        replace(row, value=(row.value or 0.0) * (odd if row.configuration["np"] in {5, 11} else 1.0)) for row in known
    ]
    shape = Shape((Term("computing", "size / np", 1.0, 0.5), Term("messages", "np", 0.01, 0.5)), level=1.0)
    model = RunTimes.fit(steps, (), setting("new"), shape)
    assert bool(model.learners.weights[1]) is (odd > 1.0)
    assert "and on what is known of its costs" in model.grounds


def test_of_one_machine_its_builds_are_hidden_instead():
    known = [row.setting for build in ("gcc", "icc") for row in rows("a", (100,), build=build)]
    found = novelty(known, setting("z", 100, build="gcc"))
    assert (found.respect, found.by) == ("machine", "installation")
    assert len(set(found.labels)) == 2


def test_the_same_data_give_the_same_model():
    here = setting("b", 800)
    first, second = fitted(rows(), here), fitted(rows(), here)
    asked = cases(here, [1, 3, 9])
    assert np.array_equal(first.estimate(asked).mean, second.estimate(asked).mean)
    assert np.array_equal(first.estimate(asked).half, second.estimate(asked).half)


def test_grounds_say_what_it_was_fitted_on():
    grounds = fitted(rows(build="gcc"), setting("z", 100, build="gcc")).grounds
    assert grounds == (
        "fitted on 45 measurements of solver on 3 machines, 1 build, "
        "tested on machines left out of the fit; other machines known: 3, so an interval is to hold 75%"
    )


def test_grounds_of_a_single_setting_tell_that_single_measurements_were_left_out():
    grounds = fitted(rows("a", (100,), range(1, 17)), setting("a", 100)).grounds
    assert grounds.endswith("tested on measurements left out of the fit")


def test_what_is_new_is_found_the_least_known_first():
    known = [row.setting for row in rows("abc", (100, 200, 400), build="gcc")]
    assert novelty(known, setting("z", 800, build="gcc")).respect == "machine"
    assert novelty(known, setting("a", 800, build="icc")).respect == "installation"
    assert novelty(known, setting("a", 800, build="gcc", nodes=2)).respect == "workload"
    assert novelty(known, setting("a", 100, build="gcc", nodes=2)).respect == "nodes"
    assert novelty(known, known[0]).respect == ""
    assert set(novelty(known, setting("a", 800, build="gcc")).labels) == {
        "(('size', 100),)",
        "(('size', 200),)",
        "(('size', 400),)",
    }


def test_a_shape_tells_where_more_ranks_stop_to_pay():
    here = setting("a", 100)
    counts = [1, 2, 3, 4, 6, 8, 12, 16]
    time = {count: 100.0 / count + 0.005 * count + 1.0 for count in range(1, 257)}
    known = [Measured(here, {"np": count}, time[count]) for count in counts]
    model = RunTimes.fit(known, (), here, strong_scaling("np", None))
    far = [64, 128, 256]
    true = np.log([time[count] for count in far])
    without = RunTimes.fit(known, (), here)
    off = np.abs(model.estimate(cases(here, far)).mean - true).max()
    assert off < 0.5 * np.abs(without.estimate(cases(here, far)).mean - true).max()


@pytest.mark.parametrize("worth", [1.4, 1.0])
def test_the_runs_of_one_setting_show_whether_costs_are_all_that_counts(worth):
    here = setting("a", 100)
    shape = strong_scaling("np", None)
    known = [
        Measured(here, {"np": count, "flag": flag}, (100.0 / count + 1.0) * (worth if flag else 1.0))
        for count in (1, 2, 3, 4, 6, 8, 12)
        for flag in (True, False)
    ]
    model = RunTimes.fit(known, (), here, shape)
    asked = [Measured(here, {"np": 5, "flag": flag}, 1.0) for flag in (True, False)]
    ratio = model.ratio(DesignMatrix.from_measurements(asked[:1]), DesignMatrix.from_measurements(asked[1:]))
    assert ratio.mean[0] == pytest.approx(np.log(worth), abs=0.1)
    assert model.rests_on_costs is (worth == 1.0)
    assert ("flag" in model.varied) is (worth != 1.0)


def test_what_the_model_does_not_tell_apart_is_not_surely_equal():
    here = setting("a", 100)
    known = [Measured(here, {"np": count, "word": "a"}, 100.0 / count) for count in (1, 2)]
    model = RunTimes.fit(known, (), here, strong_scaling("np", None))
    one, other = (DesignMatrix.from_measurements([Measured(here, {"np": 2, "word": word}, 1.0)]) for word in "ab")
    ratio = model.ratio(other, one)
    assert ratio.mean[0] == pytest.approx(0.0)
    assert ratio.half[0] > 0.1


def test_two_values_and_a_shape_tell_a_time_on_many_ranks():
    here = setting("a", 100, cores_per_node=64)
    known = [Measured(here, {"np": count}, 100.0 / count + 1.0) for count in (1, 2)]
    assert RunTimes.fit(known, (), here) is None
    found = RunTimes.fit(known, (), here, strong_scaling("np", None)).estimate(cases(here, [16, 64]))
    assert (np.abs(found.mean - np.log([100 / 16 + 1, 100 / 64 + 1])) <= found.half).all()
    assert (found.half < np.log(5.0)).all()


def test_how_a_model_may_be_off_is_that_of_the_share_that_its_intervals_hold():
    here = setting("a", 100)
    known = [Measured(here, {"np": count}, 100.0 / count) for count in (1, 2)]
    model = RunTimes.fit(known, (), here, strong_scaling("np", None))
    many = cases(here, [1, 64])
    assert replace(model, share=0.5).off(many) == pytest.approx(model.off(many) * 1.6449 / 0.6745, rel=1e-3)


def test_of_a_rate_the_sum_is_the_inverse():
    here = setting("a", 100, metric=RATE, cores_per_node=64)
    known = [Measured(here, {"np": count}, 1.0 / (100.0 / count + 1.0)) for count in (1, 2)]
    shape = replace(strong_scaling("np", None), inverse=True)
    model = RunTimes.fit(known, (), here, shape)
    found = model.estimate(cases(here, [1, 16]))
    assert found.mean[1] - found.mean[0] == pytest.approx(np.log(101 / 7.25), abs=0.5)
    assert RunTimes.fit(known, (), here, strong_scaling("np", None)) is None


def test_of_unknown_work_each_workload_has_a_level_of_its_own():
    times = {100: 1.0, 200: 50.0}
    places = {size: setting("a", size, cores_per_node=64) for size in times}
    known = [
        Measured(places[size], {"np": count}, scale * (1.0 / count + 0.01))
        for size, scale in times.items()
        for count in (1, 2)
    ]
    model = RunTimes.fit(known, (), places[200], strong_scaling("np", None))
    assert np.exp(model.estimate(cases(places[200], [1, 8])).mean) == pytest.approx([50.5, 6.75], rel=0.15)


def seconds(rows, ranks):
    return 2e-5 * rows / ranks + 1e-3 * ranks


def sized(rows):
    return Setting("kernel", "a", f"kernel {rows}", WALL, {"nodes": 1}, {"rows": rows})


def of_two_sizes(shape):
    known = [Measured(sized(rows), {"np": n}, seconds(rows, n)) for rows in (20_000, 40_000) for n in (1, 2, 3, 4)]
    return RunTimes.fit(known, (), sized(80_000), shape)


ROWS = Shape((Term("rows / np", "rows / np", 1e-5, 2.0), Term("np", "np", 0.1, 2.0)), derived={"rows": "80000"})


def test_two_sizes_and_terms_that_name_them_tell_a_third():
    found = of_two_sizes(ROWS).estimate(cases(sized(80_000), [1, 2, 4]))
    true = np.log([seconds(80_000, n) for n in (1, 2, 4)])
    assert found.mean == pytest.approx(true, abs=0.05)
    assert (np.abs(found.mean - true) <= found.half).all()
    assert (found.half < np.log(3.0)).all()


def test_terms_that_name_no_size_leave_the_time_of_another_open():
    found = of_two_sizes(strong_scaling("np", None)).estimate(cases(sized(80_000), [1, 2, 4]))
    true = np.log([seconds(80_000, n) for n in (1, 2, 4)])
    assert (np.abs(found.mean - true) <= found.half).all()
    assert (found.half > np.log(30.0)).all()


def test_runs_of_unknown_size_leave_the_times_that_costs_tell():
    known = [row for row in load_shipped_measurements() if row.setting.program == "qe"]
    theta = next(row.setting for row in known if row.setting.machine == "theta")
    mine = replace(theta, machine="cellar", workload="ceria", machine_facts={"nodes": 1}, workload_facts={"atoms": 24})
    runs = [Measured(mine, {"np": count}, 700.0 / count) for count in (24, 48, 96)]
    asked = replace(theta, machine="cellar", machine_facts={"nodes": 1, "cores": 128, "cores_per_node": 128})
    known = [row for row in known if row.setting.metric.compares_with(asked.metric)]
    found = fitted([*known, *runs], asked).estimate(DesignMatrix.from_measurements([known[-1]]))
    assert np.isfinite([*found.mean, *found.half]).all()


def test_what_no_member_knows_is_not_a_second():
    said = np.array([[1.0, np.nan, 9.0], [np.nan, np.nan, 9.0]])
    mean = Predicted(said, np.zeros((2, 2)), np.array([0.5, 0.5, 0.0])).mean
    assert mean[0] == 1.0
    assert np.isnan(mean[1])


def test_a_build_much_slower_than_usual_ones_is_named():
    counts = (1, 2, 4, 8, 16)
    places = {build: setting("a", 100, build=build, cores_per_node=64) for build in ("gcc", "icc", "aocc", "slow")}
    known = [
        Measured(here, {"np": count}, (4.0 if build == "slow" else 1.0) * (100.0 / count + 0.01 * count))
        for build, here in places.items()
        for count in counts
    ]
    shape = Shape((Term("computing", "1 / np", 100.0, 0.5), Term("messages", "np", 0.01, 0.5)), level=0.5)
    for build, is_slow in (("slow", True), ("gcc", False)):
        model = RunTimes.fit(known, (), places[build], shape)
        assert any("times slower than usual ones" in doubt for doubt in model.doubts) is is_slow
