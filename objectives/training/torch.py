"""Find the Python that has PyTorch: it runs our training programs, and need not be the one that runs autotune."""

import json
from dataclasses import dataclass
from pathlib import Path

from launchers.software.digest import file_digest, text_digest
from objectives.base import PlanError, RunJob
from objectives.probe import PROGRAMS, Probe
from spaces.parameters.problem import Problem

TRAINERS = PROGRAMS / "training"
"""The folder of our training programs, each a package."""

_LIMIT_S = 120.0
_INSTALL = "python3 -m venv V && V/bin/pip install torch numpy, python = V/bin/python"
_PROBE = """
import json, numpy, torch
gpu = torch.cuda.is_available()
print(json.dumps({"torch": torch.__version__, "numpy": numpy.__version__,
    "gpus": torch.cuda.device_count() if gpu else 0,
    "gpu": torch.cuda.get_device_name(0) if gpu else "",
    "gpu_bytes": torch.cuda.get_device_properties(0).total_memory if gpu else 0}))
"""


@dataclass(frozen=True)
class TorchPython:
    """An interpreter with PyTorch, and the GPUs that it sees.

    Args:
        path: Its path.
        torch: The version of PyTorch.
        numpy: The version of NumPy.
        gpus: The number of GPUs.
        gpu: The name of the first GPU; empty without GPUs.
        gpu_bytes: The memory of the first GPU.
    """

    path: str
    torch: str
    numpy: str
    gpus: int
    gpu: str
    gpu_bytes: int = 0

    @property
    def identity(self) -> dict[str, str]:
        """The versions and the GPU, as a part of what makes measurements comparable."""
        return {"torch": self.torch, "numpy": self.numpy, "gpu": self.gpu or "none"}


def find_python(asked: str | None, run_job: RunJob, folder: Path) -> TorchPython:
    """Return the interpreter that was asked for, or the first with PyTorch.

    Raises:
        PlanError: No interpreter here has PyTorch.
    """
    for path, text in Probe(run_job, folder, _LIMIT_S).find_pythons(asked, "torch", _PROBE):
        found = json.loads(text)
        return TorchPython(path, found["torch"], found["numpy"], found["gpus"], found["gpu"], found.get("gpu_bytes", 0))
    which = f"python = {asked!r} has no working PyTorch" if asked else "no Python here has PyTorch"
    msg = f"{which}; ./run installs one, or: {_INSTALL}"
    raise PlanError(Problem(msg, "options.python"))


def program_digest(program: str) -> str:
    """Return the digest of one of our programs."""
    files = [*sorted(TRAINERS.glob(f"{program}/*.py")), *sorted(TRAINERS.glob("*.py"))]
    return text_digest(" ".join(file_digest(file) for file in files))
