"""Processes that train one network: how they meet, and the network whose gradients are averaged over all of them."""

import datetime
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import distributed


def join(meeting: Path, rank: int, ranks: int, device: Any, *, patience_s: float) -> None:
    """Meet the other processes by a file, for NCCL between GPUs and gloo between CPUs."""
    distributed.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        store=distributed.FileStore(str(meeting), ranks),
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(seconds=patience_s),
    )


def data_parallel(network: Any, device: Any, **options: Any) -> Any:
    """Return torch's DistributedDataParallel of a network; running means over batches stay each process' own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the new name of broadcast_buffers is of torch 2.13
        return torch.nn.parallel.DistributedDataParallel(
            network,
            device_ids=[device.index] if device.type == "cuda" else None,
            broadcast_buffers=False,
            **options,
        )
