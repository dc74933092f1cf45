"""The transports of UCX: which variables they read, and which values of UCX_TLS connect two processes.

See UCX's documentation, "Frequently asked questions", and its own description of UCX_TLS.
"""

import re
from collections.abc import Collection, Iterable, Mapping

_INFINIBAND = ("rc_verbs", "rc_mlx5", "dc_mlx5", "ud_verbs", "ud_mlx5")

# Transports between nodes, and the name that brings along what they connect with (`rc_x`: rc_mlx5, wired up by ud).
_NETWORKS = {
    "rc_mlx5": "rc_x",
    "dc_mlx5": "dc_x",
    "ud_mlx5": "ud_x",
    "rc_verbs": "rc_v",
    "ud_verbs": "ud_v",
    "srd": "srd",
    "tcp": "tcp",
}
_MAPPERS = ("posix", "sysv", "xpmem")  # shared memory that connects two processes of a node by itself
_COPIERS = ("cma", "knem")  # copy large messages within a node; another transport has to connect
_DEVICE = re.compile(r"Transport: (\S+)\s*\n#\s*Device: (\S+)\s*\n#\s*Type: (\S+)")
_LOOPBACK = "lo"
_GPUS = ("cuda_copy", "cuda_ipc", "gdr_copy", "rocm_copy", "rocm_ipc", "rocm_gdr")

# Variables with these prefixes are read only by these transports. Longer prefixes come first.
_READERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("UCX_NET_DEVICES", tuple(_NETWORKS)),
    ("UCX_SELF_", ("self",)),
    ("UCX_TCP_", ("tcp",)),
    ("UCX_SYSV_", ("sysv",)),
    ("UCX_POSIX_", ("posix",)),
    ("UCX_XPMEM_", ("xpmem",)),
    ("UCX_CMA_", ("cma",)),
    ("UCX_KNEM_", ("knem",)),
    ("UCX_RC_VERBS_", ("rc_verbs",)),
    ("UCX_RC_MLX5_", ("rc_mlx5",)),
    ("UCX_RC_", ("rc_verbs", "rc_mlx5")),
    ("UCX_DC_", ("dc_mlx5",)),
    ("UCX_UD_VERBS_", ("ud_verbs",)),
    ("UCX_UD_MLX5_", ("ud_mlx5",)),
    ("UCX_UD_", ("ud_verbs", "ud_mlx5")),
    ("UCX_TM_", ("rc_mlx5", "dc_mlx5")),  # offloaded tag matching
    ("UCX_IB_", _INFINIBAND),
    ("UCX_MLX5_", ("rc_mlx5", "dc_mlx5", "ud_mlx5")),
    ("UCX_RDMA_CM_", _INFINIBAND),
    ("UCX_SRD_", ("srd",)),
    ("UCX_CUDA_COPY_", ("cuda_copy",)),
    ("UCX_CUDA_IPC_", ("cuda_ipc",)),
    ("UCX_CUDA_", ("cuda_copy", "cuda_ipc")),
    ("UCX_GDR_COPY_", ("gdr_copy",)),
    ("UCX_ROCM_COPY_", ("rocm_copy",)),
    ("UCX_ROCM_IPC_", ("rocm_ipc",)),
    ("UCX_ROCM_", ("rocm_copy", "rocm_ipc", "rocm_gdr")),
)


def readers_of(name: str) -> frozenset[str]:
    """Return the transports that read the variable; none if it is read whatever the transport."""
    return frozenset(next((readers for start, readers in _READERS if name.startswith(start)), ()))


def network_devices(text: str) -> dict[str, frozenset[str]]:
    """Return the network devices of the output of `ucx_info -d`, and the transports that use each."""
    found: dict[str, set[str]] = {}
    for transport, device, kind in _DEVICE.findall(text):
        if kind == "network":
            found.setdefault(device, set()).add(transport)
    return {device: frozenset(transports) for device, transports in found.items()}


def between_nodes(devices: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return the devices that reach other nodes: all except the loopback device."""
    return {device: transports for device, transports in devices.items() if device != _LOOPBACK}


def tls_value(transports: Iterable[str]) -> str:
    """Return the value of UCX_TLS that names these transports and those that set up their connections."""
    return ",".join(_NETWORKS.get(name, name) for name in transports)


def maps_memory(transports: Collection[str]) -> bool:
    """Return whether a process can read another's memory in place (the rendezvous scheme `rkey_ptr`)."""
    return any(transport in transports for transport in _MAPPERS)


def combinations(transports: Collection[str], *, gpu: bool, nodes: int) -> dict[str, frozenset[str]]:
    """Return values of UCX_TLS that connect any two processes, and the transports that each names.

    On one node these are every network by itself, and shared memory with and without a copying helper; on several,
    every network by itself and with shared memory within the nodes. With GPUs, transports that reach their memory are
    added.
    """
    networks = [(network,) for network in _NETWORKS if network in transports]
    copiers = [(copier,) for copier in _COPIERS if copier in transports]
    local = [(mapper, *copier) for mapper in _MAPPERS if mapper in transports for copier in [(), *copiers]]
    reach = tuple(transport for transport in _GPUS if gpu and transport in transports)
    joint = local if nodes == 1 else [network + shared for network in networks for shared in local]
    named = [(*names, *reach) for names in (*networks, *joint)]
    return {tls_value(names): frozenset(names) for names in named}
