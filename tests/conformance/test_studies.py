"""Requirements for every shipped study."""

import numpy as np
import pytest

from autotune import studyfile
from autotune.machines.this_machine import this_machine
from autotune.planning.check import check
from autotune.planning.prepare import prepare
from autotune.studyfile.space import join_space
from launchers.local import local_launcher
from objectives.base import Context
from objectives.command import make_plan
from objectives.command_check import read_command_options
from objectives.mentions.nodes import Nodes
from objectives.registry import COMMAND, OBJECTIVES, REPLAY

STUDIES = {name: studyfile.load(path) for name, path in studyfile.catalogue().items()}
COMMANDS = sorted(name for name, study in STUDIES.items() if study.objective == COMMAND)
REPLAYS = sorted(name for name, study in STUDIES.items() if study.objective == REPLAY)


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_a_shipped_study_has_a_known_objective_and_a_description(name):
    study = STUDIES[name]
    assert study.name == name
    assert study.objective in OBJECTIVES
    assert study.description


@pytest.mark.parametrize("name", REPLAYS)
def test_a_shipped_replay_is_ready_anywhere(name, tmp_path):
    prepared = prepare(STUDIES[name], this_machine(), local_launcher(), tmp_path)
    assert prepared.space.size.exact
    assert prepared.space.size.value >= STUDIES[name].budget.trials
    assert prepared.plan.recorded is not None
    assert prepared.space.contains(prepared.space.default())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_shipped_study_of_a_command_has_no_mistake(name):
    found = check(studyfile.catalogue()[name], (), this_machine(), local_launcher())
    assert [str(problem) for problem in found.mistakes] == []
    # `found.missing` lists what this machine lacks. If it is empty, the space is not trivial, and results are checked.
    if not found.missing:
        assert found.space.size.value >= STUDIES[name].budget.trials
        options = STUDIES[name].options
        assert options.get("answer") or options.get("success")


NODES, CORES = 4, 8
CLUSTER = {"cores": NODES * CORES, "nodes": NODES, "cores_per_node": CORES, "threads_per_core": 1, "sockets": 2}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_process_of_a_shipped_study_has_the_cores_of_one_node_at_most(name, tmp_path):
    study = STUDIES[name]
    checked, files, _ = read_command_options(study.options, make=False)
    plan = make_plan(checked, files, Nodes(NODES, CORES), is_elsewhere=True)
    plan, space = join_space(study, plan, {**CLUSTER, "memory_bytes": 2**38})
    for number, configuration in enumerate([space.default(), *space.sample(np.random.default_rng(0), 20)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        job = plan.objective.job(configuration, Context(folder))
        ranks = 1 if job.mpi is None else job.mpi.ranks
        # A study may try two threads a core.
        assert job.resources.cores <= 2 * CORES * ranks
        assert job.mpi is not None or (job.resources.cores <= CORES and job.resources.nodes == 1)


def test_the_worked_examples_ship():
    assert set(COMMANDS) >= {
        "stream",
        "flags",
        "hpl",
        "pgbench",
        "redis",
        "nginx",
        "checkpoint",
        "inference",
        "ensemble",
        "llm",
        "llm-vllm",
        "llm-sglang",
        "fusion",
        "bigdata-pca",
        "bigdata-kmeans",
        "bigdata-svm",
        "gromacs",
        "lammps",
        "cp2k",
        "nwchem",
        "fftw",
        "ph",
        "cp",
        "rules",
    }


def test_a_replay_ships():
    assert "replay" in REPLAYS
