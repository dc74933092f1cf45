"""Where runs are made: nothing else on the machine goes before them by right."""

import os
import subprocess
import sys

import pytest

# In a process of its own: Ray leaves threads and processes behind until its process ends.
PROGRAM = """
import os
import psutil
from autotune.execution.ray_executor import local_cluster
import ray

def niceness():
    return os.nice(0)

with local_cluster(1):
    print(ray.get(ray.remote(niceness).remote()))
    for process in psutil.Process().children(recursive=True):
        print(" ".join(process.cmdline()))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=folder)
    return ended.stdout.splitlines()


@pytest.mark.slow
def test_the_workers_that_start_runs_are_as_nice_as_we_are(said):
    assert int(said[0]) == os.nice(0)


def test_no_service_of_ray_that_nobody_asks_runs_beside_what_is_measured(said):
    started = "\n".join(said[1:])
    assert "raylet" in started
    assert not [name for name in ("log_monitor.py", "monitor.py", "dashboard.py") if name in started]
