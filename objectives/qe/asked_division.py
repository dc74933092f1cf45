"""What a command line asks of pw.x, beside how pw.x says that it divided the work."""

from collections.abc import Iterator

from launchers import Job
from objectives.qe.output import Layout

DIVISIONS = {"npool": "-npool", "nbgrp": "-nbgrp", "ntg": "-ntg", "ndiag": "-ndiag"}
"""The parameters that divide the work, and pw.x's options for them."""


def differences(job: Job, layout: Layout) -> list[str]:
    """Return in words what pw.x did otherwise than it was asked to; what it was not told it may choose."""
    did = {
        "npool": layout.pools,
        "nbgrp": layout.band_groups,
        "ntg": layout.task_groups,
        "ndiag": layout.diagonalization_grid**2,
        "np": layout.ranks,
    }
    return [f"{name}={did[name]} instead of {count}" for name, count in _asked(job) if did[name] != count]


def _asked(job: Job) -> Iterator[tuple[str, int]]:
    yield "np", job.mpi.ranks if job.mpi is not None else 1
    following = dict(zip(job.argv, job.argv[1:], strict=False))
    for name, option in DIVISIONS.items():
        if option in following:
            yield name, int(following[option])
