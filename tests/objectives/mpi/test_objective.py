"""The output of a run of the benchmark as a measurement or a failure."""

from dataclasses import replace
from pathlib import Path

import pytest

from launchers import EndReason, Job, JobState, JobStatus, MpiStart, Usage
from objectives.base import POINTS, ApplicationError, Context, InvalidResult, Output
from objectives.mpi import openmpi
from objectives.mpi.objective import OVERLAP_METRICS, MpiObjective

OBJECTIVE = MpiObjective("/made/collectives", "8,1024", 2.0, 2, openmpi.environment)
RESULT = '{"result": {"collective": "bcast", "ranks": %d, "sizes": [[8, 1e-06], [1024, 4e-06]]}}\n'


def output(stdout, stderr="", code=0, ranks=2):
    status = JobStatus(JobState.ENDED, EndReason.EXITED, code, Usage(2.5, 2.0, 3))
    job = Job(("collectives",), Path("/nowhere"), mpi=MpiStart(ranks))
    return Output(stdout, stderr, status, Path("/nowhere"), job)


def test_a_run_measures_every_size_and_their_geometric_mean():
    measured = OBJECTIVE.measure(output(RESULT % 2))
    assert measured.metrics == {"latency_s": pytest.approx(2e-6), "elapsed_s": 2.5}
    assert measured.details[POINTS] == [[8, 1e-6], [1024, 4e-6]]
    assert measured.details["oversubscribed"] is False


OVERLAP = replace(OBJECTIVE, metrics=OVERLAP_METRICS)
HIDDEN = '{"result": {"collective": "ibcast", "ranks": 2, "sizes": [[8, 1e-06], [1024, 4e-06]]%s}}\n'


def test_a_nonblocking_operation_has_what_it_costs_beside_computation_and_what_is_hidden(tmp_path):
    measured = OVERLAP.measure(output(HIDDEN % ', "hidden_percent": [[8, 0], [1024, 90.0]]'))
    assert measured.metrics == {"exposed_s": pytest.approx(2e-6), "hidden_percent": 45.0, "elapsed_s": 2.5}
    assert measured.details[POINTS] == [[8, 1e-6], [1024, 4e-6]]
    assert measured.details["hidden_percent"] == [[8, 0.0], [1024, 90.0]]
    with pytest.raises(InvalidResult, match="does not give the hidden share"):
        OVERLAP.measure(output(HIDDEN % ', "hidden_percent": [[8, 0]]'))


def test_the_program_of_nonblocking_operations_is_told_what_makes_progress(tmp_path):
    base = {"collective": "ibcast", "ranks": 2}
    for chosen, told in (
        ({}, ("0", "-1")),
        ({"test_calls": 8}, ("8", "-1")),
        ({"progress_thread_us": 10}, ("0", "10")),
    ):
        assert OVERLAP.job(base | chosen, Context(tmp_path)).argv[-2:] == told


def test_a_backend_of_torch_is_a_job_of_its_own_program(tmp_path):
    objective = replace(OBJECTIVE, torch=("python", "-P", "backends.py"))
    gloo = objective.job({"collective": "bcast", "ranks": 2, "backend": "gloo"}, Context(tmp_path))
    assert gloo.argv == ("python", "-P", "backends.py", "gloo", "2", "bcast", "2", "8,1024")
    assert (gloo.mpi, gloo.resources.cores, gloo.resources.gpus) == (None, 2, 0)
    nccl = objective.job({"collective": "barrier", "ranks": 2, "backend": "nccl"}, Context(tmp_path))
    assert (nccl.argv[-1], nccl.resources.gpus) == ("0", 2)
    mpi = objective.job({"collective": "bcast", "ranks": 2}, Context(tmp_path))
    assert (mpi.argv[0], mpi.mpi.ranks) == ("/made/collectives", 2)


def test_ranks_that_share_cores_are_marked(tmp_path):
    job = OBJECTIVE.job({"collective": "bcast", "ranks": 4}, Context(tmp_path))
    assert (job.mpi.ranks, job.resources.cores) == (4, 2)
    assert OBJECTIVE.measure(output(RESULT % 4, ranks=4)).details["oversubscribed"] is True


def test_a_barrier_has_no_sizes(tmp_path):
    assert OBJECTIVE.job({"collective": "barrier", "ranks": 2}, Context(tmp_path)).argv[-1] == "0"
    assert OBJECTIVE.job({"collective": "bcast", "ranks": 2}, Context(tmp_path)).argv[-1] == "8,1024"


def test_a_fast_wrong_answer_is_no_measurement():
    wrong = '{"wrong": {"collective": "bcast", "ranks": 2, "bytes": 8, "numbers": 1}}\n'
    with pytest.raises(InvalidResult, match=r"wrong result.*bcast") as caught:
        OBJECTIVE.measure(output(RESULT % 2 + wrong, code=3))
    assert caught.value.code == "mpi.wrong-answer"


def test_ranks_that_do_not_find_each_other_are_no_measurement():
    with pytest.raises(InvalidResult, match="2 ranks were started, and each found 1"):
        OBJECTIVE.measure(output(RESULT % 1))


def test_the_failure_is_told_in_the_words_of_mpi():
    frame = "-" * 60
    stderr = f"{frame}\nSome hint.\n{frame}\n[node:1] *** An error occurred in MPI_Bcast\n"
    with pytest.raises(ApplicationError, match="An error occurred in MPI_Bcast"):
        OBJECTIVE.measure(output("", stderr, code=16))
