"""`autotune check --run` says "right" only to a run and to values that a study accepts."""

import json
import sys

import pytest

from autotune.errors import BusyError, CannotRunHereError
from autotune.execution.core_pool import CoreClaim, claim_purpose
from autotune.machines.this_machine import this_machine
from tests.autotune.planning.test_check import checked
from tests.launchers.fakes.cluster import FakeCluster
from tests.support.command_line import invoke

pytestmark = pytest.mark.cores(1)

PRINTS = """
objective = "command"
[options]
argv = ["echo", "value {text}", "{{k}}"]
metrics = [{{ name = "value", pattern = 'value (\\S+)', unit = "s", kind = "{kind}" }}]
[space.parameters.k]
type = "choice"
values = ["a", "b"]
default = "a"
"""


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        ("-1.5", "other", "value is -1.5 s: what is optimised is compared by ratio, and must be positive"),
        ("0", "other", "must be positive"),
        ("77.5", "time", "value is 77.5 s, but the whole run took"),
    ],
)
def test_a_value_that_no_study_accepts_is_a_failure(tmp_path, text, kind, why):
    code, found = checked(tmp_path, PRINTS.format(text=text, kind=kind), "--run")
    assert code == 4
    assert why in found["run"]["failure"]
    assert found["run"]["metrics"][0]["value"] == float(text)


def test_a_check_runs_beside_a_study_if_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("autotune.execution.core_pool.user_folder", lambda: tmp_path)
    text = PRINTS.format(text="2", kind="other")
    claim = CoreClaim.claim(this_machine().cpus, tmp_path, work=claim_purpose("melt"))
    (tmp_path / "prints.toml").write_text(text)
    refused = invoke("check", str(tmp_path / "prints.toml"), "--run")
    assert isinstance(refused.exception, BusyError)
    assert str(refused.exception).endswith("or run beside it with --share, since a check compares nothing")
    code, found = checked(tmp_path, text, "--run", "--share")
    assert (code, found["run"]["failure"]) == (0, None)
    claim.release()


def named(folder, argv, values, **options):
    """Return a study file whose parameter `k` has these values."""
    more = "\n".join(f"{key} = {value}" for key, value in options.items())
    return f"""
objective = "command"
[options]
argv = {argv}
{more}
[space.parameters.k]
type = "choice"
values = {values}
default = "{values[0]}"
"""


@pytest.mark.parametrize(
    ("argv", "options", "what"),
    [
        ([sys.executable, "FOLDER/{k}.py"], {}, "file 'FOLDER/other.py'"),
        ([sys.executable, "FOLDER/main.py", "--input=FOLDER/{k}.py"], {}, "file 'FOLDER/other.py'"),
        (["FOLDER/{k}.py"], {}, "program 'FOLDER/other.py'"),
        (["true"], {"prepare": [["FOLDER/{k}.py", "-O2"]]}, "program 'FOLDER/other.py'"),
        (["env", "CC=FOLDER/{k}.py", "true"], {}, "program 'FOLDER/other.py'"),
        (["true"], {"environment": '{ CXX = "FOLDER/{k}.py" }'}, "program 'FOLDER/other.py'"),
    ],
    ids=["script", "option", "program", "compiler", "word", "variable"],
)
def test_a_value_that_names_a_missing_file_or_program_is_found_before_a_run(tmp_path, argv, options, what):
    (tmp_path / "main.py").write_text("print(1)")
    (tmp_path / "main.py").chmod(0o755)
    text = named(tmp_path, argv, ["main", "other"], **options).replace("FOLDER", str(tmp_path))
    code, found = checked(tmp_path, text, "--run")
    assert (code, found["run"]) == (3, None)
    (missing,) = found["missing"]
    expected = what.replace("FOLDER", str(tmp_path))
    assert f"{expected} does not exist here, so every run with k=other would fail" in missing["message"]
    assert missing["path"] == "space.parameters.k"
    ended = invoke("study", str(tmp_path / "mine.toml"), "--storage", f"sqlite:///{tmp_path}/s.db", "--trials", "2")
    assert isinstance(ended.exception, CannotRunHereError)
    assert expected in str(ended.exception)


def test_a_program_that_only_the_nodes_of_jobs_may_have_is_a_warning(tmp_path, monkeypatch):
    study = tmp_path / "mine.toml"
    study.write_text(named(tmp_path, ["{k}"], ["true", "no-such-program"]))
    said = "program 'no-such-program' does not exist on this node: every run with k=no-such-program fails unless the"
    with FakeCluster("slurm") as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        jobs = ("--set", "launcher.site=slurm")
        found = json.loads(invoke("check", str(study), "--json", *jobs).stdout)
        assert found["missing"] == []
        assert found["warnings"][0].startswith(said)
        ended = invoke("study", str(study), "--storage", f"sqlite:///{tmp_path}/s.db", "--trials", "1", *jobs)
    assert said in ended.output
    assert not isinstance(ended.exception, CannotRunHereError)


def test_values_that_are_no_names_or_never_tried_are_no_problem(tmp_path):
    (tmp_path / "main.py").write_text("print(1)")
    modes = named(tmp_path, [sys.executable, str(tmp_path / "main.py"), "--mode={k}"], ["sort", "scan"])
    forbidden = named(tmp_path, [sys.executable, f"{tmp_path}/{{k}}.py"], ["main", "other"]) + (
        '[[space.constraints]]\nname = "here"\nrule = "k == \'main\'"\n'
    )
    made = named(tmp_path, ["./{k}"], ["main", "other"], prepare=[["cp", "/bin/true", "{k}"]])
    for text in (modes, forbidden, made):
        code, found = checked(tmp_path, text)
        assert (code, found["missing"]) == (0, [])


def test_an_optional_word_that_shifts_the_others_names_no_file():
    """The file that gcc writes is behind the optional flags of the shipped study."""
    found = json.loads(invoke("check", "flags", "--json").stdout)
    assert "bodies" not in json.dumps(found["missing"])


def test_a_run_that_misses_a_program_and_goes_on_is_a_warning(tmp_path):
    text = PRINTS.format(text="1.5", kind="other").replace(
        '["echo", "value 1.5", "{k}"]', '["sh", "-c", "no-such-tool {k}; echo value 1.5"]'
    )
    code, found = checked(tmp_path, text, "--run")
    assert (code, found["run"]["failure"]) == (0, None)
    assert "no-such-tool: not found" in found["run"]["complaint"]
    assert "warning: the run printed an error: " in invoke("check", str(tmp_path / "mine.toml"), "--run").stdout
