"""The schedulers of clusters, each as pure text functions."""

from collections.abc import Mapping

from launchers.schedulers.base import Scheduler
from launchers.schedulers.slurm import SLURM

SCHEDULERS: Mapping[str, Scheduler] = {scheduler.name: scheduler for scheduler in (SLURM,)}
"""The schedulers by name."""
