"""Times a collective operation with a backend of torch.distributed: one JSON line per size, and one at the end.

    python3 backends.py gloo 2 allreduce SECONDS BYTES[,BYTES...]

The figures are those of collectives.c: sizes mean the same, a barrier precedes each repetition, the slowest rank and
the median repetition count, and every number of a result is checked before and after. Two things differ. torch sums
in place, so repetitions sum zeros to keep numbers from growing. And its shares of a reduce_scatter are equal, so a
message is padded.

The ranks are processes of this machine. nccl gives each a GPU; that follows torch's documentation and is untested.
Untimed messages go over gloo.
"""

# ruff: noqa: T201, ANN401  a program of its own: it prints; torch has no types

import datetime
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

NUMBER_BYTES = 4
LEAST, MOST, WARM_UP = 10, 20_000, 5
LIMIT_S = 60.0
WRONG = 3
USAGE = "usage: backends.py BACKEND RANKS COLLECTIVE SECONDS BYTES[,BYTES...]"


def values(sender: int, first: int, count: int) -> Any:
    """Return integers that depend on the sender and on their places, which begin at `first`."""
    return ((torch.arange(first, first + count) * 7 + sender * 31) % 101).to(torch.float32)


class Operation:
    """A collective operation on messages of `count` numbers, and the check of its result."""

    def __init__(self, collective: str, rank: int, ranks: int, count: int, device: Any) -> None:
        self._collective, self._rank, self._ranks = collective, rank, ranks
        self._count = -(-count // ranks) * ranks if collective == "reduce_scatter" else count
        sent = self._count * (ranks if collective == "alltoall" else 1)
        received = {"alltoall": sent, "allgather": count * ranks, "reduce_scatter": self._count // ranks}
        self._from = torch.zeros(sent, device=device)
        self._to = torch.zeros(received.get(collective, count), device=device)

    def once(self) -> None:
        """Run the operation once."""
        match self._collective:
            case "allreduce":
                dist.all_reduce(self._to)
            case "reduce":
                dist.reduce(self._to, dst=0)
            case "bcast":
                dist.broadcast(self._to, src=0)
            case "allgather":
                dist.all_gather_into_tensor(self._to, self._from)
            case "alltoall":
                dist.all_to_all_single(self._to, self._from)
            case "reduce_scatter":
                dist.reduce_scatter_tensor(self._to, self._from)
            case _:
                dist.barrier()

    def wrong(self) -> int:
        """Run the operation; return how many numbers of the result are wrong. The buffers then hold zeros."""
        self._from.copy_(values(self._rank, 0, len(self._from)))
        in_place = self._collective in {"allreduce", "reduce"} or (self._collective == "bcast" and self._rank == 0)
        self._to.copy_(values(self._rank, 0, len(self._to)) if in_place else torch.full((len(self._to),), -1.0))
        self.once()
        found = 0 if (right := self._right()) is None else int((self._to.cpu() != right).sum())
        self._from.zero_()
        self._to.zero_()
        return found

    def _right(self) -> Any:
        """Return the right result of this rank; None if it receives nothing."""
        senders, count = range(self._ranks), self._count
        right = None
        match self._collective:
            case "allreduce" | "reduce" if self._collective == "allreduce" or self._rank == 0:
                right = sum(values(of, 0, count) for of in senders)
            case "bcast":
                right = values(0, 0, count)
            case "allgather":
                right = torch.cat([values(of, 0, count) for of in senders])
            case "alltoall":
                right = torch.cat([values(of, self._rank * count, count) for of in senders])
            case "reduce_scatter":
                share = count // self._ranks
                right = sum(values(of, self._rank * share, share) for of in senders)
        return right


class Ranks:
    """The ranks, as one of them sees them; `control` is the group for untimed messages."""

    def __init__(self, rank: int, ranks: int, control: Any, device: Any) -> None:
        self._rank, self._ranks, self._control, self._device = rank, ranks, control, device

    def all_of(self, mine: Any) -> list[Any]:
        """Return the value of each rank."""
        found = [None] * self._ranks
        dist.all_gather_object(found, mine, group=self._control)
        return found

    def median(self, operation: Operation, budget_s: float) -> tuple[float, int]:
        """Return the median time of the slowest rank, in seconds, and the number of repetitions."""
        self._times(operation, WARM_UP)
        took = self._times(operation, LEAST)
        # The barrier of a repetition takes about as long again. All ranks have the same times, so the same number.
        fit = int(0.5 * budget_s / max(statistics.median(took), 1e-7))
        if fit > LEAST:
            took += self._times(operation, min(fit, MOST) - LEAST)
        return statistics.median(took), len(took)

    def _times(self, operation: Operation, count: int) -> list[float]:
        took = []
        for _ in range(count):
            dist.barrier(group=self._control)
            start = time.perf_counter()
            operation.once()
            if self._device.type == "cuda":
                torch.cuda.synchronize(self._device)
            took.append(time.perf_counter() - start)
        return [max(times) for times in zip(*self.all_of(took), strict=True)]


@dataclass(frozen=True)
class Asked:
    """The command line, and the file by which the ranks connect."""

    backend: str
    ranks: int
    collective: str
    seconds: float
    sizes: tuple[int, ...]
    meeting: str


def work(rank: int, asked: Asked) -> None:
    """Run one rank; the first one prints.

    Raises:
        SystemExit: a result was wrong.
    """
    torch.set_num_threads(1)
    ranks, collective, sizes = asked.ranks, asked.collective, asked.sizes
    device = torch.device("cuda", rank) if asked.backend == "nccl" else torch.device("cpu")
    if asked.backend == "nccl":
        torch.cuda.set_device(device)
    dist.init_process_group(
        asked.backend,
        init_method=f"file://{asked.meeting}",
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(seconds=LIMIT_S),
    )
    control = dist.new_group(backend="gloo")
    all_ranks = Ranks(rank, ranks, control, device)
    medians = []
    for step, size in enumerate(sizes, start=1):
        operation = Operation(collective, rank, ranks, size // NUMBER_BYTES, device)
        wrong = sum(all_ranks.all_of(operation.wrong()))
        latency_s, made = all_ranks.median(operation, asked.seconds / len(sizes))
        wrong += sum(all_ranks.all_of(operation.wrong()))
        if wrong:
            if rank == 0:
                what = {"collective": collective, "ranks": ranks, "bytes": size, "numbers": wrong}
                print(json.dumps({"wrong": what}), flush=True)
            sys.exit(WRONG)
        medians.append([size, latency_s])
        if rank == 0:
            line = {"step": step, "bytes": size, "latency_s": latency_s, "repetitions": made}
            print(json.dumps(line), flush=True)
    if rank == 0:
        print(json.dumps({"result": {"collective": collective, "ranks": ranks, "sizes": medians}}), flush=True)
    dist.barrier(group=control)
    dist.destroy_process_group()


def main() -> int:
    """Start the ranks; return the exit code."""
    try:
        backend, ranks, collective, seconds, sizes = sys.argv[1:]
        what = (backend, int(ranks), collective, float(seconds), tuple(int(size) for size in sizes.split(",")))
    except ValueError:
        print(USAGE, file=sys.stderr)
        return 2
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
    for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        if loopback:
            os.environ.setdefault(variable, loopback)
    with tempfile.TemporaryDirectory() as folder:
        try:
            torch.multiprocessing.spawn(work, args=(Asked(*what, f"{folder}/meeting"),), nprocs=what[1])
        except torch.multiprocessing.ProcessExitedException as ended:
            return int(ended.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
