"""The short commands of a scheduler: their answers, and that an interrupted submission is completed."""

import gc
import os
import signal
import subprocess
import threading

import pytest

from launchers.batch.commands import Answer, run_command
from tests.launchers.jobs import wait_for


@pytest.fixture
def command(tmp_path):
    """Create a command from a few lines of shell."""

    def command(lines: str) -> list[str]:
        path = tmp_path / "command"
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)
        return [str(path)]

    return command


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def interrupt(request):
    """Interrupt the tuner as Ctrl-C and `kill` do."""
    before = signal.signal(request.param, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), request.param)
    signal.signal(request.param, before)


def test_submission_that_answers_late_is_known_after_an_interrupt(command, tmp_path, interrupt):
    late = command("touch begun; until [ -e interrupted ]; do sleep 0.01; done; sleep 1; echo 17")
    answer = tmp_path / "answer"

    def press() -> None:
        wait_for((tmp_path / "begun").exists)
        interrupt()
        (tmp_path / "interrupted").touch()

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_command(late, tmp_path, answer)
    assert answer.read_text() == "17\n"
    thread.join()


def test_interrupt_while_a_submission_is_being_started_loses_nothing(command, tmp_path, interrupt, monkeypatch):
    start = subprocess.Popen

    def interrupted(*words, **more):
        process = start(*words, **more)
        interrupt()
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_command(command("sleep 0.2; echo 17"), tmp_path, tmp_path / "answer")
    assert (tmp_path / "answer").read_text() == "17\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_second_interrupt_stops_waiting_but_not_the_submission(command, tmp_path, interrupt, monkeypatch):
    late = command("until [ -e go ]; do sleep 0.01; done; echo a warning >&2; echo 17")
    answer = tmp_path / "answer"
    waits, wait = [], subprocess.Popen.wait

    def counted(process, *timeout):
        waits.append(process)
        return wait(process, *timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", counted)

    def press() -> None:
        for count in (1, 2):
            wait_for(lambda: len(waits) == count)  # noqa: B023  called at once
            interrupt()

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_command(late, tmp_path, answer)
    thread.join()
    gc.collect()
    (tmp_path / "go").touch()
    wait_for(lambda: answer.read_text() == "17\n")


def test_answer_holds_output_errors_and_exit_code(command, tmp_path):
    argv = command(r"printf 'out \377\n'; cat; echo err >&2; exit 3")
    (tmp_path / "input").write_text("in\n")
    answer = run_command(argv, tmp_path, None, tmp_path / "input")
    assert (answer.code, answer.stdout, answer.stderr) == (3, "out \ufffd\nin\n", "err\n")
    kept = run_command(argv, tmp_path, tmp_path / "kept")
    assert (kept.stdout, kept.stderr) == ("out \ufffd\n", "err\n")
    assert (tmp_path / "kept").read_bytes() == b"out \xff\n"


def test_command_that_does_not_answer_is_given_up(command, tmp_path, monkeypatch):
    monkeypatch.setattr("launchers.batch.commands._PATIENCE_S", 0.5)
    answer = run_command(command("echo 17; exec sleep 1000"), tmp_path, tmp_path / "answer")
    assert (answer.code, answer.stdout) == (124, "17\n")
    assert "did not answer within 0.5 s" in answer.complaint


def test_complaint_that_is_repeated_for_each_job_is_reported_once():
    said = "Connection refused\nqstat: cannot connect to server node1 (errno=15010)\n"
    assert Answer(1, stderr=100 * said).complaint == " ".join(said.split())
