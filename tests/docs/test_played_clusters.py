"""The commands of the page on clusters run: job scripts are written, and a real Slurm makes the runs of a study."""

import json
import os
import shlex

import pytest

from tests.docs.commandline import warm_autotune as autotune
from tests.docs.front_pages import CANCEL, CLUSTERS, DRY, PILOT
from tests.docs.page import Page
from tests.support.quick_study import QUICK
from tests.support.silicon import silicon

pytestmark = pytest.mark.full


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder of a user who has written the site file of the page."""
    (example,) = (block.text for block in Page.read(CLUSTERS).blocks if block.language == "toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "autotune").mkdir()
    (tmp_path / "autotune" / "site.toml").write_text(example, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("words", DRY)
def test_a_command_submits_what_the_document_says(folder, words):
    kind = words.split("--launcher ")[1].split()[0]
    if kind == "slurm":
        (folder / "autotune" / "site.toml").write_text('base = "slurm"\n', encoding="utf-8")
    ended = autotune(folder, [*shlex.split(words.replace("--dry-run", ""))[1:], "--dry-run"])
    assert ended.returncode == 0, ended.stderr
    assert {"slurm": "#SBATCH --nodes=1", "pbs": "#PBS -l software=qe"}[kind] in ended.stdout
    assert not list(folder.glob("*.db"))


@pytest.mark.parametrize("words", PILOT)
def test_a_pilot_job_is_written(folder, words):
    ended = autotune(folder, shlex.split(words)[1:])
    assert ended.returncode == 0, ended.stderr
    assert os.access(folder / "autotune-job.sh", os.X_OK)


def test_pw_x_is_tuned_by_jobs_of_a_real_slurm(folder, slurm):
    text = 'base = "slurm"\npoll_s = 1.0\nmpi = "Open MPI 4.1.4"\n'
    (folder / "autotune" / "site.toml").write_text(text, encoding="utf-8")
    (folder / "my.in").write_text(silicon(), encoding="utf-8")
    short = ["--input", "my.in", "--name", "qe", "--trials", "3", "--workers", "1", *QUICK]
    ended = autotune(folder, ["study", "qe", "--launcher", "slurm", *short])
    assert ended.returncode == 0, ended.stderr
    assert "verdict: " in ended.stdout
    runs = json.loads(autotune(folder, ["trials", "qe", "--runs", "--json"]).stdout)
    script = autotune(folder, ["best", "qe", "--script", "slurm"]).stdout
    assert "#SBATCH --time=" in script
    gadi = autotune(folder, ["best", "qe", "--script", "pbs", "--site", "gadi"]).stdout
    assert "#PBS -P PROJECT\n" in gadi
    assert "\nmodule load qe/7.0\n" in gadi
    assert {run["outcome"]["failure"] for run in runs} == {None}
    assert len(slurm.states()) >= len(runs)
    assert "no job" in autotune(folder, CANCEL.split()[1:]).stdout
