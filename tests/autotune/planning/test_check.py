"""`autotune check`: all mistakes of a study file at once, without a run, each with its path and line."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from autotune import locks
from autotune.errors import BusyError, CannotRunHereError
from autotune.execution import core_pool
from autotune.execution.core_pool import CoreClaim
from autotune.machines.this_machine import this_machine
from autotune.planning.named_programs import named_programs
from autotune.planning.prepare import prepare
from autotune.studyfile import parse
from autotune.studyfile.loading import load
from launchers.local import local_launcher
from objectives.base import Context
from tests.support.command_line import invoke

pytestmark = pytest.mark.cores(1)

PYTHON = sys.executable
GOOD = f"""
objective = "command"

[options]
argv = ["{PYTHON}", "-c", "print('took', (2 + {{x}} * 0.5) / 1000); print('sum 42'); print('step 1')", "{{y}}"]
metrics = [{{ name = "took_s", unit = "s", pattern = 'took (\\S+)', kind = "time" }}]
answer = {{ name = "sum", pattern = 'sum (\\d+)', tolerance = 0 }}
progress = 'step (\\d+)'

[space.parameters.x]
type = "integer"
values = [1, 2, 3]
default = 2

[space.parameters.y]
type = "choice"
values = ["a", "b"]
optional = true

[[space.constraints]]
name = "together"
rule = "x < 3 or not is_set(y)"

[budget]
trials = 7
"""

X = """
[space.parameters.x]
type = "integer"
values = [1, 2, 3]
default = 2
"""

# An input that is verified, after the one that is tuned; its options follow.
WITH_BIG = """[[inputs]]
name = "tuned"
[[inputs]]
name = "big"
weight = 0
"""


def checked(folder: Path, text: str, *words: str) -> tuple[int, dict]:
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    ended = invoke("check", str(folder / "mine.toml"), "--json", *words)
    assert ended.stdout, ended.exception
    found = json.loads(ended.stdout)
    assert found["exit_code"] == ended.exit_code
    return ended.exit_code, found


def test_a_good_file(tmp_path):
    code, found = checked(tmp_path, GOOD)
    assert (code, found["mistakes"], found["missing"], found["warnings"]) == (0, [], [], [])
    assert (found["size"], found["default"]) == (7, {"x": 2})
    assert found["command"].startswith(f"cd RUN-FOLDER && env AUTOTUNE_SEED=0 OMP_NUM_THREADS=1 {PYTHON} -c 'print(")
    assert [metric["name"] for metric in found["metrics"]] == ["took_s"]
    assert found["run"] is None


def test_a_run_shows_what_was_read_from_it(tmp_path):
    code, found = checked(tmp_path, GOOD, "--run")
    assert code == 0
    run = found["run"]
    assert [(one["name"], one["value"]) for one in run["metrics"]] == [("took_s", 0.003)]
    assert run["answer"]["value"] == 42.0
    assert (run["steps"], run["last_step"], run["failure"]) == (1, 1, None)


def test_a_run_in_which_a_pattern_matches_nothing_shows_the_end_of_the_output(tmp_path):
    code, found = checked(tmp_path, GOOD.replace("'took (", "'time: ("), "--run")
    assert code == 4
    run = found["run"]
    assert run["metrics"][0]["value"] is None
    assert "nothing matches 'time: " in run["metrics"][0]["why"]
    assert run["answer"]["value"] == 42.0
    assert "stdout: took 0.003" in run["tail"]
    ended = invoke("check", str(tmp_path / "mine.toml"), "--run")
    assert ended.exit_code == 4
    assert "no took_s in the output: nothing matches 'time: " in ended.output
    assert "stdout: sum 42" in ended.output


def mistakes(found: dict) -> dict[str, int]:
    return {one["path"]: one["line"] for one in found["mistakes"]}


def line(text: str, part: str) -> int:
    return next(number for number, one in enumerate(text.splitlines(), 1) if part in one)


def test_three_mistakes_are_three_each_with_path_and_line(tmp_path):
    text = (
        GOOD.replace(r"sum (\d+)", r"sum (\d+").replace("trials = 7", "trails = 7").replace("[1, 2, 3]", "[1, 2, 'x]']")
    )
    code, found = checked(tmp_path, text)
    assert code == 2
    assert mistakes(found) == {
        "options.answer.pattern": line(text, "answer"),
        "space.parameters.x.values.2": line(text, "'x]'"),
        "budget.trails": line(text, "trails"),
    }
    ended = invoke("check", str(tmp_path / "mine.toml"))
    assert ended.exit_code == 2
    assert "mine.toml: 3 mistakes" in ended.output
    assert f"  line {line(text, 'trails')}: unknown key 'trails' in [budget]: did you mean 'trials'?\n" in ended.output


@pytest.mark.parametrize(
    ("old", "new", "path", "part"),
    [
        ('objective = "command"', 'objectve = "command"', "objectve", "objectve"),
        ('objective = "command"', 'objective = "comand"', "objective", "comand"),
        ('"{y}"]', '"{z}"]', "options.argv.3", "argv"),
        ('"{y}"]', '"{y"]', "options.argv.3", "argv"),
        ("tolerance = 0", "tolerance = -1", "options.answer.tolerance", "answer"),
        ("tolerance = 0", "tolerence = 0", "options.answer.tolerence", "answer"),
        ('rule = "x < 3', 'rule = "x << 3', "space.constraints.0.rule", "rule"),
        ("default = 2", "default = 5", "space.parameters.x", "[space.parameters.x]"),
        ("default = 2", "defualt = 2", "space.parameters.x.defualt", "defualt"),
        ("trials = 7", 'trials = "auto"\n[stopping]\nmax_steps = 3', "stopping", "[stopping]"),
        ("trials = 7", 'trials = 7\n[sampler]\nname = "bogus"', "sampler.name", "bogus"),
        ("[budget]", f"{WITH_BIG}options.argv = []\n[budget]", "inputs.1.options.argv", "argv = []"),
    ],
)
def test_a_mistake_has_its_path_and_line(tmp_path, old, new, path, part):
    assert old in GOOD
    text = GOOD.replace(old, new)
    code, found = checked(tmp_path, text)
    assert code == 2
    assert mistakes(found)[path] == line(text, part)
    assert found["run"] is None


def test_what_is_no_toml_says_where(tmp_path):
    code, found = checked(tmp_path, GOOD + "\n[options\n")
    assert code == 2
    assert "not a TOML file" in found["mistakes"][0]["message"]
    assert f"line {len(GOOD.splitlines()) + 2}" in found["mistakes"][0]["message"]


def test_a_program_that_is_missing_here_is_no_mistake(tmp_path):
    code, found = checked(tmp_path, GOOD.replace(f'"{PYTHON}"', '"no-such-program-here"'), "--run")
    assert code == 3
    assert [one["path"] for one in found["missing"]] == ["options.argv.0"]
    assert found["mistakes"] == []
    assert found["run"] is None


def test_a_program_that_makes_a_file_and_is_missing_here_is_no_mistake(tmp_path):
    files = '[[options.files]]\nname = "made"\nmade_by = [["no-such-program-here"]]\n\n[space.parameters.x]'
    code, found = checked(tmp_path, GOOD.replace("[space.parameters.x]", files))
    assert (code, found["mistakes"]) == (3, [])
    assert [one["path"] for one in found["missing"]] == ["options.files.0.made_by.0.0"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"{y}"]', '"y"]', "parameter 'y' reaches nothing"),
        ('kind = "time"', 'kind = "other"', "took_s has no kind: runs that have lost cannot be stopped early"),
        ('kind = "time"', 'kind = "rate"', ""),
        ("progress = 'step (\\d+)'", "", ""),
        ("answer =", "# answer =", "a fast wrong run would not be noticed"),
        ("metrics =", "# metrics =", "the time of the whole run is optimised"),
        ("trials = 7", "trials = 8", "budget.trials is 8, but there are 7 configurations"),
    ],
)
def test_warnings(tmp_path, old, new, words):
    code, found = checked(tmp_path, GOOD.replace(old, new))
    assert code == 0
    assert [warning for warning in found["warnings"] if words in warning] if words else found["warnings"] == []


def test_an_objective_without_steps_cannot_be_stopped_at_one(tmp_path):
    text = GOOD.replace("progress = 'step (\\d+)'", "") + "\n[stopping]\nmax_steps = 9\n"
    code, found = checked(tmp_path, text)
    assert code == 2
    assert any("cannot be stopped at a step" in problem["message"] for problem in found["mistakes"])


def test_a_space_of_one_configuration_is_told(tmp_path):
    text = f'objective = "command"\n[options]\nargv = ["{PYTHON}", "-V"]\n'
    code, found = checked(tmp_path, text)
    assert code == 0
    assert (found["size"], found["default"]) == (1, {})
    assert "the space has one configuration: there is nothing to tune" in found["warnings"]


def test_files_are_found_beside_the_study_file(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "t.txt").write_text("{x} {zz}\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    files = '[[options.files]]\nname = "t.txt"\ntemplate = "in/t.txt"\n'
    text = GOOD.replace("[space.parameters.x]", f"{files}\n[space.parameters.x]")
    code, found = checked(tmp_path, text)
    assert code == 2
    assert mistakes(found) == {"options.files.0": line(text, "[[options.files]]")}
    assert "'zz'" in found["mistakes"][0]["message"]
    (tmp_path / "in" / "t.txt").write_text("{x}\n")
    assert checked(tmp_path, text)[0] == 0
    (tmp_path / "in" / "t.txt").unlink()
    code, found = checked(tmp_path, text)
    assert mistakes(found) == {"options.files.0.template": line(text, "template")}


def test_a_study_that_ships_is_checked_by_name():
    ended = invoke("check", "replay")
    assert ended.exit_code == 0, ended.output
    assert "right; next: autotune study replay" in ended.output


def test_a_study_that_another_program_runs_has_no_command_and_is_served(tmp_path):
    file = tmp_path / "ext.toml"
    file.write_text('objective = "external"\n[options]\nmetrics = [{ name = "time_s" }]\n' + X)
    ended = invoke("check", str(file))
    assert ended.exit_code == 0, ended.output
    assert "command:" not in ended.output
    assert f"right; next: autotune serve --catalogue {tmp_path}, " in ended.output
    assert "another program makes the runs" in invoke("check", str(file), "--run").output


def test_the_run_of_a_check_waits_for_the_cores_if_it_is_to(tmp_path, monkeypatch):
    monkeypatch.setattr(core_pool, "user_folder", lambda: tmp_path)
    claim = CoreClaim.claim(this_machine().cpus, work="study 'melt'")
    (tmp_path / "a.toml").write_text(GOOD)
    assert isinstance(invoke("check", str(tmp_path / "a.toml"), "--run").exception, BusyError)
    # The check waits for the cores and then looks again; the replaced sleep frees them.
    monkeypatch.setattr(locks, "time", SimpleNamespace(sleep=lambda _: claim.release()))
    ended = invoke("check", str(tmp_path / "a.toml"), "--run", "--wait")
    assert ended.exit_code == 0, ended.output
    assert "study 'melt'" in ended.output


THREAD_MPI = f"""
objective = "command"

[options]
argv = ["{PYTHON}", "-c", "print('took 1')", "-ntmpi", "{{ntmpi}}", "{{= 12 // ntomp}}", "{{used}}"]
threads = "ntmpi * ntomp"
environment = {{ OMP_NUM_THREADS = "{{ntomp}}" }}
metrics = [{{ name = "took_s", unit = "s", pattern = 'took (\\S+)', kind = "time" }}]
files = [{{ name = "in", text = "@= ntmpi + 1@ of {{n}}", delimiters = ["@", "@"] }}]

[space.parameters]
ntmpi = {{ type = "integer", values = [1, 2], default = 1 }}
ntomp = {{ type = "integer", values = [1, 2, 3], default = 1 }}

[space.derived]
used = "ntmpi * ntomp"

[[space.constraints]]
name = "fits"
rule = "used <= 4"
"""


def test_cores_of_a_run_are_an_expression_and_the_users_variable_wins(tmp_path):
    code, found = checked(tmp_path, THREAD_MPI, "--set", "space.parameters.ntomp.default=2")
    assert (code, found["mistakes"], found["size"]) == (0, [], 5)
    assert found["default"] == {"ntmpi": 1, "ntomp": 2}, "a derived value is no option"
    assert "OMP_NUM_THREADS=2" in found["command"]
    assert found["command"].endswith("-ntmpi 1 6 2")
    assert not [warning for warning in found["warnings"] if "reaches nothing" in warning]


def test_the_job_of_a_run_has_the_cores_that_its_expression_says(tmp_path):
    (tmp_path / "mine.toml").write_text(THREAD_MPI, encoding="utf-8")
    study = load(tmp_path / "mine.toml")
    prepared = prepare(study, this_machine(), local_launcher(), tmp_path / "plan")
    job = prepared.plan.objective.job({"ntmpi": 2, "ntomp": 3}, Context(tmp_path))
    assert job.resources.cores == 6
    assert job.environment["OMP_NUM_THREADS"] == "3"
    assert (tmp_path / "in").read_text() == "3 of {n}"
    assert prepared.plan.identity["threads"] == "ntmpi * ntomp"


def test_a_file_of_others_is_read_without_running_or_importing_anything_of_it(tmp_path):
    ran = tmp_path / "ran"
    touch = f"{{ command = ['touch', '{ran}'], pattern = '(.)' }}"
    hostile = f"""
objective = "command"
sampler.name = "evil.module:Sampler"
budget.trials = "many"

[options]
argv = ["touch", "{ran}"]
prepare = [["touch", "{ran}"]]
environment = {{ LD_PRELOAD = "/evil.so" }}
facts.x = {touch}

[software.new]
modules = ["evil"]
"""
    code, found = checked(tmp_path, hostile, "--static")
    assert (code, ran.exists()) == (2, False)
    assert [problem["path"] for problem in found["mistakes"]] == ["budget.trials"]
    assert [note.partition(":")[0].removeprefix("it names ") for note in found["notes"]] == [
        *("sampler.name", "options.argv", "options.prepare", "options.environment", "options.facts.x.command"),
        "software.new.modules",
    ]
    assert checked(tmp_path, GOOD, "--static")[0] == 0
    for text, path in (
        ("objective = 'command'", "options.argv"),
        ("objective = 'comand'", "objective"),
        (GOOD.replace("x < 3 or not", "z < 3 or not"), "space.constraints.0.rule"),
    ):
        code, found = checked(tmp_path, text, "--static")
        assert (code, [problem["path"] for problem in found["mistakes"]]) == (2, [path])
    assert invoke("check", str(tmp_path / "mine.toml"), "--static", "--run").exit_code == 2


def test_what_a_file_of_others_names_neither_speaks_to_the_terminal_nor_shows_secrets():
    table = {"options": {"a\x1b[31m": {"argv": ["\x1b[2J"]}, "environment": {"B\n": "1", "API_KEY": "open-sesame"}}}
    told = [f"{key}: {what}" for key, what in named_programs(table)]
    assert told == [r"options.'a\x1b[31m'.argv: '\x1b[2J'", r"options.environment: 'B\n'='1', API_KEY='***'"]
    assert list(named_programs({"options": {"server": ["ssh", "node2"]}})) == [("options.server", "'ssh' 'node2'")]


def test_mistakes_in_expressions_have_their_path_and_a_caret(tmp_path):
    wrong = THREAD_MPI.replace("12 // ntomp", "12 // ntmop").replace('"ntmpi * ntomp"\nenv', '"ntmpi *"\nenv')
    code, found = checked(tmp_path, wrong.replace("@= ntmpi + 1@", "@= ntmpi + one@"))
    assert code == 2
    mistakes = {problem["path"]: problem["message"] for problem in found["mistakes"]}
    assert mistakes.keys() == {"options.argv.5", "options.threads", "options.files.0"}
    assert (
        "unknown name 'ntmop' (did you mean 'ntomp'?)\n    12 // ntmop\n          ^^^^^" in mistakes["options.argv.5"]
    )
    assert "cannot read this" in mistakes["options.threads"]
    assert "'one'" in mistakes["options.files.0"]
    assert all(problem["line"] for problem in found["mistakes"])


def test_a_key_in_the_wrong_table_is_told_the_right_one(tmp_path):
    text = GOOD.replace("[options]", 'trials = 3\n[options]\ntarget = "took_s"\npairs = 3', 1)
    text = text.replace('type = "integer"', 'rule = "x > 1"', 1) + "\n[space.np]\nlow = 1\n"
    path = tmp_path / "mine.toml"
    path.write_text(text)
    shown = invoke("check", str(path)).stderr
    for line in (
        "unknown key 'trials': it belongs in [budget]\n",
        "unknown key 'target' in [options]: it belongs at the top of the file, before the first [table]\n",
        "unknown key 'pairs' in [options]: it belongs in [verdict]\n",
        "unknown key 'np' in [space]: a parameter is a table, [space.parameters.np]\n",
    ):
        assert line in shown
    path.write_text(text.replace("trials = 3\n", "", 1).rpartition("[space.np]")[0])
    assert "it belongs at the top of the file" in str(invoke("study", str(path), "--dry-run").exception)


def test_a_file_whose_braces_name_no_parameters_is_one_mistake(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        GOOD.replace(
            "[space.parameters.x]",
            """
[[options.files]]
name = "x.c"
text = "struct {a} {b} {c}"

[space.parameters.x]""",
            1,
        )
    )
    shown = invoke("check", str(path)).stderr
    assert "1 mistake" in shown
    assert (
        "the space has no parameter 'a', which is mentioned here, nor 2 others of this file; if none is one, "
        "delimiters = [] leaves all braces as they are @ options.files.0"
    ) in shown
    path.write_text(path.read_text().replace("{a} {b} {c}", "{x} {b}"))
    assert "delimiters" not in invoke("check", str(path)).stderr


def test_a_dangling_option_is_a_warning_with_the_group_to_write(tmp_path):
    code, found = checked(tmp_path, GOOD.replace('"{y}"]', '"--why", "{y}"]'))
    assert code == 0
    assert any('--why stands without a value where y has none; write ["--why", "{y}"]' in w for w in found["warnings"])
    code, found = checked(tmp_path, GOOD.replace('"{y}"]', '["--why", "{y}"]]'))
    assert (code, found["warnings"]) == (0, [])
    assert "--why" not in found["command"]


MIX = GOOD.replace(
    "[space.parameters.x]",
    """[[inputs]]
name = "plain"
[[inputs]]
name = "other"
options = { argv = ["PYTHON", "-c", "print('took', (1 + {x}) / 1000); print('sum 43')"] }
[space.parameters.x]""",
    1,
).replace("PYTHON", PYTHON)


def test_a_mix_shows_the_command_and_the_values_of_each_input(tmp_path):
    code, found = checked(tmp_path, MIX, "--run")
    assert (code, found["mistakes"], found["warnings"]) == (0, [], [])
    first, second = found["command"].splitlines()
    assert first.startswith(
        f"input plain: cd RUN-FOLDER/plain && env AUTOTUNE_SEED=0 OMP_NUM_THREADS=1 {PYTHON} -c 'print("
    )
    assert second.startswith("input other: cd RUN-FOLDER/other && ")
    values = {one["name"]: one["value"] for one in found["run"]["metrics"]}
    assert values == {"mix": pytest.approx(0.003), "took_s[plain]": 0.003, "took_s[other]": 0.003}


def test_nodes_of_each_input_that_cannot_be_read_are_a_mistake_of_that_option(tmp_path):
    text = MIX.replace("progress =", 'nodes = "x //"\nprogress =')
    code, found = checked(tmp_path, text)
    assert (code, mistakes(found)) == (2, {"options.nodes": line(text, "nodes =")})
    assert "cannot read this" in found["mistakes"][0]["message"]


def test_a_mistake_of_an_input_has_its_place_and_one_of_all_is_said_once(tmp_path):
    code, found = checked(tmp_path, MIX.replace("1 + {x})", "1 + {z})"))
    assert (code, list(mistakes(found))) == (2, ["inputs.1.options.argv.2"])
    code, found = checked(tmp_path, MIX.replace(r"sum (\d+)", r"sum (\d+"))
    assert (code, [one["path"] for one in found["mistakes"]]) == (2, ["options.answer.pattern"])


@pytest.mark.parametrize(
    ("changes", "code", "message", "path"),
    [
        ('argv = ["no-such-program"]', 3, "no-such-program", "inputs.1.options.argv.0"),
        ('metrics = [{ name = "other_s", pattern = "took (.*)" }]', 2, "'big' measures other_s", "inputs"),
        (f'argv = ["{PYTHON}", "{{z}}"]', 2, "'z'", "inputs.1.options.argv.1"),
    ],
    ids=["program", "metric", "parameter"],
)
def test_an_input_of_weight_0_that_a_study_would_refuse_is_told_before(tmp_path, changes, code, message, path):
    text = GOOD.replace("[budget]", f"{WITH_BIG}options = {{ {changes} }}\n[budget]")
    ended, found = checked(tmp_path, text)
    assert ended == code
    (problem,) = found["mistakes"] + found["missing"]
    assert message in problem["message"]
    assert problem["path"] == path
    with pytest.raises(CannotRunHereError, match="input 'big'"):
        prepare(parse(load(tmp_path / "mine.toml"), "mine"), this_machine(), local_launcher(), tmp_path / "plan")


def test_an_input_of_weight_0_that_can_be_measured_is_no_problem(tmp_path):
    text = GOOD.replace("[budget]", f"{WITH_BIG}options.environment.SIZE = '9'\n[budget]")
    code, found = checked(tmp_path, text)
    assert (code, found["mistakes"]) == (0, [])
    # What is tuned is no mix: its metric is the program's own.
    assert [metric["name"] for metric in found["metrics"]] == ["took_s"]
    prepared = prepare(load(tmp_path / "mine.toml"), this_machine(), local_launcher(), tmp_path / "plan")
    assert [one.name for one in prepared.verified] == ["big"]
    assert prepared.plan.identity.keys() == prepared.verified[0].plan.identity.keys()


def test_an_input_of_weight_0_beside_a_mix_has_the_metric_of_the_mix(tmp_path):
    text = MIX.replace("[space.parameters.x]", "[[inputs]]\nname = 'big'\nweight = 0\n[space.parameters.x]", 1)
    code, found = checked(tmp_path, text)
    assert (code, found["mistakes"]) == (0, [])
    assert len(found["command"].splitlines()) == 2
    prepared = prepare(load(tmp_path / "mine.toml"), this_machine(), local_launcher(), tmp_path / "plan")
    (big,) = prepared.verified
    assert [metric.name for metric in big.plan.objective.metrics] == ["mix", "took_s[big]"]
    assert prepared.plan.identity["mix"] == "other 0.5, plain 0.5"
