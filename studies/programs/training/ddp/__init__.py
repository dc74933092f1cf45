"""Data-parallel training: N workers, each with a part of every batch, and gradients averaged over all of them.

A program of its own, for a Python that has torch: `python -P -m ddp --workers 2`, with the folder above in PYTHONPATH.
It trains with torch's DistributedDataParallel, over gloo between processes of one machine, or over NCCL if each worker
can have a GPU. The path with GPUs follows torch's documentation and is untested.

All data are generated (see `data`); the patches have only the shape of BigEarthNet's.

Imports nothing of this project but the files beside its folder, since it runs in another interpreter.
"""
