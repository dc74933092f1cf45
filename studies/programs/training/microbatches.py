"""Micro-batches: parts of a batch whose gradients are summed before they are sent and used.

This needs only the memory of one part. The mean gradient is that of the whole batch, but a normalisation over batches
sees parts.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any


def micro_batches(model: Any, count: int, *tensors: Any) -> Iterator[tuple[Any, ...]]:
    """Yield `count` parts of a batch: the tensors of each, and its share of the whole.

    The caller does the forward and backward pass of a part before it takes the next. A `model` of several processes
    sends gradients only with the last part.
    """
    size = len(tensors[0])
    parts = list(zip(*(tensor.tensor_split(min(count, size)) for tensor in tensors), strict=True))
    for number, part in enumerate(parts, 1):
        waits = number < len(parts) and hasattr(model, "no_sync")
        with model.no_sync() if waits else nullcontext():
            yield (*part, len(part[0]) / size)
