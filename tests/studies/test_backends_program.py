"""The program of backends of torch.distributed, with gloo: figures of every collective, and wrong results."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from launchers import EndReason, Job, JobState, JobStatus, Usage
from objectives.base import POINTS, Output
from objectives.mpi import openmpi
from objectives.mpi.objective import MpiObjective
from objectives.mpi.options import COLLECTIVES

PROGRAM = Path("studies/programs/mpi/backends.py").absolute()
PYTHON = Path(os.environ.get("AUTOTUNE_TORCH_PYTHON") or Path(sys.prefix) / "share/autotune/torch/bin/python")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not PYTHON.is_file(), reason="no Python with torch here: AUTOTUNE_TORCH_PYTHON"),
]


def ran(*words):
    command = [str(PYTHON), *words]
    environment = os.environ | {"PYTHONPATH": str(PROGRAM.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)


# The ranks are started once for all collectives, since importing torch takes longer than measuring.
EVERY = """
import sys
from dataclasses import replace

import backends

def work(rank, asked):
    for collective in asked.collective.split(","):
        sizes = (0,) if collective == "barrier" else asked.sizes
        one = replace(asked, collective=collective, sizes=sizes, meeting=f"{asked.meeting}-{collective}")
        backends.work(rank, one)

if __name__ == "__main__":
    backends.work = work
    sys.exit(backends.main())
"""
SIZES = "8,4096"  # three ranks cannot share these numbers evenly


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """Return what three ranks print of each collective."""
    program = tmp_path_factory.mktemp("every") / "every.py"
    program.write_text(EVERY)
    ended = ran("-P", str(program), "gloo", "3", ",".join(COLLECTIVES), "0.01", SIZES)
    assert ended.returncode == 0, ended.stderr
    parts = re.findall(r'.*?^\{"result".*?\n', ended.stdout, re.DOTALL | re.MULTILINE)
    return {json.loads(part.splitlines()[-1])["result"]["collective"]: part for part in parts}


def check(said, sizes):
    """Check that it is read as figures of these sizes."""
    status = JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(1.0))
    output = Output(said, "", status, Path("/nowhere"), Job((str(PYTHON),), Path("/nowhere")))
    measured = MpiObjective("", sizes, 0.01, 2, openmpi.environment).measure(output)
    assert [size for size, _ in measured.details[POINTS]] == [int(size) for size in sizes.split(",")]
    assert measured.details["ranks"] == 3
    assert measured.details["oversubscribed"] is True


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_is_measured_as_mpi_is(every, collective):
    check(every[collective], "0" if collective == "barrier" else SIZES)


def test_the_program_measures_the_one_that_it_is_asked_for():
    ended = ran("-P", str(PROGRAM), "gloo", "3", "allreduce", "0.01", SIZES)
    assert ended.returncode == 0, ended.stderr
    check(ended.stdout, SIZES)
    assert json.loads(ended.stdout.splitlines()[-1])["result"]["collective"] == "allreduce"


def test_wrong_numbers_are_counted(tmp_path):
    text = (
        "import backends, torch, torch.distributed as dist\n"
        f"dist.init_process_group('gloo', init_method='file://{tmp_path}/meeting', rank=0, world_size=1)\n"
        "for name in ('allreduce', 'reduce', 'bcast', 'allgather', 'alltoall', 'reduce_scatter'):\n"
        "    operation = backends.Operation(name, 0, 1, 5, torch.device('cpu'))\n"
        "    assert operation.wrong() == 0, name\n"
        "    once = operation.once\n"
        "    def spoilt():\n"
        "        once()\n"
        "        operation._to[2] += 1\n"
        "    operation.once = spoilt\n"
        "    assert operation.wrong() == 1, name\n"
        "dist.destroy_process_group()\n"  # as the program does: its threads must not outlive the interpreter
    )
    ended = ran("-c", text)
    assert ended.returncode == 0, ended.stderr


def test_what_cannot_be_asked_for_is_said():
    ended = ran(str(PROGRAM), "gloo", "two", "bcast", "0.01", "8")
    assert ended.returncode == 2
    assert ended.stderr.startswith("usage: backends.py")
