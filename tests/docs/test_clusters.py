"""What the documentation says of clusters is true: its commands run, its site file works, its tables are complete."""

import json
import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autotune.batch.site_file import SiteFile, find_cluster
from autotune.cli.app import app
from tests.docs.commandline import QUICK
from tests.docs.commandline import warm_autotune as autotune
from tests.docs.page import ROOT
from tests.docs.test_docs import FRONT
from tests.support.silicon import silicon

CLUSTERS = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
COMMANDS = dict.fromkeys(
    re.findall(r"^    autotune (.*?)(?:\s{2,}#.*)?$", "".join((*FRONT.values(), CLUSTERS)), re.MULTILINE)
)
DRY = [words for words in COMMANDS if re.search(r"--launcher", words)]
PILOT = [words for words in COMMANDS if words.startswith("pilot")]
CANCEL = "cancel qe"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return a folder of a user who has written a site file."""
    (example,) = re.findall(r"```toml\n(.*?)```", CLUSTERS, re.DOTALL)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "autotune").mkdir()
    (tmp_path / "autotune" / "site.toml").write_text(example, encoding="utf-8")
    return tmp_path


def test_the_site_file_of_the_document(folder):
    site, _, _ = find_cluster(None)
    assert (site.account, site.queue, site.cores_per_node) == ("ab12", "normal", 48)


def test_the_table_of_the_site_file_is_complete():
    described = set(re.findall(r"^\| (`.*?) \|", CLUSTERS, re.MULTILINE))
    named = {key for cell in described for key in re.findall(r"`(\w+)`", cell)}
    assert named == {*SiteFile.model_fields, "base"} - {"name"}


@pytest.mark.slow
@pytest.mark.parametrize("words", DRY)
def test_a_command_submits_what_the_document_says(folder, words):
    kind = words.split("--launcher ")[1].split()[0]
    if kind == "slurm":
        (folder / "autotune" / "site.toml").write_text('base = "slurm"\n', encoding="utf-8")
    ended = autotune(folder, [*shlex.split(words.replace("--dry-run", "")), "--dry-run"])
    assert ended.returncode == 0, ended.stderr
    assert {"slurm": "#SBATCH --nodes=1", "pbs": "#PBS -l software=qe"}[kind] in ended.stdout
    assert not list(folder.glob("*.db"))


@pytest.mark.parametrize("words", PILOT)
def test_a_pilot_job_is_written(folder, words):
    ended = autotune(folder, shlex.split(words))
    assert ended.returncode == 0, ended.stderr
    assert os.access(folder / "autotune-job.sh", os.X_OK)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_pw_x_is_tuned_by_jobs_of_a_real_slurm(folder, slurm):
    text = 'base = "slurm"\npoll_s = 1.0\nmpi = "Open MPI 4.1.4"\n'
    (folder / "autotune" / "site.toml").write_text(text, encoding="utf-8")
    (folder / "my.in").write_text(silicon(), encoding="utf-8")
    short = ["--input", "my.in", "--name", "qe", "--trials", "3", "--workers", "1", *QUICK]
    ended = autotune(folder, ["study", "qe", "--launcher", "slurm", *short])
    assert ended.returncode == 0, ended.stderr
    assert "verdict: " in ended.stdout
    runs = json.loads(autotune(folder, ["runs", "qe", "--json"]).stdout)
    script = autotune(folder, ["best", "qe", "--script", "slurm"]).stdout
    assert "#SBATCH --time=" in script
    gadi = autotune(folder, ["best", "qe", "--script", "pbs", "--site", "gadi"]).stdout
    assert "#PBS -P PROJECT\n" in gadi
    assert "\nmodule load qe/7.0\n" in gadi
    assert {run["outcome"]["failure"] for run in runs} == {None}
    assert len(slurm.states()) >= len(runs)
    assert "no job" in autotune(folder, CANCEL.split()).stdout


def test_the_document_names_options_that_there_are():
    told = "".join(
        CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).stdout
        for name in ("study", "pilot", "cancel")
    )
    named = set(re.findall(r"(?:^    autotune .*?|`)(--[a-z]+[a-z-]*)", CLUSTERS, re.MULTILINE))
    schedulers_own = set(re.findall(r"\| `(--[a-z-]+)` \|", CLUSTERS))
    of_others = {
        "--no-kill",
        "--overlap",
        "--mem",
        "--states",
        "--cpus-per-task",
        "--threads-per-core",
        "--ntasks-per-core",
        "--hint",
        "--reservation",
        "--switches",
        "--clusters",
        "--exclude",
        "--requires",
    }
    ours = named - schedulers_own - of_others
    assert {"--launcher", "--site", "--until", "--ray-address", "--wait"} <= ours
    assert ours <= set(re.findall(r"--[a-z]+[a-z-]*", told))
