"""The program of the study `inference`: requests come at their times whatever happens, and each gets its own answer."""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path("studies/inputs/serving.py").absolute()
PACKAGES = ("onnx", "onnxruntime")
HAS_ENGINE = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in PACKAGES), reason="needs onnxruntime and onnx"
)


@pytest.fixture(scope="module")
def serving():
    spec = importlib.util.spec_from_file_location("serving", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked(batch=1, wait_ms=0.0, seconds=30.0):
    return argparse.Namespace(batch=batch, wait_ms=wait_ms, seconds=seconds)


def test_requests_come_when_the_seed_says_and_as_many_as_the_rate_says(serving):
    due = serving.arrivals(50, 4, seed=3)
    assert len(due) == 200
    assert due == sorted(due)
    assert due[0] >= 0
    assert due[-1] <= 4
    assert due == serving.arrivals(50, 4, seed=3)
    assert due != serving.arrivals(50, 4, seed=4)


def test_gaps_between_requests_vary_as_those_of_a_poisson_process_do(serving):
    gaps = np.diff(serving.arrivals(1000, 5, seed=1))
    assert np.std(gaps) / np.mean(gaps) == pytest.approx(1.0, abs=0.1)


def test_a_percentile_is_a_latency_that_was_there(serving):
    values = [float(value) for value in range(100, 0, -1)]
    assert serving.percentile(values, 0.5) == 50.0
    assert serving.percentile(values, 0.99) == 99.0
    assert serving.percentile([7.0], 0.99) == 7.0


def test_a_batch_goes_when_it_is_full_or_its_first_has_waited_or_no_more_come(serving):
    assert serving.hold_s(4, 0.0, 4, 0.01, more_come=True) == 0.0
    assert serving.hold_s(1, 0.02, 4, 0.01, more_come=True) == 0.0
    assert serving.hold_s(1, 0.0, 4, 0.01, more_come=False) == 0.0
    assert serving.hold_s(1, 0.004, 4, 0.01, more_come=True) == pytest.approx(0.006)


def test_each_request_gets_the_answer_to_its_own_input_from_whatever_batch(serving):
    inputs = np.arange(5.0).reshape(5, 1)
    sizes = []

    def doubled(batch):
        sizes.append(len(batch))
        return 2.0 * batch

    service = serving.Service([doubled, doubled], inputs)
    latencies = service.answer([0.0005 * number for number in range(40)], asked(batch=4, wait_ms=2.0))
    assert len(latencies) == sum(sizes) == 40
    assert max(sizes) <= 4
    assert [float(service.answers[number][0]) for number in range(40)] == [2.0 * (number % 5) for number in range(40)]
    assert serving.agreement(service.answers, 2.0 * inputs) == 100.0
    assert serving.agreement(service.answers, 4.0 * inputs) == pytest.approx(50.0)


def test_a_request_that_waits_for_others_took_so_much_longer(serving):
    def slow(batch):
        time.sleep(0.01)
        return batch

    latencies = serving.Service([slow], np.zeros((1, 1))).answer([0.0] * 4, asked())
    assert all(latency >= 0.01 * (number + 1) for number, latency in enumerate(latencies))


def test_an_overloaded_service_is_given_up_and_what_waited_counts(serving):
    def slow(batch):
        time.sleep(0.1)
        return batch

    service = serving.Service([slow], np.zeros((1, 1)))
    latencies = service.answer([0.0] * 50, asked(seconds=0.1))
    assert len(service.answers) < 50
    assert len(latencies) == 50
    assert latencies[-1] >= 0.2


def test_an_engine_that_fails_ends_the_run(serving):
    def broken(batch):
        raise ValueError("no such shape")

    with pytest.raises(ValueError, match="no such shape"):
        serving.Service([broken], np.zeros((1, 1))).answer([0.0], asked())


def test_a_python_without_the_packages_is_told_what_to_install(tmp_path):
    # -S: without any package.
    ended = subprocess.run(
        [sys.executable, "-S", str(PROGRAM), "--engine", "openvino"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert re.search(r"^error: .* has no numpy, onnx, onnxruntime, openvino: '\./run study inference'", ended.stderr)
    assert "-m pip install numpy onnx onnxruntime openvino" in ended.stderr


@HAS_ENGINE
@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--model", "conv", "--batch", "2", "--instances", "2"),
        ("--model", "conv", "--precision", "int8"),
        ("--model", "attention", "--batch", "3", "--wait-ms", "5", "--inter", "2", "--spinning", "0"),
        ("--model", "attention", "--precision", "int8", "--graph", "basic", "--arena", "0"),
        pytest.param(
            ("--model", "attention", "--engine", "openvino", "--batch", "2"),
            marks=pytest.mark.skipif(importlib.util.find_spec("openvino") is None, reason="needs openvino"),
        ),
    ],
    ids=lambda options: "-".join(word for word in options if not word.startswith("--")),
)
def test_no_setting_changes_the_answers_by_more_than_the_study_allows(tmp_path, options):
    said = subprocess.run(
        [sys.executable, str(PROGRAM), "--seconds", "2", "--rate", "10", *options],
        cwd=tmp_path,
        env={**os.environ, "AUTOTUNE_SEED": "5"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    assert re.search(r"^answered \d+ of 20 requests", said)
    figures = dict(re.findall(r"^(throughput|p50|p99|agreement) (\S+) ", said, re.MULTILINE))
    assert abs(float(figures["agreement"]) - 100.0) < 2.0
    assert 0.0 < float(figures["p50"]) <= float(figures["p99"])
    assert 0.0 < float(figures["throughput"]) <= 10.0
