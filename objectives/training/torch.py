"""The Python that has PyTorch: programs that train are run by it, since it need not be the one that runs autotune."""

import json
from dataclasses import dataclass
from pathlib import Path

from launchers.software.digest import file_digest, text_digest
from objectives.base import PlanError, RunJob
from objectives.probe import PROGRAMS, Probe
from spaces.parameters.problem import Problem

TRAINERS = PROGRAMS / "training"
"""The folder of our programs that train, each a package."""

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
    """An interpreter with PyTorch, and the GPUs that it sees; `gpu` and `gpu_bytes` are the first's name and memory."""

    path: str
    torch: str
    numpy: str
    gpus: int
    gpu: str
    gpu_bytes: int = 0

    @property
    def identity(self) -> dict[str, str]:
        """What makes measurements comparable."""
        return {"torch": self.torch, "numpy": self.numpy, "gpu": self.gpu or "none"}


def find_python(asked: str | None, run_job: RunJob, folder: Path) -> TorchPython:
    """Return the interpreter that was asked for, or the first that serves.

    Raises:
        PlanError: there is none.
    """
    for path, text in Probe(run_job, folder, _LIMIT_S).find_pythons(asked, "torch", _PROBE):
        found = json.loads(text)
        return TorchPython(path, found["torch"], found["numpy"], found["gpus"], found["gpu"], found.get("gpu_bytes", 0))
    which = f"python = {asked!r} has no PyTorch that works" if asked else "no Python here has PyTorch"
    msg = f"{which}; ./run installs one, or: {_INSTALL}"
    raise PlanError(Problem(msg, "options.python"))


def program_digest(program: str) -> str:
    """Return a digest of one of our programs."""
    files = [*sorted(TRAINERS.glob(f"{program}/*.py")), *sorted(TRAINERS.glob("*.py"))]
    return text_digest(" ".join(file_digest(file) for file in files))
