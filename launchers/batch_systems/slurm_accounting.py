"""What Slurm's accounting says of ended jobs: sacct(1).

`ConsumedEnergyRaw` is what the nodes of a step took, in joules, whoever else was on them: it needs AcctGatherEnergyType
in slurm.conf, and is empty or 0 without. Each step counts its nodes for itself: the batch script the first one,
`extern` all, and an `srun` those of its ranks (that by which `mpirun` starts its daemons: all but the first). So the
greatest of the steps on all nodes is that of the job; the sum of steps, which is that of the job's own row, counts
nodes twice. `extern` ends after the batch script.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from launchers.batch_systems.base import EnergyQuery

# 64 bits less the values that stand for "not known" (NO_VAL64, INFINITE64).
_MOST = 2**63
_ROW = re.compile(r"(\d+)(?:\.(\S+?))?\|([^|]*)\|(\d+)\|([^|]*)")
_JOULES = re.compile(r"\d{1,20}")
_SCRIPT = "batch"
_GOES_ON = ("RUNNING", "COMPLETING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING")
_COLUMNS = "JobIDRaw,ConsumedEnergyRaw,NNodes,State"


@dataclass
class _Booked:
    """What is booked of a job: its nodes, and of each step the nodes and joules, if they were counted."""

    nodes: int = 0
    goes_on: bool = False
    steps: dict[str, tuple[int, float | None]] = field(default_factory=dict)


def command(numbers: Sequence[str]) -> list[str]:
    """Return the command that asks for jobs."""
    return ["sacct", "--noheader", "--parsable2", f"--format={_COLUMNS}", f"--jobs={','.join(numbers)}"]


def joules(answer: str) -> Mapping[str, float]:
    """Read what sacct printed; a job of which not all nodes were counted, or not to the end yet, is not in it."""
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
    """Return what the steps on all nodes of a job counted; None before all of it is booked, or where none did."""
    if job.goes_on or _SCRIPT not in job.steps:
        return None
    counted = [joules for nodes, joules in job.steps.values() if nodes >= job.nodes and joules is not None]
    return max(counted, default=None)


ENERGY = EnergyQuery(command, joules)
