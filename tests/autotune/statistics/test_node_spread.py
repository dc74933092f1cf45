import numpy as np
import pytest

from autotune.statistics.node_spread import NodeSpread
from autotune.statistics.verdict import Verdict
from tests.support.fakes import SECONDS


def pairs_on(nodes, per_node, between, noise, seed=0):
    """Return pairs with a ratio of 2 on average, and the node of each."""
    rng = np.random.default_rng(seed)
    ratios = 2.0 * np.exp(np.repeat(rng.normal(0, between, nodes), per_node) + rng.normal(0, noise, nodes * per_node))
    return [(float(ratio), 1.0) for ratio in ratios], [f"n{place // per_node}" for place in range(nodes * per_node)]


def spread(**of):
    return NodeSpread.of(*pairs_on(**of), SECONDS)


def test_how_much_the_ratio_varies_between_nodes_is_told_from_the_noise_of_pairs():
    found = [spread(nodes=6, per_node=3, between=0.1, noise=0.05, seed=seed).spread for seed in range(60)]
    assert np.mean(found) == pytest.approx(0.1, rel=0.15)
    alike = [spread(nodes=6, per_node=3, between=0.0, noise=0.05, seed=seed).spread for seed in range(60)]
    assert np.mean(alike) < 0.02


def test_one_pair_a_node_cannot_tell_nodes_from_noise_and_says_so():
    assert "over 8 nodes, the ratio varies by 8.3%" in spread(nodes=8, per_node=1, between=0.1, noise=0.05).words()
    assert spread(nodes=8, per_node=1, between=0.1, noise=0.05).words().endswith("noise included")


def test_of_one_node_there_is_no_spread():
    assert spread(nodes=1, per_node=8, between=0.1, noise=0.05) is None


def verdict(ratios, nodes, **more):
    return Verdict(1, (1,), 1, 0.95, None, tuple((ratio, 1.0) for ratio in ratios), nodes=tuple(nodes), **more)


def test_a_verdict_says_over_how_many_nodes_it_speaks_and_where_the_default_was_better():
    said = verdict([2.0, 2.1, 1.9, 2.0, 0.9, 0.91, 2.05, 1.95], "aabbccdd")
    assert "8 interleaved pairs of runs; over 4 nodes, the ratio varies by" in said.comparison(SECONDS)
    assert verdict([1.5, 1.6, 1.5, 1.6, 1.5, 1.6, 1.55, 0.99], "aabbccde").doubts(SECONDS, "sumx") == [
        "on e the default was better"
    ]


def test_a_verdict_on_one_node_says_nothing_of_nodes_unless_more_were_asked_for():
    assert "node" not in verdict([2.0, 2.1, 1.9, 2.0, 2.1, 1.9], "aaaaaa").comparison(SECONDS)
    asked = verdict([2.0, 2.1, 1.9, 2.0, 2.1, 1.9], "aaaaaa", nodes_asked=3)
    assert asked.doubts(SECONDS, "sumx") == ["it was asked for 3 nodes, and speaks for 1"]


def test_what_a_winner_is_worth_is_its_mean_over_the_nodes_however_many_pairs_each_has():
    pairs = ((4.0, 1.0), (4.0, 1.0), (4.0, 1.0), (4.0, 3.0))
    assert Verdict(1, (1,), 1, 0.95, None, pairs, nodes=("a", "a", "a", "b")).value() == pytest.approx(2.0)
