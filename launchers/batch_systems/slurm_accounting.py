"""The energy of ended jobs in Slurm's accounting: sacct(1).

`ConsumedEnergyRaw` is the energy in joules of the nodes of a step, including all other load on them. It needs
AcctGatherEnergyType in slurm.conf, and is empty or 0 otherwise. Each step counts its own nodes: the batch script the
first node, `extern` all nodes, and an `srun` those of its ranks (the one by which `mpirun` starts its daemons: all but
the first). The energy of a job is therefore that of its largest step among those on all nodes. The job's own row, the
sum of its steps, counts nodes twice. `extern` ends after the batch script.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from launchers.batch_systems.base import EnergyQuery

# Larger numbers stand for "not known" (NO_VAL64, INFINITE64).
_MOST = 2**63
_ROW = re.compile(r"(\d+)(?:\.(\S+?))?\|([^|]*)\|(\d+)\|([^|]*)")
_JOULES = re.compile(r"\d{1,20}")
_SCRIPT = "batch"
_GOES_ON = ("RUNNING", "COMPLETING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING")
_COLUMNS = "JobIDRaw,ConsumedEnergyRaw,NNodes,State"


@dataclass
class _Booked:
    """The accounting of a job: its nodes, and for each step the nodes and the joules, if they were counted."""

    nodes: int = 0
    goes_on: bool = False
    steps: dict[str, tuple[int, float | None]] = field(default_factory=dict)


def command(numbers: Sequence[str]) -> list[str]:
    """Return the command that queries jobs."""
    return ["sacct", "--noheader", "--parsable2", f"--format={_COLUMNS}", f"--jobs={','.join(numbers)}"]


def joules(answer: str) -> Mapping[str, float]:
    """Parse the answer of sacct, leaving out jobs whose nodes were not all counted or not yet to the end."""
    jobs: dict[str, _Booked] = {}
    for match in filter(None, map(_ROW.fullmatch, answer.splitlines())):
        number, step, counted, nodes, state = match.groups()
        job = jobs.setdefault(number, _Booked())
        job.goes_on |= state.startswith(_GOES_ON)
        if step is None:
            job.nodes = int(nodes)
        else:
            job.steps[step] = int(nodes), _joules(counted)
    found = {number: _of_all_nodes(job) for number, job in jobs.items()}
    return {number: most for number, most in found.items() if most is not None}


def _joules(counted: str) -> float | None:
    return float(counted) if _JOULES.fullmatch(counted) and 0 < int(counted) < _MOST else None


def _of_all_nodes(job: _Booked) -> float | None:
    """Return the energy that the steps on all nodes counted; None if it is not recorded, or not yet in full."""
    if job.goes_on or _SCRIPT not in job.steps:
        return None
    counted = [joules for nodes, joules in job.steps.values() if nodes >= job.nodes and joules is not None]
    return max(counted, default=None)


ENERGY = EnergyQuery(command, joules)
