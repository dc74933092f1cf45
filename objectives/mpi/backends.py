"""Backends of torch.distributed instead of the MPI library: gloo, and NCCL if each rank can have a GPU."""

from collections.abc import Mapping

from launchers.software.digest import file_digest
from objectives.mpi.knobs import BACKEND, RANKS, Knobs
from objectives.mpi.options import MpiOptions
from objectives.probe import PROGRAMS
from objectives.training.torch import TorchPython
from spaces import Choice, Configuration, Constraint

GLOO, NCCL = "gloo", "nccl"

_PROGRAM = PROGRAMS / "mpi" / "backends.py"


def command(python: TorchPython) -> tuple[str, ...]:
    """Return the command of the program that measures the backends."""
    return (python.path, "-P", str(_PROGRAM))


def identity(python: TorchPython) -> dict[str, str]:
    """Return what makes measurements comparable."""
    return {**python.identity, "backends": file_digest(_PROGRAM)}


def knobs(python: TorchPython, options: MpiOptions) -> Knobs:
    """Return the choice of the backend; unset means the MPI library without changes."""
    on_gpus = python.gpus >= min(options.ranks)
    names = (GLOO, NCCL) if on_gpus else (GLOO,)
    help_ = "the backend of torch.distributed that does it; unset: the MPI library"
    rule = f"{BACKEND} != '{NCCL}' or {RANKS} <= {python.gpus}"
    one_node = f"not is_set({BACKEND}) or nodes == 1 or {RANKS} <= cores_per_node"
    rules = (
        Constraint("ranks of one node", one_node, "the ranks of a backend are processes of one node"),
        *((Constraint("a GPU for each rank", rule, "NCCL gives each rank one"),) if on_gpus else ()),
    )
    return Knobs((Choice(BACKEND, names, optional=True, help=help_),), rules, _nothing)


def _nothing(configuration: Configuration) -> Mapping[str, str]:
    del configuration
    return {}
