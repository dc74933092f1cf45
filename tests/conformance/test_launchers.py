"""Behaviour that users expect from every launcher.

Batch systems are stand-ins, which run their jobs for real, and a real Slurm and Grid Engine where they can be started.
"""

import json
import shlex
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from launchers import STDERR, STDOUT, EndReason, Job, JobState, LineReader, Resources, Server
from launchers.run import run
from launchers.status import read_status
from tests.launchers.jobs import STUBBORN, in_folders, python, run_all, wait_for_end, wait_for_output
from tests.support.processes import left_in


def test_the_exit_code_is_reported(launcher, folder):
    codes = (0, 3, 255)
    places = in_folders(folder, map(str, codes))
    ended = run_all(launcher, [Job(("sh", "-c", f"exit {place.name}"), place) for place in places])
    assert [(status.state, status.reason) for status in ended] == [(JobState.ENDED, EndReason.EXITED)] * 3
    assert tuple(status.exit_code for status in ended) == codes
    assert dict(launcher.poll([])) == {}


def test_a_signal_is_reported_as_a_negative_exit_code(launcher, folder):
    status = run(launcher, Job(("sh", "-c", "kill -SEGV $$"), folder))
    assert (status.reason, status.exit_code) == (EndReason.EXITED, -signal.SIGSEGV)


def test_both_outputs_are_kept(launcher, folder):
    run(launcher, Job(("sh", "-c", "echo out; echo err >&2"), folder))
    assert (folder / STDOUT).read_text() == "out\n"
    assert (folder / STDERR).read_text() == "err\n"


def test_preparation_runs_before_the_job(launcher, folder):
    assert run(launcher, Job(("rm", "made"), folder, prepare=(("touch", "made"),))).exit_code == 0


def test_a_server_runs_beside_the_job_and_beside_a_part(launcher, folder):
    server = Server(python("import time; print('here', flush=True); time.sleep(1000)"), ready=("line", "^here$"))
    load = Job(("sh", "-c", "grep -x here server.log; exit 3"), folder, server=server)
    assert run(launcher, load).exit_code == 3
    assert (folder / STDOUT).read_text() == "here\n"
    job = parts(folder, first="grep -x here server.log", second="true")
    assert run(launcher, replace(job, parts=(replace(job.parts[0], server=server), job.parts[1]))).exit_code == 0
    assert left_in(folder) == []


def test_a_job_with_gpus_is_taken_and_sees_their_numbers_by_the_bus(launcher, kind, folder):
    if kind.is_real:
        pytest.skip("this one has no GPUs")
    job = Job(("sh", "-c", "echo $CUDA_DEVICE_ORDER"), folder, resources=Resources(gpus=2))
    assert run(launcher, job).exit_code == 0
    assert (folder / STDOUT).read_text() == "PCI_BUS_ID\n"


def parts(folder: Path, **commands: str) -> Job:
    places = in_folders(folder, commands)
    made = zip(commands.items(), places, strict=True)
    return Job((), folder, parts=tuple(Job(("sh", "-c", text), place, name=name) for (name, text), place in made))


def test_parts_run_one_after_the_other_each_as_a_job_of_its_own(launcher, folder):
    job = parts(folder, first="echo $NAME >&2; touch made", second="echo here; test -e ../first/made", third="true")
    one, two, three = job.parts
    one = replace(one, environment={"NAME": "of the first"}, prepare=(("touch", "prepared"),))
    lines: list[str] = []
    status = run(launcher, replace(job, parts=(one, two, three)), lines.extend)
    assert (status.reason, status.exit_code) == (EndReason.EXITED, 0)
    assert [json.loads(line)["name"] for line in lines] == ["first", "second", "third"]
    assert (one.folder / STDERR).read_text() == "of the first\n"
    assert (one.folder / "prepared").exists()
    assert (two.folder / STDOUT).read_text() == "here\n"
    assert [read_status(part.folder).exit_code for part in job.parts] == [0, 0, 0]


@pytest.mark.parametrize(("text", "code"), [("exit 3", 3), ("kill -SEGV $$", 128 + signal.SIGSEGV)])
def test_a_part_that_fails_is_the_last(launcher, folder, text, code):
    job = parts(folder, first="true", second=text, third="touch never")
    lines: list[str] = []
    assert run(launcher, job, lines.extend).exit_code == code
    assert len(lines) == 1
    assert read_status(job.parts[2].folder) is None


def test_parts_continue_after_a_time_limit_but_not_after_a_loss(launcher, folder):
    job = parts(folder, first="sleep 1000", second="sleep 1000", third="touch never")
    own, lost, third = job.parts
    own, lost = replace(own, time_limit_s=0.2, lost_after_s=500.0), replace(lost, time_limit_s=500.0, lost_after_s=0.2)
    status = run(launcher, replace(job, parts=(own, lost, third)))
    assert (status.reason, status.exit_code) == (EndReason.EXITED, 0)
    assert [read_status(part.folder).reason for part in (own, lost)] == [EndReason.TIMED_OUT] * 2
    assert read_status(third.folder) is None


def test_cancelling_ends_the_running_part_and_skips_the_others(launcher, folder):
    job = parts(folder, first=f"exec {shlex.join(python(STUBBORN % 1000))}", second="touch never")
    job_id = launcher.submit(job)
    wait_for_output(job.parts[0])
    launcher.cancel(job_id)
    assert wait_for_end(launcher, job_id).reason is EndReason.CANCELLED
    assert left_in(folder) == []
    assert not (job.parts[1].folder / "never").exists()


def test_a_job_without_output_has_empty_files(launcher, folder):
    run(launcher, Job(("true",), folder))
    assert (folder / STDOUT).read_bytes() == (folder / STDERR).read_bytes() == b""


def test_output_is_kept_byte_by_byte(launcher, folder):
    lines: list[str] = []
    run(launcher, Job(("printf", r"\377\376 ok\r\n\n\303\274 no end"), folder), lines.extend)
    assert (folder / STDOUT).read_bytes() == b"\xff\xfe ok\r\n\n\xc3\xbc no end"
    assert lines == ["�� ok", "", "ü no end"]


def test_much_output_is_kept(launcher, folder):
    size = 50 * 2**20
    status = run(launcher, Job(("head", "-c", str(size), "/dev/zero"), folder))
    assert status.exit_code == 0
    assert (folder / STDOUT).stat().st_size == size


def test_lines_come_while_the_job_runs(launcher, folder):
    seen: list[str] = []

    def on_lines(lines: Sequence[str]) -> None:
        seen.extend(lines)
        for line in lines:
            (folder / f"go-{line}").touch()  # the job waits for this file, so it would never end if lines were buffered

    code = "for i in 1 2 3; do echo $i; until [ -e go-$i ]; do sleep 0.01; done; done"
    status = run(launcher, Job(("sh", "-c", code), folder), on_lines)
    assert status.exit_code == 0
    assert seen == ["1", "2", "3"]


def test_a_reader_of_lines_may_stop_the_job(launcher, folder):
    seen: list[str] = []

    def on_lines(lines: Sequence[str]) -> bool:
        seen.extend(lines)
        return "2" in lines

    code = "seq 2; until [ -e go ]; do sleep 0.01; done; seq 3 4; sleep 1000"
    status = run(launcher, Job(("sh", "-c", code), folder), on_lines)
    assert status.reason is EndReason.CANCELLED
    assert seen == ["1", "2"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_of_the_reader_ends_the_job(launcher, folder, error):
    def on_lines(lines: Sequence[str]) -> None:
        raise error(lines[0])

    with pytest.raises(error, match="ready"):
        run(launcher, Job(python(STUBBORN % 1000), folder), on_lines)
    assert left_in(folder) == []


def test_arguments_reach_the_program_unchanged(launcher, folder):
    words = ("a b", "'q' \"q\"", "new\nline", "ü€", "", "*", "$HOME", "-x", "back\\slash")
    run(launcher, Job(("printf", "%s|", *words), folder))
    assert (folder / STDOUT).read_text() == "|".join(words) + "|"


def test_folders_may_have_any_name(launcher, folder):
    names = ["with blanks", 'it\'s "quoted"', "new\nline", "ümlaut:and:colons", "$HOME; exit 1", "-n", "100%j"]
    names.append("back\\slash")
    places = in_folders(folder, names)
    ended = run_all(launcher, [Job(("sh", "-c", "echo here > file; pwd"), place) for place in places])
    assert dict(zip(names, (status.exit_code for status in ended), strict=True)) == dict.fromkeys(names, 0)
    assert [place.name for place in places if (place / "file").read_text() != "here\n"] == []


def test_a_job_that_uses_more_memory_than_its_limit_is_stopped(launcher, folder):
    greedy = "import time; held = bytearray(200 * 2**20); time.sleep(1000)"
    status = run(launcher, Job(python(greedy), folder, memory_limit_bytes=100 * 2**20))
    assert status.reason is EndReason.MEMORY_LIMIT
    assert "more than its limit" in status.message
    assert status.usage.peak_memory_bytes > 100 * 2**20


def test_the_time_limit_ends_the_whole_tree(launcher, folder):
    status = run(launcher, Job(python(STUBBORN % 1000), folder, time_limit_s=0.5))
    assert status.reason is EndReason.TIMED_OUT
    assert "0.5 s" in status.message
    assert left_in(folder) == []


def test_a_job_that_ends_leaves_no_process(launcher, folder):
    status = run(launcher, Job(python(STUBBORN % 0.5), folder))
    assert (status.reason, status.exit_code) == (EndReason.EXITED, 0)
    assert left_in(folder) == []


def test_cancelling_kills_detached_processes_that_ignore_signals(launcher, folder):
    job = Job(python(STUBBORN % 1000), folder)
    job_id = launcher.submit(job)
    wait_for_output(job)
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    launcher.cancel(job_id)
    assert left_in(folder) == []
    status = launcher.poll([job_id])[job_id]
    assert (status.state, status.reason) == (JobState.ENDED, EndReason.CANCELLED)


def test_a_cancelled_job_may_end_well(launcher, folder):
    code = "trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.01; done"
    job = Job(("sh", "-c", code), folder)
    job_id = launcher.submit(job)
    wait_for_output(job)
    launcher.cancel(job_id)
    status = launcher.poll([job_id])[job_id]
    assert (status.reason, status.exit_code) == (EndReason.CANCELLED, 7)
    assert "saved" in (folder / STDOUT).read_text()


def test_cancelling_a_job_that_ended_changes_nothing(launcher, folder):
    job_id = launcher.submit(Job(("sh", "-c", "exit 3"), folder))
    before = wait_for_end(launcher, job_id)
    launcher.cancel(job_id)
    launcher.cancel(job_id)
    assert launcher.poll([job_id])[job_id] == before


def test_another_launcher_can_poll_and_cancel(make, folder):
    job = Job(python(STUBBORN % 1000), folder)
    job_id = make().submit(job)
    wait_for_output(job)
    other = make()
    assert other.poll([job_id])[job_id].state is JobState.RUNNING
    other.cancel(job_id)
    # A third launcher did not cancel it. Without a history, nobody tells it who ended the job.
    assert wait_for_end(make(), job_id).reason in {EndReason.CANCELLED, EndReason.PREEMPTED}


def test_lines_that_were_read_are_not_read_again(tmp_path):
    path = tmp_path / "lines"
    reader = LineReader(path)
    assert reader.new_lines() == []
    path.write_bytes(b"one\ntw")
    assert reader.new_lines() == ["one"]
    with path.open("ab") as file:
        file.write(b"o\nthree")
    assert reader.new_lines() == ["two"]
    assert reader.new_lines(ended=True) == ["three"]
    assert reader.new_lines(ended=True) == []
