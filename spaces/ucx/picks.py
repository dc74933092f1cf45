"""The variables of UCX that are tuned by default, each with the reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pick:
    """A variable that is tuned by default: `factors` of its default as values, or `only` these of its values."""

    name: str
    why: str
    factors: tuple[float, ...] = ()
    only: tuple[str, ...] = ()


_SEGMENT = "how much is copied at a time"
_POLL = "how long one connection is served before the others"
_GROWTH = "how often a pool of buffers has to grow"
_SOCKET = "how much is under way before a sender waits"
_FIFO = "how many messages wait before a sender does"
_QUEUE = "how many requests are under way"
_MATCHING = "the network card finds the receive that a message belongs to"
_AROUND = (1 / 4, 4)

PICKS = (
    Pick("UCX_RNDV_THRESH", "from which size on a handshake costs less than a copy; often the most there is to gain"),
    Pick("UCX_RNDV_SCHEME", "how, and by which side, the data of a large message are moved"),
    Pick("UCX_ZCOPY_THRESH", "from which size on registering memory costs less than a copy"),
    Pick("UCX_PROTO_ENABLE", "the other of two ways to choose a protocol, which cuts messages elsewhere"),
    Pick("UCX_MAX_RNDV_RAILS", "over how many devices a large message is spread", (1 / 2, 2)),
    Pick("UCX_UNIFIED_MODE", "short cuts where all processes have the same devices"),
    Pick("UCX_USE_MT_MUTEX", "threads that wait sleep instead of spinning"),
    Pick("UCX_ADAPTIVE_PROGRESS", "whether idle devices are polled"),
    # Copies through the kernel's buffers: the sizes of the copies, and how rarely a system call is needed.
    Pick("UCX_TCP_TX_SEG_SIZE", _SEGMENT, (1 / 2, 2, 4, 8, 16, 32)),
    Pick("UCX_TCP_RX_SEG_SIZE", _SEGMENT, (1 / 4, 1 / 2, 2, 4, 8, 16)),
    Pick("UCX_TCP_SNDBUF", _SOCKET),
    Pick("UCX_TCP_RCVBUF", _SOCKET),
    Pick("UCX_TCP_MAX_POLL", _POLL, _AROUND),
    Pick("UCX_TCP_PUT_ENABLE", "large messages without a copy on the sender's side"),
    Pick("UCX_TCP_TX_BUFS_GROW", _GROWTH, (2,)),
    Pick("UCX_TCP_RX_BUFS_GROW", _GROWTH, (2,)),
    # Shared memory: a queue of small elements, and buffers for what does not fit into one. `y` of the huge pages
    # fails where the machine has none, and is `try` where it has.
    *(
        pick
        for start in ("UCX_SYSV_", "UCX_POSIX_")
        for pick in (
            Pick(f"{start}FIFO_SIZE", _FIFO, (1 / 4, 4, 16)),
            Pick(f"{start}SEG_SIZE", _SEGMENT, (1 / 4, 2, 4)),
            Pick(f"{start}FIFO_ELEM_SIZE", "up to which size a message needs no buffer", (1 / 2, 2, 4)),
            Pick(f"{start}FIFO_MAX_POLL", _POLL, _AROUND),
            Pick(
                f"{start}HUGETLB_MODE",
                "huge pages are tried by default, which costs time on machines without them",
                (),
                ("n",),
            ),
        )
    ),
    Pick("UCX_CMA_SEG_SIZE", "how much the kernel copies between processes in a call"),
    Pick("UCX_CMA_TX_QUOTA", "how many such calls are made before anything else"),
    # InfiniBand.
    Pick("UCX_RC_MLX5_TM_ENABLE", _MATCHING),
    Pick("UCX_DC_MLX5_TM_ENABLE", _MATCHING),
    Pick("UCX_TM_THRESH", "from which size on the network card does so"),
    *(
        pick
        for start in ("UCX_RC_MLX5_", "UCX_DC_MLX5_", "UCX_RC_VERBS_")
        for pick in (
            Pick(f"{start}TX_QUEUE_LEN", _QUEUE, _AROUND),
            Pick(f"{start}RX_QUEUE_LEN", _QUEUE, (1 / 4, 2)),
            Pick(f"{start}SEG_SIZE", _SEGMENT, (1 / 4, 4)),
        )
    ),
    Pick("UCX_DC_MLX5_NUM_DCI", "how many peers are sent to at once"),
    Pick("UCX_DC_MLX5_TX_POLICY", "which peer is served next"),
    Pick("UCX_IB_REG_METHODS", "how memory is made known to the network card"),
    Pick("UCX_IB_PCI_RELAXED_ORDERING", "whether writes to memory may overtake each other"),
    # GPUs.
    Pick("UCX_IB_GPU_DIRECT_RDMA", "whether the network card reads a GPU's memory itself"),
    Pick("UCX_MEMTYPE_CACHE", "whether it is remembered which memory is a GPU's"),
    Pick("UCX_RNDV_PIPELINE_SEND_THRESH", "from which size on messages of GPUs go through the host in pieces"),
    Pick("UCX_RNDV_PIPELINE_SHM_ENABLE", "whether they do so within a node"),
    Pick("UCX_CUDA_COPY_MAX_POLL", _POLL, _AROUND),
    Pick("UCX_CUDA_IPC_MAX_POLL", _POLL, _AROUND),
    Pick("UCX_CUDA_IPC_CACHE", "whether mappings of another process's GPU memory are kept"),
)
