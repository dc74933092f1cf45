"""The studies of LLM servers: llm on this machine, and llm-vllm and llm-sglang by fakes that refuse unknown flags."""

import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotune import studyfile
from autotune.errors import StudyFileError
from autotune.studyfile.space import join_space
from objectives.command import make_plan
from objectives.command_check import read_command_options
from objectives.mentions.nodes import Nodes
from objectives.mentions.words import fill_in_words
from tests.launchers.jobs import wait_for
from tests.support import llm_fakes
from tests.support.warm import autotune

PROGRAMS = Path("studies/programs").absolute()
PYTHON = Path(os.environ.get("AUTOTUNE_LLM_PYTHON") or Path(sys.prefix) / "share/autotune/llm/bin/python3")
FACTS = {"cores": 4, "nodes": 1, "cores_per_node": 4, "sockets": 1, "memory_bytes": 2**34}
# An 8-billion model on a card of 24 GiB, as its config.json and nvidia-smi describe them.
CARD = {"layers": 32, "heads": 32, "kv_heads": 8, "width": 4096, "model_bytes": 16_060_522_496, "card_mib": 24_564}

real = pytest.mark.skipif(not PYTHON.is_file(), reason="no Python with llama.cpp here: AUTOTUNE_LLM_PYTHON")


def planned(name, facts=None, **machine):
    study = studyfile.load(studyfile.find(name))
    checked, files, errors = read_command_options(study.options, make=False)
    assert errors == []
    plan = make_plan(checked, files, Nodes(), is_elsewhere=True)
    plan = replace(plan, facts={**plan.facts, **(facts or {})})
    return checked, join_space(study, plan, {**FACTS, **machine})[1]


def command_lines(options, configuration):
    """Return the server's command line and that of a load."""
    values = {**configuration, "port": 8000, "rate": 4}
    return [fill_in_words(words, values) for words in (options.server.argv, options.argv)]


@pytest.mark.parametrize("name", ["llm-vllm", "llm-sglang"])
def test_servers_and_loads_know_every_flag_of_a_study(name):
    options, space = planned(name)
    for configuration in [space.default(), *space.sample(np.random.default_rng(0), 50)]:
        for words in command_lines(options, configuration):
            assert llm_fakes.refusals(words) == []


@pytest.mark.parametrize("words", [("--max-num-batch-tokens", "1"), ("--kv-cache-dtype", "int3")])
def test_a_fake_server_refuses_what_the_real_one_does_not_know(words):
    assert len(llm_fakes.refusals(["vllm", "serve", "model", *words])) == 1


@pytest.mark.parametrize("name", ["llm-vllm", "llm-sglang"])
def test_weights_and_the_cache_of_a_request_must_fit_on_a_card(name):
    planned(name, {**CARD, "card_mib": 24_564})
    with pytest.raises(StudyFileError, match="does not start unless the weights and the cache"):
        planned(name, {**CARD, "card_mib": 16_376})


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"batch": 32, "ubatch": 64}, "micro-batch"),
        ({"context": 512, "slots": 4}, "context"),
        ({"value_type": "q8_0", "flash_attention": "off"}, "quantised values"),
    ],
)
def test_what_llama_cpp_refuses_or_ignores_is_not_tried(changes, rule):
    _, space = planned("llm")
    (broken,) = space.violations({**space.default(), **changes})
    assert rule in broken


def test_a_model_that_does_not_fit_in_memory_is_not_started():
    with pytest.raises(StudyFileError, match="weights, cache and scratch space must fit"):
        planned("llm", memory_bytes=2**26)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llm-vllm", "llm-sglang"])
def test_a_run_finds_the_highest_rate_of_a_fake_server(tmp_path, name):
    llm_fakes.install(tmp_path / "bin")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    ended = autotune(tmp_path, "check", name, "--run", "--json", "--set", "options.gpus=cards - 1", PATH=path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = json.loads(ended.stdout)["run"]
    assert run["failure"] is None
    figures = {metric["name"]: metric["value"] for metric in run["metrics"]}
    # The fake keeps 500 ms to the first token up to 41.7 requests a second.
    assert 38 <= figures["rate"] <= 41
    assert figures["ttft_p99_ms"] == 12 * figures["rate"]
    assert figures["goodput_per_s"] == figures["rate"]


def write_model(folder, *options):
    words = [PYTHON, str(PROGRAMS / "llm_model.py"), "model.gguf", *options]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return folder / "model.gguf"


@real
@pytest.mark.full
def test_the_model_is_the_same_each_time_and_has_the_shape_that_the_study_names(tmp_path):
    folders = [tmp_path / "first", tmp_path / "again", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    first, again = (write_model(folder).read_bytes() for folder in folders[:2])
    assert first == again != write_model(folders[2], "--seed", "1").read_bytes()
    script = (
        "import gguf, sys\nfor one in gguf.GGUFReader(sys.argv[1]).fields.values(): print(one.name, one.contents())"
    )
    printed = subprocess.run(
        [PYTHON, "-c", script, folders[0] / "model.gguf"], capture_output=True, text=True, check=True
    )
    shape = dict(re.findall(r"^llama\.(\S+) (\S+)$", printed.stdout, re.MULTILINE))
    shape = {name: float(value) for name, value in shape.items()}
    derived = studyfile.load(studyfile.find("llm")).space.derived
    derived = {name: float(text) for name, text in derived.items() if text.isdigit()}
    assert shape["block_count"] == derived["layers"]
    assert shape["attention.head_count_kv"] == derived["kv_heads"]
    assert shape["rope.dimension_count"] == derived["head_size"]
    assert shape["vocab_size"] == derived["vocabulary"]
    assert 0.9 * len(first) < derived["model_bytes"] < 1.1 * len(first)


@real
@pytest.mark.full
@pytest.mark.cores
def test_a_load_counts_as_the_server_does(tmp_path):
    write_model(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    words = [PYTHON, PROGRAMS / "llm_server.py", "--model", "model.gguf", "--port", url.rpartition(":")[2]]
    more = ["--threads", "1", "--parallel", "4", "--ctx-size", "2048", "--metrics", "--cache-ram", "0"]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen([*words, *more], cwd=tmp_path, stdout=log, stderr=log) as server,
    ):
        try:
            wait_for(lambda: answers(f"{url}/health"))
            load = [PYTHON, PROGRAMS / "llm_load.py", "--url", url, "--rate", "2", "--seconds", "10"]
            ended = subprocess.run(load, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stderr
            found = json.loads(ended.stdout)
            with urllib.request.urlopen(f"{url}/metrics") as page:
                counted = dict(re.findall(r"^llamacpp:(\S+) (\S+)$", page.read().decode(), re.MULTILINE))
        finally:
            server.terminate()
    assert found["answered"] == found["requests"] == 20
    assert found["output_tokens"] == float(counted["tokens_predicted_total"])
    # The server puts a token for the beginning before each prompt.
    assert float(counted["prompt_tokens_total"]) - found["prompt_tokens"] in {0, 20}


def answers(url):
    with suppress(OSError), urllib.request.urlopen(url) as page:
        return page.status == 200
    return False
