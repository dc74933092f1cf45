"""The program of the study `fusion`: how gradients are grouped, and whether their sums are right."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.study_programs import loaded

pytestmark = pytest.mark.full

PROGRAM = Path("studies/programs/fused.py").absolute()
PROGRAMS = Path("studies/programs/training").absolute()
PYTHON = Path(os.environ.get("AUTOTUNE_TORCH_PYTHON") or Path(sys.prefix) / "share/autotune/torch/bin/python")
needs_torch = pytest.mark.skipif(not PYTHON.is_file(), reason="no Python with torch here: AUTOTUNE_TORCH_PYTHON")
MIB_OF_NUMBERS = 2**20 // 4


@pytest.fixture(scope="module")
def fused():
    return loaded("fused")


def with_torch(*words, text=None):
    command = [str(PYTHON), "-c", text] if text else [str(PYTHON), str(PROGRAM), *words]
    path = f"{PROGRAM.parent}{os.pathsep}{PROGRAMS}"
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path}, timeout=600
    )


def test_gradients_go_from_the_last_to_the_first_and_a_full_bucket_is_sent(fused):
    half = MIB_OF_NUMBERS // 2
    sizes = [half, half, 10, half, half]
    assert fused.buckets(sizes, 1.0) == [[4, 3], [2, 1, 0]]
    assert fused.buckets(sizes, 100.0) == [[4, 3, 2, 1, 0]]
    assert fused.buckets(sizes, 0.0) == [[4], [3], [2], [1], [0]]


def test_without_a_size_of_ones_own_the_first_bucket_is_the_small_one_that_torch_has(fused):
    sizes = [MIB_OF_NUMBERS] * 28
    assert [len(bucket) for bucket in fused.buckets(sizes, None)] == [1, 25, 2]
    assert [len(bucket) for bucket in fused.buckets(sizes, 25.0)] == [25, 3]


def test_sizes_are_those_of_a_file(fused, tmp_path):
    (tmp_path / "sizes.txt").write_text("100\n7\n")
    assert fused.sizes_of(str(tmp_path / "sizes.txt")) == [100, 7]


@pytest.mark.parametrize("text", [None, "", "100\nmany\n", "0\n"])
def test_what_are_no_sizes_is_said(fused, tmp_path, text):
    file = tmp_path / "sizes.txt"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ValueError, match=r"sizes\.txt"):
        fused.sizes_of(str(file))


def test_a_python_without_torch_is_told_who_has_one():
    # -S: without any package.
    ended = subprocess.run([sys.executable, "-S", str(PROGRAM)], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ")
    assert "'./run study fusion'" in ended.stderr


@needs_torch
@pytest.mark.parametrize("model", ["small-cnn", "resnet50"])
def test_the_sizes_are_those_of_the_network_that_ddp_trains(model):
    text = (
        "import fused; from ddp.models import network\n"
        f"sizes = [parameter.numel() for parameter in network({model!r}, 12, 19).parameters()]\n"
        f"assert sorted(sizes) == sorted(fused.sizes_of({model!r})), (len(sizes), sum(sizes))\n"
    )
    ended = with_torch(text=text)
    assert ended.returncode == 0, ended.stderr


@needs_torch
@pytest.mark.parametrize(("bucket", "compression", "count"), [("default", "none", 2), ("0", "fp16", 16)])
def test_gradients_are_summed_and_the_sums_are_right(bucket, compression, count):
    ended = with_torch("--seconds", "0.01", "--bucket-mib", bucket, "--compression", compression)
    assert ended.returncode == 0, ended.stderr
    assert f" {count} buckets\n" in ended.stdout
    assert "wrong numbers 0\n" in ended.stdout


@needs_torch
def test_numbers_that_are_not_the_mean_over_the_workers_are_counted(tmp_path):
    text = (
        "import argparse, fused, torch, torch.distributed as dist\n"
        f"dist.init_process_group('gloo', init_method='file://{tmp_path}/meeting', rank=0, world_size=1)\n"
        f"given = argparse.Namespace(workers=1, compression='none', bucket_mib=None, tensors='{tmp_path}/sizes')\n"
        "exchange = fused.Exchange(0, given, torch.device('cpu'))\n"
        "assert exchange.count_wrong() == 0\n"
        "once = exchange.run_once\n"
        "def spoilt():\n"
        "    once()\n"
        "    exchange._tensors[1][2] += 1\n"
        "exchange.run_once = spoilt\n"
        "assert exchange.count_wrong() == 1\n"
        "dist.destroy_process_group()\n"  # as the program does: its threads must not outlive the interpreter
    )
    (tmp_path / "sizes").write_text("5\n10\n")
    ended = with_torch(text=text)
    assert ended.returncode == 0, ended.stderr
