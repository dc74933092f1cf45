"""Commands that prepare a job: they run in order, once, and do not affect how the job ends."""

import json
import shlex
import signal
import sys
from pathlib import Path

import pytest

from autotune.batch.job_script import JobScript, job_script
from autotune.execution.task import describe_job
from launchers import STDERR, STDOUT, EndReason, Job, MpiStart, Resources, Usage
from launchers.detect import detect
from launchers.local import LocalLauncher
from launchers.mpi import MpiFlavour
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.run import run
from launchers.steps import STEPS_FILE, read_steps
from tests.launchers.jobs import python, wait_for, wait_for_end
from tests.support.descriptors import none_left
from tests.support.processes import left_in

SAY = "import sys; print(sys.argv[1])"


def say(word: str) -> tuple[str, ...]:
    return (*python(SAY), word)


def test_steps_run_in_order_before_the_command_and_its_output_is_its_own(tmp_path):
    steps = (python("open('made', 'w').write('1')"), python("print(open('made').read())"))
    status = run(LocalLauncher(), Job(say("ready"), tmp_path, prepare=steps))
    assert status.exit_code == 0
    assert (tmp_path / STDOUT).read_text() == "ready\n"
    assert (tmp_path / STDERR).read_text() == "1\n"
    elapsed_s, failed = read_steps(tmp_path)
    assert not failed
    assert 0.0 < elapsed_s < status.usage.elapsed_s


def test_step_that_fails_ends_the_job_as_it_ended(tmp_path):
    steps = (say("one"), python("import sys; sys.exit(7)"), python("open('never', 'w')"))
    status = run(LocalLauncher(), Job(python("open('never', 'w')"), tmp_path, prepare=steps))
    assert status.exit_code == 7
    assert read_steps(tmp_path)[1] == sys.executable
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_step_that_is_killed_ends_the_job_by_that_signal(tmp_path, number):
    code = f"import os; os.kill(os.getpid(), {int(number)})"
    status = run(LocalLauncher(), Job(say("never"), tmp_path, prepare=(python(code),)))
    assert status.exit_code == -number


def test_missing_step_is_reported(tmp_path):
    status = run(LocalLauncher(), Job(say("never"), tmp_path, prepare=(("no-such-compiler", "x.c"),)))
    assert status.exit_code == 127
    assert "no-such-compiler: No such file" in (tmp_path / STDERR).read_text()


def test_program_missing_after_the_steps_is_reported(tmp_path):
    status = run(LocalLauncher(), Job(("./program",), tmp_path, prepare=(say("one"),)))
    assert status.exit_code == 127
    assert "./program: No such file" in (tmp_path / STDERR).read_text()


def test_program_that_the_steps_make_is_run_with_its_signals(tmp_path):
    script = "#!/bin/sh\nkill -TERM $$\n"
    make = python(f"import os; open('program', 'w').write({script!r}); os.chmod('program', 0o755)")
    status = run(LocalLauncher(), Job(("./program",), tmp_path, prepare=(make,)))
    assert (status.reason, status.exit_code) == (EndReason.EXITED, -signal.SIGTERM)


def test_job_can_be_cancelled_in_a_step(tmp_path):
    launcher = LocalLauncher(grace_s=1.0)
    wait = python("import time; open('here', 'w'); time.sleep(1000)")
    job_id = launcher.submit(Job(say("never"), tmp_path, prepare=(wait,)))
    wait_for((tmp_path / "here").exists)
    launcher.cancel(job_id)
    assert wait_for_end(launcher, job_id).reason is EndReason.CANCELLED
    assert left_in(tmp_path) == []
    assert (tmp_path / STDOUT).read_text() == ""


@pytest.mark.parametrize("text", ["", "[]", "{", '{"failed": "x"}', '{"elapsed_s": null, "failed": 1}'])
def test_malformed_record_of_steps_is_ignored(tmp_path, text):
    assert read_steps(tmp_path) == (0.0, "")
    (tmp_path / STEPS_FILE).write_text(text)
    assert read_steps(tmp_path) == (0.0, "")


def test_unreadable_record_of_steps_raises(tmp_path):
    (tmp_path / STEPS_FILE).write_text('{"elapsed_s": 5.0, "failed": null}')
    with none_left(), pytest.raises(OSError, match="Too many open files"):
        read_steps(tmp_path)


def test_preview_lists_steps_separately(tmp_path):
    job = Job(("./a b", "1"), Path("/run"), {"X": "1"}, prepare=(("gcc", "-o", "a b", "a.c"),))
    assert LocalLauncher().preview(job) == (
        "cd /run && env OMP_NUM_THREADS=1 X=1 gcc -o 'a b' a.c && env OMP_NUM_THREADS=1 X=1 './a b' 1"
    )


def test_job_script_runs_steps_once_and_creates_folders(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.c").write_text("int main(void) { return 0; }\n")
    job = Job(("./a",), tmp_path, mpi=MpiStart(2), resources=Resources(2), prepare=(("gcc", "-o", "a", "in/a.c"),))
    text = job_script("sh", JobScript("mine", {}, describe_job(job), Usage(1.0), MpiFlavour(OPEN_MPI)))
    lines = text.splitlines()
    assert lines.index("mkdir -p in") < lines.index("cat > in/a.c <<'END_OF_INPUT'") < lines.index("gcc -o a in/a.c")
    assert shlex.split(lines[-1])[0] == "mpirun"
    assert lines[-1].endswith(" ./a")
    assert json.loads(json.dumps(describe_job(job)))["files"] == {"in/a.c": "int main(void) { return 0; }\n"}


def test_job_script_copies_the_files_that_the_run_had_copies_of(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "topol.tpr").write_bytes(b"\0\xff")
    (tmp_path / "deep" / "data.al").write_text("1 atoms")
    copies = (("topol.tpr", "/home/me/my topol.tpr"), ("deep/data.al", "/home/me/deep/data.al"))
    described = json.loads(json.dumps(describe_job(Job(("./a",), tmp_path, copies=copies))))
    assert described["files"] == {}
    lines = job_script("sh", JobScript("mine", {}, described, Usage(1.0), MpiFlavour(OPEN_MPI))).splitlines()
    assert "cp '/home/me/my topol.tpr' topol.tpr" in lines
    assert lines.index("mkdir -p deep") < lines.index("cp /home/me/deep/data.al deep/data.al") < lines.index("./a")


@pytest.mark.slow
@pytest.mark.skipif(detect() is None, reason="this machine has no mpirun, mpiexec or srun")
def test_steps_run_once_however_many_ranks_there_are(tmp_path):
    steps = (python("open('log', 'a').write('step ')"),)
    job = Job(("sh", "-c", "cat log"), tmp_path, mpi=MpiStart(2), resources=Resources(cores=2), prepare=steps)
    assert run(LocalLauncher(detect()), job).exit_code == 0, (tmp_path / STDERR).read_text()
    assert (tmp_path / STDOUT).read_text() == "step step "
    assert (tmp_path / "log").read_text() == "step "
