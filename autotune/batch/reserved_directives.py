"""Directives of a site that a job cannot do with: they would take the place of what the job itself needs.

Sources: Slurm's sbatch(1), "OPTIONS"; OpenPBS qsub(1B).
"""

import re
from collections.abc import Mapping

_OUTPUT = "where its output goes is the job's own"
_FOLDER = "where it runs is the job's own"
_NAME = "its name is the job's own"
_TIME = "its wall time is the run's own; say walltime = ..."
_SIZE = "its size is the run's own; say nodes = ... for the most of it"
_ARRAY = "a run is one job, not an array of them"
_SCRIPT = "what it runs is the job's own"
_WAIT = "the command that submits must return at once"
_RERUN = "who makes a run again is autotune"

_SLURM: Mapping[str, str] = {
    **dict.fromkeys(("--output", "-o", "--error", "-e"), _OUTPUT),
    **dict.fromkeys(("--chdir", "-D"), _FOLDER),
    **dict.fromkeys(("--job-name", "-J"), _NAME),
    **dict.fromkeys(("--time", "-t"), _TIME),
    **dict.fromkeys(("--nodes", "-N", "--ntasks", "-n", "--cpus-per-task", "-c"), _SIZE),
    **dict.fromkeys(("--array", "-a"), _ARRAY),
    **dict.fromkeys(("--wrap", "--test-only"), _SCRIPT),
    **dict.fromkeys(("--wait", "-W"), _WAIT),
    "--requeue": _RERUN,
}
_PBS: Mapping[str, str] = {
    **dict.fromkeys(("-o", "-e", "-j"), _OUTPUT),
    "-N": _NAME,
    **dict.fromkeys(("-J", "-t"), _ARRAY),
    "-I": _SCRIPT,
    "-r": _RERUN,
}
_PBS_RESOURCES: Mapping[str, str] = {"walltime": _TIME, **dict.fromkeys(("select", "nodes", "ncpus"), _SIZE)}
# Slurm takes a long option by its first letters; shorter ones than that nobody writes.
_SHORTEST = len("--err")


def refused(scheduler: str, directive: str) -> str | None:
    """Return why a line for the scheduler (without its `#SBATCH` or `#PBS`) cannot be used; None if it can."""
    reasons = {"slurm": _of_slurm, "pbs": _of_pbs}.get(scheduler, lambda _: {})(directive)
    return "; ".join(f"{option}: {reason}" for option, reason in reasons.items()) or None


def _of_slurm(directive: str) -> dict[str, str]:
    found = {}
    for word in directive.split():
        option = word.partition("=")[0] if word.startswith("--") else word[:2]
        whole = [name for name in _SLURM if len(option) >= _SHORTEST and name.startswith(option)]
        for name in [option] if option in _SLURM else whole:
            found[name] = _SLURM[name]
    return found


def _of_pbs(directive: str) -> dict[str, str]:
    found = {}
    for option, value in re.findall(r"(?:^|\s)(-[A-Za-z])\s*(\S*)", directive):
        if option in _PBS:
            found[option] = _PBS[option]
        elif option == "-l":
            names = (part.partition("=")[0] for part in value.split(","))
            found |= {f"-l {name}": _PBS_RESOURCES[name] for name in names if name in _PBS_RESOURCES}
    return found
