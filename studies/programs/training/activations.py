"""Storage of activations between the forward pass and the backward pass.

`keep` keeps them. `recompute` keeps only the inputs of the network's parts, and recomputes each part in the backward
pass (Chen et al. 2016, arXiv:1604.06174). `host` moves them to the host's memory, for GPUs.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint


def recompute(parts: Iterable[Any]) -> None:
    """Let the parts of a network keep only their inputs if a backward pass follows."""
    for part in parts:
        part.forward = partial(_forward, part, part.forward)


def store_activations(way: str, device: Any) -> AbstractContextManager[Any]:
    """Return the context in which a forward pass stores its activations."""
    if way != "host":
        return nullcontext()
    return torch.autograd.graph.save_on_cpu(pin_memory=device.type == "cuda")  # type: ignore[no-any-return]


def _forward(part: Any, forward: Any, inputs: Any) -> Any:
    if not torch.is_grad_enabled():
        return forward(inputs)
    contexts = partial(_contexts, part)
    return checkpoint(forward, inputs, use_reentrant=False, preserve_rng_state=False, context_fn=contexts)


def _contexts(part: Any) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    return nullcontext(), _moving_nothing(part)


@contextmanager
def _moving_nothing(part: Any) -> Iterator[None]:
    """Keep batch normalisations from updating their moving statistics a second time for the same batch."""
    norms = [module for module in part.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
