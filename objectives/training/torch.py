"""The Python that has PyTorch: programs that train are run by it, since it need not be the one that runs autotune."""

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from launchers import Job, LaunchError
from objectives.base import PlanError, RunJob
from objectives.digest import file_digest, text_digest

PROGRAMS = Path(__file__).with_name("programs")
"""The folder of our programs, each a package."""

_LIMIT_S = 120.0
_INSTALL = "python3 -m venv V && V/bin/pip install torch numpy, python = V/bin/python"
_PROBE = """
import json, numpy, torch
gpu = torch.cuda.is_available()
print(json.dumps({"torch": torch.__version__, "numpy": numpy.__version__,
    "gpus": torch.cuda.device_count() if gpu else 0,
    "gpu": torch.cuda.get_device_name(0) if gpu else ""}))
"""


@dataclass(frozen=True)
class TorchPython:
    """An interpreter with PyTorch, and the GPUs that it sees; `gpu` is what the first is called."""

    path: str
    torch: str
    numpy: str
    gpus: int
    gpu: str

    @property
    def identity(self) -> dict[str, str]:
        """What makes measurements comparable."""
        return {"torch": self.torch, "numpy": self.numpy, "gpu": self.gpu or "none"}


def find(asked: str | None, run_job: RunJob, folder: Path) -> TorchPython:
    """Return the interpreter that was asked for, or the first that serves.

    Raises:
        PlanError: there is none.
    """
    own = Path(sys.prefix) / "share" / "autotune" / "torch" / "bin" / "python"
    names = (asked,) if asked else (*([str(own)] if own.exists() else []), sys.executable, "python3")
    for number, name in enumerate(names):
        path = shutil.which(name)
        said = _said(path, run_job, folder / f"torch-{number}") if path else None
        if path and said:
            found = json.loads(said)
            return TorchPython(
                str(Path(path).absolute()),
                found["torch"],
                found["numpy"],
                found["gpus"],
                found["gpu"],
            )
    which = f"python = {asked!r} has no PyTorch that works" if asked else "no Python here has PyTorch"
    msg = f"{which}; ./run installs one, or: {_INSTALL} @ options.python"
    raise PlanError(msg)


def digest(program: str) -> str:
    """Return a digest of one of our programs."""
    files = [*sorted(PROGRAMS.glob(f"{program}/*.py")), PROGRAMS / "protocol.py"]
    return text_digest(" ".join(file_digest(file) for file in files))


def _said(python: str, run_job: RunJob, folder: Path) -> str | None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        output = run_job(Job((python, "-P", "-c", _PROBE), folder, time_limit_s=_LIMIT_S, name="torch"))
    except LaunchError:
        return None
    lines = output.stdout.strip().splitlines()
    return lines[-1] if output.status.exit_code == 0 and lines and lines[-1].startswith("{") else None
