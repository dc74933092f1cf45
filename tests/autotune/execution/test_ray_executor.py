"""Private Ray instances: runs have normal priority, and other users have no access."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from ray.exceptions import LocalRayletDiedError

from autotune.errors import CannotRunHereError, ExitCode, InterruptedSessionError
from autotune.execution import ray_executor
from autotune.execution.ray_access import find_exposed_token, ray_start_errors, with_token
from autotune.execution.ray_executor import RayExecutor
from autotune.execution.task import Task
from launchers import Job
from launchers.local import local_launcher
from tests.support.fakes import PaperObjective

# In a process of its own: Ray leaves threads and processes behind until its process ends.
PROGRAM = """
import json, os, stat, subprocess, sys
from contextlib import suppress
from pathlib import Path
import psutil
from autotune.execution.ray_executor import local_cluster
import ray

def niceness():
    return os.nice(0)

def started():
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended
            found.append(" ".join(process.cmdline()))
    return found

with local_cluster(1):
    token = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
    address = ray.get_runtime_context().gcs_address
    said = {
        "niceness": ray.get(ray.remote(niceness).remote()),
        "started": started(),
        "token": token.read_text().strip(),
        "modes": [stat.S_IMODE(path.stat().st_mode) for path in (token, token.parent)],
    }
    for uid in sys.argv[2:]:
        command = [sys.executable, "-c", sys.argv[1], address, uid, str(token)]
        said[uid] = subprocess.run(command, capture_output=True, text=True).stdout.split()
said["left"] = token.parent.exists()
print(json.dumps(said))
"""

# Somebody who tries whatever tokens they can read, one that they made up, and none.
CALLER = """
import os, sys
from pathlib import Path
from ray._raylet import AuthenticationTokenLoader, Config, GcsClient
address, uid, path = sys.argv[1:]
os.setuid(int(uid))
tokens = {"made-up": "0" * 64, "none": ""}
for place in (Path.home() / ".ray" / "auth_token", Path(path)):
    try:
        tokens[place.name] = place.read_text().strip()
    except OSError:
        pass
del os.environ["RAY_AUTH_TOKEN_PATH"]
for name, token in tokens.items():
    os.environ.update(RAY_AUTH_MODE="token" if token else "disabled", RAY_AUTH_TOKEN=token)
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
    try:
        GcsClient(address=address).internal_kv_put(b"a", b"1", True, b"test", 5)
        print(name)
    except Exception:
        pass
"""
STRANGER = 65534


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    # A home that others may enter, as on many hosts.
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        callers = [str(os.getuid()), *([str(STRANGER)] if os.geteuid() == 0 else [])]
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, CALLER, *callers],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path_factory.mktemp("ray"),
            env={**os.environ, "HOME": home},
        )
    return json.loads(ended.stdout)


@pytest.mark.slow
def test_the_workers_that_start_runs_are_as_nice_as_we_are(said):
    assert said["niceness"] == os.nice(0)


@pytest.mark.slow
def test_no_service_of_ray_that_nobody_asks_runs_beside_what_is_measured(said):
    started = "\n".join(said["started"])
    assert "raylet" in started
    assert not [name for name in ("log_monitor.py", "monitor.py", "dashboard.py") if name in started]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_another_user_of_the_host_has_no_token_and_is_kept_out(said):
    assert said[str(STRANGER)] == []
    # The same program gets in as the owner, by the token of this instance alone.
    assert said[str(os.getuid())] == ["token"]


def test_the_token_is_for_this_user_only_and_goes_with_the_instance(said):
    assert said["modes"] == [0o600, 0o700]
    assert len(said["token"]) == 64
    assert not said["left"]


@pytest.mark.parametrize("mode", ["disabled", "k8s"])
def test_an_environment_that_lets_everybody_in_is_refused(tmp_path, mode):
    with pytest.raises(CannotRunHereError, match=f"RAY_AUTH_MODE={mode}.*unset RAY_AUTH_MODE"):
        with_token({"RAY_AUTH_MODE": mode}, tmp_path)


def test_a_token_of_rays_own_that_others_can_read_is_named(monkeypatch):
    with tempfile.TemporaryDirectory() as home:
        monkeypatch.setenv("HOME", home)
        token = Path(home) / ".ray" / "auth_token"
        token.parent.mkdir(mode=0o755)
        assert find_exposed_token() is None
        token.write_text("secret")
        token.chmod(0o644)
        assert find_exposed_token() is None  # nobody else may enter the home
        Path(home).chmod(0o711)
        assert find_exposed_token() == token
        token.chmod(0o600)
        assert find_exposed_token() is None


def failing(error, folder="/tmp"):
    with ray_start_errors(Path(folder)):
        raise error


def test_a_ray_that_does_not_start_is_an_error_in_words_and_the_study_can_go_on():
    with pytest.raises(InterruptedSessionError, match="did not start: The node timed out\nevery finished") as caught:
        failing(Exception("The node timed out. This could happen because the GCS has become overloaded"))
    # A supervisor starts the study again after it.
    assert caught.value.exit_code == ExitCode.INTERRUPTED
    with pytest.raises(SystemExit):
        failing(SystemExit(1))


def test_a_ray_that_is_gone_ends_the_session_and_fails_no_run(monkeypatch, tmp_path):
    def gone(_):
        raise LocalRayletDiedError

    executor = RayExecutor(1, local_launcher())
    job = Job(("true",), tmp_path, name="00001")
    executor._running["reference"] = Task(1, job, PaperObjective())
    monkeypatch.setattr(ray_executor.ray, "wait", lambda references, **_: (references, []))
    monkeypatch.setattr(ray_executor.ray, "get", gone)
    with pytest.raises(InterruptedSessionError, match="local raylet died\nevery finished run is stored"):
        executor.wait(0.0)
