"""Real MPI programs whose calls are timed: planted efficiencies, threads, killed ranks, Fortran; the answer stays."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.execution.task import run_job
from launchers import Job, MpiStart, Resources
from launchers.detect import can_read_memory, parse_flavour
from launchers.local import LocalLauncher, local_launcher
from objectives import registry
from objectives.base import REMARK, Context, InfrastructureError, PlanError
from objectives.command import plan
from objectives.efficiency import library
from objectives.efficiency.objective import EFFICIENCIES, MPI_TIMES, TimedObjective
from objectives.efficiency.times import MissingTimesError, group_executions, read_times
from tests.support.silicon import silicon

SOURCE = Path(__file__).parent / "programs" / "planted.c"
LIBRARIES = {
    "Open MPI": ("mpicc.openmpi", "mpirun.openmpi"),
    "MPICH": ("mpicc.mpich", "mpiexec.mpich"),
}
"""Each MPI library's compiler and start command, as Debian names them."""

pytestmark = [
    pytest.mark.full,
]


@pytest.fixture(scope="module", params=LIBRARIES)
def mpi(request, tmp_path_factory):
    """Return the planted program, built for one MPI library, and a launcher with that library's start command."""
    compiler, start = LIBRARIES[request.param]
    found = shutil.which(compiler), shutil.which(start)
    if None in found:
        pytest.skip(f"no {compiler} and {start} here")
    program = tmp_path_factory.mktemp("planted") / "planted"
    subprocess.run([found[0], "-O1", "-pthread", "-o", program, SOURCE], check=True)
    version = subprocess.run([found[1], "--version"], check=True, capture_output=True, text=True).stdout
    flavour = replace(parse_flavour(version, found[1]), single_copy=can_read_memory())
    assert flavour.kind.name == request.param
    return program, LocalLauncher(flavour)


def timed(program, what, seconds, folder, *, ranks, launcher):
    """Run the planted program; return what a study would measure of it, and its job's output."""
    options = {
        "argv": [str(program), what, str(seconds)],
        "ranks": ranks,
        "answer": {"name": "answer", "pattern": r"answer (\d+)", "tolerance": 0},
    }
    machine = {"cores": 2}
    made = plan(options, machine=machine, run_job=lambda job: run_job(job, launcher), folder=folder)
    objective = TimedObjective(made.objective, library.build())
    output = run_job(objective.job({}, Context(folder, time_limit_s=600)), launcher)
    return objective, output


def test_a_planted_imbalance_is_the_load_balance(mpi, tmp_path):
    program, launcher = mpi
    objective, output = timed(program, "balance", 0.5, tmp_path, ranks=3, launcher=launcher)
    measured = objective.measure(output)
    assert measured.metrics["load_balance"] == pytest.approx(2 / 3, abs=0.05)
    assert measured.metrics["communication_efficiency"] > 0.85
    assert measured.details[MPI_TIMES]["ranks"] == 3
    assert measured.answer.value == 42


def test_ranks_that_wait_for_each_other_in_turns_are_balanced_and_communicate_badly(mpi, tmp_path):
    program, launcher = mpi
    objective, output = timed(program, "turns", 0.8, tmp_path, ranks=2, launcher=launcher)
    measured = objective.measure(output)
    assert measured.metrics["load_balance"] == pytest.approx(1.0, abs=0.1)
    assert measured.metrics["communication_efficiency"] == pytest.approx(0.5, abs=0.1)


def test_a_program_that_only_talks_has_a_low_communication_efficiency(mpi, tmp_path):
    program, launcher = mpi
    objective, output = timed(program, "talk", 0.5, tmp_path, ranks=2, launcher=launcher)
    measured = objective.measure(output)
    assert measured.metrics["communication_efficiency"] < 0.6
    assert measured.details[MPI_TIMES]["calls"] > 100


def test_threads_that_talk_at_the_same_time_get_right_answers_and_are_told(mpi, tmp_path):
    program, launcher = mpi
    objective, output = timed(program, "threads", 0, tmp_path, ranks=2, launcher=launcher)
    measured = objective.measure(output)
    assert measured.answer.value == 42
    assert "other threads than the one of MPI_Init made them" in measured.details[REMARK]


def test_of_a_killed_run_nothing_is_told(mpi, tmp_path):
    program, launcher = mpi
    objective, output = timed(program, "killed", 0.1, tmp_path, ranks=2, launcher=launcher)
    with pytest.raises(InfrastructureError, match="SIGKILL"):
        objective.measure(output)
    with pytest.raises(MissingTimesError):
        group_executions(read_times(tmp_path))


def test_one_process_without_a_start_command_is_one_rank(mpi, tmp_path):
    program, launcher = mpi
    objective, output = timed(program, "balance", 0.2, tmp_path, ranks=None, launcher=launcher)
    measured = objective.measure(output)
    assert measured.details[MPI_TIMES]["ranks"] == 1
    assert measured.metrics["load_balance"] == 1.0


def test_ranks_that_another_librarys_command_has_started_know_nothing_of_one_another(mpi, tmp_path):
    program, launcher = mpi
    (start,) = {command for name, (_, command) in LIBRARIES.items() if name != launcher.flavour.kind.name}
    if shutil.which(start) is None:
        pytest.skip(f"no {start} here")
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment = library.with_library({**os.environ, **as_root}, library.build(), tmp_path)
    subprocess.run([start, "-n", "2", program, "balance", "0.1"], env=environment, check=True, capture_output=True)
    told = read_times(tmp_path)
    assert [one.ranks for one in told] == [1, 1]
    with pytest.raises(MissingTimesError, match="2 ranks were started, and each found 1"):
        group_executions(told)


def test_a_program_that_loads_mpi_for_itself_is_timed(mpi, tmp_path):
    """As Python's extensions do: no symbol of the MPI library is global then."""
    _, launcher = mpi
    compiler = LIBRARIES[launcher.flavour.kind.name][0]
    module = tmp_path / "module.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-pthread", "-o", module, SOURCE], check=True)
    code = (
        "import ctypes, os; library = ctypes.CDLL(os.environ['MODULE'], mode=os.RTLD_LOCAL); "
        "words = (ctypes.c_char_p * 4)(b'planted', b'balance', b'0.2', None); library.main(3, words)"
    )
    (tmp_path / "run").mkdir()
    job = Job(
        (sys.executable, "-S", "-c", code),
        tmp_path / "run",
        library.with_library({"MODULE": str(module)}, library.build(), tmp_path / "run"),
        MpiStart(2),
        Resources(2),
        time_limit_s=600,
    )
    assert run_job(job, launcher).status.exit_code == 0
    (found,) = group_executions(read_times(tmp_path / "run"))
    assert [rank.calls > 0 for rank in found] == [True, True]


def test_a_program_without_mpi_is_not_disturbed(tmp_path):
    objective, output = timed("/bin/echo", "answer", 42, tmp_path, ranks=None, launcher=local_launcher())
    measured = objective.measure(output)
    assert measured.answer.value == 42
    assert measured.details[REMARK].startswith("no efficiencies: no rank wrote")
    assert not output.stderr


@pytest.mark.skipif(not (shutil.which("pw.x") and shutil.which("mpirun")), reason="no pw.x and mpirun here")
def test_pw_is_timed_although_its_fortran_calls_pass_by_the_c_wrappers(tmp_path):
    launcher, machine = local_launcher(), {"cores": 2, "nodes": 1, "cores_per_node": 2, "sockets": 1}
    (tmp_path / "my.in").write_text(silicon())
    try:
        planned = registry.plan(
            "qe",
            {"input": str(tmp_path / "my.in")},
            machine=machine | {"memory_bytes": 2**33},
            run_job=lambda job: run_job(job, launcher),
            folder=tmp_path / "plan",
        )
    except PlanError as error:
        pytest.skip(f"the input cannot be run here: {error}")
    configuration = {"np": 2, "npool": 1, "nbgrp": 1, "ntg": 1, "threads": 1}
    answers = []
    for name, objective in (
        ("as it is", planned.objective),
        ("timed", TimedObjective(planned.objective, library.build())),
    ):
        (tmp_path / name).mkdir()
        output = run_job(objective.job(configuration, Context(tmp_path / name, (0, 1))), launcher)
        measured = objective.measure(output)
        answers.append(measured.answer.value)
    assert answers[0] == pytest.approx(answers[1], abs=1e-8)
    assert measured.details[MPI_TIMES]["ranks"] == 2
    assert measured.details[MPI_TIMES]["calls"] > 1000
    assert all(0.0 < measured.metrics[metric.name] <= 1.0 for metric in EFFICIENCIES)
