import numpy as np

from autotune.statistics import signed_rank
from autotune.statistics.false_coverage import intervals


def test_of_many_cells_without_a_difference_hardly_any_is_believed():
    rng = np.random.default_rng(0)
    believed = alone = 0
    for _ in range(40):
        samples = rng.standard_normal((40, 10))
        believed += any(found is not None and found[1] > 0.0 for found in intervals(samples.tolist(), 0.95))
        alone += any(signed_rank.interval(sample, 0.95)[1] > 0.0 for sample in samples.tolist())
    assert alone > 20
    assert believed <= 6


def test_true_differences_are_believed_among_others():
    rng = np.random.default_rng(1)
    better = rng.normal(1.0, 0.1, (10, 8))
    alike = rng.normal(0.0, 0.1, (10, 8))
    found = intervals([*better.tolist(), *alike.tolist()], 0.95)
    assert all(one is not None and one[1] > 0.0 for one in found[:10])
    assert sum(one is not None and one[1] > 0.0 for one in found[10:]) <= 1


def test_too_few_pairs_say_nothing():
    assert intervals([[1.0, 1.1, 1.2]], 0.95) == [None]
    assert intervals([], 0.95) == []
