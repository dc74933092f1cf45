"""Activations, from the forward pass that computes them to the backward pass that needs them: what is done meanwhile.

`keep` keeps them. `recompute` keeps what goes into the parts of a network, and computes each part once more when its
turn comes (Chen et al. 2016, arXiv:1604.06174). `host` keeps them in the host's memory: that is for GPUs.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint


def recompute(parts: Iterable[Any]) -> None:
    """Let the parts of a network keep what goes in only, wherever a backward pass is to follow."""
    for part in parts:
        part.forward = partial(_forward, part, part.forward)


def kept(way: str, device: Any) -> AbstractContextManager[Any]:
    """Return the context of a forward pass whose activations are kept that way."""
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
    """Let normalisations over batches leave their moving statistics: they have seen this batch before."""
    norms = [module for module in part.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
