"""The terms of pw.x's run time: amounts of work by the manual and the source, over typical rates.

A self-consistent field cycle is iterations x k-points of a pool x applications of the Hamiltonian to all bands. An
application transforms every band to real space and back, with 5 N log2 N floating-point operations each way (Frigo &
Johnson, Proc. IEEE 93, 2005) on the wave functions' grid of N points. A rank of a pool has whole planes of it, and
whole columns in the other direction; between them lies an all-to-all in the pool. Projectors and the subspace problem
are matrix products; the diagonalisation of the latter, 25 n^3 operations, is serial or shared by `ndiag` ranks, which
exchange messages for each row and each doubling of their number (17 us by the timers of published runs).
Density, potentials and mixing are not shared by pools. For what each level shares see the user's guide of PWscf
("Parallelization"), Giannozzi et al., J. Phys.: Condens. Matter 29, 465901 (2017), and J. Chem. Phys. 152, 154105
(2020).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from objectives.qe.division import Division
from objectives.qe.placement import place_ranks
from objectives.shapes.columns import CaseColumns
from objectives.shapes.costs import Costs

_READS = frozenset({"np", "npool", "nbgrp", "ntg", "ndiag", "threads"})

# Iterations of the density unless the input allows fewer; applications of the Hamiltonian to each band per iteration
# (Davidson's method).
USUAL_ITERATIONS, _APPLICATIONS = 12.0, 3.0
# The plane waves fill a sphere in the grid of their products: pi / 48 of the points, pi / 16 of the columns.
_WAVES, _COLUMNS = 0.065, 0.2
_COMPLEX_BYTES = 16.0
_POINTS_OF_A_BAND = (
    15_000.0  # used if the number of bands is unknown: the median of published inputs, within a factor of two
)
_PROJECTORS_OF_AN_ATOM = 8.0
_ATOMS_OF_A_BAND = 0.25
_CACHE_BYTES = 1.5e6  # of a core

# Typical rates of a core, of a node's memory per core, and of messages within a node and between nodes.
_FFT_FLOPS, _MATRIX_FLOPS, _SERIAL_FLOPS, _DENSITY_FLOPS = 4e9, 10e9, 8e9, 1e9
_CLOCK_HZ = 2.6e9
_MEMORY_BYTES_PER_S = 5e9
_COPY_BYTES_PER_S, _NETWORK_BYTES_PER_S = 6e9, 3e9
_NETWORK_SHARE = 0.25  # of the bandwidth in a network's data sheet
_MESSAGE_S, _NETWORK_MESSAGE_S, _REDUCTION_S, _NETWORK_REDUCTION_S = 1e-6, 3e-6, 3e-6, 10e-6
_CALL_S, _KPOINT_S, _PARALLEL_CALL_S, _PARALLEL_ROW_S = 4e-6, 5e-4, 6e-5, 1.7e-5
_START_S, _RANK_S, _NODE_S = 3.0, 0.002, 0.05
_REDUCTIONS = 30.0  # per iteration and k-point
_SUBSPACES = 3.0  # problems per iteration and k-point, each with about two rows per band

_DOUBTS = {
    "FFT": 0.45,
    "memory traffic of a node": 0.5,
    "matrix products": 1.0,
    "subspace problem": 0.6,
    "messages of the subspace problem": 1.0,
    "calls": 0.6,
    "k-points": 0.8,
    "messages in a node": 0.8,
    "transposes in a node": 0.6,
    "messages between nodes": 1.5,
    "transposes between nodes": 1.3,
    "reductions in a node": 0.8,
    "reductions between nodes": 1.5,
    "density and potential": 0.8,
    "sums over pools": 1.0,
    "sums over band groups": 1.5,
    "start": 1.3,
    "start of ranks": 1.0,
    "start of nodes": 1.0,
}
_OF_THE_START = {"start", "start of ranks", "start of nodes"}
_TIMERS = {
    "electrons": tuple(name for name in _DOUBTS if name not in _OF_THE_START),
    "fftw": (
        *("FFT", "memory traffic of a node", "calls", "messages in a node", "transposes in a node"),
        *("messages between nodes", "transposes between nodes"),
    ),
    "cdiaghg": ("subspace problem", "messages of the subspace problem"),
    "v_of_rho": ("density and potential",),
}


def costs(columns: Mapping[str, npt.NDArray[Any]]) -> Costs | None:
    """Return the costs of n cases of pw.x; None if no case has k-points and a grid.

    Args:
        columns: Parameters of `spaces.qe`, facts of the workload (`kpoints`, `bands`, `fft_dense_x`, ...) and of the
            machine (`cores_per_node`, `nodes`, `flops`, ...), (n,) each, by name. Typical values replace other unknown
            facts.
    """
    if not {"kpoints", "fft_dense_x", "fft_dense_y", "fft_dense_z"} <= set(columns):
        return None
    known = CaseColumns(columns)
    ranks, threads = known.number("np", 1.0), known.number("threads", 1.0)
    per_node = known.number("cores_per_node", ranks * threads)
    dense = [known.number(f"fft_dense_{axis}") for axis in "xyz"]
    smooth = [known.number(f"fft_smooth_{axis}", size) for axis, size in zip("xyz", dense, strict=True)]
    points, planes, dense_points = np.prod(smooth, axis=0), smooth[2], np.prod(dense, axis=0)
    bands = known.number("bands", np.ceil(points / _POINTS_OF_A_BAND))
    projectors = known.number("atoms", _ATOMS_OF_A_BAND * bands) * _PROJECTORS_OF_AN_ATOM
    clock = known.number("cpu_frequency_hz", _CLOCK_HZ) / _CLOCK_HZ
    division = Division.of(known, bands, planes)
    pools, groups, tasks = division.pools, division.groups, division.tasks
    in_pool = ranks / pools
    in_group = in_pool / groups
    diagonal = np.clip(division.ndiag, 1.0, in_pool)
    mine = np.ceil(known.number("kpoints") / pools)
    at = place_ranks(ranks, pools, threads, known.number("nodes"), per_node)
    here = np.minimum(at.ranks_of_node, in_group)
    away = np.where(at.span > 1.0, in_group - here, 0.0)
    iterations = known.number("scf_iterations", USUAL_ITERATIONS)
    visits = iterations * mine
    transforms = visits * np.ceil(bands / groups) * _APPLICATIONS * 2.0
    work = 1.0 / (0.1 + 0.9 / threads)  # speed-up by threads: Amdahl's law with a tenth serial
    share = (1.0 - _COLUMNS) * np.ceil(planes * tasks / in_group) / (planes * tasks) + _COLUMNS / in_group
    rows = 2.0 * bands
    # Ranks exchange parts of equal size, so a rank with fewer planes sends as much as one with the most.
    padded = np.ceil(planes * tasks / in_group) * in_group / (planes * tasks)
    wave = _COMPLEX_BYTES * points * _COLUMNS * padded
    set_bytes = 2.0 * _COMPLEX_BYTES * points / in_group
    traffic = transforms * points * _COMPLEX_BYTES * 6.0 / in_group * set_bytes / (set_bytes + _CACHE_BYTES)
    products = visits * _APPLICATIONS * 8.0 * points * _WAVES * bands
    problems = visits * _SUBSPACES
    network = _NETWORK_SHARE * known.number("network_bandwidth_bytes_per_s", _NETWORK_BYTES_PER_S / _NETWORK_SHARE)
    bandwidth = known.number("memory_bandwidth_bytes_per_s", _MEMORY_BYTES_PER_S * per_node)
    many = in_group > 1.0
    seconds = {
        "FFT": transforms * 5.0 * points * np.log2(points) * share / work / (_FFT_FLOPS * clock),
        "memory traffic of a node": traffic * at.ranks_of_node / bandwidth,
        "matrix products": products
        * (4.0 * projectors / groups + 6.0 * bands / np.sqrt(groups))
        / (in_group * work * _MATRIX_FLOPS * clock),
        "subspace problem": problems * 25.0 * rows**3 / (_SERIAL_FLOPS * clock) / np.sqrt(diagonal),
        "messages of the subspace problem": problems * np.log2(diagonal) * (_PARALLEL_CALL_S + _PARALLEL_ROW_S * rows),
        "calls": transforms * _CALL_S,
        "k-points": visits * _KPOINT_S,
        "messages in a node": transforms * np.maximum(here - 1.0, 0.0) * _MESSAGE_S,
        "transposes in a node": transforms * wave * (1.0 + (tasks > 1.0)) / in_group * many / _COPY_BYTES_PER_S,
        "messages between nodes": transforms * away * _NETWORK_MESSAGE_S,
        "transposes between nodes": transforms * wave * at.share * groups * at.sharing / at.span / network,
        "reductions in a node": visits * _REDUCTIONS * np.log2(np.maximum(in_pool, 1.0)) * _REDUCTION_S,
        "reductions between nodes": visits
        * _REDUCTIONS
        * (at.span > 1.0)
        * np.log2(np.maximum(in_pool, 1.0))
        * _NETWORK_REDUCTION_S,
        "density and potential": iterations * (dense_points * 300.0 / in_pool / _DENSITY_FLOPS + 0.01),
        "sums over pools": iterations
        * _COMPLEX_BYTES
        * dense_points
        / in_pool
        * np.log2(pools)
        * pools
        / at.nodes
        / (0.7 * network),
        # The Hamiltonian's result is summed on one rank and sent back to all.
        "sums over band groups": 2.0
        * visits
        * _APPLICATIONS
        * bands
        * _COMPLEX_BYTES
        * points
        * _WAVES
        / in_group
        * np.log2(groups)
        * (in_pool / np.maximum(at.nodes, 1.0))
        / network,
        "start": np.full_like(ranks, _START_S),
        "start of ranks": ranks * _RANK_S,
        "start of nodes": (at.nodes - 1.0) * _NODE_S,
    }
    # Only the first pool's timers are printed. Others may wait longer if some pools lie across nodes.
    timed = (pools == 1.0) | (at.span == 1.0)
    found = {name: np.maximum(column, 0.0) for name, column in seconds.items()}
    return Costs(found, _DOUBTS, 0.5, _TIMERS, timed, _READS)
