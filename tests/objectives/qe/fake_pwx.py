"""pw.x 7.2 as far as its division of the work goes: it takes its command line, and prints as the real one does.

The rule is that of `setup_para` in PW/src/setup.f90 of Quantum ESPRESSO 7.2, and so are the forms of the lines; the
rest of the output is that of a real run of 6.7.
"""

import re
from dataclasses import dataclass
from math import floor

from launchers import Job

_OPTIONS = {"-npool": "npool", "-nbgrp": "nband", "-ntg": "ntg", "-ndiag": "ndiag"}


@dataclass(frozen=True)
class FakePwx:
    """A build of pw.x 7.2, and the size of the problem that its input has."""

    kpoints: int
    bands: int
    planes: int
    real_output: str

    def run(self, job: Job) -> str:
        """Return what it prints; an option that it does not know is an error of the test."""
        told = dict.fromkeys(_OPTIONS.values(), 0)
        words = iter(job.argv[1:])
        for word in words:
            value = next(words)
            if word != "-inp":
                told[_OPTIONS[word]] = int(value)
        lines, ndiag = self._setup_para(job.mpi.ranks if job.mpi else 1, **told)
        side = int(ndiag**0.5)
        lines += [
            "     Subspace diagonalization in iterative solution of the eigenvalue problem:",
            f"     scalapack distributed-memory algorithm (size of sub-group: {side:2d}*{side:3d} procs)"
            if side > 1
            else "     a serial algorithm will be used",
        ]
        text = self.real_output.replace("v.6.7MaX", "v.7.2")
        text = re.sub(r" *Parallel version.*\n\n *MPI processes.*\n *R & G.*\n", "", text)
        text = re.sub(r" *Subspace diag.*\n *a serial algorithm.*\n", "", text)
        return text.replace("     Reading input from", "\n".join([*lines, "     Reading input from"]))

    def _setup_para(self, nproc: int, npool: int, nband: int, ntg: int, ndiag: int) -> tuple[list[str], int]:
        npool, nband = npool or self._pools(nproc), max(nband, 1)
        in_group = nproc // npool // nband
        ntg = ntg or self._task_groups(in_group)
        said = (
            (True, f"     Parallel version (MPI), running on {nproc:5d} processors"),
            (npool > 1, f"     K-points division:     npool     = {npool:7d}"),
            (nband > 1, f"     band groups division:  nbgrp     = {nband:7d}"),
            (in_group > 1, f"     R & G space division:  proc/nbgrp/npool/nimage = {in_group:7d}"),
            (ntg > 1, "     wavefunctions fft division:  task group distribution"),
            (ntg > 1, f"{'':34}#TG    x Z-proc = {ntg:7d}{in_group // ntg:7d}"),
        )
        return [line for is_said, line in said if is_said], ndiag or self._ndiag(in_group)

    def _pools(self, nproc: int) -> int:
        npool = 1
        if nproc > self.planes // 2:
            for count in range(2, self.kpoints + 1):
                if nproc % count == 0:
                    npool = count
                    if nproc // count <= self.planes // 2:
                        break
        return npool

    def _task_groups(self, in_group: int) -> int:
        if in_group > self.planes:
            for count in range(2, min(self.bands, 16) + 1):
                if in_group % count == 0 and in_group // count < self.planes // 4:
                    return count
        return 1

    def _ndiag(self, in_group: int) -> int:
        side = floor(self.bands / 100 + 0.5)
        while side > 0 and side**2 > in_group:
            side -= 1
        return max(1, side**2)
