"""A study over two builds under a real Slurm: the winner's job script runs the build that won."""

import json

import pytest

from tests.support.quick_study import ONE_RUN, THREE_PAIRS
from tests.support.warm import autotune

pytestmark = pytest.mark.full

BUILDS = """
objective = "command"

[options]
argv = ["smooth"]
metrics = [{ name = "seconds", pattern = 'seconds (\\S+)', unit = "s" }]
answer = { name = "sum", pattern = 'sum (\\S+)', tolerance = 0 }

[software.centre]
programs = ["centre"]

[software.own]
programs = ["own"]
environment = { BUILT_BY = "me" }
"""


def test_the_script_of_the_build_that_won_runs_it(tmp_path, slurm, monkeypatch):
    for build, seconds in (("centre", 2.0), ("own", 1.0)):
        program = tmp_path / build / "smooth"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\necho "built in $0 by $BUILT_BY"\necho seconds {seconds}\necho sum 4\n')
        program.chmod(0o755)
    (tmp_path / "builds.toml").write_text(BUILDS + ONE_RUN + THREE_PAIRS)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "autotune").mkdir()
    (tmp_path / "autotune" / "site.toml").write_text('base = "slurm"\npoll_s = 0.2\n')

    def run(*words):
        ended = autotune(tmp_path, *words)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    said = run("study", "./builds.toml", "--trials", "2", "--launcher", "slurm", "--workers", "1")
    assert "verdict: 2.000 times as fast as the default configuration" in said
    assert json.loads(run("best", "builds", "--json"))["to_use"]["configuration"] == {"software": "own"}
    run("best", "builds", "--script", "slurm", "--output", "job.sh")
    monkeypatch.chdir(tmp_path)
    submitted = slurm.call("sbatch", "--parsable", f"--output={tmp_path / 'job.out'}", "job.sh")
    assert slurm.wait_for_state(submitted.stdout.strip(), "COMPLETED", "FAILED") == "COMPLETED"
    assert f"built in {tmp_path / 'own' / 'smooth'} by me" in (tmp_path / "job.out").read_text()
