"""The spaces of `benchmarks/constrained_spaces.py`, as plain data.

hotspot, gemm and convolution are those of the Auto-Tuning Association's benchmark hub
(https://github.com/AutoTuningAssociation/benchmark_hub, kernels/*_milo.json; F.-J. Willemsen et al., "A Methodology for
Comparing Auto-Tuning Optimization Algorithms", Future Generation Computer Systems 159, 2024).
"""

import math
from dataclasses import dataclass, field
from typing import Any

CONDITION_OF_NOTHING = -1  # what peers without conditional parameters are given for "does not exist"


@dataclass(frozen=True)
class Problem:
    """A space as plain data: values by parameter, rules, and the conditions under which parameters exist."""

    parameters: dict[str, list[Any]]
    rules: list[str]
    when: dict[str, str] = field(default_factory=dict)

    @property
    def raw(self) -> int:
        return math.prod(len(values) + (name in self.when) for name, values in self.parameters.items())

    def unconditional(self) -> tuple[dict[str, list[Any]], list[str]]:
        """Return values and rules in which "does not exist" is a value like any other."""
        nothing = CONDITION_OF_NOTHING
        parameters = {
            name: [nothing, *values] if name in self.when else values for name, values in self.parameters.items()
        }
        rules = []
        for name, when in self.when.items():
            rules.append(f"({when} and {name} != {nothing}) or (not ({when}) and {name} == {nothing})")
        for rule in self.rules:
            absent = [f"{name} == {nothing} or " for name in self.when if name in names_in(rule)]
            rules.append("".join(absent) + f"({rule})" if absent else rule)
        return parameters, rules


def names_in(rule: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in rule).split())


def squares(limit: int) -> list[int]:
    return [k * k for k in range(1, math.isqrt(limit) + 1)]


PROBLEMS = {
    "qe": Problem(
        {
            "np": [*range(1, 49), *range(96, 1537, 48)],
            "npool": list(range(1, 261)),
            "nbgrp": [1, 2, 4, 8],
            "ntg": [1, 2, 4, 8],
            "ndiag": squares(1536),
            "threads": [1, 2, 4, 8],
        },
        [
            "np % npool == 0",
            "(np // npool) % nbgrp == 0",
            "(np // npool) % ntg == 0",
            "ndiag <= np // npool // nbgrp",
            "np * threads <= 1536",
        ],
    ),
    "hotspot": Problem(
        {
            "grid_width": [4096],
            "grid_height": [4096],
            "block_size_x": [1, 2, 4, 8, 16, *range(32, 1025, 32)],
            "block_size_y": [2**k for k in range(6)],
            "tile_size_x": list(range(1, 11)),
            "tile_size_y": list(range(1, 11)),
            "temporal_tiling_factor": list(range(1, 11)),
            "max_tfactor": [10],
            "loop_unroll_factor_t": list(range(1, 11)),
            "sh_power": [0, 1],
        },
        [
            "block_size_x * block_size_y >= 32",
            "temporal_tiling_factor % loop_unroll_factor_t == 0",
            "block_size_x * block_size_y <= 1024",
            (
                "(block_size_x * tile_size_x + temporal_tiling_factor * 2)"
                " * (block_size_y * tile_size_y + temporal_tiling_factor * 2) * (2 + sh_power) * 4 <= 49152"
            ),
        ],
    ),
    "gemm": Problem(
        {
            "GEMMK": [0],
            "MWG": [16, 32, 64, 128],
            "NWG": [16, 32, 64, 128],
            "KWG": [16, 32],
            "MDIMC": [8, 16, 32],
            "NDIMC": [8, 16, 32],
            "MDIMA": [8, 16, 32],
            "NDIMB": [8, 16, 32],
            "KWI": [2],
            "VWM": [1, 2, 4, 8],
            "VWN": [1, 2, 4, 8],
            "STRM": [0, 1],
            "STRN": [0, 1],
            "SA": [0, 1],
            "SB": [0, 1],
            "KREG": [1],
            "PRECISION": [32],
        },
        [
            "KWG % KWI == 0",
            "MWG % (MDIMC * VWM) == 0",
            "NWG % (NDIMC * VWN) == 0",
            "MWG % (MDIMA * VWM) == 0",
            "NWG % (NDIMB * VWN) == 0",
            "KWG % ((MDIMC * NDIMC) / MDIMA) == 0",
            "KWG % ((MDIMC * NDIMC) / NDIMB) == 0",
            "not (MWG == 128 and NWG == 128 and MDIMC == 8 and NDIMC == 8)",
        ],
    ),
    "billion": Problem(
        {name: list(range(1, 11)) for name in "abcdefghi"},
        ["a * b * c <= 75", "c % d == 0", "d + e + f <= 12", "f * g <= 12", "g % h == 0", "(a + h + i) % 4 == 0"],
    ),
    "conditional": Problem(
        {
            "tasks": list(range(1, 17)),
            "solver": ["david", "cg", "ppcg", "rmm"],
            "david_ndim": list(range(2, 9)),
            "cg_steps": list(range(10, 101, 10)),
            "ppcg_block": [1, 2, 4, 8],
            "gpu": [0, 1],
            "gpus": [1, 2, 3, 4],
            "streams": [1, 2, 4, 8],
            "mps": [0, 1],
            "scalapack": [0, 1],
            "block": [16, 32, 64, 128],
            "ndiag": squares(16),
            "openmp": [0, 1],
            "threads": [1, 2, 4, 8],
            "schedule": ["static", "dynamic", "guided"],
            "chunk": [1, 4, 16, 64],
        },
        ["tasks * threads <= 32", "ndiag <= tasks", "tasks % gpus == 0", "block * ndiag <= 512"],
        {
            "david_ndim": "solver == 'david'",
            "cg_steps": "solver == 'cg'",
            "ppcg_block": "solver == 'ppcg'",
            "gpus": "gpu == 1",
            "streams": "gpu == 1",
            "mps": "gpus > 1",
            "block": "scalapack == 1",
            "ndiag": "scalapack == 1",
            "threads": "openmp == 1",
            "schedule": "openmp == 1",
            "chunk": "schedule in ('dynamic', 'guided')",
        },
    ),
    "convolution": Problem(
        {
            "block_size_x": list(range(16, 257, 16)),
            "block_size_y": [1, 2, 4, 8, 16],
            "tile_size_x": [1, 2, 3, 4],
            "tile_size_y": [1, 2, 3, 4],
            "read_only": [0, 1],
            "use_padding": [0, 1],
            "use_shmem": [0, 1],
            "use_cmem": [1],
            "filter_height": [15],
            "filter_width": [15],
        },
        [
            "use_padding == 0 or block_size_x % 32 != 0",
            "block_size_x * block_size_y <= 1024",
            "use_padding == 0 or use_shmem != 0",
            (
                "use_shmem == 0 or (block_size_x * tile_size_x + (filter_width - 1))"
                " * (block_size_y * tile_size_y + (filter_height - 1)) < 12 * 1024"
            ),
        ],
    ),
}
