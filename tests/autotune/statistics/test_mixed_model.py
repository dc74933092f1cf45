from dataclasses import replace
from math import hypot, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.statistics.mixed_model import MeasuredRun, fit

seeds = st.integers(0, 2**32 - 1)
small = st.floats(-1, 1)
SLOWER = log(1.2)


def repeated(seed, configurations=6, runs=3, noise=0.02, blocks=1):
    """Return runs of configurations 1, 2, ... that differ by 10 % each, taken in turns over the blocks."""
    rng = np.random.default_rng(seed)
    return [
        MeasuredRun(number, run % blocks, 0.1 * number + float(rng.normal(0, noise)))
        for number in range(1, configurations + 1)
        for run in range(runs)
    ]


def drifting(seed, noise=0.01, slower=SLOWER):
    """Return a study whose last three of six blocks are slower; configuration 0 ran in all blocks."""
    rng = np.random.default_rng(seed)
    places = [(0, 0), (0, 0)] + [(0, block) for block in range(6)]
    places += [(number, block) for number, block in enumerate((0, 0, 1, 2, 3, 4, 5, 5), 1)] * 2
    return [MeasuredRun(number, block, float(rng.normal(slower * (block >= 3), noise))) for number, block in places]


@given(st.lists(st.lists(small, min_size=1, max_size=4), min_size=1, max_size=5), st.sampled_from(["median", "mean"]))
def test_without_drift_a_configuration_is_worth_the_plain_statistic_of_its_runs(values, statistic):
    # The same values in both blocks: nothing speaks for a difference between these.
    samples = [MeasuredRun(c, block, v) for c, runs in enumerate(values) for v in runs for block in (0, 1)]
    found = fit(samples, statistic)
    plain = np.median if statistic == "median" else np.mean
    assert list(found.offsets.values()) == [0.0, 0.0]
    assert not found.drifts
    assert [found.center(c) for c in range(len(values))] == pytest.approx([float(plain(runs)) for runs in values])


@pytest.mark.parametrize(("ours", "theirs"), [(3, 3), (3, 5), (2, 4)])
def test_within_one_block_drift_changes_nothing(ours, theirs):
    rng = np.random.default_rng(0)
    samples = [
        MeasuredRun(side, 0, float(value))
        for side, count in ((1, ours), (2, theirs))
        for value in rng.normal(0.0, 0.02, count)
    ]
    still = fit(samples)
    moving = replace(still, spread=replace(still.spread, drift=0.05))
    assert moving.contrast(1, 2).standard_error == pytest.approx(still.contrast(1, 2).standard_error)


def test_one_block_cannot_drift():
    found = fit(repeated(0))
    assert found.offsets == {0: pytest.approx(0.0, abs=1e-12)}
    assert not found.drifts


def test_noise_is_seldom_taken_for_drift():
    studies = [fit(repeated(seed, configurations=8, runs=4, blocks=4)) for seed in range(300)]
    assert sum(study.drifts for study in studies) <= 9


@pytest.mark.parametrize("seed", range(10))
def test_a_machine_that_becomes_slower_is_found_out(seed):
    found = fit(drifting(seed))
    assert found.drifts
    late, early = np.mean([found.offsets[b] for b in (3, 4, 5)]), np.mean([found.offsets[b] for b in (0, 1, 2)])
    assert late - early == pytest.approx(SLOWER, rel=0.15)


@pytest.mark.parametrize("seed", range(10))
def test_configurations_of_different_blocks_are_not_told_apart_when_the_machine_drifts(seed):
    # Both are as fast as the baseline; 8 ran in the slow time, 1 in the fast one, so it looks 20 % slower.
    contrast = fit(drifting(seed)).contrast(8, 1)
    assert abs(contrast.difference) < 2.5 * contrast.standard_error


@pytest.mark.parametrize("seed", range(10))
def test_configurations_that_met_in_a_block_are_compared_there(seed):
    found = fit([*drifting(seed), MeasuredRun(1, 5, SLOWER)])
    contrast = found.contrast(8, 1)
    assert abs(contrast.difference) < 0.2 * SLOWER
    assert contrast.standard_error < 2 * found.noise
    assert found.center(8) - found.center(1) > 0.2 * SLOWER


def test_a_neighbour_that_leaves_within_a_block_makes_nobody_look_fast():
    # The baseline ran beside the neighbour, the challenger after it had left: no value may be better than measured.
    found = fit([*repeated(0, blocks=3), MeasuredRun(1, 9, 1.0), MeasuredRun(99, 9, 0.0)])
    assert found.center(99) == 0.0
    assert found.center(1) < 0.5


def test_a_value_is_less_certain_where_the_machine_drifts():
    found = fit(drifting(0))
    assert found.error(1) == pytest.approx(hypot(sqrt(found.variance(found.count(1))), found.drift))
    still = replace(found, spread=replace(found.spread, drift=0.0))
    assert still.error(1) == sqrt(found.variance(found.count(1)))


def test_a_comparison_across_blocks_is_less_certain_than_one_within():
    found = fit(drifting(0))
    assert found.contrast(8, 1).standard_error > found.contrast(2, 1).standard_error


@given(seeds, st.integers(1, 6), st.integers(0, 2), st.floats(0.5, 10), st.sampled_from([-1, 1]))
def test_a_wild_run_hardly_changes_the_noise_nor_a_median_of_three(seed, configuration, run, size, sign):
    samples = repeated(seed)
    clean, place = fit(samples), 3 * (configuration - 1) + run
    samples[place] = replace(samples[place], value=samples[place].value + sign * size)
    wild = fit(samples)
    others = [sample.value for i, sample in enumerate(samples) if sample.configuration == configuration and i != place]
    assert wild.noise < 2 * clean.noise
    assert min(others) <= wild.center(configuration) <= max(others)


def test_a_wild_run_is_not_taken_for_drift():
    samples = repeated(1, runs=4, blocks=2)
    samples[5] = replace(samples[5], value=samples[5].value + log(10))
    found = fit(samples)
    assert not found.drifts
    assert max(abs(offset) for offset in found.offsets.values()) < 0.02


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.2])
@pytest.mark.parametrize("runs", [2, 3, 8])
def test_the_noise_is_estimated_from_repeats(noise, runs):
    assert fit(repeated(3, configurations=300, runs=runs, noise=noise)).noise == pytest.approx(noise, rel=0.12)


@given(seeds)
def test_a_configuration_that_ran_once_says_nothing_about_the_noise(seed):
    samples = repeated(seed, blocks=2)
    alone = fit([*samples, MeasuredRun(7, 1, 3.0), MeasuredRun(8, 5, -3.0)])
    assert (alone.noise, alone.degrees, alone.offsets) == (
        fit(samples).noise,
        fit(samples).degrees,
        fit(samples).offsets,
    )


def test_without_repeats_a_little_noise_is_assumed():
    found = fit([MeasuredRun(0, 0, 1.0), MeasuredRun(1, 0, 2.0)])
    assert found.noise > 0
    assert found.contrast(1, 0).difference == 1.0


@given(seeds, st.integers(1, 6), st.integers(1, 6))
def test_a_contrast_turns_round_with_its_sides(seed, one, other):
    found = fit(repeated(seed, blocks=3))
    forth, back = found.contrast(one, other), found.contrast(other, one)
    assert forth.difference == pytest.approx(-back.difference)
    assert forth.standard_error == pytest.approx(back.standard_error)


@given(seeds, st.sampled_from(["median", "mean"]))
def test_every_run_makes_a_configuration_better_known(seed, statistic):
    found = fit(repeated(seed), statistic)
    variances = [found.variance(runs) for runs in range(1, 20)]
    assert variances == sorted(variances, reverse=True)
    assert found.prospective(1, 2, 0).standard_error < found.contrast(1, 2).standard_error


@given(seeds, st.floats(-5, 5))
@settings(max_examples=50)
def test_the_unit_of_the_metric_does_not_matter(seed, shift):
    samples = repeated(seed, blocks=3)
    before = fit(samples).contrast(1, 2)
    after = fit([replace(sample, value=sample.value + shift) for sample in samples]).contrast(1, 2)
    assert after.difference == pytest.approx(before.difference, abs=1e-6)
    assert after.standard_error == pytest.approx(before.standard_error, rel=1e-4)


def on_nodes(seed, between, nodes=5, configurations=8):
    """Return a study whose nodes differ; configuration 0 ran on all of them, each other on three."""
    rng = np.random.default_rng(seed)
    offsets = rng.normal(0, between, nodes)
    return [
        MeasuredRun(number, 0, 0.1 * number + float(offsets[node] + rng.normal(0, 0.02)), f"n{node}")
        for number in range(configurations)
        for node in (range(nodes) if number == 0 else rng.choice(nodes, 3, replace=False))
    ]


def test_nodes_that_differ_are_told_from_the_noise_of_runs():
    found = [fit(on_nodes(seed, 0.15)) for seed in range(20)]
    assert all(study.spread.nodes_differ for study in found)
    assert np.mean([study.noise for study in found]) == pytest.approx(0.02, rel=0.2)
    assert np.mean([study.between_nodes for study in found]) == pytest.approx(0.15, rel=0.3)
    assert sum(fit(on_nodes(seed, 0.0)).spread.nodes_differ for seed in range(50)) <= 1


def test_a_comparison_on_one_node_is_preferred_where_nodes_differ():
    samples = on_nodes(0, 0.15)
    there = max((sample for sample in samples if sample.configuration == 0), key=lambda sample: sample.value)
    contrast = fit([*samples, MeasuredRun(9, 0, there.value - 0.05, there.node)]).contrast(9, 0)
    assert contrast.difference == pytest.approx(-0.05)
    across = fit([*samples, MeasuredRun(9, 0, there.value - 0.05, "new")]).contrast(9, 0)
    assert across.standard_error > 3 * contrast.standard_error


def test_where_all_runs_were_on_one_node_it_changes_nothing():
    samples = repeated(0, blocks=3)
    named = [MeasuredRun(run.configuration, run.block, run.value, "here") for run in samples]
    assert fit(named).spread == fit(samples).spread
