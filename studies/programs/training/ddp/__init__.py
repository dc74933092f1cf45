"""Data-parallel training: N workers, each with a part of every batch, and gradients averaged over all of them.

A program of its own, for a Python that has torch: `python -P -m ddp --workers 2`, with the folder above in PYTHONPATH.
It trains with torch's DistributedDataParallel, over gloo between processes of one machine, or over NCCL where each
worker can have a GPU. The path with GPUs is written after torch's documentation and has not been run by us.

All data is generated (see `data`): none of it is BigEarthNet's, whose shape the patches have.

Imports nothing of this project but the files beside its folder: the interpreter is another one.
"""
