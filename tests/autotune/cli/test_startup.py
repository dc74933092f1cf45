"""A command imports what it needs, and no more: each child process says which modules it has imported when it ends."""

import json
import os
import re
import subprocess
import sys
from functools import partial

import pytest

from autotune.cli.command_table import COMMANDS
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial
from tests.support.warm import autotune

# `import autotune.cli` and what it runs, and then what has been imported.
CHILD = """
import sys, json
sys.argv[0] = 'autotune'
from autotune.cli import main
try:
    main()
except SystemExit as ended:
    code = ended.code or 0
json.dump({"code": code, "modules": sorted(sys.modules)}, open(3, "w"))
"""
# Seconds of the processor, all of them together.
HEAVY = {"ray", "sklearn", "xgboost", "scipy", "matplotlib", "fastapi", "starlette", "uvicorn", "pandas"}
# Optuna takes longer to open a storage than the rest of a command takes; runs are made by what nobody needs who reads.
READING = HEAVY | {"optuna", "alembic", "sqlalchemy", "autotune.coordination.run_manager"}
# What few study files need.
RARE = {"objectives.replay.delimited", "launchers.batch_systems.registry"}
# What help and completion need none of.
HELP = HEAVY | {"optuna", "sqlalchemy", "alembic", "numpy", "psutil", "archspec", "rich", "spaces", "objectives"}


def imported(folder, *words, child=CHILD, **environment):
    """Return the top-level packages, and modules of ours, that a command imported."""
    read, write = os.pipe()
    started = subprocess.Popen(
        [sys.executable, "-c", f"import os; os.dup2({write}, 3)\n{child}", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[write],
        text=True,
    )
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        told = pipe.read()
    said, _ = started.communicate()
    assert told, said
    found = json.loads(told)
    assert found["code"] == 0, said
    return {name.partition(".")[0] for name in found["modules"]} | {
        name for name in found["modules"] if name.startswith(("autotune.", "launchers.", "objectives."))
    }


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    space = small_space()
    store = StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", "paper", definition(space))
    add_trial(store, space, space.default(), took(2.0), worth=Observation(value=2.0))
    return folder


def test_the_help_imports_no_command(tmp_path):
    found = imported(tmp_path, "--help")
    assert not found & HELP
    assert {name for name in found if name.startswith("autotune.")} == {
        *("autotune.cli", "autotune.cli.app", "autotune.cli.command_table", "autotune.cli.group", "autotune.errors"),
    }


@pytest.mark.parametrize("command", ["study", "best", "storage", "confirm", "predict", "serve", "machine", "check"])
def test_the_help_of_a_command_imports_nothing_that_only_its_run_needs(tmp_path, command):
    assert not imported(tmp_path, command, "--help") & HELP


@pytest.mark.parametrize(
    "words",
    [
        *(["storage", "list"], ["best", "paper"], ["trials", "paper"], ["trials", "paper", "--runs"]),
        *(["storage", "list", "--json"], ["best", "paper", "--json"]),
    ],
    ids=" ".join,
)
def test_reading_a_storage_needs_nothing_that_tuning_and_predicting_need(stored, words):
    assert not imported(stored, *words) & READING


@pytest.mark.parametrize(
    "words", [["storage", "list"], ["storage", "list", "--json"], ["trials", "paper", "--runs"]], ids=" ".join
)
def test_what_few_study_files_need_is_read_when_one_does(stored, words):
    assert not imported(stored, *words) & RARE


TINY = """
objective = "command"
options.argv = ["sh", "-c", "exit {x}"]
budget.trials = 1
[space.parameters.x]
type = "integer"
values = [0]
default = 0
"""


# The modules of what requirements/light.lock leaves out.
LEFT_OUT = HEAVY - {"scipy"} | {"anyio", "cmaes", "mcp", "mcp_types"}
NEEDS = {
    "ablate worked --picture a.png": "matplotlib",
    "importance worked": "scikit-learn",
    "mcp": "mcp",
    "model qe": "xgboost-cpu",
    "picture worked --over x": "matplotlib",
    "predict qe": "xgboost-cpu",
    "report worked": "matplotlib and scikit-learn",
    "rightsize qe --deadline 1h": "xgboost-cpu",
    "serve": "fastapi, matplotlib, scikit-learn, uvicorn and xgboost-cpu",
    "study ./worked.toml --name b --ray-address auto": "ray",
    "study ./worked.toml --name c --sampler cmaes": "cmaes",
    "sweep worked --over x --picture a.png": "matplotlib",
}
NEEDS_NOTHING = (
    *("ablate worked", "best worked", "cancel worked", "check ./worked.toml", "compare --runs 2 -- true -- true"),
    *("confirm worked", "doctor", "init -- sleep 1", "machine", "pilot ./worked.toml", "replay worked", "storage list"),
    *("studies", "study ./worked.toml --name a", "sweep worked --over x", "trials worked", "watch worked"),
)


@pytest.fixture(scope="module")
def worked(tmp_path_factory):
    """Return a function that runs a command without the packages that a light installation lacks, and its folder.

    The folder has a study with a winner. A user folder of its own keeps the cores apart from those of other tests.
    """
    folder, user = tmp_path_factory.mktemp("worked"), tmp_path_factory.mktemp("user")
    user.chmod(0o700)
    run = partial(autotune, folder, lacks=LEFT_OUT, AUTOTUNE_USER_FOLDER=str(user))
    text = TINY.replace("exit {x}", "sleep .{x}").replace("[0]", "[1, 2]").replace("default = 0", "default = 2")
    (folder / "worked.toml").write_text(text.replace("trials = 1", "trials = 2"), encoding="utf-8")
    ended = run("study", "./worked.toml")
    assert ended.returncode == 0, ended.stderr
    return run, folder


@pytest.mark.slow
@pytest.mark.parametrize(("words", "packages"), NEEDS.items())
def test_a_command_names_the_packages_that_it_lacks_before_it_runs_anything(worked, words, packages):
    run, folder = worked
    before = sorted(folder.rglob("*"))
    ended = run(*words.split())
    said = ended.stderr.splitlines()[-1]
    assert ended.returncode == 3, said
    assert re.search(rf" needs {packages}(:|, which .*:) {sys.executable} -m pip install ", said)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.full
@pytest.mark.parametrize("words", NEEDS_NOTHING)
def test_the_other_commands_do_without(worked, words):
    run, _ = worked
    ended = run(*words.split())
    assert ended.returncode == 0, ended.stderr


def test_each_command_is_known_to_need_packages_or_not():
    assert {words.split()[0] for words in (*NEEDS, *NEEDS_NOTHING)} == {entry.name for entry in COMMANDS}


@pytest.mark.slow
def test_a_session_on_this_machine_waits_for_no_ray_and_for_no_model(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY, encoding="utf-8")
    folder = tmp_path / "user"
    folder.mkdir(mode=0o700)
    found = imported(tmp_path, "study", "./tiny.toml", "--quiet", "--workers", "2", AUTOTUNE_USER_FOLDER=str(folder))
    assert not found & (LEFT_OUT | {"autotune.performance.rightsizing"})


@pytest.mark.parametrize("words", [["storage", "list"], ["best", "paper"], ["trials", "paper"]], ids=" ".join)
def test_a_storage_that_is_not_there_is_refused_before_anything_is_imported(tmp_path, words):
    said = CHILD.replace("code = ended.code or 0", "code = 0")
    assert not imported(tmp_path, *words, child=said) & (READING | {"pydantic.main", "numpy", "rich"})


@pytest.mark.parametrize("command", ["compare", "sweep"])
def test_commands_are_compared_without_what_stores_studies(tmp_path, command):
    words = ["--", "true", "--", "true"] if command == "compare" else ["--over", "x=1,2", "--", "true", "{x}"]
    option = ["--runs", "1"] if command == "compare" else ["--repeats", "1"]
    assert not imported(tmp_path, command, *option, *words) & READING
