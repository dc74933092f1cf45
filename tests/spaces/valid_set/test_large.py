"""Large spaces: exact where a diagram is narrow enough, honest estimates beyond; and uniform samples."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from spaces import Constraint, Integer, Space, SpaceError
from spaces.valid_set import particles
from spaces.valid_set.diagram import TooWideError, build
from spaces.valid_set.order import good_order, independent_groups

RNG_SEED = 20260701


def chi_square_is_plausible(observed, expected):
    """Whether sum (o - e)^2 / e lies within 4.5 standard deviations of its mean, the degrees of freedom."""
    statistic = float(((observed - expected) ** 2 / expected).sum())
    freedom = len(observed) - 1
    return abs(statistic - freedom) < 4.5 * math.sqrt(2 * freedom)


def test_a_billion_raw_combinations_are_not_gone_through():
    space = Space(
        [Integer.range(name, 1, 10) for name in "abcdefghi"],
        [
            Constraint(f"r{k}", rule)
            for k, rule in enumerate(
                [
                    "a * b * c <= 75",
                    "c % d == 0",
                    "d + e + f <= 12",
                    "f * g <= 12",
                    "g % h == 0",
                    "(a + h + i) % 4 == 0",
                ]
            )
        ],
    )
    assert space.raw_size == 10**9
    assert space.size.value == 1_029_567
    rows = space.all_indices()
    assert space.valid_indices(rows).all()
    assert len(rows) == 1_029_567
    assert (np.diff(rows @ 10 ** np.arange(9)[::-1]) > 0).all()


def test_what_cannot_be_listed_is_counted_and_sampled():
    space = Space(
        [Integer.range(f"x{k}", 0, 99) for k in range(40)],
        [Constraint(f"c{k}", f"x{k} <= x{k + 1}") for k in range(39)],
    )
    assert space.size.value == math.comb(139, 40)  # multisets of 40 out of 100
    assert space.size.exact
    assert space.sampling == "uniform"
    assert not space.listable
    with pytest.raises(SpaceError, match="too many to list"):
        next(space.configurations())
    rows = space.sample_indices(np.random.default_rng(RNG_SEED), 2000)
    assert space.valid_indices(rows).all()
    assert len(np.unique(rows, axis=0)) == 2000
    # the least of 40 ordered numbers out of 0..99 with repeats: P(x0 >= k) = C(139 - k, 40) / C(139, 40)
    tail = np.array([math.comb(139 - k, 40) / math.comb(139, 40) for k in range(7)])
    expected = np.append(-np.diff(tail), tail[-1]) * 2000
    observed = np.bincount(np.minimum(rows[:, 0], 6), minlength=7)
    assert chi_square_is_plausible(observed, expected)


@pytest.mark.slow
@pytest.mark.parametrize("listable", [True, False])
def test_samples_are_uniform(listable):
    tied = [Integer.range("a", 1, 6), Integer.range("b", 1, 6), Integer.range("c", 1, 3, optional=True)]
    free = [] if listable else [Integer.range(f"z{k}", 0, 99) for k in range(10)]
    rules = [Constraint("product", "a * b <= 12"), Constraint("divides", "a % c == 0")]
    space = Space([*tied, *free], rules)
    rng = np.random.default_rng(RNG_SEED)
    rows = np.concatenate([space.sample_indices(rng, 5) for _ in range(2000)])
    seen, counts = np.unique(rows[:, :3], axis=0, return_counts=True)
    size = Space(tied, rules).size.value
    assert len(seen) == size
    assert chi_square_is_plausible(counts, len(rows) / size)


def entangled(n=7, total=20):
    """Digits with a given sum: a rule over all parameters, which a small limit makes too wide for a diagram."""
    parameters = [Integer.range(f"x{k}", 0, 9) for k in range(n)]
    return Space(parameters, [Constraint("sum", " + ".join(p.name for p in parameters) + f" == {total}")])


def test_too_wide_spaces_are_estimated_and_sampled_nearly_uniformly(monkeypatch):
    exact = entangled().size
    monkeypatch.setattr("spaces.valid_set.diagram.MAX_CELLS", 10_000)
    space = entangled()
    size = space.size
    assert not size.exact
    assert abs(size.value / exact.value - 1) < 5 * max(size.relative_error, 0.01)
    assert size == entangled().size
    assert space.sampling.startswith("nearly uniform")
    assert not space.listable
    rows = space.sample_indices(np.random.default_rng(RNG_SEED), 3000)
    assert space.valid_indices(rows).all()
    assert len(np.unique(rows, axis=0)) == 3000
    # by symmetry every digit has the same mean
    assert np.abs(rows.mean(axis=0) - 20 / 7).max() < 0.25
    nearest = space.nearest({f"x{k}": 3 for k in range(7)})
    assert space.contains(nearest)
    assert space.contains(space.neighbours(nearest)[0])


def test_particles_find_all_of_a_small_set(monkeypatch):
    monkeypatch.setattr("spaces.valid_set.diagram.MAX_CELLS", 10)
    monkeypatch.setattr(particles, "PARTICLES", 256)
    space = entangled(3, 4)
    assert not space.size.exact
    assert len(space.sample(np.random.default_rng(0), 100)) == 15


def test_particles_take_what_is_unknown_as_the_diagram_does(monkeypatch):
    parameters = [Integer.range(f"x{k}", 0, 3, optional=True) for k in range(4)]
    rules = ["x0 + x1 <= 2 or is_set(x2)", "not (is_set(x3) and x3 > x1)", "x2 == 1 if is_set(x0) else x1 > 0"]
    constraints = [Constraint(f"c{k}", rule) for k, rule in enumerate(rules)]
    exact = Space(parameters, constraints)
    valid = {tuple(sorted(configuration.items())) for configuration in exact.configurations()}
    monkeypatch.setattr("spaces.valid_set.diagram.MAX_CELLS", 2)
    monkeypatch.setattr(particles, "PARTICLES", 2048)
    sampled = Space(parameters, constraints)
    assert not sampled.size.exact
    found = {tuple(sorted(configuration.items())) for configuration in sampled.sample(np.random.default_rng(0), 500)}
    assert found == valid


def test_what_few_particles_meet_is_sampled_all_the_same(monkeypatch):
    monkeypatch.setattr("spaces.valid_set.diagram.MAX_CELLS", 100)
    monkeypatch.setattr(particles, "PARTICLES", 64)
    parameters = [Integer.range(name, 1, 64) for name in "abc"]
    space = Space(parameters, [Constraint("product", "a * b * c == 512")])
    assert not space.size.exact
    for seed in range(20):
        rows = space.sample_indices(np.random.default_rng(seed), 5)
        assert len(rows) == 5
        assert space.valid_indices(rows).all()


def test_many_values_are_looked_at_in_blocks_with_the_same_draws(monkeypatch):
    monkeypatch.setattr("spaces.valid_set.diagram.MAX_CELLS", 10_000)
    monkeypatch.setattr(particles, "PARTICLES", 256)
    allowed, looked_at = particles._which_are_allowed, []

    def counted(own, rules, columns):
        found = allowed(own, rules, columns)
        looked_at.append(found.size)
        return found

    monkeypatch.setattr(particles, "_which_are_allowed", counted)

    def drawn():
        looked_at.clear()
        space = entangled()
        rows = space.sample_indices(np.random.default_rng(RNG_SEED), 50)
        assert not space.size.exact
        assert space.valid_indices(rows).all()
        return space.size, rows.tolist(), space.nearest({f"x{k}": 3 for k in range(7)}), max(looked_at)

    *at_once, most = drawn()
    monkeypatch.setattr(particles, "_CELLS", 150)
    *in_blocks, fewer = drawn()
    assert in_blocks == at_once
    assert fewer <= 150 < most


@pytest.mark.parametrize(("radix", "count"), [(10, particles.PARTICLES), (10**4, 1677), (10**6, 256)])
def test_of_parameters_with_very_many_values_there_are_fewer_particles(radix, count):
    assert particles._particles([SimpleNamespace(radix=2), SimpleNamespace(radix=radix)]) == count


def test_says_that_nothing_was_found_where_emptiness_cannot_be_proven(monkeypatch):
    monkeypatch.setattr("spaces.valid_set.diagram.MAX_CELLS", 100)
    with pytest.raises(SpaceError, match="no valid configuration was found in 294912 random attempts"):
        _ = entangled(6, 100).size


def test_limits_are_kept(monkeypatch):
    ready = entangled()._ready
    (group,) = independent_groups(ready.domains, ready.rules)
    for limit in ("MAX_CELLS", "MAX_EDGES", "MAX_STATES"):
        with monkeypatch.context() as patch:
            patch.setattr(f"spaces.valid_set.diagram.{limit}", 1000)
            with pytest.raises(TooWideError):
                build(good_order(group), group.rules)
