"""Who is to blame for a failed run: the same for a command, a benchmark of ours and pw.x."""

from dataclasses import replace
from pathlib import Path

import pytest

from launchers import EndReason, Job, JobState, JobStatus, MpiStart, Resources
from launchers.batch.job_ends import with_scheduler_reason
from launchers.batch_systems.registry import BATCH_SYSTEMS
from objectives.base import ApplicationError, InfrastructureError, OutOfMemory, Output, RunFailure
from objectives.command import CommandObjective, CommandOptions
from objectives.ending import check_ending
from objectives.qe.failures import find_failure
from objectives.qe.output import parse
from objectives.system_failures import without_start_command

START = "     Program PWSCF v.7.2 starts on 1Jan2024 at  1: 1: 1\n"
RULER = " " + "%" * 60 + "\n"


def ended(stderr, exit_code, stdout="", message=""):
    status = JobStatus(JobState.ENDED, EndReason.EXITED, exit_code=exit_code, message=message)
    return Output(stdout, stderr, status, Path("/nowhere"))


def failure_of_command(output):
    with pytest.raises(RunFailure) as caught:
        CommandObjective(CommandOptions(argv=["solve"])).measure(output)
    return caught.value


CASES = [
    ("ORTE has lost communication with a remote daemon.\n", 205, InfrastructureError, "node-lost"),
    ("An ORTE daemon has unexpectedly failed after launch and before\n", 1, InfrastructureError, "node-lost"),
    ("ORTE was unable to reliably start one or more daemons.\n", 213, InfrastructureError, "node-lost"),
    ("PRTE has lost communication\nwith a remote daemon.\n", 1, InfrastructureError, "node-lost"),
    ("ssh: connect to host n7 port 22: Connection timed out\n", 1, InfrastructureError, "node-lost"),
    ("srun: error: *** STEP 1.0 ON n7 CANCELLED AT 0 DUE TO NODE\nFAILURE ***\n", 1, InfrastructureError, "node-lost"),
    ("forrtl: Stale file handle\n", 29, InfrastructureError, "file-server"),
    ("cp: cannot stat 'x': Stale NFS file handle\n", 1, InfrastructureError, "file-server"),
    ("write: Input/output error\n", 1, InfrastructureError, "file-server"),
    ("Cannot send after transport endpoint\nshutdown\n", 1, InfrastructureError, "file-server"),
    ("CUDA error: uncorrectable ECC error encountered\n", 1, InfrastructureError, "device-lost"),
    ("mpirun noticed that process rank 0 exited on signal 9 (Killed).\n", 137, InfrastructureError, "killed"),
    ("", 137, InfrastructureError, "killed"),
    ("", 143, InfrastructureError, "killed"),
    (
        "A request was made to bind to that would result in binding more\nprocesses than cpus on a resource:\n",
        1,
        ApplicationError,
        "binding",
    ),
    ("There are not enough slots\navailable in the system\n", 1, ApplicationError, "too-few-slots"),
    ("ssh: Could not resolve hostname n7: Name or service not known\n", 1, InfrastructureError, "node-lost"),
    ("ann@n7: Permission denied (publickey,password).\n", 1, InfrastructureError, "node-lost"),
    ("mpirun: it could not access\nor execute an executable:\n", 1, InfrastructureError, "not-found"),
    ("solve: error while loading shared libraries: liba.so: no\n", 127, ApplicationError, "library-missing"),
    ("Error allocating 6808 bytes\n", 1, OutOfMemory, "out-of-memory"),
]


@pytest.mark.parametrize(("stderr", "exit_code", "failure", "code"), CASES)
def test_the_words_say_who_is_to_blame_for_every_program(stderr, exit_code, failure, code):
    output = ended(stderr, exit_code)
    found = failure_of_command(output)
    assert (type(found), found.code) == (failure, code)
    of_pwx = find_failure(ended(stderr, exit_code, START), parse(START))
    assert (type(of_pwx), of_pwx.code) == (failure, f"qe.{code}")


@pytest.mark.parametrize(("nodes", "failure"), [(1, ApplicationError), (2, InfrastructureError)])
def test_too_few_slots_on_several_nodes_are_not_the_configurations_fault(nodes, failure):
    said = "There are not enough slots available in the system to satisfy the 4\nslots that were requested\n"
    job = Job(("solve",), Path("/nowhere"), mpi=MpiStart(4), resources=Resources(cores=4, nodes=nodes))
    found = failure_of_command(replace(ended(said, 1), job=job))
    assert (type(found), found.code) == (failure, "too-few-slots")
    of_pwx = find_failure(replace(ended(said, 1, START), job=job), parse(START))
    assert (type(of_pwx), of_pwx.code) == (failure, "qe.too-few-slots")


@pytest.mark.parametrize(
    ("stderr", "exit_code", "code", "words"),
    [
        ("rank 1 exited on signal 11 (Segmentation fault).\n", 139, "signal", "SIGSEGV"),
        ("", 139, "signal", "SIGSEGV"),
        # Not every exit code above 128 is a signal: the program chose these.
        ("last words\n", 130, "exit-code", "last words"),
        ("last words\n", 205, "exit-code", "last words"),
    ],
)
def test_a_program_that_ended_itself_is_to_blame(stderr, exit_code, code, words):
    found = failure_of_command(ended(stderr, exit_code))
    assert (type(found), found.code) == (ApplicationError, code)
    assert words in str(found)


@pytest.mark.parametrize(
    ("system", "answer"),
    [
        ("slurm", "7|OUT_OF_MEMORY|None\n"),
        ("pbs", "Job Id: 7.host\n    job_state = F\n    Exit_status = -27\n    substate = 93\n"),
        ("lsf", "7|EXIT|130|TERM_MEMLIMIT: job killed after reaching LSF memory usage limit|-\n"),
    ],
)
@pytest.mark.parametrize("reason", [EndReason.CANCELLED, EndReason.EXITED])
def test_a_job_that_its_batch_system_killed_for_memory_ran_out_of_memory(system, answer, reason):
    (report,) = BATCH_SYSTEMS[system].scheduler.states(answer, "", 0).values()
    status = with_scheduler_reason(JobStatus(JobState.ENDED, reason, exit_code=-15), report)
    assert (type(failure_of_command(replace(ended("", -15), status=status)))) is OutOfMemory
    of_pwx = find_failure(replace(ended("", -15, START), status=status), parse(START))
    assert (type(of_pwx), of_pwx.code) == (OutOfMemory, "qe.out-of-memory")


def test_words_of_a_run_that_ended_well_are_no_failure():
    check_ending(ended("Stale file handle, tried again; ORTE has lost communication with a remote daemon\n", 0))


@pytest.mark.parametrize(
    ("routine", "words", "failure", "code"),
    [
        ("davcio", 'error while reading from file "./out/x.wfc1"', ApplicationError, "file-not-read"),
        ("davcio", 'error while writing to file "./out/x.wfc1"', InfrastructureError, "file-not-written"),
        ("read_rhog", "error reading file charge-density.dat", ApplicationError, "file-not-read"),
        ("pw_readfile", "error opening xml data file", ApplicationError, "file-not-read"),
        ("diropn", "error opening ./out/x.wfc1", InfrastructureError, "file-not-written"),
    ],
)
def test_what_pwx_cannot_read_is_the_configurations_and_what_it_cannot_write_the_machines(
    routine, words, failure, code
):
    text = f"{START}{RULER}     Error in routine {routine} (10):\n     {words}\n{RULER}"
    found = find_failure(ended("", 1, text), parse(text))
    assert (type(found), found.code) == (failure, f"qe.{code}")


LINE = "-" * 74
OPEN_MPI = f"""\
{LINE}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{LINE}
{LINE}
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[1,1],0]
  Exit code:    1
{LINE}
"""
GROMACS = f"""\
Executable:   /usr/bin/gmx_mpi

{LINE}
Program:     gmx mdrun, version 2022.5-Debian_2022.5_2
Source file: src/gromacs/options/options.cpp (line 177)
MPI rank:    1 (out of 2)
"""
HYDRA = f"""\
{"=" * 83}
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 12 RUNNING AT n1
=   EXIT CODE: 1
{"=" * 83}
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Hangup
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"reading\nno such grid\n{OPEN_MPI}", "no such grid"),
        (f"no such grid\n{HYDRA}", "no such grid"),
        ("no such grid\nsrun: error: n1: task 0: Exited with exit code 1\n", "no such grid"),
        (
            f"{LINE}\nThe value of the MCA parameter\nplm is unknown.\n\n  Value: x\n{LINE}\n",
            "The value of the MCA parameter plm is unknown.",
        ),
        ("Traceback (most recent call last):\n  File x\nValueError: {\n}\n", "ValueError: {"),
        (
            "no such grid\n[n1:9] [[8,0],0] ORTE_ERROR_LOG: Out of resource in file ../orte/show_help.c at line 5\n",
            "no such grid",
        ),
        (
            (
                f"{GROMACS}\nError in user input:\nInvalid input values\n  In option s\n    the default file 'topol' "
                f"does not exist.\n\nFor more information, see\nwebsite at http://www.gromacs.org\n{LINE}\n"
            ),
            "Error in user input: Invalid input values In option s the default file 'topol' does not exist.",
        ),
        (f"{LINE}\nNode: n1\nUser: me\n{LINE}\n", "Node: n1 User: me"),
        (OPEN_MPI, "Primary job terminated normally, but 1 process returned"),
        (f"{LINE}\n\n", "no output"),
        ("", "no output"),
    ],
)
def test_the_message_of_a_failed_program_is_a_line_that_means_something(text, words):
    assert str(failure_of_command(ended(text, 3))) == f"ended with exit code 3: {words}"


def test_the_end_of_an_output_is_shown_without_what_start_commands_say_of_any_failure():
    own = f"reading\n{LINE}\nno such grid\n{LINE}"
    abort = f"{LINE}\nMPI_ABORT was invoked on rank 0\nwith errorcode 1.\n\nNOTE: all are killed.\n{LINE}"
    count = "[n1:9] 1 more process has sent help message help-mpi-api.txt / mpi-abort"
    assert without_start_command(f"{own}\n{abort}\n{count}\n{OPEN_MPI}") == own
    assert without_start_command(f"{own}\n") == own
    assert without_start_command(OPEN_MPI) == OPEN_MPI.rstrip()
