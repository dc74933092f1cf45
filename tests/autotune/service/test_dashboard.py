"""Optuna's own page on our storage, read-only, as docs/service.md says."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from tests.autotune.service.test_refusals import DOCS
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

pytestmark = pytest.mark.full


def command():
    line = re.search(r"^    (optuna-dashboard .*)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)[1]
    return shlex.split(line)


@pytest.fixture
def dashboard(tmp_path):
    space = small_space()
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "seen", definition(space))
    for number, configuration in zip(range(5), space.configurations(), strict=False):
        worth = Observation(value=1.0 + number)
        add_trial(store, space, configuration, took(1.0 + number), worth=worth)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program, *arguments = command()
    argv = [Path(sys.executable).with_name(program), *arguments, f"--port={port}"]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api/studies").close()
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
        process.terminate()


def test_it_shows_our_studies_and_changes_nothing(dashboard, tmp_path):
    with urllib.request.urlopen(f"{dashboard}/api/studies") as answer:
        (study,) = json.load(answer)["study_summaries"]
    assert study["study_name"] == "seen"
    with urllib.request.urlopen(f"{dashboard}/api/studies/{study['study_id']}") as answer:
        shown = json.load(answer)
    assert {"COMPLETE"} <= {trial["state"].upper() for trial in shown["trials"]}
    wish = urllib.request.Request(f"{dashboard}/api/studies/{study['study_id']}", method="DELETE")
    with pytest.raises(urllib.error.HTTPError, match="500"):
        urllib.request.urlopen(wish)
    store = StudyStore.read(f"sqlite:///{os.fspath(tmp_path / 'autotune.db')}", "seen")
    assert len(store.trials()) == len(shown["trials"])
