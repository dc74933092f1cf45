"""What the stand-in for PBS may say: only what a source of PBS says, or a real server."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from launchers.batch_systems.pbs import PBS
from tests.launchers.fakes import pbs as stand_in
from tests.launchers.fakes.cluster import FakeCluster
from tests.launchers.fakes.pbs_answers import ANSWERS, COMMENTS, ENDS, REFUSALS, SEEN, VERSIONS, every_answer

SOURCE = re.compile(r"src/[\w./]+\.c|getopt\(3\)")
# Of what the stand-in itself cannot do.
OWN = ("this stand-in wants",)


def test_every_answer_has_its_source():
    for answer in every_answer():
        assert SOURCE.fullmatch(answer.source) or answer.source == SEEN, answer


def test_the_stand_in_says_nothing_but_answers_with_a_source():
    tree = ast.parse(Path(stand_in.__file__).read_text())
    said = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"RefusedError", "print"}:
            said += [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    texts = [text for text in said if isinstance(text, str) and " " in text]
    assert [text for text in texts if not any(own in text for own in OWN)] == []


def test_ends_and_comments_are_of_the_same_jobs():
    assert set(COMMENTS) - {"queued", "running", "finished", "failed"} <= set(ENDS)
    assert set(ANSWERS) >= REFUSALS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_that_is_away_is_waited_for_in_every_version(version, tmp_path):
    (tmp_path / "script").write_text("#!/bin/sh\n")
    with FakeCluster("pbs") as cluster:
        cluster.switch("version", version)
        cluster.switch("away")
        for argv in (["qsub", "script"], ["qstat", "-f", "1.pbshost"]):
            done = subprocess.run(
                [cluster.bin / argv[0], *argv[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
            )
            assert PBS.scheduler.can_wait(done.stderr)
            assert PBS.scheduler.states(done.stdout, done.stderr, done.returncode) is None
