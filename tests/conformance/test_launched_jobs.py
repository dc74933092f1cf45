"""Jobs of every launcher: environment, input, signals, cores, reported usage, and refusals."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from launchers import STDOUT, EndReason, Job, JobState, LaunchError, Resources
from launchers.cpus import parse_cpu_list
from launchers.run import run
from tests.launchers.jobs import STUBBORN, in_folders, python, run_all, wait_for, wait_for_output
from tests.support.processes import left_in


def test_nothing_of_the_callers_environment_leaks(launcher, folder, monkeypatch):
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "SECRET", "SLURM_JWT", "OMPI_COMM_WORLD_RANK", "RAY_JOB_ID"):
        monkeypatch.setenv(name, "leaked")
    run(launcher, Job(("env",), folder, environment={"GIVEN": "a b\nc"}))
    output = (folder / STDOUT).read_text()
    assert "leaked" not in output
    assert "OMP_NUM_THREADS=1\n" in output
    assert "GIVEN=a b\nc\n" in output


def test_the_jobs_own_environment_wins(kind, launcher, folder, monkeypatch):
    monkeypatch.setenv("UCX_TLS", "tcp")
    monkeypatch.setenv("HOME", "/nowhere")
    run(
        launcher,
        Job(("sh", "-c", "echo $OMP_NUM_THREADS $UCX_TLS $HOME"), folder, environment={"OMP_NUM_THREADS": "4"}),
    )
    # Transports of this machine may not exist on the nodes.
    transport = "tcp " if kind.is_local else ""
    assert (folder / STDOUT).read_text() == f"4 {transport}/nowhere\n"


def test_a_job_has_no_input_and_no_terminal(launcher, folder):
    code = "import os, sys; print(sys.stdin.read() == '', os.getsid(0) == os.getpid())"
    run(launcher, Job(python(code), folder))
    assert (folder / STDOUT).read_text() == "True True\n"


def test_signals_are_not_inherited(launcher, folder):
    run(launcher, Job(("grep", "-E", "SigIgn|SigBlk", "/proc/self/status"), folder))
    # posix_spawn(3) leaves the two signals of the C library ignored, which no program can set.
    own = 0b11 << 31
    assert [int(line.split()[1], 16) & ~own for line in (folder / STDOUT).read_text().splitlines()] == [0, 0]


@pytest.mark.parametrize("cpu", sorted(os.sched_getaffinity(0))[-2:])
def test_a_job_keeps_to_its_cores(kind, launcher, folder, cpu):
    if not kind.is_local:
        pytest.skip("which cores a job has is the scheduler's business")
    code = "import os, subprocess, sys; print(os.sched_getaffinity(0)); "
    code += "sys.stdout.flush(); subprocess.run(['grep', 'Cpus_allowed_list', '/proc/self/status'], check=True)"
    run(launcher, Job(python(code), folder, resources=Resources(cpus=(cpu,))))
    assert (folder / STDOUT).read_text() == f"{{{cpu}}}\nCpus_allowed_list:\t{cpu}\n"


def test_a_job_reports_its_node_and_cores(launcher, folder):
    code = "import os; print(os.uname().nodename, os.cpu_count(), sorted(os.sched_getaffinity(0)))"
    affinity = run(launcher, Job(python(code), folder)).affinity
    assert affinity is not None
    found = f"{affinity.node} {affinity.node_cpus} {sorted(parse_cpu_list(affinity.cpus))}\n"
    assert (folder / STDOUT).read_text() == found


def test_cpu_time_includes_all_descendants(launcher, folder):
    burn = "import time\nwhile time.process_time() < 0.4: pass\n"
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', {burn!r}], check=True)\n{burn}"
    usage = run(launcher, Job(python(code), folder)).usage
    assert 0.8 <= usage.cpu_s < 3.0
    assert usage.elapsed_s >= usage.cpu_s / len(os.sched_getaffinity(0)) - 0.05


@pytest.mark.slow
def test_memory_includes_all_descendants(launcher, folder):
    hold = "import time; block = bytearray(b'x') * (80 * 2**20); print('ready', flush=True); time.sleep(1.5)"
    start = f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-S', '-c', {hold!r}])"
    code = f"{start}\n{hold}; child.wait()"
    peak = run(launcher, Job(python(code), folder)).usage.peak_memory_bytes
    assert 160 * 2**20 <= peak <= 200 * 2**20


NO_PROGRAMS = {
    "no-such-program": "no-such-program was not found",
    "./missing": "there is no program",
    "./data": "is not executable",
    "./nonsense": "not a program for this machine",
}


def test_a_program_that_cannot_start_is_reported(kind, launcher, folder):
    places = in_folders(folder, map(str, range(len(NO_PROGRAMS))))
    for place in places:
        (place / "data").write_text("no program")
        (place / "nonsense").write_bytes(b"\1\2\3")
        (place / "nonsense").chmod(0o755)
    jobs = [Job((program,), place) for program, place in zip(NO_PROGRAMS, places, strict=True)]
    if kind.is_local:
        for job, says in zip(jobs, NO_PROGRAMS.values(), strict=True):
            with pytest.raises(LaunchError, match=says):
                launcher.submit(job)
    else:
        for status, says in zip(run_all(launcher, jobs), NO_PROGRAMS.values(), strict=True):
            assert (status.state, status.reason) == (JobState.ENDED, EndReason.NOT_STARTED)
            assert says in status.message


@pytest.mark.parametrize(("argv", "says"), [((), "has no command"), (("echo", "zero\0byte"), "zero byte")])
def test_an_invalid_command_is_refused(launcher, folder, argv, says):
    with pytest.raises(LaunchError, match=says):
        launcher.submit(Job(argv, folder))


def test_a_folder_that_is_not_there_is_said(launcher, folder):
    with pytest.raises(LaunchError, match="does not exist"):
        launcher.submit(Job(("true",), folder / "missing"))


def test_a_program_is_found_on_the_jobs_own_path(launcher, folder):
    (folder / "bin").mkdir()
    (folder / "bin" / "mine").write_text("#!/bin/sh\necho mine\n")
    (folder / "bin" / "mine").chmod(0o755)
    run(launcher, Job(("mine",), folder, environment={"PATH": f"{folder}/bin"}))
    assert (folder / STDOUT).read_text() == "mine\n"


def test_a_folder_may_be_used_again(launcher, folder):
    assert run(launcher, Job(("sh", "-c", "echo a long line; exit 1"), folder)).exit_code == 1
    assert run(launcher, Job(("sh", "-c", "echo b"), folder)).exit_code == 0
    assert (folder / STDOUT).read_text() == "b\n"


def test_the_end_of_the_launching_process(kind, make, folder):
    own = (
        "LocalLauncher()" if kind.is_local else f"BatchLauncher(BATCH_SYSTEMS[{kind.scheduler!r}].scheduler, Site(''))"
    )
    code = (
        "import sys, time; from pathlib import Path; from launchers import Job\n"
        "from launchers.batch import BatchLauncher; from launchers.local import LocalLauncher\n"
        "from launchers.batch_systems.registry import BATCH_SYSTEMS; from launchers.site import Site\n"
        f"print({own}.submit(Job({python(STUBBORN % 1000)!r}, Path(sys.argv[1]))), flush=True)\n"
        "time.sleep(1000)"
    )
    argv = [sys.executable, "-c", code, folder]
    with subprocess.Popen(argv, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as process:
        job_id = process.stdout.readline().strip()
        wait_for_output(Job((), folder))
        assert left_in(folder)
        process.kill()
    if not kind.is_local:
        assert make().poll([job_id])[job_id].state is JobState.RUNNING
        make().cancel(job_id)
    wait_for(lambda: not left_in(folder))
