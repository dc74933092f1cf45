"""The terms of a training step: computing, the exchange of gradients, the optimiser, the input.

A step computes its share of a batch forward and backward (three times the forward pass), sums the gradients over all
workers bucket by bucket, and updates the weights (Li et al., "PyTorch Distributed", VLDB 2020; Goyal et al.,
arXiv:1706.02677). Operations of the networks: He et al., arXiv:1512.03385 (ResNet-50: 4.1e9 multiplications and
additions at 224 x 224); the others from their layers.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from objectives.shapes.columns import CaseColumns, Column
from objectives.shapes.costs import Costs
from objectives.shapes.messages import allreduce_s

_WEIGHT_BYTES = 4.0
_MIB = 2.0**20
_BUCKET_MIB = 25.0
# Bytes of memory that an optimiser moves for each weight: reads and writes of weight, gradient and momentum.
_UPDATE_BYTES = 5 * _WEIGHT_BYTES

# Typical rates, for machines without these facts; computing reaches a part of the peak.
_CORE, _REACHED, _GPU = 3e10, 0.3, 1e13
_MEMORY = 2e10
_LATENCY_S, _BANDWIDTH = 5e-5, 1e9  # gloo over loopback; NCCL and InfiniBand are faster, hence the large doubts
_CALL_S = 1e-5  # per operation that the interpreter starts
_SAMPLE_S = 1e-3  # to make a sample
# The DNA network: 50,000 multiplications and additions at each of 10,240 places; calls of 61 layers, both ways.
_DNA_OPERATIONS, _DNA_CALLS, _DNA_WEIGHTS = 1.0e9, 61 * 3, 474_017.0


def ddp(columns: Mapping[str, npt.NDArray[Any]]) -> Costs:
    """Return the seconds for each sample of a data-parallel training: the inverse of its speed.

    Args:
        columns: Parameters of the space, facts of the training (`model`, `size`, `gpus`) and of the machine, (n,) each.
    """
    known = CaseColumns(columns)
    workers, threads = known.number("workers", 1.0), known.number("threads", 1.0)
    batch, loaders = known.number("batch_size", 64.0), known.number("loader_workers", 0.0)
    weights, operations, layers = _networks(known)
    on_gpu = known.number("gpus", 0.0) > 0.0
    core = _REACHED * known.first("measured_blas_flops_core", usual=_CORE)
    of_worker = np.where(on_gpu, _REACHED * known.first("gpu_flops_fp32", usual=_GPU), core)
    forward_and_backward = 3.0 * operations / of_worker
    messages_s, bytes_s = allreduce_s(
        workers,
        _WEIGHT_BYTES * weights,
        known.first("network_latency_s", usual=_LATENCY_S),
        known.first("measured_mpi_bandwidth_bytes_per_s", usual=_BANDWIDTH),
    )
    buckets = np.ceil(_WEIGHT_BYTES * weights / (_MIB * np.maximum(_numbers(known, "bucket_mib", _BUCKET_MIB), 1e-3)))
    memory = known.first("measured_memory_bandwidth_bytes_per_s", "memory_bandwidth_bytes_per_s", usual=_MEMORY)
    cores = np.where(on_gpu, workers, workers * threads)
    seconds = {
        "computing": batch * forward_and_backward / cores,
        "outside of threads": np.where(on_gpu, 0.0, 0.1 * batch * forward_and_backward / workers),
        "calls": layers * _CALL_S,
        "updates": _UPDATE_BYTES * weights * workers / memory,
        "messages of gradients": messages_s * buckets,
        "bytes of gradients": bytes_s,
        "input": batch / workers * _SAMPLE_S / np.maximum(loaders, 1.0),
    }
    doubts = {
        "computing": 0.7,
        "outside of threads": 1.0,
        "calls": 1.0,
        "updates": 0.7,
        "messages of gradients": 1.5,
        "bytes of gradients": 1.0,
        "input": 1.0,
    }
    read = frozenset({"workers", "threads", "batch_size", "bucket_mib", "loader_workers"})
    return Costs({name: column / batch for name, column in seconds.items()}, doubts, 0.7, reads=read, inverse=True)


def dna(columns: Mapping[str, npt.NDArray[Any]]) -> Costs:
    """Return how the time of a training of the DNA network divides into its windows, its steps, and their sums.

    The number of windows and epochs is not among the facts, so only the order of configurations is predicted.
    """
    known = CaseColumns(columns)
    batch, threads = known.number("batch_size", 64.0), known.number("threads", 1.0)
    on_gpu = known.number("gpus", 0.0) > 0.0
    rate = np.where(
        on_gpu,
        known.first("gpu_flops_fp32", usual=_GPU),
        threads * known.first("measured_blas_flops_core", usual=_CORE),
    )
    ranks = known.number("ranks", 1.0)
    messages_s, bytes_s = allreduce_s(
        ranks,
        np.full(known.count, _WEIGHT_BYTES * _DNA_WEIGHTS),
        known.first("network_latency_s", usual=_LATENCY_S),
        known.first("measured_mpi_bandwidth_bytes_per_s", usual=_BANDWIDTH),
    )
    seconds = {
        "windows": 3.0 * _DNA_OPERATIONS / (_REACHED * rate) / ranks,
        "steps": _DNA_CALLS * _CALL_S / (batch * ranks),
        "gradients": (messages_s + bytes_s) / (batch * ranks),
    }
    doubts = {"windows": 0.7, "steps": 1.0, "gradients": 1.5}
    return Costs(seconds, doubts, level=5.0, reads=frozenset({"batch_size", "ranks"}))


def _networks(known: CaseColumns) -> tuple[Column, Column, Column]:
    """Return the weights, the operations of a sample's forward pass, and the operator calls of a step, (n,) each."""
    size = known.number("size", 32.0)
    area = size**2
    convolutions = 2.0 * 9.0 * (12 * 32 * area + 32 * 64 * area / 4.0 + 64 * 128 * area / 16.0)
    dense = 2.0 * (2048 * 512 + 512 * 19)
    gates = {"lstm": 4.0, "gru": 3.0}
    models = known.words("model")
    weights, operations, calls = np.full(known.count, 1.15e6), convolutions + dense, np.full(known.count, 60.0)
    for row, model in enumerate(models):
        if model == "resnet50":
            weights[row], operations[row], calls[row] = 2.35e7, 8.2e9 * area[row] / 224**2, 600.0
        elif model in gates:
            recurrent = gates[model] * 128 * (12 + 128 + 2 * 128)
            weights[row], operations[row], calls[row] = recurrent, 2.0 * recurrent * size[row], 10.0 * size[row]
    return weights, operations, calls


def _numbers(known: CaseColumns, name: str, usual: float) -> Column:
    """Return a parameter whose values are words for numbers."""
    return np.array([float(word) if word else usual for word in known.words(name)])
