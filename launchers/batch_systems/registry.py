"""All schedulers, by the names that site files use."""

from collections.abc import Mapping

from launchers.batch_systems.base import Scheduler
from launchers.batch_systems.flux import FLUX
from launchers.batch_systems.lsf import LSF
from launchers.batch_systems.pbs import PBS
from launchers.batch_systems.slurm import SLURM

SCHEDULERS: Mapping[str, Scheduler] = {scheduler.name: scheduler for scheduler in (SLURM, PBS, LSF, FLUX)}
