"""The commands as a person types them; those that make runs have a process of their own."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from autotune.errors import NothingWorkedError
from tests.support.awk_study import STUDY, held_session
from tests.support.command_line import run_main
from tests.support.warm import autotune

pytestmark = pytest.mark.cores(1)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    (folder / "mine.toml").write_text(STUDY, encoding="utf-8")
    ended = autotune(folder, "study", "./mine.toml", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["trials"] == 12
    return folder


def test_progress_goes_to_stderr_line_by_line_and_results_to_stdout(tuned):
    ended = autotune(tuned, "study", "./mine.toml", "--trials", "13", "--verbose")
    assert "trial 12: " in ended.stderr
    assert "trial 11: " not in ended.stderr
    assert "\x1b" not in ended.stderr + ended.stdout
    assert ended.stdout.startswith("configuration: ")
    assert "verdict: " in ended.stdout
    assert "autotune best mine" in ended.stdout


def test_the_same_command_again_changes_nothing(tuned):
    autotune(tuned, "study", "./mine.toml", "--trials", "13")
    before = {path: path.read_bytes() for path in tuned.rglob("*") if path.is_file() and "plan" not in path.parts}
    ended = autotune(tuned, "study", "./mine.toml", "--trials", "13")
    after = {path: path.read_bytes() for path in tuned.rglob("*") if path.is_file() and "plan" not in path.parts}
    assert ended.returncode == 0
    assert {path.name for path in before if before[path] != after.get(path)} <= {"autotune.db.mine.lock"}
    assert set(after) == set(before)


def test_reading_commands(tuned, monkeypatch):
    monkeypatch.chdir(tuned)
    listed = json.loads(run_main("storage", "list", "--json").stdout)
    assert [entry["study"] for entry in listed] == ["mine"]
    best = json.loads(run_main("best", "mine", "--json").stdout)
    assert best["default"]["configuration"] == {"x": 20}
    assert best["best"]["value"] <= best["default"]["value"]
    assert best["verdict"]["speed_up"] >= 1.0
    assert best["ledger"]["spent"] > 0
    assert "awk" in " ".join(best["to_use"]["command"])
    rows = json.loads(run_main("trials", "mine", "--json").stdout)
    assert rows[0]["speed_up"] == 1.0
    table = run_main("trials", "mine", "--format", "csv").stdout.splitlines()
    assert table[0].startswith("trial,state,runs,value,bound,speed_up,took_s")
    assert len(table) == len(rows) + 1
    for words in (["storage", "list"], ["best", "mine"], ["trials", "mine"], ["trials", "mine", "--runs"]):
        ended = run_main(*words)
        assert ended.returncode == 0
        assert "mine" in ended.stdout or "trial" in ended.stdout
    assert "round: the round of a comparison; period: " in ended.stdout


def test_every_run_says_where_when_and_how_it_was_made(tuned, monkeypatch):
    monkeypatch.chdir(tuned)
    found = json.loads(run_main("trials", "mine", "--runs", "--json").stdout)
    assert {run["series"].partition(":")[0] for run in found} >= {"", "warm-up", "verdict"}
    for run in found:
        assert run["started"].startswith("20")
        assert run["job"]["argv"][0].endswith("awk")
        assert run["session"].keys() >= {"host", "system", "governor", "mpi", "autotune", "python", "study_commit"}
        assert run["session"]["study_file"] == "mine.toml"
        known = {"load_1m", "node", "cpus", "node_cpus", "began_at", "major_faults"}
        assert run["outcome"]["conditions"].keys() >= known
        assert run["shared_cores"] is False


def test_confirming_again_runs_nothing_unless_more_is_asked(tuned, monkeypatch):
    monkeypatch.chdir(tuned)

    def runs():
        return len(json.loads(run_main("trials", "mine", "--runs", "--json").stdout))

    before = runs()
    ended = autotune(tuned, "confirm", "mine")
    assert ended.returncode == 0, ended.stderr
    assert "verdict: " in ended.stdout
    assert runs() == before
    more = json.loads(autotune(tuned, "confirm", "mine", "--pairs", "7", "--json").stdout)
    assert len(more["verdict"]["pairs"]) == 7
    assert runs() == before + 2


@pytest.mark.parametrize("asked", [("--max-pairs", "40"), ("--precision", "0.01")])
def test_pairs_that_are_asked_for_are_made_whatever_tuning_cost(tuned, monkeypatch, asked):
    sections = []

    def see(study, *_):
        sections.append(study.verdict)
        raise NothingWorkedError("seen")

    monkeypatch.chdir(tuned)
    monkeypatch.setattr("autotune.tuning.session.confirm_study", see)
    run_main("confirm", "mine", *asked)
    assert sections[0].of_tuning is None


@pytest.mark.parametrize("form", ["pbs", "slurm", "sh"])
def test_the_job_script_of_the_winner(tuned, form, tmp_path, monkeypatch):
    monkeypatch.chdir(tuned)
    ended = run_main("best", "mine", "--script", form, "--output", str(tmp_path / "job.sh"))
    assert ended.returncode == 0, ended.stderr
    value = json.loads(run_main("best", "mine", "--json").stdout)["best"]["value"]
    ran = subprocess.run(["bash", str(tmp_path / "job.sh")], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == f"took {value:g}\n"


def test_the_space(tuned, monkeypatch):
    monkeypatch.chdir(tuned)
    shown = json.loads(run_main("check", "./mine.toml", "--space", "--json").stdout)
    assert shown["size"] == 40 + 40 + 20 + 10
    assert shown["exact"]
    assert len(shown["sample"]) == 5
    assert "y shares x out" in run_main("check", "./mine.toml", "--space").stdout
    wrong = run_main("check", "./mine.toml", "--configuration", "x=3 y=2")
    assert wrong.returncode == 1
    assert "y shares x out" in wrong.stdout
    right = run_main("check", "./mine.toml", "--configuration", "x=4 y=2")
    assert (right.returncode, right.stdout) == (0, "valid\n")


def test_a_dry_run_prints_commands_and_runs_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(STUDY, encoding="utf-8")
    ended = run_main("study", "./mine.toml", "--dry-run")
    assert ended.returncode == 0, ended.stderr
    assert "# trial 0: x=20" in ended.stdout
    assert "awk 'BEGIN { d = 20 - 7;" in ended.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_a_dry_run_with_another_sampler_shows_what_that_would_try(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(STUDY, encoding="utf-8")
    words = ("study", "./mine.toml", "--dry-run", "--trials", "12", "--sampler", "exhaustive")
    ended = run_main(*words)
    assert ended.returncode == 0, ended.stderr
    assert "# trial 0: x=20" in ended.stdout
    assert "# trial 11: " in ended.stdout
    assert "depend on" not in ended.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["study", "./none.toml"], 2, "no study file at ./none.toml"),
        (["study", "./mine.toml", "--trails", "3"], 2, "--trials"),
        (["study", "./mine.toml", "--timeout", "soon"], 2, "is not a duration"),
        (["study", "./mine.toml", "--set", "options.arg=3"], 3, "unknown key 'arg' in [options]"),
        (["study", "./mine.toml", "--sampler", "optuna:TPESample"], 2, "did you mean 'TPESampler'"),
        (["study", "./mine.toml", "--cores", "9999"], 2, "usable"),
        (["study", "./mine.toml", "--name", "../x"], 2, "letters, digits"),
        (["study", "./mine.toml", "--set", 'options.argv=["awk", "{z}"]'], 2, "no parameter 'z'"),
        (["study", "./mine.toml", "--cores", "x"], 2, "0-3,8"),
        (["best", "other"], 5, "no study 'other'"),
        (["confirm", "other"], 5, "no study 'other'"),
        (["confirm", "mine", "--pairs", "4"], 2, "needs at least 6 pairs"),
        (["confirm", "mine", "--max-pairs", "5"], 2, "less than pairs"),
        (["ablate", "mine", "--rounds", "x"], 2, "--rounds"),
        (["study", "./mine.toml", "--set", "repeats.max_runs=0"], 2, "repeats.max_runs"),
        (["study", "./mine.toml", "--set", "repeats.statistic=min"], 2, "repeats.statistic"),
        (["best", "mine", "--storage", "none.db"], 5, "no storage at none.db"),
        (["study", "./mine.toml", "--dry-run", "--json"], 2, "give one of the two"),
        (["best", "mine", "--site", "nosuch"], 2, "needs a job script"),
        (["watch", "mine", "--junit", "none/watch.xml"], 2, "there is no folder none for watch.xml"),
        (["watch", "mine", "--record", "--notify", "true"], 2, "leave it out"),
        (["storage", "renam"], 2, "'rename'"),
        (["storage"], 2, "List, merge, rename"),
        (["check", "./mine.toml", "--configuration", "x"], 2, "not name=value"),
        (["check", "./mine.toml", "--space", "--run"], 2, "give one of"),
        (["check", "./mine.toml", "--space", "--wait"], 2, "add --run"),
    ],
)
def test_mistakes_get_a_message_and_a_code_and_no_traceback(tuned, monkeypatch, words, code, said):
    monkeypatch.chdir(tuned)
    ended = run_main(*words)
    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_storage_may_come_from_the_environment(tuned, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOTUNE_STORAGE", str(tuned / "autotune.db"))
    assert run_main("best", "mine", "--json").returncode == 0


@pytest.mark.parametrize("asked", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_control_c_or_kill_ends_the_run_in_flight_and_the_same_command_goes_on(tmp_path, asked):
    with held_session(tmp_path, "--trials", "5") as session:
        session.send_signal(asked)
        said = session.stderr.read()
        assert session.wait() == 130, said
    assert "the same command resumes" in said
    assert "Traceback" not in said
    assert "received at time" not in said
    ended = autotune(tmp_path, "study", "./mine.toml", "--trials", "5", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["trials"] == 5
    runs = json.loads(autotune(tmp_path, "trials", "mine", "--runs", "--json").stdout)
    assert len({run["started"] for run in runs}) == len(runs)


def test_the_doctor_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    ended = run_main("doctor")
    assert ended.returncode == 3
    assert "module load" in ended.stdout
    assert "meter: energy of processors (powercap, perf): " in ended.stdout


def test_the_doctor_names_a_library_that_a_light_installation_lacks(monkeypatch):
    monkeypatch.setattr("autotune.cli.commands.doctor._LIBRARIES", ("optuna", "lacking"))
    assert "lacking (missing)\n" in run_main("doctor").stdout


def test_the_doctor_names_what_killed_sessions_left(tmp_path, monkeypatch):
    (tmp_path / "autotune-predict-old").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert str(tmp_path / "autotune-predict-old") in run_main("doctor").stdout


@pytest.mark.parametrize("wrong", ["0", "-1", "many", "1.5", ""])
def test_a_number_of_trials_that_is_none_is_refused(tuned, monkeypatch, wrong):
    monkeypatch.chdir(tuned)
    ended = run_main("study", "./mine.toml", f"--trials={wrong}")
    assert ended.returncode == 2
    assert "nor auto" in ended.stderr


def test_trials_auto_says_what_it_cannot_tell_and_shows_what_it_can(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(STUDY, encoding="utf-8")
    ended = run_main("study", "./mine.toml", "--trials", "auto", "--dry-run")
    assert ended.returncode == 0, ended.stderr
    assert "# trials 7, 199 at most, depend on what these measure" in ended.stdout
    ended = run_main("study", "./mine.toml", "--trials", "auto", "--sampler", "random", "--dry-run")
    assert ended.returncode == 2
    assert "needs the sampler 'autotune'" in ended.stderr
