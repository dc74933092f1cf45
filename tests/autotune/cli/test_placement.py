"""Where runs are made, as options say: what contradicts itself, or cannot work, is said before anything is stored."""

import json
from pathlib import Path

import pytest
from typer.testing import Result

from autotune.batch import allocation
from autotune.cli.commands.study import _deadline
from autotune.cli.study_request import choose
from autotune.errors import ExitCode
from tests.support.command_line import invoke


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def study(*options: str) -> Result:
    return invoke("study", "qe", *options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--ray-address", "nobody"], "HOST:PORT"),
        (["--ray-address", "host:99999"], "1 to 65535"),
        (["--ray-address", "ray://host:10001"], "HOST:PORT"),
        (["--ray-address", "a:1", "--cores", "0"], "leave --launcher, --site and --cores out"),
        (["--ray-nodes", "3"], "--ray-address HOST:PORT"),
        (["--launcher", "local", "--site", "gadi"], "--launcher local"),
    ],
)
def test_options_that_cannot_be_followed(options, says):
    ended = study(*options)
    assert says in f"{ended.output} {ended.exception}"
    assert "qe.toml" not in str(ended.exception)
    assert not list(Path().glob("*.db"))


def test_here_is_here_whatever_the_study_file_says():
    Path("mine.toml").write_text('objective = "qe"\n[launcher]\nsite = "gadi"\n', encoding="utf-8")
    chosen = choose("./mine.toml", None, None, {"launcher": '{ kind = "local" }'})
    assert (chosen.launcher.kind, chosen.launcher.site) == ("local", None)


def test_a_right_sizing_makes_its_runs_at_the_given_site(monkeypatch):
    monkeypatch.setenv("PATH", str(Path.cwd()))
    words = ("rightsize", "qe", "--deadline", "1h", "--site", "gadi")
    ended = invoke(*words)
    assert ended.exception.exit_code == ExitCode.CANNOT_RUN_HERE
    assert "qsub" in str(ended.exception)
    both = invoke(*words, "--launcher", "local")
    assert "leave one of the two out" in str(both.exception)


def test_a_space_is_that_of_the_nodes_of_a_site():
    Path("mine.toml").write_text(
        'objective = "command"\n[options]\nargv = ["true", "{n}"]\n'
        '[space.parameters.n]\ntype = "integer"\nlow = 1\nhigh = "cores"\ndefault = 1\n',
        encoding="utf-8",
    )
    shown = invoke("check", "./mine.toml", "--space", "--set", "launcher.site=gadi", "--json")
    assert shown.exit_code == 0, shown.output
    # Nodes of Gadi have 48 cores.
    assert json.loads(shown.stdout)["combinations"] % 48 == 0


@pytest.mark.parametrize(("site", "command"), [("gadi", "qsub"), ("slurm", "sbatch")])
def test_a_host_that_cannot_submit_is_told_before_anything_is_stored(monkeypatch, site, command):
    monkeypatch.setenv("PATH", str(Path.cwd()))
    ended = study("--site", site)
    assert ended.exception.exit_code == ExitCode.CANNOT_RUN_HERE
    assert command in str(ended.exception)
    assert "module load" in str(ended.exception)
    assert not list(Path().iterdir())


def test_the_site_of_a_study_is_the_same_from_every_folder(monkeypatch):
    Path("mine.toml").write_text('base = "gadi"\n', encoding="utf-8")
    chosen = choose("qe", None, None, {"launcher.site": "./mine.toml"})
    assert chosen.launcher.site == str(Path.cwd() / "mine.toml")
    assert choose("qe", ["launcher.site=gadi"], None).launcher.site == "gadi"


class Said(list):
    def line(self, text: str) -> None:
        self.append(text)


def test_a_job_whose_end_is_past_has_no_known_end(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_JOB_END_TIME", "1700000000")
    monkeypatch.setattr(allocation, "ask_end", lambda *_: None)
    said = Said()
    assert _deadline(None, said) is None
    assert "lies in the past" in said[0]
    assert "--until" in said[0]
