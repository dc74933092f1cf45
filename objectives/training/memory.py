"""The memory of a training: what a configuration needs, and the parameters that reduce it.

A step keeps the weights, their gradients, the optimiser's state, and the activations of the samples that are processed
at once. The interpreter and the temporaries of operators need more; that excess is learnt from the study's own runs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from launchers.meters.figures import GPU_PEAK_MEMORY
from objectives.base import MemoryNeed
from objectives.training.torch import TorchPython
from spaces import Choice, Configuration, Integer, Parameter

TEMPLATES = ("--micro-batches={micro_batches}", "--activations={activations}")
"""Words of a training's command line."""

_WEIGHT_BYTES = 4
# The excess depends on these: autocast keeps some operators at 32 bits, and compilers choose what to keep.
_OWN_EXCESS = ("precision", "compile", "activations")
_GIB = 2**30


def parameters(
    *, micro_batches: bool, activations: bool, on_gpus: bool, recomputes: bool = True
) -> Iterator[Parameter]:
    """Yield the parameters that reduce memory."""
    ways = (*(("recompute",) if recomputes else ()), *(("host",) if on_gpus else ()))
    if micro_batches:
        yield Integer("micro_batches", (2, 4, 8), optional=True, help="parts of a batch that are learnt in turn")
    if activations and ways:
        yield Choice("activations", ways, optional=True, help="computed again when they are needed, or kept elsewhere")


@dataclass(frozen=True)
class Footprint:
    """The memory that a network needs.

    Args:
        parameters: The number of its weights.
        remembered: How many numbers the optimiser keeps for each weight.
        kept_bytes: The activations of a sample that wait for the backward pass.
        recomputed_bytes: The rest of them if parts are recomputed: the inputs of parts, and the largest part.
        size: The size of that sample in each of its dimensions.
        dimensions: The number of its dimensions.
    """

    parameters: int
    remembered: int
    kept_bytes: float
    recomputed_bytes: float
    size: int
    dimensions: int

    def scale_to(self, size: int) -> "Footprint":
        """Return the footprint for samples of another size."""
        times = (size / self.size) ** self.dimensions
        return replace(
            self, kept_bytes=times * self.kept_bytes, recomputed_bytes=times * self.recomputed_bytes, size=size
        )

    def of_rank(self, configuration: Configuration, samples: int, *, sends: bool) -> float:
        """Return the least memory that a process needs, in bytes.

        Args:
            configuration: The configuration.
            samples: The samples that it learns from between two updates.
            sends: Whether it sends its gradients, and so holds a second copy of them in buckets.
        """
        at_once = -(-samples // int(configuration.get("micro_batches", 1)))
        copies = 2 + self.remembered + int(sends and not configuration.get("gradient_as_bucket_view", False))
        narrow = configuration.get("precision", "float32") != "float32"
        each = {"recompute": self.recomputed_bytes, "host": 0.0}
        # A compiled network recomputes what it finds cheap, so only the least that it keeps is known.
        otherwise = self.recomputed_bytes if configuration.get("compile") else self.kept_bytes
        activations = each.get(str(configuration.get("activations")), otherwise)
        return _WEIGHT_BYTES * self.parameters * copies + at_once * activations * (0.5 if narrow else 1.0)


def memory_need(
    of_rank: Callable[[Configuration], float],
    ranks: str,
    python: TorchPython,
    machine: Mapping[str, Any],
    *,
    on_gpus: bool,
) -> MemoryNeed | None:
    """Return how much memory of a card, or of the node without GPUs, runs need; None if its size is unknown.

    Args:
        of_rank: The memory of one process, in bytes.
        ranks: The parameter with the number of processes that share the node.
        python: The interpreter, which knows the GPUs.
        machine: The facts of the machine.
        on_gpus: Whether runs use GPUs.
    """

    def processes(one: Configuration) -> int:
        return int(one.get(ranks, 1))

    if on_gpus:
        if not python.gpu_bytes:
            return None
        return MemoryNeed(of_rank, python.gpu_bytes, "card", GPU_PEAK_MEMORY, kind=excess_kind(ranks))
    room = int(machine.get("memory_bytes", 0))
    if not room:
        return None
    return MemoryNeed(lambda one: processes(one) * of_rank(one), room, kind=excess_kind(ranks), processes=processes)


def excess_kind(ranks: str) -> Callable[[Configuration], object]:
    """Return the key by which the excess of configurations is compared; see `MemoryNeed.kind`.

    `ranks` is the parameter with the number of processes that share the node.
    """
    return lambda one: (int(one.get(ranks, 1)), *(one.get(name) for name in _OWN_EXCESS))


def memory_warnings(found: MemoryNeed | None, tuned: Iterable[Parameter]) -> tuple[str, ...]:
    """Return a warning if the default configuration, which always runs, certainly lacks memory."""
    default = {one.name: one.default for one in tuned if one.default is not None}
    needed = found.bytes_of(default) if found is not None else None
    if found is None or needed is None or needed <= found.room_bytes:
        return ()
    text = f"the default configuration needs {needed / _GIB:.3g} GiB at least, and a {found.place} has"
    return (f"{text} {found.room_bytes / _GIB:.3g} GiB: it will fail; smaller batches need less",)
