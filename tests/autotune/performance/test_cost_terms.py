import numpy as np
import pytest

from autotune.performance.regression.boosting import ROUNDS, Trees
from autotune.performance.regression.cost_terms import CostTerms
from autotune.performance.regression.linear import LogLinear
from autotune.performance.regression.table import Table


def costs(nodes, size, machine="a"):
    nodes, size = np.asarray(nodes, float), np.asarray(size, float)
    terms = {"computing": size / nodes, "messages": nodes - 1.0, "start": np.ones_like(nodes)}
    words = {"machine": np.full(len(nodes), machine, dtype=object)}
    return Table({"nodes": nodes, "size": size}, words, terms)


def planted(table, rates):
    return np.log(sum(rate * table.terms[name] for name, rate in rates.items()))


def grid(nodes, machine="a"):
    n, s = np.meshgrid(nodes, [100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 6400.0])
    return costs(n.ravel(), s.ravel(), machine)


RATES = {"computing": 0.01, "messages": 0.5, "start": 2.0}


def test_planted_rates_are_found_and_carry_to_more_nodes_where_trees_do_not():
    few, many = grid([1, 2, 3, 4, 5, 6, 7, 8]), grid([32, 64])
    y, ones = planted(few, RATES), np.ones(len(few))
    model = CostTerms.fitted(few, y, ones, 0.02)
    assert model is not None
    assert model.predict(many) == pytest.approx(planted(many, RATES), abs=0.05)
    trees = Trees.fitted(few.columns, y - y.mean())
    off = np.abs(y.mean() + trees.predict(many.columns, ROUNDS[-1]) - planted(many, RATES))
    assert np.median(off) > 0.5


def test_machines_have_rates_of_their_own():
    other = {**RATES, "messages": 5.0}
    a, b = grid([1, 2, 4, 8], "a"), grid([1, 2, 4, 8], "b")
    both = a.joined(b)
    y = np.append(planted(a, RATES), planted(b, other))
    model = CostTerms.fitted(both, y, np.ones(len(both)), 0.02)
    assert model is not None
    assert model.predict(both) == pytest.approx(y, abs=0.1)
    pair = both.at(np.array([5, 40]))
    first, second = model.predict(pair)
    assert sum(model.difference(pair).values()) == pytest.approx(first - second, abs=1e-9)


def test_parts_of_a_sum_add_up_to_the_difference():
    table = grid([1, 2, 4, 8])
    model = CostTerms.fitted(table, planted(table, RATES), np.ones(len(table)), 0.02)
    assert model is not None
    pair = table.at(np.array([0, 27]))
    first, second = model.predict(pair)
    assert sum(model.difference(pair).values()) == pytest.approx(first - second, abs=1e-9)
    assert model.difference(table.at(np.array([3, 3])))["computing"] == 0.0


def test_rows_without_a_term_are_left_out_and_not_predicted():
    table = grid([1, 2, 4, 8])
    holes = Table(table.numbers, table.words, {**table.terms, "messages": table.terms["messages"].copy()})
    holes.terms["messages"][:3] = np.nan
    y = planted(table, RATES)
    y[:3] = 50.0
    model = CostTerms.fitted(holes, y, np.ones(len(y)), 0.02)
    assert model is not None
    said = model.predict(holes)
    assert np.isnan(said[:3]).all()
    assert said[3:] == pytest.approx(y[3:], abs=0.05)


def test_a_power_law_is_found_exactly():
    rng = np.random.default_rng(0)
    n, s = rng.uniform(1, 100, 60), rng.uniform(1, 1000, 60)
    table = Table({"n": n, "s": s}, {})
    y = 1.5 - 0.9 * np.log(n) + 1.3 * np.log(s)
    model = LogLinear.fitted(table, y, np.ones(60), products=True)
    asked = Table({"n": n * 10.0, "s": s * 10.0}, {})
    assert model.predict(asked) == pytest.approx(y + 0.4 * np.log(10.0), abs=1e-3)


def test_exponents_may_depend_on_a_word():
    n = np.tile(np.geomspace(1, 64, 20), 2)
    words = np.repeat(np.array(["flat", "steep"], dtype=object), 20)
    y = np.where(words == "steep", -1.0, -0.2) * np.log(n)
    table = Table({"n": n}, {"kind": words})
    assert LogLinear.fitted(table, y, np.ones(40), products=True).predict(table) == pytest.approx(y, abs=0.02)
    off = np.abs(LogLinear.fitted(table, y, np.ones(40), products=False).predict(table) - y)
    assert off.max() > 0.5


def test_noise_alone_leaves_a_constant():
    rng = np.random.default_rng(1)
    table = Table({f"x{place}": rng.uniform(1, 9, 12) for place in range(8)}, {})
    y = 3.0 + 0.1 * rng.standard_normal(12)
    said = LogLinear.fitted(table, y, np.ones(12), products=True).predict(table)
    assert np.std(said) < 0.6 * np.std(y)
