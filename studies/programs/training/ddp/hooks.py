"""What is done to gradients before they are sent: torch's communication hooks of DistributedDataParallel.

`fp16` and `bf16` round what is sent to 16 bits. `powersgd-R` sends two thin matrices of rank R in the place of each
weight matrix's gradient, and adds what was lost to the next step's (Vogels et al. 2019, arXiv:1905.13727). That memory
is each worker's own and in no checkpoint: a run that goes on from one begins without it.

PowerSGD sends a bucket in three steps, each when the one before is done. Over gloo those of several buckets meet in
another order on each worker: runs with 0.05 MiB were aborted, or waited for ever. With one bucket there is one order.
"""

import math
from typing import Any

import torch
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

from .options import DEFAULT_BUCKET_MIB, POWER_SGD, Settings

_EARLIEST = 2  # steps: torch builds the buckets anew after the first one


def register(model: Any, settings: Settings) -> None:
    """Let `model`, a DistributedDataParallel, send its gradients as the settings say.

    Raises:
        ValueError: torch has no such exchange between CPUs, or not with several buckets.
    """
    gloo = torch.distributed.get_backend() != "nccl"
    if settings.hook == "fp16":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif settings.hook == "bf16":
        if gloo:
            raise ValueError("--hook bf16 is for GPUs: torch has it with NCCL only; use fp16")
        model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    elif settings.hook in POWER_SGD:
        needed_mib = sum(one.numel() * one.element_size() for one in model.parameters()) / 2**20
        if gloo and (settings.bucket_mib < needed_mib or settings.bucket_mib == DEFAULT_BUCKET_MIB):
            raise ValueError(
                f"--hook {settings.hook} is for one bucket between CPUs: give a --bucket-mib of "
                f"{math.ceil(needed_mib)} or more, not {DEFAULT_BUCKET_MIB:g}, which begins with a smaller one"
            )
        # Exact up to the end of the reports that do not count, so that those that count are all alike.
        exact = settings.report_every * settings.warm_up_reports
        state = powerSGD_hook.PowerSGDState(
            process_group=None,
            matrix_approximation_rank=POWER_SGD[settings.hook],
            start_powerSGD_iter=max(_EARLIEST, exact),
            orthogonalization_epsilon=1e-8,  # a column of zeros, of units that are never active, divides by it
        )
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
