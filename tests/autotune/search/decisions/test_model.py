import numpy as np
import pytest

from autotune.search.decisions.model import Known, TableModel, fit_table_kernel
from autotune.statistics.gaussian_process import Kernel


def known(n=30, seed=0):
    rng = np.random.default_rng(seed)
    contexts, setting = rng.random((n, 1)), rng.integers(0, 2, n).astype(float)
    y = 5.0 * contexts[:, 0] + setting * (contexts[:, 0] - 0.5) + 0.01 * rng.standard_normal(n)
    return Known(contexts, np.column_stack([contexts[:, 0], setting]), y, np.ones(n))


def test_neighbours_share_what_they_know_and_the_crossover_is_found():
    data = known()
    model = TableModel.of(fit_table_kernel(data, np.random.default_rng(0)), data)
    sizes = np.repeat([0.1, 0.9], 2)
    traits = np.column_stack([sizes, np.tile([0.0, 1.0], 2)])
    posterior = model.at(sizes[:, None], traits)
    differences, deviations = posterior.differences(np.array([1, 3]), np.array([0, 2]))
    assert differences == pytest.approx([-0.4, 0.4], abs=0.1)
    assert (deviations < 0.1).all()


def test_a_difference_of_a_place_to_itself_is_certain():
    data = known(8)
    posterior = TableModel.of(Kernel(np.ones(3), (1.0, 1.0), 0.01, (1, 2)), data).at(data.contexts, data.traits)
    mean, deviation = posterior.differences(np.arange(8), np.arange(8))
    assert not mean.any()
    assert not deviation.any()
