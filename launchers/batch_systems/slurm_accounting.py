"""What Slurm's accounting says of ended jobs: sacct(1).

`ConsumedEnergyRaw` is what the nodes of a step took, in joules, whoever else was on them: it needs AcctGatherEnergyType
in slurm.conf, and is empty or 0 without. Each step counts its nodes for itself: the batch script the first one,
`extern` all, and an `srun` those of its ranks. So the greatest of a job's steps is that of the job; their sum, which is
that of the job's own row, counts nodes twice. The batch script ends last.
"""

import re
from collections.abc import Mapping, Sequence

from launchers.batch_systems.base import EnergyQuestion

# 64 bits less the values that stand for "not known" (NO_VAL64, INFINITE64).
_MOST = 2**63
_STEP = re.compile(r"(\d+)\.(\S+?)\|(\d{1,20})\s*")
_SCRIPT = "batch"


def command(numbers: Sequence[str]) -> list[str]:
    """Return the command that asks for jobs."""
    return ["sacct", "--noheader", "--parsable2", "--format=JobIDRaw,ConsumedEnergyRaw", f"--jobs={','.join(numbers)}"]


def joules(answer: str) -> Mapping[str, float]:
    """Read what sacct printed; a job of which nothing was counted, or not all yet, is not in it."""
    steps: dict[str, dict[str, float]] = {}
    for match in map(_STEP.fullmatch, answer.splitlines()):
        if match is not None and 0 < int(match[3]) < _MOST:
            steps.setdefault(match[1], {})[match[2]] = float(match[3])
    return {number: max(counted.values()) for number, counted in steps.items() if _SCRIPT in counted}


ENERGY = EnergyQuestion(command, joules)
