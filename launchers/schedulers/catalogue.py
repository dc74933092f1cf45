"""All schedulers, by the names that site files use."""

from collections.abc import Mapping

from launchers.schedulers.base import Scheduler
from launchers.schedulers.flux import FLUX
from launchers.schedulers.lsf import LSF
from launchers.schedulers.pbs import PBS
from launchers.schedulers.slurm import SLURM

SCHEDULERS: Mapping[str, Scheduler] = {scheduler.name: scheduler for scheduler in (SLURM, PBS, LSF, FLUX)}
