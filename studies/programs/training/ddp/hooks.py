"""Compression of gradients before they are sent, by torch's communication hooks of DistributedDataParallel.

`fp16` and `bf16` round gradients to 16 bits. `powersgd-R` sends two thin matrices of rank R instead of each weight
matrix's gradient, and adds the error to the next step's gradient (Vogels et al. 2019, arXiv:1905.13727). Each worker
has its own error, which is not in the checkpoint: a resumed run starts without it.

PowerSGD sends a bucket in three dependent steps. Over gloo the steps of several buckets may run in another order on
each
worker: runs with buckets of 0.05 MiB aborted or hung. So PowerSGD needs a single bucket.
"""

import math
from typing import Any

import torch
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

from .options import DEFAULT_BUCKET_MIB, POWER_SGD, Settings

_EARLIEST = 2  # steps: torch rebuilds the buckets after the first one


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
        # Exact during the warm-up reports, so that all counted reports use the compression.
        exact = settings.report_every * settings.warm_up_reports
        state = powerSGD_hook.PowerSGDState(
            process_group=None,
            matrix_approximation_rank=POWER_SGD[settings.hook],
            start_powerSGD_iter=max(_EARLIEST, exact),
            orthogonalization_epsilon=1e-8,  # avoids a division by zero for units that are never active
        )
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
