"""Connects processes that train one network, and averages its gradients over them."""

import datetime
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import distributed


def join(meeting: Path, rank: int, ranks: int, device: Any, *, patience_s: float) -> None:
    """Connect to the other processes through a file, by NCCL between GPUs and gloo between CPUs."""
    distributed.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        store=distributed.FileStore(str(meeting), ranks),
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(seconds=patience_s),
    )


def data_parallel(network: Any, device: Any, **options: Any) -> Any:
    """Return torch's DistributedDataParallel of a network; each process keeps its own running means of batches."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch 2.13 renamed broadcast_buffers
        return torch.nn.parallel.DistributedDataParallel(
            network,
            device_ids=[device.index] if device.type == "cuda" else None,
            broadcast_buffers=False,
            **options,
        )
