"""A node of a private Ray cluster: the options of `ray start`, and how the hosts find each other."""

import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autotune.errors import ExitCode
from autotune.execution.ray_node import (
    RayNode,
    answers,
    free_port,
    main,
    own_address,
    ray_environment,
    wait_for_address,
    watch,
)
from tests.support.waiting import wait_for

MEETING = Path("/cluster/meet")
STRANGER = 65534
# A user who tries the token of a node if they can read it, one that they made up, and none.
CALLER = """
import os, sys
from pathlib import Path
from ray._raylet import AuthenticationTokenLoader, Config, GcsClient
address, uid, path = sys.argv[1:]
os.setuid(int(uid))
tokens = {"made-up": "0" * 64, "none": ""}
try:
    tokens["token"] = Path(path).read_text().strip()
except OSError:
    pass
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


def node(**changes) -> RayNode:
    values = {"head": "10.0.0.1:6400", "address": "10.0.0.1", "is_head": True, "cpus": 48, "gpus": None}
    return RayNode(**{**values, "folder": Path("/tmp/autotune-7/r1234"), **changes})


COMMON = (
    "--num-cpus=48 --object-store-memory=83886080 --plasma-directory=/dev/shm"
    " --min-worker-port=0 --max-worker-port=0 --disable-usage-stats"
)


def test_the_head():
    assert " ".join(node().argv("python")) == (
        "python -P -m ray.scripts.scripts start --head --port=6400 --temp-dir=/tmp/autotune-7/r1234"
        f" --include-dashboard=false --node-ip-address=10.0.0.1 {COMMON} --block"
    )


def test_another_node():
    argv = node(is_head=False, address="10.0.0.2", gpus=4).argv("python")
    assert " ".join(argv) == (
        "python -P -m ray.scripts.scripts start --address=10.0.0.1:6400 --node-ip-address=10.0.0.2"
        f" {COMMON.replace('--object', '--num-gpus=4 --object')} --block"
    )


def test_rays_workers_are_as_nice_as_others_and_only_this_user_may_talk_to_them():
    environment = ray_environment({"PATH": "/bin", "RAY_worker_niceness": "3"}, MEETING)
    assert environment["RAY_worker_niceness"] == "3"
    assert ray_environment({}, MEETING)["RAY_worker_niceness"] == "0"
    assert environment["RAY_AUTH_MODE"] == "token"
    assert environment["RAY_AUTH_TOKEN_PATH"] == "/cluster/meet/token"
    assert environment["PATH"] == "/bin"
    profile = {"RAY_AUTH_TOKEN": "a", "RAY_AUTH_TOKEN_PATH": "/home/me/.ray/auth_token", "RAY_AUTH_MODE": "Token"}
    assert ray_environment(profile, MEETING) == ray_environment({}, MEETING)


def test_a_node_that_would_let_everybody_in_does_not_start(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert main([str(tmp_path / "meet"), "--head", "--node-ip-address=127.0.0.1"]) == ExitCode.CANNOT_RUN_HERE
    assert "unset RAY_AUTH_MODE" in capsys.readouterr().err


def test_a_meeting_place_that_others_may_enter_is_refused(tmp_path, capsys):
    tmp_path.chmod(0o755)
    assert main([str(tmp_path), "--head"]) == ExitCode.CANNOT_RUN_HERE
    assert "others may enter" in capsys.readouterr().err


def test_a_host_knows_its_address_on_the_way_to_another():
    assert own_address("127.0.0.1") == "127.0.0.1"
    assert own_address().count(".") == 3
    assert free_port("127.0.0.1") != free_port("127.0.0.1")


def test_nodes_wait_for_the_head_but_not_for_ever(tmp_path):
    with pytest.raises(TimeoutError, match="do all hosts see that folder"):
        wait_for_address(tmp_path, 0.0)
    (tmp_path / "address").write_text("10.0.0.1:6400\n")
    assert wait_for_address(tmp_path, 0.0) == "10.0.0.1:6400"


def test_whether_somebody_listens():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        assert not answers(f"127.0.0.1:{port}")
        listener.listen()
        assert answers(f"127.0.0.1:{port}")
    with pytest.raises(ValueError, match="HOST:PORT"):
        answers("head")


@pytest.fixture
def sleeping_ray():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def test_a_head_writes_its_address_and_waits_until_it_is_stopped(tmp_path, sleeping_ray):
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        head = f"127.0.0.1:{listener.getsockname()[1]}"
        watching = pool.submit(watch, node(head=head), tmp_path, sleeping_ray, 600.0)
        try:
            while not (tmp_path / "address").is_file():
                assert not watching.done()
                time.sleep(0.01)
            assert (tmp_path / "address").read_text() == f"{head}\n"
        finally:
            (tmp_path / "stop").touch()
        assert watching.result() is False
    assert sleeping_ray.poll() is None


def test_a_node_whose_head_does_not_answer_ends(tmp_path, sleeping_ray, capsys):
    lost = node(is_head=False, head=f"127.0.0.1:{free_port('127.0.0.1')}")
    assert watch(lost, tmp_path, sleeping_ray, 0.0) is True
    assert "has not answered for 0 s: this node ends" in capsys.readouterr().err


def test_a_node_whose_ray_has_ended_waits_no_longer(tmp_path, sleeping_ray):
    sleeping_ray.kill()
    sleeping_ray.wait()
    assert watch(node(), tmp_path, sleeping_ray, 600.0) is False


@pytest.mark.slow
def test_only_the_token_of_a_node_lets_a_process_in(tmp_path):
    meeting, address = tmp_path / "meeting", "--node-ip-address=127.0.0.1"
    words = ["-P", "-m", "autotune.execution.ray_node", str(meeting), "--head", address, "--num-cpus=1"]
    let_in = {}
    with subprocess.Popen([sys.executable, *words]) as head:
        wait_for((meeting / "address").exists)
        for uid in (os.getuid(), *([STRANGER] if os.geteuid() == 0 else [])):
            place = (meeting / "address").read_text().strip(), str(uid), str(meeting / "token")
            caller = subprocess.run([sys.executable, "-c", CALLER, *place], capture_output=True, text=True, check=True)
            let_in[uid] = caller.stdout.split()
        (meeting / "stop").touch()
        assert head.wait(60) == 0
    assert let_in.pop(os.getuid()) == ["token"]
    assert not any(let_in.values())
