"""The memory of a training: what it needs by its configuration, and the parameters that need less of it.

A step keeps the weights, a gradient of each, what the optimiser remembers, and the activations of the samples that are
learnt from at once. More than that is in use (the interpreter, what operators take meanwhile): it is learnt from the
study's own runs.
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
# What takes more than is said depends on these: autocast keeps some operators at 32 bits, and compilers what they like.
_OWN_EXCESS = ("precision", "compile", "activations")
_GIB = 2**30


def parameters(
    *, micro_batches: bool, activations: bool, on_gpus: bool, recomputes: bool = True
) -> Iterator[Parameter]:
    """Yield what is tuned where memory is the limit."""
    ways = (*(("recompute",) if recomputes else ()), *(("host",) if on_gpus else ()))
    if micro_batches:
        yield Integer("micro_batches", (2, 4, 8), optional=True, help="parts of a batch that are learnt in turn")
    if activations and ways:
        yield Choice("activations", ways, optional=True, help="computed again when they are needed, or kept elsewhere")


@dataclass(frozen=True)
class Footprint:
    """What a network takes: its `parameters`, how many numbers its optimiser remembers of each, and its activations.

    `kept_bytes` are those of a sample that wait for the backward pass, `recomputed_bytes` are left of them where parts
    are computed again: what goes in, and the largest part. Such a sample has that `size` in each of its `dimensions`.
    """

    parameters: int
    remembered: int
    kept_bytes: float
    recomputed_bytes: float
    size: int
    dimensions: int

    def scaled(self, size: int) -> "Footprint":
        """Return what the network takes of samples of another size."""
        times = (size / self.size) ** self.dimensions
        return replace(
            self, kept_bytes=times * self.kept_bytes, recomputed_bytes=times * self.recomputed_bytes, size=size
        )

    def of_rank(self, configuration: Configuration, samples: int, *, sends: bool) -> float:
        """Return the least that a process needs, in bytes, which learns from so many samples between two updates.

        One that `sends` has its gradients once more, in the buckets.
        """
        at_once = -(-samples // int(configuration.get("micro_batches", 1)))
        copies = 2 + self.remembered + int(sends and not configuration.get("gradient_as_bucket_view", False))
        narrow = configuration.get("precision", "float32") != "float32"
        each = {"recompute": self.recomputed_bytes, "host": 0.0}
        # A compiled network computes again what it finds cheap: only of the plain one it is known what it keeps.
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
    """Return what runs need of a card, or of the node where they have none; None where nobody knows what there is.

    `ranks` is the parameter that says how many processes share the node.
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
    """Return what tells of a configuration which others take as much beyond the estimate.

    `ranks` is the parameter that says how many processes share the node.
    """
    return lambda one: (int(one.get(ranks, 1)), *(one.get(name) for name in _OWN_EXCESS))


def memory_warnings(found: MemoryNeed | None, tuned: Iterable[Parameter]) -> tuple[str, ...]:
    """Return a warning where the default configuration, which always runs, surely has not enough."""
    default = {one.name: one.default for one in tuned if one.default is not None}
    needed = found.bytes_of(default) if found is not None else None
    if found is None or needed is None or needed <= found.room_bytes:
        return ()
    text = f"the default configuration needs {needed / _GIB:.3g} GiB at least, and a {found.place} has"
    return (f"{text} {found.room_bytes / _GIB:.3g} GiB: it will fail; smaller batches need less",)
