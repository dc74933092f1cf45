"""A study of a server, from its file to the script that starts the winner."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.launchers.jobs import wait_for
from tests.support import tiny_load, tiny_server
from tests.support.processes import left_in
from tests.support.quick_study import QUICK
from tests.support.warm import autotune

pytestmark = [pytest.mark.slow, pytest.mark.cores(1)]

STUDY = f"""
objective = "command"

[options]
argv = ["{sys.executable}", "-I", "-S", "{tiny_load.__file__}", "{{port}}", "{{rate}}"]
metrics = [{{ name = "p99_ms", unit = "ms", pattern = '^p99 (\\S+) ms' }}]

[options.server]
argv = ["{sys.executable}", "-I", "-S", "{tiny_server.__file__}", "{{port}}", "serves", "{{capacity}}"]
highest = {{ name = "rate", unit = "1/s", from = 1, to = 64, keep = {{ p99_ms = 10 }} }}

[space.parameters.capacity]
type = "integer"
values = [5, 20]
default = 5
"""


def test_a_study_finds_the_server_with_the_highest_load_and_its_script_starts_it(tmp_path):
    (tmp_path / "web.toml").write_text(STUDY)
    ended = autotune(tmp_path, "study", "./web.toml", "--trials", "2", *QUICK, AUTOTUNE_NOISE="accept")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert left_in(tmp_path) == []
    best = json.loads(autotune(tmp_path, "best", "web", "--json").stdout)
    assert best["best"]["configuration"] == {"capacity": 20}
    assert "times as fast" in ended.stdout, "the verdict compares the highest loads"
    script = tmp_path / "web.sh"
    script.write_text(autotune(tmp_path, "best", "web", "--script", "sh").stdout)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        ["bash", script], cwd=tmp_path, env={**os.environ, "PORT": str(port)}, start_new_session=True
    )
    try:
        assert b"capacity 20" in wait_for(lambda: _page(port))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    assert left_in(tmp_path) == [], "the script became the server"


def test_a_parameter_cannot_have_the_name_of_a_value_that_only_a_run_knows(tmp_path):
    table = '\n[space.parameters.port]\ntype = "integer"\nvalues = [1, 2]\ndefault = 1\n'
    (tmp_path / "web.toml").write_text(STUDY + table)
    line = (STUDY + table).splitlines().index("[space.parameters.port]") + 1
    ended = autotune(tmp_path, "check", "./web.toml")
    assert ended.returncode == 2
    assert f"line {line}: {{port}} is a value that each run gives its server" in (ended.stdout + ended.stderr)


def _page(port: int) -> bytes:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return connection.makefile("rb").read()
    return b""
