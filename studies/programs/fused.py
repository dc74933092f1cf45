"""Times the sum of a network's gradients over workers, which data-parallel training needs in each step.

    python3 fused.py --workers 2 --tensors small-cnn --bucket-mib 25 --compression none --seconds 2

Tensors are collected in buckets of `--bucket-mib` MiB, from the last to the first, as backward passes produce them;
with 0 each tensor is sent alone. This is Horovod's fusion buffer (Sergeev and Del Balso, arXiv:1802.05799) and the
bucket of torch's DistributedDataParallel, whose first bucket has 1 MiB unless a size is given: so does --bucket-mib
default. With --compression fp16 numbers are rounded to 16 bits, sent and summed so, and widened again (Horovod's
Compression.fp16).

The workers are processes of this machine, over gloo, or over NCCL if each can have a GPU (follows torch's
documentation; untested). A barrier precedes each repetition; a repetition takes as long as its slowest worker, and the
median counts. Every number of every sum is checked before and after: the tensors hold small integers, whose sums 16
bits hold exactly.
"""

# ruff: noqa: T201, ANN401, PLC0415  a program of its own: it prints; torch has no types, and is imported by the workers

import argparse
import datetime
import importlib.util
import multiprocessing
import os
import queue
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

MIB = 2**20
NUMBER_BYTES = 4
FIRST_BUCKET_MIB, BUCKET_MIB = 1.0, 25.0  # torch's own
LEAST, MOST, WARM_UP = 5, 5000, 2
LIMIT_S = 120.0
WRONG = 3
VALUES = 13  # sums over up to 157 workers are integers that 16 bits hold exactly


def small_cnn(channels: int = 12, classes: int = 19) -> list[int]:
    """Return the size of each gradient of `study ddp`'s network, in the order of its layers."""
    sizes, at = [], channels
    for out in (32, 64, 128):
        sizes += [9 * at * out, out, out, out]
        at = out
    return [*sizes, 16 * at * 512, 512, 512 * classes, classes]


def resnet50(channels: int = 12, classes: int = 19) -> list[int]:
    """Return the sizes for ResNet-50 (He et al., arXiv:1512.03385): each convolution has a norm with two vectors."""
    sizes, at = [49 * channels * 64, 64, 64], 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            for numbers, out in ((at * width, width), (9 * width * width, width), (4 * width * width, 4 * width)):
                sizes += [numbers, out, out]
            if block == 0:
                sizes += [4 * at * width, 4 * width, 4 * width]
            at = 4 * width
    return [*sizes, at * classes, classes]


def sizes_of(tensors: str) -> list[int]:
    """Return the sizes of a network by name, or those in a file with one number per line.

    Raises:
        ValueError: there is no such network, or the file is wrong.
    """
    known = {"small-cnn": small_cnn, "resnet50": resnet50}
    if tensors in known:
        return known[tensors]()
    try:
        sizes = [int(line) for line in Path(tensors).read_text(encoding="utf-8").split()]
    except (OSError, ValueError) as error:
        msg = f"--tensors {tensors}: neither {' nor '.join(known)}, nor a file with a whole number a line ({error})"
        raise ValueError(msg) from None
    if not sizes or min(sizes) < 1:
        raise ValueError(f"--tensors {tensors}: tensors have at least one number each, got {sizes[:5]}")
    return sizes


def buckets(sizes: Sequence[int], bucket_mib: float | None) -> list[list[int]]:
    """Return the places of the tensors in each bucket, from the last tensor to the first; None is torch's default."""
    made: list[list[int]] = [[]]
    held = 0
    for place in reversed(range(len(sizes))):
        made[-1].append(place)
        held += NUMBER_BYTES * sizes[place]
        limit_mib = (FIRST_BUCKET_MIB if len(made) == 1 else BUCKET_MIB) if bucket_mib is None else bucket_mib
        if held >= limit_mib * MIB:
            made.append([])
            held = 0
    return made if made[-1] else made[:-1]


def values(rank: int, place: int, count: int) -> Any:
    """Return the numbers of a worker's tensor."""
    import torch

    return ((torch.arange(count) * 7 + rank * 31 + place) % VALUES).to(torch.float32)


class Exchange:
    """One worker's exchange of a step, with its tensors on `device`."""

    def __init__(self, rank: int, given: argparse.Namespace, device: Any) -> None:
        sizes = sizes_of(given.tensors)
        self._rank, self._workers, self._halved = rank, given.workers, given.compression == "fp16"
        self._tensors = [values(rank, place, count).to(device) for place, count in enumerate(sizes)]
        self.buckets = buckets(sizes, given.bucket_mib)

    def run_once(self) -> None:
        """Sum all tensors over the workers, and divide by their number."""
        import torch
        import torch.distributed as dist

        sent = []
        for places in self.buckets:
            ours = [self._tensors[place] for place in places]
            flat = ours[0] if len(ours) == 1 else torch.cat(ours)
            message = flat.half() if self._halved else flat
            sent.append((ours, flat, message, dist.all_reduce(message, async_op=True)))
        for ours, flat, message, run_worker in sent:
            run_worker.wait()
            if self._halved:
                flat.copy_(message)
            flat.div_(self._workers)
            if len(ours) > 1:
                for one, part in zip(ours, flat.split([len(one) for one in ours]), strict=True):
                    one.copy_(part)

    def count_wrong(self) -> int:
        """Exchange fresh numbers; return how many results are not the mean over the workers."""
        for place, tensor in enumerate(self._tensors):
            tensor.copy_(values(self._rank, place, len(tensor)))
        self.run_once()
        found = 0
        for place, tensor in enumerate(self._tensors):
            sums = sum(values(of, place, len(tensor)) for of in range(self._workers))
            # Divide on the same device as the exchange: a GPU and a CPU may differ in the last bit.
            found += int((tensor != sums.to(tensor.device).div_(self._workers)).sum())
        return found


def measure_times(exchange: Exchange, seconds: float, device: Any) -> list[float]:
    """Return the seconds of each repetition, of the slowest worker, for about `seconds` in all."""
    import torch
    import torch.distributed as dist

    def repeated(count: int) -> list[float]:
        took = []
        for _ in range(count):
            dist.barrier()
            start = time.perf_counter()
            exchange.run_once()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            took.append(time.perf_counter() - start)
        slowest = torch.tensor(took, dtype=torch.float64, device=device)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        return slowest.tolist()

    repeated(WARM_UP)
    first = repeated(LEAST)
    # All workers have the same times, and so agree on the number of repetitions.
    return first + repeated(max(1, min(MOST, int(seconds / statistics.median(first)))))


def run_worker(rank: int, given: argparse.Namespace, meeting: str, reports: Any) -> None:
    """Run one worker."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    on_gpu = given.gpus > 0
    device = torch.device("cuda", rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if on_gpu else "gloo",
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=given.workers,
        timeout=datetime.timedelta(seconds=LIMIT_S),
    )
    exchange = Exchange(rank, given, device)
    count_wrong = exchange.count_wrong()
    took = measure_times(exchange, given.seconds, device)
    count_wrong += exchange.count_wrong()
    reports.put((rank, count_wrong, took, len(exchange.buckets)))
    dist.barrier()
    dist.destroy_process_group()


def lead(given: argparse.Namespace) -> int:
    """Start the workers, print their figures, and return the exit code."""
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
    for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        if loopback:
            os.environ.setdefault(variable, loopback)
    context = multiprocessing.get_context("spawn")
    reports = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        started = [
            context.Process(target=run_worker, args=(rank, given, f"{folder}/meeting", reports), daemon=True)
            for rank in range(given.workers)
        ]
        for process in started:
            process.start()
        found = sorted(_wait_for_reports(started, reports))
        for process in started:
            process.join()
    if len(found) < given.workers:
        print("error: a worker has ended without a result", file=sys.stderr)
        return 1
    count_wrong, took, count = sum(one[1] for one in found), found[0][2], found[0][3]
    print(f"exchange {statistics.median(took):.9f} s, {len(took)} repetitions, {count} buckets")
    print(f"wrong numbers {count_wrong}", flush=True)
    return WRONG if count_wrong else 0


def _wait_for_reports(started: Sequence[Any], reports: Any) -> Iterator[Any]:
    """Yield the report of each worker, until all have reported or one has failed."""
    left = len(started)
    while left:
        try:
            yield reports.get(timeout=0.2)
            left -= 1
        except queue.Empty:
            if any(process.exitcode not in {None, 0} for process in started):
                for process in started:
                    process.kill()
                return


def _bucket(text: str) -> float | None:
    return None if text == "default" else float(text)


def main() -> int:
    """Read the command line, and exchange."""
    parser = argparse.ArgumentParser(description="time the sum of gradients over workers")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tensors", default="small-cnn", help="small-cnn, resnet50, or a file: a size a line")
    parser.add_argument("--bucket-mib", type=_bucket, default=None, help="default: torch's; 0: each tensor alone")
    parser.add_argument("--compression", choices=("none", "fp16"), default="none")
    parser.add_argument("--gpus", type=int, default=0, help="one per worker, to use NCCL; or 0")
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    try:
        sizes_of(given.tensors)
    except ValueError as error:
        parser.error(str(error))
    if importlib.util.find_spec("torch") is None:
        print(f"error: {sys.executable} has no torch: './run study fusion' has a python3 with it", file=sys.stderr)
        return 1
    return lead(given)


if __name__ == "__main__":
    sys.exit(main())
