"""Short commands: what they print, and that one that hangs or prints for ever is no trouble."""

import errno
import os
import subprocess
import sys

import pytest

from launchers.software import ask as module
from launchers.software.ask import ask, find_printed_text
from tests.support.waiting import wait_for


def test_what_a_command_prints_in_its_folder_and_environment(tmp_path):
    script = "pwd; echo $A; echo worse >&2; exit 3"
    found = ask(["sh", "-c", script], 10, environment={"A": "b", "PATH": os.environ["PATH"]}, folder=tmp_path)
    assert (found.exit_code, found.text, found.complaint) == (3, f"{tmp_path}\nb\n", "worse\n")
    merged = ask(["sh", "-c", "echo one; echo two >&2; echo three"], 10, merge=True)
    assert (merged.text, merged.complaint) == ("one\ntwo\nthree\n", "")


def test_of_a_command_that_prints_much_the_first_part_is_kept(monkeypatch):
    monkeypatch.setattr(module, "_MOST_BYTES", 10)
    found = ask([sys.executable, "-c", "print('x' * 10**6)"], 30)
    assert (found.exit_code, found.text) == (0, "x" * 10)


@pytest.mark.slow
@pytest.mark.parametrize("script", ["sleep 1000", "sleep 1000 & wait", "exec >&- 2>&-; sleep 1000"])
def test_a_command_that_does_not_end_is_killed_with_all_that_it_started(monkeypatch, script):
    start, groups = subprocess.Popen, []

    def note_group(*words, **options):
        process = start(*words, **options)
        groups.append(process.pid)
        return process

    monkeypatch.setattr(subprocess, "Popen", note_group)
    with pytest.raises(TimeoutError, match=r"sh did not answer within 0\.3 s") as caught:
        ask(["sh", "-c", script], 0.3)
    assert caught.value.errno == errno.ETIMEDOUT

    def is_gone():
        try:
            os.killpg(groups[0], 0)
        except ProcessLookupError:
            return True
        return False

    wait_for(is_gone, "the group to end")


def test_only_an_error_that_may_pass_is_not_taken_for_silence(monkeypatch):
    assert find_printed_text(["/no/such/program"], 10) == ""
    assert find_printed_text(["sleep", "60"], 0.1) == ""

    def full(*words, **options):
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(module, "ask", full)
    with pytest.raises(OSError, match="too many open files"):
        find_printed_text(["true"], 10)
