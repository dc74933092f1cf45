import re
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.execution.task import check_answer
from launchers import MpiStart, Resources
from objectives.base import PARTS, Context, InvalidResult
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


def limited(objective, words):
    assert "electron_maxstep = 60" in objective.deck.text
    return replace(objective, deck=Deck(objective.deck.text.replace("electron_maxstep = 60", words)))


def test_a_run_that_its_input_stops_on_purpose_counts_by_its_iterations_and_its_last_energy(objective, ending):
    measured = limited(objective, "electron_maxstep = 2").measure(ending("not-converged", 2))
    assert measured.metrics["iterations"] == 2
    assert 0 < measured.metrics["wall_s"] == measured.details[PARTS]["PWSCF"]
    iterations, energy = measured.answer.parts
    assert (iterations.name, iterations.value, iterations.tolerance) == ("iterations", 2.0, 0.0)
    assert (energy.name, energy.value, energy.unit) == ("total energy", -361.76093549, "Ry")
    assert energy.tolerance == 1.09821538  # the larger accuracy of the last two iterations


@pytest.mark.parametrize("words", ["electron_maxstep = 100", "electron_maxstep = 60", "", "electron_maxstep = 3"])
def test_a_run_that_does_not_converge_within_a_limit_that_is_not_on_purpose_has_failed(objective, ending, words):
    with pytest.raises(InvalidResult, match="NOT achieved after 2 iterations"):
        limited(objective, words).measure(ending("not-converged", 2))


def test_a_run_that_need_not_converge_is_compared_like_one_that_stopped(objective, ending):
    # So pw.x 6.7 ends a run with scf_must_converge = .false.: it says that it has converged, and marks the energy.
    output = ending("not-converged")
    text = output.stdout.replace(
        "     total energy              =    -361.76", "!    total energy              =    -361.76"
    )
    text = text.replace(
        "convergence NOT achieved after   2 iterations: stopping", "convergence has been achieved in   2 iterations"
    )
    unforced = limited(objective, "electron_maxstep = 2, scf_must_converge = .FALSE.")
    measured = unforced.measure(replace(output, stdout=text))
    assert [part.tolerance for part in measured.answer.parts] == [0.0, 1.09821538]
    stated = replace(unforced, tolerance_ry=1e-3, tolerance_is_stated=True)
    assert stated.measure(replace(output, stdout=text)).answer.tolerance == 1e-3


def test_a_run_that_made_another_number_of_iterations_than_the_default_did_other_work(objective, ending):
    few = limited(objective, "electron_maxstep = 2")
    default = few.measure(ending("not-converged", 2))
    check_answer(few.measure(ending("not-converged", 2)), default.answer)
    with pytest.raises(InvalidResult, match=r"iterations is 9, the reference run's is 2"):
        check_answer(few.measure(ending("converged-np2")), default.answer)
    other = ending("not-converged", 2)
    moved = replace(other, stdout=other.stdout.replace("-361.76093549", "-363.76093549"))
    with pytest.raises(InvalidResult, match=r"total energy is -363.7609355 Ry, the reference run's is -361.76"):
        check_answer(few.measure(moved), default.answer)


def test_runs_that_converge_within_the_limit_may_differ_in_iterations(objective, ending):
    within = limited(objective, "electron_maxstep = 20")
    nine = within.measure(ending("converged-np2"))
    fewer = ending("converged-np2")
    eight = within.measure(
        replace(fewer, stdout=re.sub(r" iteration # +8 (?s:.*?)(?=\n +iteration # +9)", "", fewer.stdout))
    )
    assert (nine.metrics["iterations"], eight.metrics["iterations"]) == (9, 8)
    check_answer(eight, nine.answer)
    assert nine.answer.tolerance == within.tolerance_ry


@pytest.mark.parametrize(
    ("wall", "words"),
    [("45h 2m", "printed 162120 s for the whole program, which ran for 6 s"), ("0.10s", "and more for a part of it")],
)
def test_a_time_that_cannot_be_right_is_not_believed(objective, ending, wall, words):
    output = ending("converged-np2")
    text = re.sub(r"(PWSCF +: .* CPU) +\S+ WALL", rf"\1 {wall} WALL", output.stdout)
    text = re.sub(r"(electrons +: .* CPU) +\S+ WALL", r"\1 4.9s WALL", text)
    with pytest.raises(InvalidResult, match=words) as failed:
        objective.measure(replace(output, stdout=text))
    assert failed.value.code == "qe.wrong-time"


def test_progress_is_each_iteration_with_its_accuracy(objective):
    text = (Path(__file__).parents[1] / "outputs" / "converged-np2.stdout").read_text()
    read = objective.progress_reader()
    seen = [progress for line in text.splitlines() if (progress := read(line))]
    assert [progress.step for progress in seen] == list(range(1, 10))
    assert seen[0].metrics["accuracy_ry"] > seen[-1].metrics["accuracy_ry"]
    assert seen[-1].metrics["elapsed_s"] > 0
