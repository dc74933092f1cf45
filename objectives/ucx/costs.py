"""The terms of an exchange by UCX: latency and bytes of messages, by the protocol that carries them.

A message below the rendezvous threshold is eager: it is copied into buffers on both sides. A longer one begins with a
handshake, and is then written or read in place, or sent in fragments that are copied (scheme `am`). TCP cuts it into
segments, each with a system call. See Hockney (Parallel Computing 20, 1994) for latency and bandwidth, Woodall et al.
(EuroPVM/MPI 2006) for eager messages and rendezvous, and "Frequently asked questions" and "UCX environment parameters"
of openucx.readthedocs.io for the variables.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from objectives.shapes.columns import CaseColumns, Column
from objectives.shapes.costs import Costs
from objectives.shapes.messages import message_s
from spaces.ucx.values import size_bytes

_ROW_BYTES = 2 * 16  # bytes of a row in each of the two frames that a worker merges
_RNDV = {"merge": 8192.0, "perftest": 65_536.0}  # the first is set by ucxx; UCX's own choice is near the second
_SEGMENT = 8192.0

# Typical rates of a core, of memory and of the network, for machines without these facts.
_LATENCY_S, _LATENCY_BETWEEN_NODES_S = 1e-6, 3e-6
_BANDWIDTH, _BANDWIDTH_BETWEEN_NODES = 3e9, 1e10
_COPY, _MERGE, _MERGE_ON_GPU = 5e9, 1e8, 1e10
_SEGMENT_S = 4e-6
# Time until a message is noticed: a sleeping thread must be woken, a polling loop sees it at once, and two loops that
# share a core wait for each other.
_NOTICE_S = {"": 2e-5, "blocking": 4e-5, "polling": 5e-6, "thread-polling": 2e-4}

_READ = frozenset({"UCX_RNDV_THRESH", "UCX_RNDV_SCHEME", "UCX_TCP_TX_SEG_SIZE", "UCXPY_PROGRESS_MODE"})


def costs(columns: Mapping[str, npt.NDArray[Any]]) -> Costs:
    """Return the seconds for each byte of the exchange: the inverse of a throughput.

    Args:
        columns: Variables of UCX, facts of the benchmark (`benchmark`, `workers`, `rows` or message sizes) and of the
            machine, (n,) each.
    """
    known = CaseColumns(columns)
    workers = known.number("workers", 2.0)
    is_merge = np.array([word == "merge" for word in known.words("benchmark")])
    share = _ROW_BYTES / 2.0 * known.number("rows") / workers
    small, large = known.number("smallest_message_bytes"), known.number("largest_message_bytes")
    size = np.where(is_merge, share, np.sqrt(small * large))
    # Each worker exchanges a share of both of its frames with every other worker, all at the same time.
    messages = np.where(is_merge, 2.0 * (workers - 1.0), 1.0)
    whole = np.where(is_merge, _ROW_BYTES * known.number("rows") * workers, size)
    several = known.number("nodes", 1.0) > 1.0
    latency = np.where(
        several,
        known.first("network_latency_s", usual=_LATENCY_BETWEEN_NODES_S),
        known.first("measured_mpi_latency_s", usual=_LATENCY_S),
    )
    bandwidth = np.where(
        several,
        known.first("network_bandwidth_bytes_per_s", usual=_BANDWIDTH_BETWEEN_NODES),
        known.first("measured_mpi_bandwidth_bytes_per_s", usual=_BANDWIDTH),
    )
    thresholds = np.where(is_merge, _RNDV["merge"], _RNDV["perftest"])
    eager = size < _sizes(known, "UCX_RNDV_THRESH", thresholds)
    fragments = np.array([scheme.startswith("am") for scheme in known.words("UCX_RNDV_SCHEME")])
    segment = _sizes(known, "UCX_TCP_TX_SEG_SIZE", np.full(known.count, _SEGMENT))
    notice = np.array([_NOTICE_S.get(mode, _NOTICE_S[""]) for mode in known.words("UCXPY_PROGRESS_MODE")])
    on_gpu = np.array([word == "cudf" for word in known.words("frames")]) | (known.number("gpus_per_node", 0.0) > 0.0)
    merging = whole / workers / np.where(on_gpu, _MERGE_ON_GPU, _MERGE)
    seconds = {
        "merging": np.where(is_merge, merging, 0.0),
        "messages": messages * latency,
        "bytes on the wire": messages * (message_s(size, latency, bandwidth) - latency),
        "handshakes": messages * np.where(eager, 0.0, 2.0 * latency),
        "copies": messages * np.where(eager | fragments, 2.0 * size / _COPY, 0.0),
        "segments": messages * np.ceil(size / segment) * _SEGMENT_S,
        "noticing messages": messages * np.where(eager, 1.0, 3.0) * np.where(is_merge, notice, 0.0),
    }
    doubts = {
        "merging": 1.0,
        "messages": 0.7,
        "bytes on the wire": 0.7,
        "handshakes": 1.0,
        "copies": 1.0,
        "segments": 1.0,
        "noticing messages": 1.5,
    }
    return Costs({name: column / whole for name, column in seconds.items()}, doubts, 1.0, reads=_READ, inverse=True)


def _sizes(known: CaseColumns, name: str, usual: Column) -> Column:
    """Return the sizes in a variable, with `usual` where it holds none."""
    sizes = [size_bytes(word) for word in known.words(name)]
    return np.array([other if size is None else size for size, other in zip(sizes, usual.tolist(), strict=True)])
