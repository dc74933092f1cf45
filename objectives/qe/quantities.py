"""The quantities on which pw.x's run time depends: how its parallel levels divide the problem, as columns of numbers.

The levels are pools (k-points), band groups, and then the FFT grid's planes and the plane waves over the ranks of a
band group. See the user's guide of PWscf, "Parallelization", and Giannozzi et al., J. Phys.: Condens. Matter 29 (2017).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from objectives.qe.division import Division
from objectives.qe.placement import place_ranks
from objectives.shapes.columns import CaseColumns, Column

_COMPLEX_BYTES = 16
# Shares of pairs enter as 1 + 10 share, so that a power law spans a decade between "none" and "all".
_DECADE = 10.0


def quantities(columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, Column]:
    """Return what can be computed from n cases, (n,) each, NaN where something is unknown.

    Args:
        columns: Parameters of `spaces.qe`, facts of the workload (`kpoints`, `bands`, `fft_dense_x`, ...) and of the
            machine (`cores_per_node`, `nodes`, `memory_bandwidth_bytes_per_s`), (n,) each, by name.
    """
    known = CaseColumns(columns)
    ranks, threads = known.number("np"), known.number("threads", 1.0)
    kpoints, bands = known.number("kpoints"), known.number("bands")
    planes = known.number("fft_dense_z")
    division = Division.of(known, bands, known.number("fft_smooth_z", planes))
    pools, groups = division.pools, division.groups
    points = known.number("fft_dense_x") * known.number("fft_dense_y") * planes
    in_pool = ranks / pools
    in_group = in_pool / groups
    mine = np.ceil(kpoints / pools)
    my_planes = np.ceil(planes / in_group)
    cores = ranks * threads
    per_node = known.number("cores_per_node")
    nodes = np.ceil(cores / per_node)
    work = mine * np.ceil(bands / groups) * my_planes * (points / planes)
    at = place_ranks(ranks, pools, threads, known.number("nodes"), per_node)
    found = {
        "cores used": cores,
        "nodes used": nodes,
        "ranks of a pool": in_pool,
        "ranks of a band group": in_group,
        "ranks of a node": at.ranks_of_node,
        "share of the cores that is used": cores / (at.nodes * per_node),
        "nodes of a pool": at.span,
        "1 + 10 x share of a pool's pairs of ranks across nodes": 1.0 + _DECADE * at.share,
        "1 + pairs of ranks across nodes in a pool": 1.0 + at.pairs,
        "k-points of a pool": mine,
        "imbalance of pools": mine * pools / kpoints,
        "planes of a rank": my_planes,
        "imbalance of planes": my_planes * in_group / planes,
        "grid points of a rank": points / in_group,
        "work of a rank": work,
        "grid points of a rank, all k-points": mine * points / in_group,
        "pools of a node": pools / nodes,
        "bytes of a rank's waves": mine * bands * points / in_group * _COMPLEX_BYTES,
        "time for a rank's waves": work * _COMPLEX_BYTES * cores / nodes / known.number("memory_bandwidth_bytes_per_s"),
    }
    return {name: column for name, column in found.items() if not np.isnan(column).all()}
