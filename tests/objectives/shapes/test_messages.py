import numpy as np
import pytest

from objectives.shapes.messages import allreduce_s


def summed(ranks, bytes_, latency_s=1e-6, bytes_per_s=1e9):
    columns = [np.array([float(x)]) for x in (ranks, bytes_, latency_s, bytes_per_s)]
    return float(sum(allreduce_s(*columns))[0])


def test_one_rank_has_nothing_to_sum():
    assert summed(1, 1e6) == 0.0


def test_long_vectors_take_no_longer_on_more_ranks_short_ones_by_their_rounds():
    assert summed(64, 1e9) == pytest.approx(summed(2, 1e9) * 2 * 63 / 64, rel=0.01)
    assert summed(64, 8) == pytest.approx(12e-6, rel=0.01)
