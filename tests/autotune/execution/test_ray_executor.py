"""Where runs are made: nothing else on the machine goes before them by right."""

import os
import subprocess
import sys

# In a process of its own: Ray leaves threads and processes behind until its process ends.
PROGRAM = """
import os
from autotune.execution.ray_executor import local_cluster
import ray

def niceness():
    return os.nice(0)

with local_cluster(1):
    print(ray.get(ray.remote(niceness).remote()))
"""


def test_the_workers_that_start_runs_are_as_nice_as_we_are(tmp_path):
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert int(ended.stdout) == os.nice(0)
