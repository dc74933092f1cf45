import re
from dataclasses import replace
from pathlib import Path

import pytest

from launchers import MpiStart, Resources
from objectives.base import PARTS, Context
from objectives.qe.deck import Deck
from objectives.qe.objective import INPUT_NAME, QeObjective
from objectives.qe.options import shipped_input


@pytest.fixture
def objective():
    return QeObjective(
        program="pw.x",
        deck=Deck(shipped_input("tio2").decode()),
        tolerance_ry=1e-6,
        cores_per_node=48,
        nodes=4,
        library_paths={"openblas-pthread": "/opt/openblas:/opt/site"},
    )


GOLDEN = [
    ({"np": 2}, ("pw.x", "-inp", "pw.in"), MpiStart(2), Resources(2)),
    (
        {"np": 2, "npool": 1, "nbgrp": 1, "ntg": 1, "threads": 1},
        ("pw.x", "-npool", "1", "-nbgrp", "1", "-ntg", "1", "-inp", "pw.in"),
        MpiStart(2),
        Resources(2),
    ),
    (
        {"np": 40, "npool": 20, "ndiag": 4},
        ("pw.x", "-npool", "20", "-ndiag", "4", "-inp", "pw.in"),
        MpiStart(40),
        Resources(40),
    ),
    (
        {"np": 96, "npool": 4, "nbgrp": 2, "ntg": 3, "ndiag": 1, "threads": 2, "bind_to": "core", "map_by": "socket"},
        ("pw.x", "-npool", "4", "-nbgrp", "2", "-ntg", "3", "-ndiag", "1", "-inp", "pw.in"),
        MpiStart(96, bind_to="core", map_by="socket"),
        Resources(192, nodes=4),
    ),
    # More ranks, or ranks and threads, than there are cores share those that there are.
    ({"np": 200}, ("pw.x", "-inp", "pw.in"), MpiStart(200), Resources(192, nodes=4)),
    ({"np": 192, "threads": 2}, ("pw.x", "-inp", "pw.in"), MpiStart(192), Resources(192, nodes=4)),
]


@pytest.mark.parametrize(("configuration", "argv", "mpi", "resources"), GOLDEN)
def test_golden_commands(objective, tmp_path, configuration, *, argv, mpi, resources):
    job = objective.job(configuration, Context(tmp_path))
    assert (job.argv, job.mpi, job.resources) == (argv, mpi, resources)


def test_the_default_environment_is_one_thread_and_nothing_else(objective, tmp_path):
    job = objective.job({"np": 2}, Context(tmp_path))
    assert set(job.environment.values()) == {"1"}
    assert {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS"} <= job.environment.keys()


def test_libraries_threads_memory_and_transport_go_by_the_environment(objective, tmp_path):
    configuration = {
        "np": 1,
        "threads": 4,
        "blas": "openblas-pthread",
        "malloc": "huge-pages",
        "transport": "two-copies",
    }
    environment = dict(objective.job(configuration, Context(tmp_path)).environment)
    assert environment["OMP_NUM_THREADS"] == environment["OPENBLAS_NUM_THREADS"] == "4"
    assert environment["LD_LIBRARY_PATH"] == "/opt/openblas:/opt/site"
    assert environment["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1"
    assert environment["OMPI_MCA_btl_vader_single_copy_mechanism"] == "none"


def test_the_input_writes_into_the_trials_folder_only(objective, tmp_path):
    objective.job({"np": 2, "disk_io": "nowf", "mixing_beta": 0.3, "diagonalization": "cg"}, Context(tmp_path))
    assert [entry.name for entry in tmp_path.iterdir()] == [INPUT_NAME]
    deck = Deck.read(tmp_path / INPUT_NAME)
    assert deck.get("outdir") == "./out/"
    assert deck.get("disk_io") == "nowf"
    assert deck.get("mixing_beta") == "0.3"
    assert deck.get("diagonalization") == "cg"
    assert deck.get("conv_thr") == "1.0d-6"


def test_wavefunctions_that_have_a_place_of_their_own_are_written_into_the_folder_too(objective, tmp_path):
    theirs = objective.deck.with_values("control", {"wfcdir": "/scratch/me/"})
    replace(objective, deck=theirs).job({"np": 2}, Context(tmp_path))
    assert Deck.read(tmp_path / INPUT_NAME).get("wfcdir") == "./out/"


@pytest.mark.parametrize(("printed", "elapsed_s", "wall_s"), [("1h 2m", 3765.0, 3765.0), ("1h 2m", 4000.0, 3779.99)])
def test_of_runs_of_an_hour_the_seconds_are_those_of_the_job(objective, ending, printed, elapsed_s, wall_s):
    output = ending("converged-np2")
    text = re.sub(r"(PWSCF +: .* CPU) +\S+ WALL", rf"\1 {printed} WALL", output.stdout)
    status = replace(output.status, usage=replace(output.status.usage, elapsed_s=elapsed_s))
    assert objective.measure(replace(output, stdout=text, status=status)).metrics["wall_s"] == wall_s


def test_measures_a_whole_run(objective, ending):
    measurement = objective.measure(ending("converged-np2"))
    assert list(measurement.metrics) == [metric.name for metric in objective.metrics]
    assert objective.metrics[0].name == "wall_s"
    assert measurement.metrics["wall_s"] > measurement.metrics["cpu_s"] > 0
    assert measurement.metrics["elapsed_s"] == 5.5
    assert measurement.metrics["iterations"] == 9
    assert measurement.metrics["peak_memory_bytes"] == 2**27
    assert measurement.answer.tolerance == 1e-6
    assert measurement.details["layout"]["ranks"] == 2
    assert measurement.details[PARTS]["PWSCF"] == measurement.metrics["wall_s"] > measurement.details[PARTS]["c_bands"]


def test_progress_is_each_iteration_with_its_accuracy(objective):
    text = (Path(__file__).parents[1] / "outputs" / "converged-np2.stdout").read_text()
    read = objective.progress_reader()
    seen = [progress for line in text.splitlines() if (progress := read(line))]
    assert [progress.step for progress in seen] == list(range(1, 10))
    assert seen[0].metrics["accuracy_ry"] > seen[-1].metrics["accuracy_ry"]
    assert seen[-1].metrics["elapsed_s"] > 0
