"""The program of the study `ensemble`: valid allocations of cores to models."""

import argparse
import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autotune import studyfile
from autotune.machines.this_machine import this_machine
from autotune.planning.prepare import prepare
from launchers.local import local_launcher
from tests.support.study_programs import loaded

pytestmark = pytest.mark.full

PROGRAM = Path("studies/programs/ensemble.py").absolute()
PYTHON = Path(os.environ.get("AUTOTUNE_INFERENCE_PYTHON") or Path(sys.prefix) / "share/autotune/inference/bin/python3")


@pytest.fixture(scope="module")
def ensemble():
    sys.path.insert(0, str(PROGRAM.parent))
    try:
        return loaded("ensemble")
    finally:
        sys.path.remove(str(PROGRAM.parent))
        for name in ("load", "serving"):
            sys.modules.pop(name, None)


def rows(groups, conv, attention, dense):
    return argparse.Namespace(groups=groups, conv=conv, attention=attention, dense=dense)


def test_groups_of_cores_are_neighbours_and_of_one_size(ensemble):
    assert ensemble.groups([0, 1, 2, 3], 2) == [{0, 1}, {2, 3}]
    assert ensemble.groups([0, 2, 5, 7, 9], 2) == [{0, 2}, {5, 7}]
    assert ensemble.groups([3, 4], 1) == [{3, 4}]


def test_an_allocation_has_a_number_for_each_group_and_an_instance_of_each_model(ensemble):
    assert ensemble.find_mistake(rows(2, [1, 0], [0, 1], [0, 2]), 2) == ""
    assert "--attention 1, but there are 2 groups" in ensemble.find_mistake(rows(2, [1, 0], [1], [0, 2]), 2)
    assert "no instance of dense" in ensemble.find_mistake(rows(2, [1, 0], [0, 1], [0, 0]), 2)
    assert "--groups 4, but there are 2 cores" in ensemble.find_mistake(rows(4, [1] * 4, [1] * 4, [1] * 4), 2)


def test_instances_are_made_and_kept_on_the_cores_of_their_group(ensemble):
    cores = sorted(os.sched_getaffinity(0))
    where = [frozenset(cores[:1]), frozenset(cores[-1:])]
    made_on = []

    class Served:
        @staticmethod
        def engines(content, asked):
            made_on.extend([os.sched_getaffinity(0)] * asked.instances)
            return [lambda batch: batch] * asked.instances

    place_instances = ensemble.place_instances(Served, b"", [2, 1], where, argparse.Namespace())
    assert [instance.cores for instance in place_instances] == made_on == [where[0], where[0], where[1]]
    assert sorted(os.sched_getaffinity(0)) == cores


def space(cores, folder):
    """Return the space of the study on a machine with this number of cores."""
    machine = dataclasses.replace(this_machine(), cpus=tuple(range(cores)))
    study = studyfile.load(studyfile.catalogue()["ensemble"])
    return prepare(study, machine, local_launcher(), folder).space


def test_the_space_grows_with_the_machine_and_is_counted_exactly(tmp_path):
    spaces = {cores: space(cores, tmp_path) for cores in (1, 2, 4, 16, 64)}
    assert all(one.size.exact and one.contains(one.default()) for one in spaces.values())
    sizes = [one.size.value for one in spaces.values()]
    assert sizes == sorted(sizes)
    assert [one.default()["threads"] for one in spaces.values()] == [1, 1, 1, 4, 16]


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"conv_1": 0}, "conv"),
        ({"dense_2": 0}, "dense"),
        ({"conv_1": 1, "conv_2": 2}, "order 2"),
        ({"attention_2": 2}, "group 2"),
        ({"threads": 2}, "groups"),
    ],
)
def test_every_model_is_somewhere_and_no_group_holds_more_than_it_may(tmp_path, changed, rule):
    two = space(2, tmp_path)
    spread = {"groups": 2, "conv_1": 1, "attention_1": 0, "dense_1": 0, "conv_2": 0, "attention_2": 1, "dense_2": 2}
    allocation = two.default() | spread
    assert two.contains(allocation)
    assert any(said.startswith(f"{rule}:") for said in two.violations(allocation | changed))


@pytest.mark.skipif(not PYTHON.is_file(), reason="no Python with onnxruntime here: AUTOTUNE_INFERENCE_PYTHON")
def test_the_whole_answers_as_its_models_do(tmp_path):
    groups = min(2, len(os.sched_getaffinity(0)))
    row = ["1", "0"][:groups]
    words = [word for name in ("conv", "attention", "dense") for word in (f"--{name}", *row, f"--{name}-batch", "2")]
    ended = subprocess.run(
        [PYTHON, PROGRAM, "--groups", str(groups), "--rate", "20", "--seconds", "1", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^answered 20 of 20 requests", ended.stdout)
    assert float(re.search(r"^agreement (\S+) %", ended.stdout, re.MULTILINE)[1]) == pytest.approx(100.0, abs=0.01)
