"""Communication that the backward pass does not hide.

DistributedDataParallel reduces a bucket of gradients as soon as it is full, while the backward pass goes on. The last
bucket is full when the last gradient is there, and `backward` returns when all buckets are reduced. The time between
the two is exposed. A hook of each parameter notes when its gradient is there; it costs some microseconds a parameter
and step. A communication hook in Python would cost more, for each of up to hundreds of buckets.
"""

import time
from collections.abc import Iterable
from typing import Any, Protocol

import torch


class Exposure(Protocol):
    """Measures exposed communication of a step."""

    def end_backward(self) -> None:
        """Take note that `backward` has returned."""

    def seconds(self) -> float:
        """Return the exposed time, when the step is done."""


class HostExposure:
    """On the host's clock: on CPUs, `backward` returns when its work is done."""

    def __init__(self, parameters: Iterable[Any]) -> None:
        self._ready_s = self._end_s = 0.0
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._take_note)

    def _take_note(self, parameter: Any) -> None:
        del parameter
        self._ready_s = time.perf_counter()

    def end_backward(self) -> None:
        """Take note that `backward` has returned."""
        self._end_s = time.perf_counter()

    def seconds(self) -> float:
        """Return the exposed time of the last step."""
        return self._end_s - self._ready_s


class DeviceExposure:
    """In the GPU's order of work: DistributedDataParallel lets the computing stream wait for the reduced buckets."""

    def __init__(self, parameters: Iterable[Any]) -> None:
        self._ready, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._take_note)

    def _take_note(self, parameter: Any) -> None:
        del parameter
        self._ready.record()

    def end_backward(self) -> None:
        """Take note that all of the backward pass is asked of the device."""
        self._end.record()

    def seconds(self) -> float:
        """Return the exposed time of the last step; the device must have finished it."""
        return float(self._ready.elapsed_time(self._end)) / 1000.0
