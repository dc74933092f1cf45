"""The space of the UCX that is installed: its values are accepted, and its transports work with them."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from functools import cache

import numpy as np
import pytest

from spaces import Constraint, Space
from spaces.ucx.config import lanes, parse
from spaces.ucx.selection import select
from tests.spaces.ucx.test_selection import space_of

pytestmark = pytest.mark.full

needs_ucx = pytest.mark.skipif(shutil.which("ucx_info") is None, reason="ucx_info is not installed (ucx-utils)")
needs_perftest = pytest.mark.skipif(shutil.which("ucx_perftest") is None, reason="ucx_perftest is not installed")


def ucx_info(*arguments, **environment):
    """Return the output of ucx_info without the UCX variables of the caller."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("UCX_")}
    command = ["ucx_info", *arguments]
    done = subprocess.run(
        command, env={**clean, **environment}, capture_output=True, text=True, timeout=600, check=False
    )
    return done.stdout + done.stderr


@cache
def installed():
    """The variables, transports and selection of this machine."""
    variables = parse(ucx_info("-c", "-f"))
    transports = {line.split()[-1] for line in ucx_info("-d").splitlines() if "Transport:" in line}
    automatic = lanes(ucx_info("-e", "-u", "t", "-P", "intra"))
    return variables, transports, select(variables, transports, automatic=automatic)


def valid_with(selection, name, value):
    """A valid configuration with this value and as little else as need be, for it may need others."""
    wanted = [Constraint("set", f"is_set({name})"), Constraint("to", f"{name} == {value!r}")]
    return Space(selection.parameters, [*selection.constraints, *wanted], {}).nearest({name: value})


@needs_ucx
def test_the_installed_ucx_gives_a_large_space():
    variables, _, selection = installed()
    assert len(variables) > 100
    assert all(variable.syntax and variable.help for variable in variables)
    space = space_of(selection)
    assert space.default() == {}
    assert space.size.value > 10**6
    drawn = space.sample(np.random.default_rng(0), 200)
    assert all(space.contains(configuration) for configuration in drawn)
    assert not any("UCX_UNIFIED_MODE" in found and "UCX_RNDV_SCHEME" in found for found in drawn)
    assert len(Counter(found.get("UCX_TLS") for found in drawn)) > 1


@needs_ucx
def test_a_value_that_ucx_refuses_is_seen_here():
    assert "ERROR" in ucx_info("-e", "-u", "t", UCX_RNDV_SCHEME="nonsense")


@needs_ucx
def test_ucx_accepts_every_value_and_opens_its_transports_with_it():
    _, _, selection = installed()
    for parameter in selection.parameters:
        for value in parameter.values:
            configuration = valid_with(selection, parameter.name, value)
            said = ucx_info("-e", "-u", "t", "-P", "intra", **configuration)
            assert not any(word in said for word in ("ERROR", "WARN", "nvalid")), (configuration, said)


@needs_ucx
def test_ucx_opens_its_transports_with_any_configuration():
    _, _, selection = installed()
    for configuration in space_of(selection).sample(np.random.default_rng(1), 60):
        said = ucx_info("-e", "-u", "t", "-P", "intra", **configuration)
        assert not any(word in said for word in ("ERROR", "WARN", "nvalid")), (configuration, said)


@needs_ucx
@needs_perftest
def test_messages_of_a_mebibyte_arrive_with_any_size_of_buffers_and_any_transport():
    _, _, selection = installed()
    for parameter in selection.parameters:
        if parameter.name.endswith(("SEG_SIZE", "SNDBUF", "RCVBUF", "TLS")):
            for value in parameter.values:
                assert transferred(valid_with(selection, parameter.name, value)) == 0, (parameter.name, value)


def transferred(configuration):
    """The exit status of a transfer between two processes; none is left behind.

    Somebody else may take the port before the server does: then again with another.
    """
    for _ in range(3):
        status = _transferred(configuration)
        if status == 0:
            break
    return status


def _transferred(configuration):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("UCX_")}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {"env": {**clean, **configuration}, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = ["ucx_perftest", "-p", port]
    server = subprocess.Popen(command, start_new_session=True, **common)
    try:
        for _ in range(100):
            time.sleep(0.1)  # a server that is not there yet refuses: then again
            sizes = ["127.0.0.1", "-t", "tag_bw", "-s", str(2**20), "-n", "20", "-w", "2"]
            done = subprocess.run([*command, *sizes], timeout=600, check=False, **common)
            if done.returncode == 0 or server.poll() is not None:
                return done.returncode
        return done.returncode
    finally:
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
