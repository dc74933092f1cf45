"""The parts of the data-parallel training program that need no torch."""

import math
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.programs.training.ddp.data import Batches, Patches, Sequences
from studies.programs.training.ddp.failure import DivergedError, failure_of
from studies.programs.training.ddp.options import settings_of
from studies.programs.training.ddp.timing import Interval, efficiencies, mean_loss, phases, samples_per_s
from studies.programs.training.rate import learning_rate, scale_of, times_larger

pytestmark = pytest.mark.slow


def seconds(below=1e6):
    return st.floats(1e-6, below)


@st.composite
def intervals(draw):
    workers = draw(st.integers(1, 5))
    return [
        [
            Interval(step, 1, wall_s, draw(st.floats(0.0, 1.0)) * wall_s, 0.5)
            for wall_s in draw(st.lists(seconds(), min_size=workers, max_size=workers))
        ]
        for step in range(draw(st.integers(1, 5)))
    ]


@given(intervals())
def test_efficiencies_are_shares_and_multiply(seen):
    found = efficiencies(seen)
    for share in (found.load_balance, found.communication_efficiency, found.parallel_efficiency):
        assert 0.0 <= share <= 1.0
    useful = [one.useful_s for interval in seen for one in interval]
    walls = [max(one.wall_s for one in interval) for interval in seen]
    expected = sum(useful) / len(seen[0]) / sum(walls)
    assert math.isclose(found.parallel_efficiency, expected, rel_tol=1e-9, abs_tol=1e-12)


def test_efficiencies_of_known_cases():
    def of(*useful_s):
        return efficiencies([[Interval(1, 1, 10.0, one, 0.5) for one in useful_s]])

    assert (of(10.0, 10.0).load_balance, of(10.0, 10.0).communication_efficiency) == (1.0, 1.0)
    assert (of(10.0, 5.0).load_balance, of(10.0, 5.0).communication_efficiency) == (0.75, 1.0)
    assert (of(5.0, 5.0).load_balance, of(5.0, 5.0).communication_efficiency) == (1.0, 0.5)
    assert (of(0.0, 0.0).load_balance, of(0.0, 0.0).parallel_efficiency) == (1.0, 0.0)


def test_speed_is_that_of_the_slowest_worker():
    seen = [Interval(10, 5, 2.0, 1.0, 0.25), Interval(10, 5, 4.0, 1.0, 0.75)]
    assert (samples_per_s(seen, 16), mean_loss(seen)) == (20.0, 0.5)


def test_phases_are_means_over_workers_and_sums_over_intervals():
    seen = [Interval(1, 1, 4.0, 2.0, 0.5, 1.0, 0.5), Interval(1, 1, 4.0, 3.0, 0.5, 0.0, 1.0)]
    found = phases([seen, seen])
    assert (found.data_s, found.compute_s, found.communicate_s) == (1.0, 5.0, 1.5)


@pytest.mark.parametrize(("scaling", "scale"), [("linear", 4.0), ("square-root", 2.0), ("constant", 1.0)])
def test_the_rate_of_a_batch_four_times_as_large(scaling, scale):
    assert scale_of(scaling, 4.0) == scale


@pytest.mark.parametrize(
    ("batch", "ranks", "samples", "times"),
    [(8, 4, 256, 4.0), (128, 4, 256, 2.0), (256, 4, 256, 1.0), (300, 2, 256, 1.0)],
)
def test_a_batch_of_all_ranks_grows_no_further_than_there_are_samples(batch, ranks, samples, times):
    assert times_larger(batch, ranks, samples) == times


@given(st.floats(1e-6, 10.0), st.floats(0.1, 100.0), st.integers(1, 50), st.integers(0, 200))
def test_the_rate_goes_from_base_to_the_proportional_one(base, scale, warm_up_steps, step):
    rate = learning_rate(step, base=base, scale=scale, warm_up_steps=warm_up_steps)
    low, high = sorted((base, base * scale))
    assert low * (1 - 1e-9) <= rate <= high * (1 + 1e-9)
    assert learning_rate(0, base=base, scale=scale, warm_up_steps=warm_up_steps) == base
    assert learning_rate(warm_up_steps, base=base, scale=scale, warm_up_steps=warm_up_steps) == base * scale


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(0, 20), st.integers(0, 20))
def test_any_number_of_workers_sees_the_same_batches_from_any_step_on(workers, local, batches, first, more):
    size, samples = workers * local, workers * local * batches + local - 1

    def of(share, steps):
        return list(Batches(7, samples, size, share, steps))

    whole = of(slice(0, size), range(first + more))
    shares = [of(slice(rank * local, (rank + 1) * local), range(first, first + more)) for rank in range(workers)]
    assert [list(chain(*parts)) for parts in zip(*shares, strict=True)] == whole[first:]
    for start in range(0, len(whole) - batches + 1, batches):
        epoch = list(chain(*whole[start : start + batches]))
        assert len(set(epoch)) == batches * size
        assert set(epoch) <= set(range(samples))


@pytest.mark.parametrize("kind", [Patches, Sequences])
def test_a_sample_depends_on_seed_and_index_only(kind):
    few, many, others = kind(1, 4, 8, 3, 5), kind(1, 9, 8, 3, 5), kind(2, 4, 8, 3, 5)
    many[7]
    for got, again in zip(few[3], many[3], strict=True):
        assert np.array_equal(got, again)
    assert not np.array_equal(few[3][0], few[2][0])
    assert not np.array_equal(few[3][0], others[3][0])
    assert few[3][0].dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch-size", "9", "--workers", "2"], "--batch-size 9 cannot be shared evenly by --workers 2"),
        (["--batch-size", "64", "--samples", "63"], "fewer than one batch"),
        (["--model", "gru", "--channels-last", "1"], "not for gru"),
        (["--model", "gru", "--activations", "recompute"], "gru is one part"),
        (["--activations", "recompute", "--compile", "1"], "--activations recompute goes with --compile 0 only"),
        (["--micro-batches", "2", "--static-graph", "1"], "--micro-batches goes with --static-graph 0 only"),
        (["--workers", "0"], "'0' is no whole number of 1 or more"),
        (["--learning-rate", "nan"], "'nan' is no number above 0"),
        (["--bucket-mib", "-1"], "no number above 0"),
    ],
)
def test_options_that_cannot_work_are_refused(arguments, words, capsys):
    with pytest.raises(SystemExit) as ending:
        settings_of(arguments)
    assert ending.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "exit_code", "words"),
    [
        (MemoryError("no room"), 12, "out of memory: no room"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory:\n you tried 8 bytes"),
            12,
            "you tried",
        ),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), 12, "out of memory: CUDA"),
        (RuntimeError("Caught _ArrayMemoryError in DataLoader worker process 0"), 12, "out of memory"),
        (DivergedError("the loss is nan"), 3, "diverged: the loss is nan"),
        (RuntimeError("InvalidCxxCompiler: No working C++ compiler found"), 1, "install g++"),
        (RuntimeError("Connection closed by peer"), 1, "RuntimeError: Connection closed by peer"),
    ],
)
def test_what_an_error_means(error, exit_code, words):
    failure = failure_of(error)
    assert failure.exit_code == exit_code
    assert words in failure.message
    assert exit_code == 1 or "\n" not in failure.message
