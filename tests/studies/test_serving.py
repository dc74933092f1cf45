"""The program of the study `inference`: engines, and their answers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

PROGRAM = Path("studies/programs/serving.py").absolute()
PYTHON = Path(os.environ.get("AUTOTUNE_INFERENCE_PYTHON") or Path(sys.prefix) / "share/autotune/inference/bin/python3")


def needs(package):
    """Skip a test if the Python of the study, or one of its packages, is missing."""
    found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{package}') is None)"
    if not PYTHON.is_file() or subprocess.run([PYTHON, "-c", found], check=False).returncode != 0:
        pytest.skip(f"no Python with {package} here: AUTOTUNE_INFERENCE_PYTHON")


def run(folder, *options, environment=None):
    return subprocess.run(
        [PYTHON, str(PROGRAM), *options],
        cwd=folder,
        env={**os.environ, "AUTOTUNE_SEED": "5", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


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


@pytest.mark.parametrize(
    "options",
    [
        "--engine onnxruntime --model conv --batch 2 --instances 2",
        "--engine onnxruntime --model conv --precision int8",
        "--engine onnxruntime --model attention --batch 3 --wait-ms 5 --inter 2 --spinning 0",
        "--engine onnxruntime --model attention --precision int8 --graph basic --arena 0",
        "--engine openvino --model attention --batch 2",
        "--engine torch --model conv --batch 3 --instances 2",
        "--engine torch --model attention",
    ],
)
def test_no_setting_changes_the_answers_by_more_than_the_study_allows(tmp_path, options):
    needs(options.split()[1])
    ended = run(tmp_path, "--seconds", "1", "--rate", "20", *options.split())
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^answered \d+ of 20 requests", ended.stdout)
    figures = dict(re.findall(r"^(throughput|p50|p99|agreement) (\d\S*) ", ended.stdout, re.MULTILINE))
    assert abs(float(figures["agreement"]) - 100.0) < (2.0 if "int8" in options else 0.01)
    assert 0.0 < float(figures["p50"]) <= float(figures["p99"])
    assert 0.0 < float(figures["throughput"]) <= 20.0


def test_a_model_that_cannot_be_compiled_is_told_in_a_line(tmp_path):
    needs("torch")
    without = {"PATH": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    ended = run(tmp_path, "--engine", "torch-compile", "--rate", "5", "--model", "dense", environment=without)
    assert ended.returncode == 1
    assert re.search(r"^error: torch\.compile needs a C\+\+ compiler .*: .*[Cc]ompiler", ended.stderr, re.MULTILINE)
    assert "Traceback" not in ended.stderr
