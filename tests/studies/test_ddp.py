"""The data-parallel training program at a tiny size; needs a Python with torch."""

import json
import os
import signal
import subprocess

import numpy as np
import psutil
import pytest

from tests.support import warm_torch
from tests.support.processes import command_line, left_in, living
from tests.support.waiting import wait_for
from tests.support.warm_torch import PROGRAMS, PYTHON

pytestmark = [
    pytest.mark.full,
]

TINY = ("--size", "8", "--samples", "24", "--batch-size", "8", "--report-every", "3", "--warm-up-steps", "3")
# Where it does not matter how many workers there are.
ALONE = ("--workers", "1")
VALIDATED = ("--validation-samples", "21")
ENDLESS = (*TINY, "--reports", "1000000", "--loader-workers", "1")

needs_torch = pytest.mark.skipif(not PYTHON.is_file(), reason="no Python with torch here: AUTOTUNE_TORCH_PYTHON")


def environment_in(folder, **variables):
    mine = {name: value for name, value in os.environ.items() if not name.startswith("AUTOTUNE_")}
    return mine | {"PYTHONPATH": str(PROGRAMS), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **variables}


def start(folder, *arguments, **variables):
    """Start the program as a study does: each of its processes imports torch."""
    command, pipe = [str(PYTHON), "-P", "-m", "ddp", *arguments], subprocess.PIPE
    mine = environment_in(folder, **variables)
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=folder, env=mine, start_new_session=True)


def run_cold(folder, *arguments, **variables):
    """Start the program; return the exit code, the lines of standard output, and standard error."""
    with start(folder, *arguments, **variables) as process:
        stdout, stderr = process.communicate()
    nothing_is_left(folder)
    return process.returncode, [json.loads(line) for line in stdout.splitlines()], stderr


def run(folder, *arguments, **variables):
    """Do as `run_cold`, in processes that have torch already."""
    environment = environment_in(folder, **variables)
    code, stdout, stderr = warm_torch.python(folder, "-m", "ddp", *arguments, environment=environment)
    nothing_is_left(folder)
    return code, [json.loads(line) for line in stdout.splitlines()], stderr


def nothing_is_left(folder):
    """Assert that no process of a run remains, and that the workers' rendezvous file is gone."""
    wait_for(lambda: not left_in(folder) and not list(folder.glob("ddp-*")), f"the processes in {folder} to end")


def with_torch(program):
    """Return what a program prints that imports ours."""
    code, stdout, stderr = warm_torch.python(PROGRAMS, "-c", program, environment=os.environ)
    assert code == 0, stderr
    return stdout


def losses(lines):
    return [line["loss"] for line in lines if "step" in line]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Four reports of two workers without interruption, and the loss on validation samples."""
    asked = (*TINY, *VALIDATED, "--reports", "4", "--loader-workers", "1")
    code, lines, stderr = run_cold(tmp_path_factory.mktemp("plain"), *asked)
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


@needs_torch
def test_a_loader_hands_its_batches_over_however_long_the_name_of_the_temporary_folder(tmp_path):
    long = tmp_path / ("temporary" * 12)
    long.mkdir()
    code, lines, stderr = run(tmp_path, *TINY, "--reports", "2", *ALONE, "--loader-workers", "1", TMPDIR=str(long))
    assert (code, stderr, len(lines)) == (0, "", 3)


@needs_torch
def test_no_batch_is_made_before_the_training_begins():
    said = with_torch(
        """
import multiprocessing, os, threading
from ddp.options import settings_of
from ddp.trainer import _batches
begun = multiprocessing.get_context("fork").Event()
settings = settings_of(["--loader-workers", "1", "--samples", "64", "--batch-size", "8", "--workers", "1"])
batches, got = _batches(0, settings, 0, begun), []
asked = threading.Thread(target=lambda: got.append(next(batches)))
asked.start()
asked.join(2.0)
print(len(got))
begun.set()
asked.join()
print(len(got[0][1]), flush=True)
os._exit(0)  # the loader ends with this process, and on nothing else
"""
    )
    assert said.split() == ["0", "8"]


@needs_torch
def test_a_worker_shows_that_it_gets_on_within_a_step_and_while_it_validates(tmp_path):
    said = with_torch(
        f"""
import os
from pathlib import Path
from ddp.messages import Brake, Pulse, Shared
from ddp.options import settings_of
from ddp.trainer import Trainer
more = "--workers 1 --report-every 1 --validation-samples 8"
settings = settings_of([*{TINY}, *more.split()])
shared = Shared(Brake(), Pulse(1))
trainer = Trainer(0, settings, shared, Path({str(tmp_path)!r}, "meeting"))
print(*shared.pulse.counts())
trainer.interval()
print(*shared.pulse.counts())
trainer.end(complete=True)
print(*shared.pulse.counts(), flush=True)
os._exit(0)
"""
    )
    ready, trained, validated = map(int, said.split())
    assert ready < trained - 1 < validated - 1


@needs_torch
def test_one_worker_learns_what_two_do_and_finds_the_same_loss_on_samples_that_nobody_trained_with(plain, tmp_path):
    settings = ("--workers", "1", "--threads", "2", "--bucket-mib", "0.01", "--gradient-as-bucket-view", "1")
    code, lines, stderr = run(tmp_path, *TINY, *VALIDATED, "--reports", "4", *settings)
    assert (code, stderr) == (0, "")
    assert losses(lines) == pytest.approx(losses(plain), rel=1e-3)
    found = [lines[-1]["result"], plain[-1]["result"]]
    assert found[0]["validation_loss"] == pytest.approx(found[1]["validation_loss"], rel=1e-3)
    assert found[0]["validation_loss"] != pytest.approx(found[0]["loss"], rel=1e-6)
    assert min(one["validate_s"] for one in found) > 0


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
    code, lines, stderr = run(tmp_path, *TINY, "--reports", "4", *ALONE, "--optimizer", "lars")
    assert (code, stderr) == (0, "")
    assert losses(lines)[-1] < losses(lines)[0]
    assert "validation_loss" not in lines[-1]["result"]


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
    code, lines, stderr = run(tmp_path, *TINY, *ALONE, *hook)
    assert (code, lines) == (1, [])
    assert words in stderr


@needs_torch
def test_goes_on_from_its_checkpoint_as_if_never_stopped(plain, tmp_path):
    kept = {"AUTOTUNE_CHECKPOINT": str(tmp_path / "kept")}
    first = run(tmp_path, *TINY, "--checkpoint-every", "2", AUTOTUNE_STEPS="2", **kept)[1]
    code, second, _ = run(tmp_path, *TINY, AUTOTUNE_STEPS="4", **kept)
    assert code == 0
    assert [line["step"] for line in second[:-1]] == [3, 4]
    assert losses(first) + losses(second) == losses(plain)
    assert first[-1]["result"]["checkpoint_s"] > 0
    code, third, _ = run(tmp_path, *TINY, *ALONE, AUTOTUNE_STEPS="4", **kept)
    assert [line.keys() for line in third] == [{"result"}]
    assert (code, third[0]["result"]["loss"], third[0]["result"]["samples_per_s"]) == (0, losses(plain)[-1], None)
    code, _, stderr = run(tmp_path, *TINY, *ALONE, "--classes", "3", AUTOTUNE_STEPS="4", **kept)
    assert code == 1
    assert "classes 19, now 3" in stderr


@needs_torch
def test_asked_to_stop_it_writes_a_checkpoint_and_ends(tmp_path):
    kept = {"AUTOTUNE_CHECKPOINT": str(tmp_path / "kept")}
    with start(tmp_path, *ENDLESS, **kept) as process:
        seen = json.loads(process.stdout.readline())
        os.killpg(process.pid, signal.SIGTERM)  # as a batch system does: all processes of the job
        lines = [seen, *map(json.loads, process.stdout)]  # communicate loses lines that readline has read ahead
        _, stderr = process.communicate()
    assert (process.returncode, stderr) == (0, "")
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))  # and no result
    nothing_is_left(tmp_path)
    code, more, _ = run(tmp_path, *ENDLESS, *ALONE, AUTOTUNE_STEPS=str(len(lines) + 2), **kept)
    assert (code, [line["step"] for line in more[:-1]]) == (0, [len(lines) + 1, len(lines) + 2])


@needs_torch
@pytest.mark.parametrize("victim", ["worker", "leader"])
def test_a_killed_process_ends_the_run(victim, tmp_path):
    with start(tmp_path, *ENDLESS) as process:
        process.stdout.readline()
        if victim == "leader":
            process.kill()
        else:
            children = psutil.Process(process.pid).children()
            workers = living(lambda child: "spawn_main" in command_line(child), children)
            assert len(workers) == 2
            workers[1].kill()
        _, stderr = process.communicate()
    if victim == "worker":
        assert process.returncode == 1
        assert "has been killed by SIGKILL" in stderr
    nothing_is_left(tmp_path)


@needs_torch
@pytest.mark.parametrize(
    ("do", "arguments", "exit_code", "words"),
    [
        (run, ("--learning-rate", "1e30", "--reports", "9"), 3, "diverged: the loss is "),
        (run, (*ALONE, "--size", "10000000"), 12, "out of memory: "),  # more than any address space
        (run_cold, (*ALONE, "--compile", "1"), 1, "--compile 1 needs a C++ compiler"),  # torch reads CXX once
    ],
)
def test_what_cannot_go_on_says_so_by_its_exit_code(do, arguments, exit_code, words, tmp_path):
    without_compiler = {"CXX": "/nowhere/c++", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    code, lines, stderr = do(tmp_path, *TINY, *arguments, **without_compiler)
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
