"""A pilot on two nodes of a real Slurm: a single job, in which a study runs on both nodes."""

import json
import shutil

import pytest

from tests.support.quick_study import quick_sections
from tests.support.warm import autotune

pytestmark = [
    pytest.mark.full,
    pytest.mark.cores,
    pytest.mark.skipif(shutil.which("taskset") is None, reason="no taskset to give each node a core of this machine"),
]

STUDY = """
objective = "command"

[options]
argv = ["sh", "-c", 'grep Cpus_allowed_list /proc/self/status >> {folder}/cores; sleep 0.5; echo took $1', "", "{{x}}"]
metrics = [{{ name = "took_s", unit = "s", pattern = 'took (\\d+)' }}]
"""


def test_a_pilot_joins_two_nodes_and_runs_trials_on_both(slurm, tmp_path):
    (tmp_path / "mine.toml").write_text(STUDY.format(folder=tmp_path) + quick_sections(trials=4, workers=2))
    # Both nodes are this machine, so each gets a core of it.
    core = f'taskset -pc $([ "$SLURMD_NODENAME" = {slurm.host} ]; echo $?) $$'
    words = ("--nodes", "2", "--walltime", "5m", "--directive", "--partition=pair", "--setup", core)
    written = autotune(tmp_path, "pilot", "./mine.toml", *words)
    assert written.returncode == 0, written.stderr
    argv = ("sbatch", "--parsable", f"--chdir={tmp_path}", "--output=log", str(tmp_path / "autotune-job.sh"))
    job = slurm.call(*argv).stdout.strip()
    state = slurm.wait_for_state(job, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")
    log = (tmp_path / "log").read_text()
    assert state == "COMPLETED", log
    assert "machine: 2 nodes like" in log
    assert {line.split()[1] for line in (tmp_path / "cores").read_text().splitlines()} == {"0", "1"}, log
    assert len(json.loads(autotune(tmp_path, "trials", "mine", "--json").stdout)) == 4
