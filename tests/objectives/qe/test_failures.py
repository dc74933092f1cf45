import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from launchers import EndReason, JobState
from objectives.base import ApplicationError, FailureKind, InfrastructureError, Output
from objectives.ending import check_ending
from objectives.qe.failures import find_failure, program_errors
from objectives.qe.output import parse

APPLICATION = FailureKind.APPLICATION_ERROR
MEMORY = FailureKind.OUT_OF_MEMORY
INFRASTRUCTURE = FailureKind.INFRASTRUCTURE_ERROR

# recorded ending, exit code of mpirun, kind, code, words of the program
ENDINGS = [
    ("not-converged", 2, FailureKind.INVALID_RESULT, "qe.not-converged", "NOT achieved after   2 iterations"),
    ("not-converged", 0, FailureKind.INVALID_RESULT, "qe.not-converged", "NOT achieved after   2 iterations"),
    ("idle-pools", 2, FailureKind.INVALID_RESULT, "qe.not-converged", "NOT achieved"),
    ("max-seconds", 2, FailureKind.TIMED_OUT, "qe.max-seconds", "Maximum CPU time exceeded"),
    ("too-many-pools", 1, APPLICATION, "qe.too-many-pools", "invalid number of pools, out of range"),
    ("pools-not-dividing", 1, APPLICATION, "qe.pools-do-not-divide", "parent_nproc /= nproc_pool * npool"),
    ("too-many-band-groups", 1, APPLICATION, "qe.band-groups", "invalid number of band groups"),
    ("bad-namelist", 1, APPLICATION, "qe.bad-namelist", 'bad line in namelist &electrons: " mixxing_beta = 0.4"'),
    ("too-few-atoms", 1, APPLICATION, "qe.bad-card", "read_cards"),
    ("input-missing", 1, APPLICATION, "qe.input-missing", "opening input file"),
    ("pseudo-missing", 1, APPLICATION, "qe.pseudo-missing", "Ti.nosuch.UPF not found"),
    ("pseudo-unreadable", 1, APPLICATION, "qe.pseudo-unreadable", "not readable"),
    ("too-few-slots", 1, APPLICATION, "qe.too-few-slots", "not enough slots available"),
    ("root-refused", 1, INFRASTRUCTURE, "qe.root-refused", "attempt to run as root"),
    ("library-broken", 127, APPLICATION, "qe.library-missing", "liblapack.so.3: file too short"),
    ("mpi-component", 1, APPLICATION, "qe.mpi-component", "pml framework"),
    ("out-of-memory", 1, MEMORY, "qe.out-of-memory", "Error allocating 55204272 bytes: Cannot allocate memory"),
    ("out-of-memory-crash", 139, MEMORY, "qe.out-of-memory", "Error allocating 6808 bytes"),
    ("out-of-memory-ranks", 1, MEMORY, "qe.out-of-memory", "Error allocating"),
    ("disk-full", 1, INFRASTRUCTURE, "qe.file-not-written", "error writing file"),
    ("signal-9", 137, INFRASTRUCTURE, "qe.killed", "SIGKILL"),
    ("signal-15", 143, INFRASTRUCTURE, "qe.killed", "SIGTERM"),
    ("signal-11", 139, APPLICATION, "qe.signal.sigsegv", "SIGSEGV"),
]


def failure(output: Output):
    return find_failure(output, parse(output.stdout))


@pytest.mark.parametrize(("name", "exit_code", "kind", "code", "words"), ENDINGS)
def test_recorded_endings(ending, name, exit_code, *, kind, code, words):
    found = failure(ending(name, exit_code))
    assert found is not None
    assert (found.kind, found.code) == (kind, code)
    assert " ".join(words.split()) in " ".join(str(found).split())


@pytest.mark.parametrize(
    "name", ["converged-np1", "converged-np2", "converged-npool2", "converged-np4-ndiag4", "converged-np4-nbgrp2-ntg2"]
)
def test_a_run_that_converged_is_no_failure(ending, name):
    assert failure(ending(name)) is None


def test_a_relaxation_that_made_all_the_steps_that_it_was_given_is_no_failure(ending):
    output = ending("converged-np2", 3)
    said = replace(output, stdout=f"{output.stdout}\n     The maximum number of steps has been reached.\n")
    assert failure(said) is None
    assert failure(output).code == "qe.exit-code"


@pytest.mark.parametrize(
    ("sign", "kind"),
    [
        ("Maximum CPU time exceeded", FailureKind.TIMED_OUT),
        ("Signal Received, stopping ...", INFRASTRUCTURE),
        ("Calculation (EXX) stopped after iteration # 3", FailureKind.INVALID_RESULT),
    ],
)
@pytest.mark.parametrize("exit_code", [0, None])
def test_what_was_stopped_after_an_earlier_step_had_converged_is_not_whole(ending, exit_code, sign, kind):
    output = ending("converged-np2", exit_code)
    assert failure(replace(output, stdout=f"{output.stdout}\n     {sign}\n")).kind is kind


def test_warnings_of_mpi_beside_a_whole_run_are_no_failure(ending):
    output = ending("converged-np2")
    warned = Output(
        output.stdout, "A process requested binding; out of memory is not near\n", output.status, output.folder
    )
    assert failure(warned) is None


def test_the_launcher_knows_of_the_time_limit(ending):
    found = failure(ending("signal-9", -9, reason=EndReason.TIMED_OUT))
    assert (found.kind, found.code) == (FailureKind.TIMED_OUT, "qe.timed-out")


def test_the_launcher_knows_of_output_without_end(ending):
    found = failure(ending("signal-15", -15, reason=EndReason.OUTPUT_LIMIT))
    assert (found.kind, found.code) == (APPLICATION, "qe.output-limit")


def test_the_launcher_knows_of_a_full_disk(ending):
    found = failure(ending("signal-15", 2, message="the disk is full"))
    assert (found.kind, found.code) == (INFRASTRUCTURE, "qe.disk-full")


def test_the_launcher_knows_of_the_kernels_kills(ending):
    words = "the kernel killed processes on this machine for lack of memory during the run"
    found = failure(ending("signal-9", 137, message=words))
    assert (found.kind, found.code, str(found)) == (MEMORY, "qe.out-of-memory", words)


def test_a_lost_job_is_not_the_configurations_fault(ending):
    assert failure(ending("signal-9", None, state=JobState.LOST)).code == "qe.lost"


def test_mpi_itself_killed_is_not_the_configurations_fault(ending):
    output = ending("signal-15", -9)
    assert failure(Output(output.stdout, "", output.status, output.folder)).kind is INFRASTRUCTURE


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("mpirun noticed that process rank 0 with PID 7 on node a exited on signal 6 (Aborted).", "sigabrt"),
        ("=   EXIT STRING: Floating point exception (signal 8)", "sigfpe"),
        ("=   KILLED BY SIGNAL: 11 (Segmentation fault)", "sigsegv"),
    ],
)
def test_signals_in_the_words_of_each_mpi(ending, said, number):
    output = ending("signal-9", 1)
    assert failure(Output(output.stdout, said, output.status, output.folder)).code == f"qe.signal.{number}"


@pytest.mark.parametrize(
    ("said", "kind", "code"),
    [
        ("Fortran runtime error: No space left on device", INFRASTRUCTURE, "qe.disk-full"),
        ("terminate called after throwing an instance of 'std::bad_alloc'", MEMORY, "qe.out-of-memory"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0", MEMORY, "qe.out-of-memory"),
        ("pw.x: error while loading shared libraries: libmkl.so: cannot open", APPLICATION, "qe.library-missing"),
        ("MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD", APPLICATION, "qe.mpi-abort"),
        ("something never seen", APPLICATION, "qe.incomplete"),
    ],
)
def test_what_was_said_on_stderr(ending, said, kind, code):
    output = ending("signal-9", 1)
    found = failure(Output(output.stdout, said, output.status, output.folder))
    assert (found.kind, found.code) == (kind, code)
    assert said in str(found) or kind is MEMORY


def test_nothing_at_all(ending):
    output = ending("signal-9", 1)
    assert failure(Output("", "", output.status, output.folder)).code == "qe.no-output"


def test_an_unknown_routine_has_a_code_of_its_own(ending):
    text = (
        " %%%%%%%%%%%%%%\n     Error in routine  cdiaghg (117):\n      S matrix not positive definite\n %%%%%%%%%%%%%%"
    )
    (error,) = program_errors(text)
    assert (error.routine, error.code, error.message) == ("cdiaghg", 117, "S matrix not positive definite")
    output = ending("signal-9", 1)
    unknown = text.replace("cdiaghg", "New Routine").replace("S matrix not positive definite", "never seen")
    assert failure(Output(unknown, "", output.status, output.folder)).code == "qe.error.new_routine"


def test_interleaved_ranks_count_once(ending):
    (error,) = program_errors(ending("pools-not-dividing", 1).stdout)
    assert str(error) == (
        "Error in routine mp_start_pools (1): invalid number of pools, parent_nproc /= nproc_pool * npool"
    )


@given(name=st.sampled_from([row[0] for row in ENDINGS]), chance=st.randoms(use_true_random=False))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_mutilated_endings_are_still_failures(ending, name, chance: random.Random):
    output = ending(name, 1)
    cut = chance.randrange(len(output.stdout) + 1)
    stderr = output.stderr[: chance.randrange(len(output.stderr) + 1)]
    found = failure(Output(output.stdout[:cut], stderr, output.status, output.folder))
    assert found is not None
    assert found.code.startswith("qe.")
    assert str(found)


@pytest.mark.parametrize("exit_code", [-7, 135])
def test_memory_that_is_mapped_from_a_full_place_is_not_the_configurations_fault(ending, exit_code):
    def killed(message):
        output = ending("signal-15", exit_code, message=message)
        return Output(output.stdout, "", output.status, output.folder)

    full = killed("no room is left in /dev/shm")
    assert (failure(full).kind, failure(full).code) == (INFRASTRUCTURE, "qe.disk-full")
    assert failure(killed("")).kind is APPLICATION
    with pytest.raises(InfrastructureError, match="no room is left in /dev/shm"):
        check_ending(full)
    if exit_code < 0:
        with pytest.raises(ApplicationError):
            check_ending(killed(""))
