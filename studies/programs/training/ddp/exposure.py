"""Communication that the backward pass does not hide.

DistributedDataParallel reduces a bucket of gradients as soon as it is full, during the backward pass. The last bucket
fills with the last gradient, and `backward` returns when all buckets are reduced; the time between is exposed. A hook
of each parameter records when its gradient is ready, which costs some microseconds per parameter and step. A
communication hook in Python would cost more, for each of up to hundreds of buckets.
"""

import time
from collections.abc import Iterable
from typing import Any, Protocol

import torch


class Exposure(Protocol):
    """Measures exposed communication of a step."""

    def end_backward(self) -> None:
        """Record that `backward` has returned."""

    def seconds(self) -> float:
        """Return the exposed time of the last step, once it is done."""


class HostExposure:
    """On the host's clock: on CPUs, `backward` returns when its work is done."""

    def __init__(self, parameters: Iterable[Any]) -> None:
        self._ready_s = self._end_s = 0.0
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._record_gradient)

    def _record_gradient(self, parameter: Any) -> None:
        del parameter
        self._ready_s = time.perf_counter()

    def end_backward(self) -> None:
        """Record that `backward` has returned."""
        self._end_s = time.perf_counter()

    def seconds(self) -> float:
        """Return the exposed time of the last step."""
        return self._end_s - self._ready_s


class DeviceExposure:
    """By events in the GPU's stream, which DistributedDataParallel lets wait for the reduced buckets."""

    def __init__(self, parameters: Iterable[Any]) -> None:
        self._ready, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._record_gradient)

    def _record_gradient(self, parameter: Any) -> None:
        del parameter
        self._ready.record()

    def end_backward(self) -> None:
        """Record that the whole backward pass is queued on the device."""
        self._end.record()

    def seconds(self) -> float:
        """Return the exposed time of the last step; the device must have finished it."""
        return float(self._ready.elapsed_time(self._end)) / 1000.0
