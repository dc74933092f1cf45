"""Hardware threads in a space: a parameter if the cores have several, left out if they have a single one."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotune import studyfile
from autotune.machines.this_machine import this_machine
from autotune.planning.check import check
from autotune.studyfile.space import join_space
from launchers.local import LocalLauncher
from launchers.mpi import MpiFlavour
from launchers.mpi.open_mpi import OPEN_MPI
from objectives.base import Context
from objectives.command import make_plan
from objectives.command_check import read_command_options
from objectives.mentions.nodes import Nodes

PAGE = Path("docs/study-files.md").read_text(encoding="utf-8")
EXAMPLE = re.search(r"### Hardware threads\n.*?```toml\n(.*?)```", PAGE, re.DOTALL)[1]


def machine(threads_per_core):
    return replace(this_machine(), cpus=(0, 1), threads_per_core=threads_per_core)


def made(study, threads_per_core):
    facts = machine(threads_per_core).facts
    checked, files, errors = read_command_options(study.options)
    assert errors == []
    return join_space(study, make_plan(checked, files, Nodes.of(facts)), facts)


def checked(folder, threads_per_core, *changes):
    file = folder / "mine.toml"
    file.write_text('objective = "command"\n' + EXAMPLE.replace('"solve"', '"true"'), encoding="utf-8")
    return check(file, changes, machine(threads_per_core), LocalLauncher(MpiFlavour(OPEN_MPI, (4, 1, 4))))


def chosen(space, name):
    return {configuration.get(name) for configuration in space.sample(np.random.default_rng(1), 300)}


@pytest.mark.parametrize("name", ["bigdata-pca", "bigdata-kmeans", "bigdata-svm"])
def test_big_data_has_the_parameter_where_there_is_a_choice(name, tmp_path):
    study = studyfile.load(studyfile.find(name))
    assert chosen(made(study, 1)[1], "smt") == {None}
    plan, two = made(study, 2)
    assert chosen(two, "smt") == {1, 2}
    assert two.default()["smt"] == 1
    shared = {**two.default(), "ranks": 4, "smt": 2}
    assert two.violations(shared) == []
    resources = plan.objective.job(shared, Context(tmp_path)).resources
    assert (resources.cores, resources.threads_per_core) == (2, 2)
    _, four = made(study, 4)
    assert four.violations({**shared, "ranks": 8, "smt": 4}) == []
    assert four.violations({**shared, "ranks": 1, "smt": 4}) != []


def test_the_example_of_the_page_is_valid_on_any_machine(tmp_path):
    for threads_per_core, smt, most in ((1, {None}, 2), (2, {1, 2}, 4)):
        report = checked(tmp_path, threads_per_core)
        assert (report.mistakes, report.missing) == ([], [])
        assert chosen(report.space, "smt") == smt
        assert max(chosen(report.space, "np")) == most
        assert chosen(report.space, "places") == {None, "threads", "cores", "sockets"}


def test_a_run_on_all_hardware_threads_is_shown_with_what_starts_it(tmp_path):
    changes = ("space.parameters.smt.default=2", "space.parameters.np.default=4")
    assert "mpirun -np 4 --use-hwthread-cpus true" in checked(tmp_path, 2, *changes).command
    assert "mpirun -np 2 true" in checked(tmp_path, 2).command


def test_hardware_threads_that_are_not_there_are_said_with_the_place(tmp_path):
    report = checked(tmp_path, 1, "options.threads_per_core=2")
    (problem,) = [one for one in report.missing if one.path == "options.threads_per_core"]
    assert "each run asks for 2 hardware threads of each core, which has 1 here; use no more" in str(problem)
    assert checked(tmp_path, 2, "options.threads_per_core=2").missing == []
