import numpy as np

from objectives.training.costs import ddp, dna
from spaces.expressions.quantities import column_of


def of(function, **columns):
    count = max(map(len, columns.values()))
    return function({name: column_of(values * (count // len(values))) for name, values in columns.items()})


def test_workers_divide_the_computing_and_exchange_gradients():
    found = of(ddp, workers=[1, 2, 8], threads=[1], batch_size=[64], model=["resnet50"], size=[32], gpus=[0]).seconds
    assert np.allclose(found["computing"], found["computing"][0] / [1, 2, 8])
    assert found["bytes of gradients"][0] == 0.0
    assert (np.diff(found["bytes of gradients"]) > 0.0).all()


def test_larger_batches_share_what_a_step_costs():
    found = of(ddp, workers=[2], threads=[1], batch_size=[32, 512], model=["small-cnn"], size=[32], gpus=[0]).seconds
    for name in ("calls", "updates", "bytes of gradients"):
        assert found[name][0] == 16 * found[name][1], name
    assert found["computing"][0] == found["computing"][1]


def test_smaller_buckets_are_more_messages():
    found = of(ddp, workers=[4], batch_size=[64], model=["resnet50"], size=[32], bucket_mib=["1", "100", None]).seconds
    few, many = found["messages of gradients"][1], found["messages of gradients"][0]
    assert many > found["messages of gradients"][2] > few > 0.0


def test_a_larger_network_takes_longer_and_a_gpu_less():
    small, large = (of(ddp, workers=[1], model=[name], size=[64]).seconds["computing"] for name in ("lstm", "resnet50"))
    assert large > small
    assert of(ddp, workers=[1], model=["resnet50"], size=[64], gpus=[1]).seconds["computing"] < 0.1 * large


def test_of_the_dna_network_only_the_order_is_known():
    found = of(dna, batch_size=[8, 64], threads=[1])
    assert found.level > 3.0
    assert sum(found.seconds.values())[0] > sum(found.seconds.values())[1]


def test_ranks_of_the_dna_network_share_its_windows_and_sum_gradients():
    found = of(dna, batch_size=[8], threads=[1], ranks=[1, 4]).seconds
    assert found["windows"][0] == 4 * found["windows"][1]
    assert found["gradients"][0] == 0.0 < found["gradients"][1]
