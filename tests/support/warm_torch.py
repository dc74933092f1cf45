"""Run the training programs without the seconds in which each process imports torch.

Run as `PYTHON -P -m tests.support.warm_torch FD`. Tests that kill or stop a training start it without this server.
"""

import multiprocessing
import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

from tests.support.fork_server import ROOT, ForkServer, run_as_python, serve

PROGRAMS = ROOT / "studies/programs/training"
PYTHON = Path(os.environ.get("AUTOTUNE_TORCH_PYTHON") or Path(sys.prefix) / "share/autotune/torch/bin/python")
"""The interpreter that has torch, which need not exist."""
# torch.optim imports torch._dynamo when an optimizer takes its first step.
_IMPORTED = ("ddp.trainer", "dna.rank", "torch._dynamo")


def python(folder: Path, *words: str, environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Run `-m MODULE WORDS` or `-c PROGRAM` in a folder; return the exit code, standard output and standard error.

    Processes that the program spawns are forks instead, since they would import torch again.
    """
    return _server().run(folder, words, environment)


@cache
def _server() -> ForkServer:
    path = os.pathsep.join(map(str, (ROOT, PROGRAMS)))
    return ForkServer([str(PYTHON), "-P", "-m", "tests.support.warm_torch"], PYTHONPATH=path)


def main() -> None:
    """Serve until the tests end; in a fork, run as Python with these words."""
    before = set(os.environ)
    for name in _IMPORTED:
        import_module(name)

    words = serve(int(sys.argv[1]), before)
    if words is None:
        return
    context = multiprocessing.get_context("fork")
    multiprocessing.get_context = lambda method=None: context
    run_as_python(words)


if __name__ == "__main__":
    main()
