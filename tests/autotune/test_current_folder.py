"""No process of ours imports a module from the current folder, where others, or another project, may have put some."""

import ast
import json
import os
import shutil
import subprocess
import sys

import pytest
from ray.core.generated.common_pb2 import JobConfig

from autotune.execution.ray_executor import _OwnPaths
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from launchers.own_python import own_python
from tests.autotune.service.serving import Service
from tests.docs.page import ROOT
from tests.support.fakes import definition, small_space, took
from tests.support.quick_study import quick_sections
from tests.support.stored import add_trial
from tests.support.waiting import wait_for

PACKAGES = ("autotune", "launchers", "objectives", "spaces", "studies", "ray", "numpy", "optuna", "multiprocessing")
MODULES = ("json", "contextlib", "typing", "pathlib", "subprocess", "sitecustomize", "usercustomize")
STUDY = r"""
objective = "command"
[options]
argv = ["sh", "-c", "echo took {x}"]
metrics = [{ name = "took_s", unit = "s", pattern = 'took (\S+)' }]
""" + quick_sections(trials=2, high=4)
# The installed command.
SCRIPT = "import sys\nfrom autotune.cli import main\nsys.exit(main())\n"
# Starts a process of each kind that does without Ray, and a study that ends at once, since its file is missing.
KINDS = """
import os, sys, time
from pathlib import Path
from autotune.machines import workers
from autotune.search.plan_process import PlanProcess
from autotune.supervision import Order
from autotune.supervision.shim import LOG
from autotune.supervision.spawn import Starter
from launchers import Job, local
from launchers.run import run
from tests.support.fakes import small_space

folder = Path(sys.argv[1])
local.end_with_this_process()
status = run(local.local_launcher(), Job(("true",), folder, prepare=(("true",),)))
assert status.exit_code == 0, status
measuring = workers._start_worker(min(os.sched_getaffinity(0)), os.environ)
measuring.stdin.close()
assert measuring.wait(60) == 0
planning = PlanProcess(small_space())
planning._start().close()
assert planning._process.wait(60) == 0
order = Order(study="mine", file=folder / "missing.toml", name="mine")
Starter(f"sqlite:///{folder}/autotune.db", Path.cwd(), 1000).start(folder, order, 0)
while "missing.toml" not in (folder / LOG).read_text():
    time.sleep(0.1)
assert local._guards[0].poll() is None
"""


@pytest.fixture
def hostile(tmp_path):
    """Provide a folder with modules that note their names when they are imported."""
    folder, noted = tmp_path / "hostile", tmp_path / "imported"
    text = f"open({str(noted)!r}, 'a').write(__name__ + ' ')\nraise ImportError('hostile')\n"
    for name in PACKAGES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(text)
    for name in MODULES:
        (folder / f"{name}.py").write_text(text)
    (folder / "matplotlibrc").write_text("text.usetex: True\n")  # starts latex
    (folder / "study.toml").write_text(STUDY)
    yield folder
    assert not noted.exists(), noted.read_text()


@pytest.fixture
def command(tmp_path):
    """Return the words that start the installed command."""
    path = tmp_path / "bin" / "autotune"
    path.parent.mkdir()
    path.write_text(SCRIPT)
    return sys.executable, str(path)


def run(folder, *words, code=0, **variables):
    """Run a command in the folder, and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def trials(folder, command, name="study"):
    """Return the states of the trials of a study."""
    return [row["state"] for row in json.loads(run(folder, *command, "trials", name, "--json"))]


@pytest.mark.parametrize(
    "words",
    [
        ["storage", "list"],
        *(pytest.param(words.split(), marks=pytest.mark.slow) for words in ("check study.toml", "report paper")),
        pytest.param(["study", "study.toml", "--dry-run"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_command_imports_nothing_from_the_current_folder(hostile, command, words):
    space = small_space()
    store = StudyStore.create(f"sqlite:///{hostile / 'autotune.db'}", "paper", definition(space))
    add_trial(store, space, space.default(), took(2.0), worth=Observation(value=2.0))
    run(hostile, *command, *words)


@pytest.mark.slow
def test_python_m_imports_nothing_from_the_current_folder(hostile):
    run(hostile, sys.executable, "-P", "-m", "autotune", "check", "study.toml")
    # Without -P, Python imports these two before anything of ours runs.
    shutil.rmtree(hostile / "autotune")
    (hostile / "contextlib.py").unlink()
    run(hostile, sys.executable, "-m", "autotune", "check", "study.toml")


def test_python_m_in_a_checkout_of_another_version_is_refused(tmp_path):
    package = tmp_path / "autotune"
    package.mkdir()
    for name in ("__init__.py", "__main__.py"):
        shutil.copy(ROOT / "autotune" / name, package)
    said = run(tmp_path, sys.executable, "-m", "autotune", "--version", code=1)
    assert f"would start {package} of the current folder, but {ROOT / 'autotune'} is installed" in said
    assert run(tmp_path, sys.executable, "-P", "-m", "autotune", "--version").startswith("autotune ")


@pytest.mark.parametrize(
    ("path", "means"), [("ROOT:", "ROOT"), (":ROOT::lib", "ROOT:HERE/lib"), ("ROOT:.", "ROOT:HERE")]
)
def test_an_empty_entry_of_pythonpath_does_not_mean_the_current_folder(tmp_path, path, means):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\nfrom autotune.cli import main\ntry: main()\nexcept SystemExit: pass\n"
        "print(os.getcwd() in sys.path, os.environ['PYTHONPATH'])\n"
    )
    here = tmp_path / "here"
    here.mkdir()
    said = run(here, sys.executable, str(program), "--version", PYTHONPATH=path.replace("ROOT", str(ROOT)))
    is_searched, handed_on = said.splitlines()[-1].split()
    assert is_searched == str(means.endswith("HERE"))
    assert handed_on == means.replace("ROOT", str(ROOT)).replace("HERE", str(here))


@pytest.mark.slow
def test_processes_that_we_start_import_nothing_from_the_current_folder(hostile, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    run(hostile, sys.executable, "-P", "-c", KINDS, str(folder))


@pytest.mark.slow
@pytest.mark.cores(1)
def test_a_pilots_study_imports_nothing_from_the_current_folder(hostile, command):
    run(hostile, *command, "pilot", "./study.toml")
    run(hostile, "bash", "autotune-job.sh")
    assert trials(hostile, command) == ["complete"] * 2


@pytest.mark.slow
@pytest.mark.cores(1)
def test_a_node_of_a_pilot_and_its_study_import_nothing_from_the_current_folder(hostile, command, tmp_path):
    meeting = tmp_path / "meeting"
    head = [*own_python("autotune.execution.ray_node"), str(meeting), "--head", "--num-cpus=1"]
    settings = {"PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(meeting / "token")}
    with subprocess.Popen(head, cwd=hostile, env={**os.environ, **settings}) as node:
        wait_for((meeting / "address").exists)
        address = (meeting / "address").read_text().strip()
        run(hostile, *command, "study", "./study.toml", "--ray-address", address, **settings)
        (meeting / "stop").touch()
        assert node.wait(60) == 0
    assert trials(hostile, command) == ["complete"] * 2


@pytest.mark.slow
@pytest.mark.cores(1)
def test_a_service_and_its_study_import_nothing_from_the_current_folder(hostile, command, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    service = Service(hostile, command=command)
    (hostile / "catalogue" / "mine.toml").write_text(STUDY)
    service.start()
    try:
        with service.client() as client:
            client.start("mine")
        service.until("mine", "finished", "failed")
    finally:
        service.stop()
    assert trials(hostile, command, "mine") == ["complete"] * 2


# A sample program of a study file that is to be written, which the user replaces.
SAMPLES = {("study_template.py", "-c")}
INTERPRETERS = {"sys.executable", "python", "python.path", "self.site.python", "job.python"}


def interpreter_options(path):
    """Yield the first option of the interpreter in each command of a Python that a module starts."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "python" in text or "sys.executable" in text else ():
        match node:
            case ast.List(elts=[first, second, *_]) | ast.Tuple(elts=[first, second, *_]):
                option = second.value if isinstance(second, ast.Constant) else ast.unparse(second)
                if ast.unparse(first) in INTERPRETERS and str(option).startswith(("-", "*")):
                    yield option


def test_every_python_that_is_started_ignores_the_current_folder():
    rooms = ("autotune", "objectives", "launchers", "spaces")
    sources = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    found = {(path.name, option) for path in sources for option in interpreter_options(path)}
    assert ("own_python.py", "-P") in found
    assert {(name, option) for name, option in found if option not in {"-P", "-I", "*_FLAGS"}} == SAMPLES


def test_rays_workers_get_no_folder_of_this_process():
    ours = _OwnPaths()
    ours._py_driver_sys_path.extend(["/tmp/hostile"])  # as ray.init does
    said = JobConfig()
    said.ParseFromString(ours._serialize())
    assert list(said.py_driver_sys_path) == []
