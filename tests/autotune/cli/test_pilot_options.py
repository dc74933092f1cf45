"""What `autotune pilot` refuses before a job waits in a queue, and what it writes for the job to know."""

from pathlib import Path

import pytest
from typer.testing import Result

from tests.support.command_line import invoke

SECRET = "postgresql://me:S3CRET@host/db"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("AUTOTUNE_STORAGE", raising=False)


def pilot(*options: str) -> Result:
    return invoke("pilot", "qe", *options)


def refused(*options: str) -> str:
    """Return what is said, if no script is written."""
    ended = pilot(*options)
    assert ended.exit_code != 0
    assert not Path("autotune-job.sh").exists()
    return f"{ended.output} {ended.exception}"


def test_the_script_needs_a_file_since_it_submits_itself_again():
    assert "needs a file" in refused("--output", "-")
    assert not Path("-").exists()


def test_a_password_does_not_get_into_the_script(monkeypatch):
    said = refused("--storage", SECRET)
    assert "~/.pgpass" in said
    assert "S3CRET" not in said
    monkeypatch.setenv("AUTOTUNE_STORAGE", SECRET)
    assert "~/.pgpass" in refused()
    assert pilot("--storage", "mine.db").exit_code == 0


def test_the_storage_of_the_environment_is_told_to_the_job(monkeypatch):
    monkeypatch.setenv("AUTOTUNE_STORAGE", "postgresql://me@host/db")
    assert pilot("--trials", "5").exit_code == 0
    assert "study qe --trials 5 --storage postgresql://me@host/db &" in Path("autotune-job.sh").read_text()
    pilot("--storage", "mine.db")
    assert Path("autotune-job.sh").read_text().count("--storage") == 1


def test_without_a_storage_none_is_written_and_others_cannot_read_the_script():
    pilot()
    assert "--storage" not in Path("autotune-job.sh").read_text()
    assert Path("autotune-job.sh").stat().st_mode & 0o777 == 0o700


def test_the_name_of_the_job_is_that_of_the_study():
    assert pilot("--name", "n2pil").exit_code == 0
    assert "--job-name=autotune-n2pil\n" in Path("autotune-job.sh").read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--trials", "x"], "neither a number of trials"),
        (["--timeout", "soon"], "not a duration"),
        (["--until", "25:99"], "not a time"),
        (["--wait", "--take-over"], "give one of the two"),
        (["--name", "a b"], "a study's name has letters"),
        (["--set", "launcher.kind=slurm"], "names slurm"),
        (["--set", "launcher.site=gadi"], "names gadi"),
        (["--cores", "x"], "not a list of cores"),
        (["--cores", "0", "--nodes", "2"], "leave --cores out"),
    ],
)
def test_options_that_would_fail_in_the_job_are_refused_now(options, says):
    assert says in refused(*options)


def test_a_study_file_that_submits_jobs_is_refused_in_a_job():
    Path("mine.toml").write_text('objective = "qe"\n[launcher]\nkind = "pbs"\n', encoding="utf-8")
    ended = invoke("pilot", "./mine.toml")
    assert "remove [launcher] from the study file" in str(ended.exception)
