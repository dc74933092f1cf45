"""The program of backends of torch.distributed, with gloo: figures of every collective, and what notices wrong ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from launchers import EndReason, Job, JobState, JobStatus, Usage
from objectives.base import POINTS, Output
from objectives.mpi import openmpi
from objectives.mpi.objective import MpiObjective
from objectives.mpi.options import COLLECTIVES

PROGRAM = Path("objectives/mpi/programs/backends.py").absolute()
PYTHON = Path(os.environ.get("AUTOTUNE_TORCH_PYTHON") or Path(sys.prefix) / "share/autotune/torch/bin/python")

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.is_file(), reason="no Python with torch here: AUTOTUNE_TORCH_PYTHON"),
]


def ran(*words):
    command = [str(PYTHON), *words]
    environment = os.environ | {"PYTHONPATH": str(PROGRAM.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=240)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_is_measured_as_mpi_is(collective):
    # Numbers that three ranks cannot share evenly are among the sizes.
    sizes = "0" if collective == "barrier" else "8,4096"
    ended = ran("-P", str(PROGRAM), "gloo", "3", collective, "0.01", sizes)
    assert ended.returncode == 0, ended.stderr
    status = JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(1.0))
    output = Output(ended.stdout, ended.stderr, status, Path("/nowhere"), Job((str(PYTHON),), Path("/nowhere")))
    measured = MpiObjective("", sizes, 0.01, 2, openmpi.environment).measure(output)
    assert [size for size, _ in measured.details[POINTS]] == [int(size) for size in sizes.split(",")]
    assert measured.details["ranks"] == 3
    assert measured.details["oversubscribed"] is True


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
