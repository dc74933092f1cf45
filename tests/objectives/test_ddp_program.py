"""The data-parallel training program: its parts, and itself at a tiny size where a Python with torch is."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.training.programs.ddp.data import Batches, Patches, Sequences
from objectives.training.programs.ddp.failure import DivergedError, failure_of
from objectives.training.programs.ddp.options import settings_of
from objectives.training.programs.ddp.timing import Interval, efficiencies, mean_loss, phases, samples_per_s
from objectives.training.programs.rate import learning_rate, scale_of

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parents[2] / "objectives/training/programs"
PYTHON = Path(os.environ.get("AUTOTUNE_TORCH_PYTHON") or Path(sys.prefix) / "share/autotune/torch/bin/python")
TINY = ("--size", "8", "--samples", "24", "--batch-size", "8", "--report-every", "3", "--warm-up-steps", "3")
ENDLESS = (*TINY, "--reports", "1000000", "--loader-workers", "1")

needs_torch = pytest.mark.skipif(not PYTHON.is_file(), reason="no Python with torch here: AUTOTUNE_TORCH_PYTHON")


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


def start(folder, *arguments, **variables):
    command = [str(PYTHON), "-P", "-m", "ddp", *arguments]
    mine = {name: value for name, value in os.environ.items() if not name.startswith("AUTOTUNE_")}
    mine |= {"PYTHONPATH": str(PROGRAMS), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=folder, env=mine, start_new_session=True)


def run(folder, *arguments, **variables):
    """Return the exit code, the lines of standard output, and standard error."""
    with start(folder, *arguments, **variables) as process:
        stdout, stderr = process.communicate(timeout=120)
    nothing_is_left(folder)
    return process.returncode, [json.loads(line) for line in stdout.splitlines()], stderr


def nothing_is_left(folder):
    """Assert that no process of a run goes on, and that the workers' meeting place is gone."""
    for _ in range(200):
        running = [
            found.info["cmdline"]
            for found in psutil.process_iter(["cmdline", "cwd"])
            if found.info["cwd"] == str(folder) and found.status() != psutil.STATUS_ZOMBIE
        ]
        if not running and not list(folder.glob("ddp-*")):
            return
        time.sleep(0.1)
    pytest.fail(f"left: {running} {list(folder.glob('ddp-*'))}")


def with_torch(program):
    """Return what a program prints that imports ours."""
    command = [str(PYTHON), "-P", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(PROGRAMS)}, check=True)
    return done.stdout


def losses(lines):
    return [line["loss"] for line in lines if "step" in line]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Four reports of two workers, without any stop."""
    code, lines, stderr = run(tmp_path_factory.mktemp("plain"), *TINY, "--reports", "4", "--loader-workers", "1")
    assert (code, stderr) == (0, "")
    return lines


@needs_torch
def test_reports_and_result(plain):
    *reports, last = plain
    result = last["result"]
    assert [line["step"] for line in reports] == [1, 2, 3, 4]
    assert result["intervals"] == [line["samples_per_s"] for line in reports[1:]]
    assert result["samples_per_s"] == sorted(result["intervals"])[1] > 0
    assert result["loss"] == reports[-1]["loss"] < reports[0]["loss"]  # it learns
    shares = [result[f"{name}_efficiency"] for name in ("parallel", "communication")]
    assert 0 < shares[0] <= shares[1] <= 1
    assert shares[0] == pytest.approx(shares[1] * result["load_balance"])
    assert result["time_to_target_s"] is None
    assert result["parameters"] > 10**6
    assert result["compute_s"] > 0
    assert result["data_s"] > 0
    assert result["communicate_s"] > 0
    assert (result["batch_size"], result["seed"]) == (8, 1)
    assert "validation_loss" not in result


@needs_torch
def test_a_loader_hands_its_batches_over_however_long_the_name_of_the_temporary_folder(tmp_path):
    long = tmp_path / ("temporary" * 12)
    long.mkdir()
    code, lines, stderr = run(tmp_path, *TINY, "--reports", "2", "--loader-workers", "1", TMPDIR=str(long))
    assert (code, stderr, len(lines)) == (0, "", 3)


@needs_torch
def test_one_worker_learns_what_two_do(plain, tmp_path):
    settings = ("--workers", "1", "--threads", "2", "--bucket-mib", "0.01", "--gradient-as-bucket-view", "1")
    code, lines, stderr = run(tmp_path, *TINY, "--reports", "4", *settings)
    assert (code, stderr) == (0, "")
    assert losses(lines) == pytest.approx(losses(plain), rel=1e-3)


@needs_torch
@pytest.mark.parametrize("hook", ["fp16", "powersgd-1", "powersgd-4"])
def test_what_is_sent_of_gradients_changes_the_training_little(hook, plain, tmp_path):
    bucket_mib = "0.05" if hook == "fp16" else "100"
    settings = ("--hook", hook, "--bucket-mib", bucket_mib, "--loader-workers", "1", "--prefetch", "4")
    code, lines, stderr = run(tmp_path, *TINY, "--reports", "4", *settings)
    assert (code, stderr) == (0, "")
    exact, rounded = losses(plain), losses(lines)
    assert exact[0] == pytest.approx(rounded[0], rel=1e-3)
    assert exact[1:] == pytest.approx(rounded[1:], rel=1e-2 if hook == "fp16" else 0.3)
    assert exact != rounded


@needs_torch
def test_what_takes_less_memory_learns_the_same(plain, tmp_path):
    settings = ("--micro-batches", "3", "--activations", "recompute")
    code, lines, stderr = run(tmp_path, *TINY, "--reports", "4", *settings)
    assert (code, stderr) == (0, "")
    assert losses(lines) == pytest.approx(losses(plain), rel=1e-3)


@needs_torch
def test_sixteen_bits_with_loss_scaling_learn_nearly_the_same_and_go_on_from_a_checkpoint(plain, tmp_path):
    kept = {"AUTOTUNE_CHECKPOINT": str(tmp_path / "kept")}
    seen = []
    for steps in ("2", "4"):
        code, lines, stderr = run(tmp_path, *TINY, "--precision", "float16", AUTOTUNE_STEPS=steps, **kept)
        assert (code, stderr) == (0, "")
        seen += losses(lines)
    assert len(seen) == 4
    assert seen == pytest.approx(losses(plain), rel=0.05)
    assert seen != pytest.approx(losses(plain), rel=1e-6)


@needs_torch
def test_the_rates_of_lars_are_those_of_its_paper():
    program = """
import json, torch
from ddp.lars import TRUST, Lars
weights, bias = (torch.nn.Parameter(torch.tensor(values)) for values in ([[3.0, 4.0]], [2.0]))
optimizer = Lars([weights, bias], lr=0.5, momentum=0.9, weight_decay=0.1)
for _ in range(2):
    weights.grad, bias.grad = torch.tensor([[0.0, 2.0]]), torch.tensor([1.0])
    optimizer.step()
print(json.dumps([TRUST, weights.tolist(), bias.tolist()]))
"""
    trust, weights, bias = json.loads(with_torch(program))
    expected, velocity = np.array([3.0, 4.0]), np.zeros(2)
    slope = np.array([0.0, 2.0])
    for _ in range(2):
        size = np.linalg.norm(expected)
        local = trust * size / (np.linalg.norm(slope) + 0.1 * size)
        velocity = 0.9 * velocity + 0.5 * local * (slope + 0.1 * expected)
        expected = expected - velocity
    assert weights[0] == pytest.approx(expected, rel=1e-6)
    assert bias == pytest.approx([2.0 - 0.5 - (0.9 * 0.5 + 0.5)])


@needs_torch
def test_lars_learns(tmp_path):
    code, lines, stderr = run(tmp_path, *TINY, "--reports", "4", "--optimizer", "lars")
    assert (code, stderr) == (0, "")
    assert losses(lines)[-1] < losses(lines)[0]


@needs_torch
@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (("--hook", "bf16"), "--hook bf16 is for GPUs"),
        (("--hook", "powersgd-1", "--bucket-mib", "1"), "between CPUs: give a --bucket-mib of 5 or more"),
        (("--hook", "powersgd-1"), "not 25, which begins with a smaller one"),
    ],
)
def test_a_hook_that_does_not_work_between_cpus_is_refused_in_words(hook, words, tmp_path):
    code, lines, stderr = run(tmp_path, *TINY, *hook)
    assert (code, lines) == (1, [])
    assert words in stderr


@needs_torch
def test_any_number_of_workers_finds_the_same_loss_on_samples_that_nobody_trained_with(plain, tmp_path):
    asked = (*TINY, "--reports", "4", "--validation-samples", "21")
    found = []
    for workers in ("1", "2"):
        code, lines, stderr = run(tmp_path, *asked, "--workers", workers, "--loader-workers", "1")
        assert (code, stderr) == (0, "")
        assert losses(lines) == pytest.approx(losses(plain), rel=1e-3)
        found.append(lines[-1]["result"])
    assert found[0]["validation_loss"] == pytest.approx(found[1]["validation_loss"], rel=1e-3)
    assert found[0]["validation_loss"] != pytest.approx(found[0]["loss"], rel=1e-6)
    assert min(one["validate_s"] for one in found) > 0


@needs_torch
def test_goes_on_from_its_checkpoint_as_if_never_stopped(plain, tmp_path):
    kept = {"AUTOTUNE_CHECKPOINT": str(tmp_path / "kept")}
    first = run(tmp_path, *TINY, "--checkpoint-every", "2", AUTOTUNE_STEPS="2", **kept)[1]
    code, second, _ = run(tmp_path, *TINY, AUTOTUNE_STEPS="4", **kept)
    assert code == 0
    assert [line["step"] for line in second[:-1]] == [3, 4]
    assert losses(first) + losses(second) == losses(plain)
    assert first[-1]["result"]["checkpoint_s"] > 0
    code, third, _ = run(tmp_path, *TINY, AUTOTUNE_STEPS="4", **kept)
    assert [line.keys() for line in third] == [{"result"}]
    assert (code, third[0]["result"]["loss"], third[0]["result"]["samples_per_s"]) == (0, losses(plain)[-1], None)
    code, _, stderr = run(tmp_path, *TINY, "--classes", "3", AUTOTUNE_STEPS="4", **kept)
    assert code == 1
    assert "classes 19, now 3" in stderr


@needs_torch
def test_asked_to_stop_it_writes_a_checkpoint_and_ends(tmp_path):
    kept = {"AUTOTUNE_CHECKPOINT": str(tmp_path / "kept")}
    with start(tmp_path, *ENDLESS, **kept) as process:
        seen = json.loads(process.stdout.readline())
        os.killpg(process.pid, signal.SIGTERM)  # as a batch system does: all processes of the job
        lines = [seen, *map(json.loads, process.stdout)]  # communicate loses lines that readline has read ahead
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (0, "")
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))  # and no result
    nothing_is_left(tmp_path)
    code, more, _ = run(tmp_path, *ENDLESS, AUTOTUNE_STEPS=str(len(lines) + 2), **kept)
    assert (code, [line["step"] for line in more[:-1]]) == (0, [len(lines) + 1, len(lines) + 2])


@needs_torch
@pytest.mark.parametrize("victim", ["worker", "leader"])
def test_a_killed_process_ends_the_run(victim, tmp_path):
    with start(tmp_path, *ENDLESS) as process:
        process.stdout.readline()
        if victim == "leader":
            process.kill()
        else:
            workers = [one for one in psutil.Process(process.pid).children() if "spawn_main" in " ".join(one.cmdline())]
            assert len(workers) == 2
            workers[1].kill()
        _, stderr = process.communicate(timeout=60)
    if victim == "worker":
        assert process.returncode == 1
        assert "has been killed by SIGKILL" in stderr
    nothing_is_left(tmp_path)


@needs_torch
@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (("--learning-rate", "1e30", "--reports", "9"), 3, "diverged: the loss is "),
        (("--size", "10000000"), 12, "out of memory: "),  # more than any address space
        (("--compile", "1"), 1, "--compile 1 needs a C++ compiler"),
    ],
)
def test_what_cannot_go_on_says_so_by_its_exit_code(arguments, exit_code, words, tmp_path):
    without_compiler = {"CXX": "/nowhere/c++", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    code, lines, stderr = run(tmp_path, *TINY, *arguments, **without_compiler)
    assert code == exit_code, stderr
    assert stderr.startswith(words)
    assert stderr.count("\n") == 1
    assert all("result" not in line for line in lines)


@needs_torch
def test_stops_at_the_target_loss(plain, tmp_path):
    target = losses(plain)[1]
    code, lines, _ = run(tmp_path, *TINY, "--reports", "4", "--target-loss", str(target))
    assert (code, len(losses(lines))) == (0, 2)
    assert lines[-1]["result"]["time_to_target_s"] > 0


@needs_torch
def test_networks_have_the_sizes_of_their_papers():
    program = """
import json, torch
from ddp.models import network, parameter_count
with torch.device("meta"):
    resnet = network("resnet50", 3, 1000)
    shapes = [list(network(name, 12, 19)(torch.empty(2, 12, 64, 64)).shape) for name in ("small-cnn", "resnet50")]
    shapes += [list(network(name, 12, 19)(torch.empty(2, 30, 12)).shape) for name in ("lstm", "gru")]
    print(json.dumps([parameter_count(resnet), shapes]))
"""
    assert json.loads(with_torch(program)) == [25_557_032, [[2, 19]] * 4]
