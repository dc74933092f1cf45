"""A distributed merge of two tables over UCX, run by a Python that has ucxx and pandas or cudf.

Each of N workers has a part of a left and of a right table. In every iteration each row goes to the worker given by its
key's hash, over connections between all pairs of workers; then each worker merges its rows. This is RAPIDS' benchmark
cudf_merge, which uses GPUs, extended to pandas in host memory. Prints one JSON line per iteration and one at the end.
The path with cudf follows that benchmark and is untested.

Imports nothing of this project, since it runs in another interpreter.
"""

import argparse
import asyncio
import itertools
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

_MATCHING = 0.3  # share of the right table's keys that are in the left one
_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)  # odd: one-to-one modulo 2**64
_CHECKSUM_BITS = 52  # exact as a float


@dataclass(frozen=True)
class Settings:
    """The command line."""

    frames: str
    rows: int
    workers: int
    iterations: int
    warm_up: int
    patience_s: float


@dataclass(frozen=True)
class Frames:
    """The library that holds the tables: `arrays` is numpy or cupy, `tables` pandas or cudf.

    `finish` waits for the device.
    """

    arrays: Any
    tables: Any
    finish: Callable[[], None]


@dataclass(frozen=True)
class Iteration:
    """One worker's figures of one iteration; `rows` and `checksum` are of its part of the merged table."""

    bandwidth_bytes_per_s: float
    wall_s: float
    rows: int
    checksum: int


@dataclass(frozen=True)
class Peer:
    """Another worker: the connection, and the tags for sending and receiving."""

    endpoint: Any
    sent: Any
    received: Any

    async def send(self, buffer: Any) -> None:
        """Send a buffer."""
        await self.endpoint.send(buffer, tag=self.sent, force_tag=True)

    async def receive(self, buffer: Any) -> None:
        """Fill a buffer."""
        await self.endpoint.recv(buffer, tag=self.received, force_tag=True)


def frame_library(kind: str, rank: int) -> Frames:
    """Import the library; with GPUs, workers take them in turn."""
    if kind == "pandas":
        import pandas as pd

        return Frames(np, pd, lambda: None)
    import cudf
    import cupy

    cupy.cuda.runtime.setDevice(rank % cupy.cuda.runtime.getDeviceCount())
    return Frames(cupy, cudf, lambda: cupy.cuda.get_current_stream().synchronize())


def left_keys(rank: int, rows: int) -> Any:
    """Return the keys of a worker's left table; all workers together have 0, 1, 2, ..."""
    return np.arange(rows * rank, rows * (rank + 1), dtype=np.int64)


def right_keys(rank: int, rows: int, workers: int) -> Any:
    """Return the keys of a worker's right table: some from each left table, the others without a match, shuffled."""
    random = np.random.default_rng([42, rank])
    share = rows // workers
    hits = [
        random.permutation(np.arange(share, dtype=np.int64))[: matches_of_a_pair(rows, workers)]
        + (rows * other + share * rank)
        for other in range(workers)
    ]
    matching = np.concatenate(hits)
    first = rows * workers + rows * rank
    return random.permutation(
        np.concatenate([matching, np.arange(first, first + rows - matching.size, dtype=np.int64)])
    )


def matches_of_a_pair(rows: int, workers: int) -> int:
    """Return how many rows of a worker's right table match rows of another's (or its own) left one."""
    return max(1, int(rows // workers * _MATCHING))


def partition(frames: Frames, table: Any, workers: int) -> list[Any]:
    """Return the rows for each worker, as arrays with two rows: keys and payloads."""
    arrays = frames.arrays
    keys, payload = arrays.asarray(table["key"].values), arrays.asarray(table["payload"].values)
    hashed = (keys.view(np.uint64) * np.uint64(_MULTIPLIERS[0])) >> np.uint64(40)
    owner = (hashed % np.uint64(workers)).astype(np.int64)
    order = arrays.argsort(owner, kind="stable")
    cuts = [int(cut) for cut in arrays.searchsorted(owner[order], arrays.arange(workers + 1))]
    both = arrays.concatenate([keys[order], payload[order]]).reshape(2, -1)
    parts = [arrays.ascontiguousarray(both[:, a:b]) for a, b in itertools.pairwise(cuts)]
    frames.finish()
    return parts


def checksum(frames: Frames, merged: Any) -> int:
    """Return a checksum of a table's rows that does not depend on their order."""
    columns = [frames.arrays.asarray(merged[name].values).view(np.uint64) for name in ("key", "payload_x", "payload_y")]
    mixed: Any = sum(column * np.uint64(factor) for column, factor in zip(columns, _MULTIPLIERS, strict=True))
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(_MULTIPLIERS[1])
    total: int = int(mixed.sum()) % (1 << _CHECKSUM_BITS)
    return total


async def send(peer: Peer, part: Any) -> None:
    """Send the number of rows, then the rows."""
    await peer.send(np.array([part.shape[1]], dtype=np.int64))
    if part.shape[1]:
        await peer.send(part)


async def receive(frames: Frames, peer: Peer) -> Any:
    """Receive rows from a peer's `send`."""
    count = np.empty(1, dtype=np.int64)
    await peer.receive(count)
    part = frames.arrays.empty((2, int(count[0])), dtype=np.int64)
    if part.size:
        await peer.receive(part)
    return part


async def barrier(rank: int, peers: Mapping[int, Peer]) -> None:
    """Wait for all workers."""
    if rank:
        await peers[0].send(np.zeros(1, np.uint8))
        await peers[0].receive(np.empty(1, np.uint8))
        return
    for peer in peers.values():
        await peer.receive(np.empty(1, np.uint8))
    for peer in peers.values():
        await peer.send(np.zeros(1, np.uint8))


async def exchange(frames: Frames, rank: int, peers: Mapping[int, Peer], table: Any) -> tuple[Any, float]:
    """Return this worker's rows of the whole table, and the rate of the exchange with others in bytes a second."""
    parts = partition(frames, table, len(peers) + 1)
    began = time.perf_counter()
    received = await asyncio.gather(
        *(receive(frames, peer) for peer in peers.values()),
        *(send(peer, parts[other]) for other, peer in peers.items()),
    )
    took_s = time.perf_counter() - began
    others = [part for part in received if part is not None]
    moved = [*others, *(part for other, part in enumerate(parts) if other != rank)]
    whole = frames.arrays.concatenate([parts[rank], *others], axis=1)
    table = frames.tables.DataFrame({"key": whole[0], "payload": whole[1]})
    return table, sum(part.nbytes for part in moved) / took_s


async def iterate(frames: Frames, rank: int, peers: Mapping[int, Peer], tables: Sequence[Any]) -> Iteration:
    """Exchange both tables, and merge."""
    await barrier(rank, peers)
    began = time.perf_counter()
    left, left_speed = await exchange(frames, rank, peers, tables[0])
    right, right_speed = await exchange(frames, rank, peers, tables[1])
    merged = left.merge(right, on="key")
    frames.finish()
    await barrier(rank, peers)
    wall_s = time.perf_counter() - began
    return Iteration((left_speed + right_speed) / 2, wall_s, len(merged), checksum(frames, merged))


async def connect(rank: int, parent: Connection) -> dict[int, Peer]:
    """Connect this worker with all others, by addresses that the parent passes on.

    Not by a listener, which would need TCP: then shared memory alone could not be tuned.
    """
    import ucxx
    from ucxx.types import Tag

    parent.send(bytes(ucxx.get_worker_address()))
    addresses = parent.recv()
    peers = {}
    for other, address in enumerate(addresses):
        if other != rank:
            # No error handling: shared memory does not support it, so UCX would leave shared memory out. A worker that
            # dies ends the run anyway.
            endpoint = await ucxx.create_endpoint_from_worker_address(
                ucxx.get_ucx_address_from_buffer(address), endpoint_error_handling=False
            )
            # Messages carry their sender's number, since a worker receives from all others through one queue.
            peers[other] = Peer(endpoint, Tag(rank), Tag(other))
    return peers


async def work(rank: int, settings: Settings, parent: Connection) -> None:
    """Run one worker's iterations."""
    frames = frame_library(settings.frames, rank)
    peers = await connect(rank, parent)
    rows = settings.rows
    tables = [
        frames.tables.DataFrame(
            {
                "key": frames.arrays.asarray(keys),
                "payload": frames.arrays.arange(rows * rank, rows * (rank + 1), dtype=np.int64),
            }
        )
        for keys in (left_keys(rank, rows), right_keys(rank, rows, settings.workers))
    ]
    for _ in range(settings.warm_up + settings.iterations):
        parent.send(await iterate(frames, rank, peers, tables))
    parent.recv()


def worker(rank: int, settings: Settings, parent: Connection) -> None:
    """Run one worker in this process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    asyncio.run(work(rank, settings, parent))
    # Do not close the connections: that needs the other side, and is not measured.
    sys.stderr.flush()
    os._exit(0)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def received_from(connections: Sequence[Connection], patience_s: float) -> list[Any]:
    """Return one message from each worker.

    Raises:
        SystemExit: a worker has ended, or nothing came for too long.
    """
    found: dict[int, Any] = {}
    while len(found) < len(connections):
        waiting = [connection for rank, connection in enumerate(connections) if rank not in found]
        ready = wait(waiting, patience_s)
        if not ready:
            raise SystemExit(f"gave up: no sign of life from a worker for {patience_s:g} s")
        for rank, connection in enumerate(connections):
            if connection in ready:
                try:
                    found[rank] = connection.recv()
                except EOFError:
                    raise SystemExit(f"worker {rank} has ended early") from None
    return [found[rank] for rank in range(len(connections))]


def reported(seen: Sequence[Iteration], settings: Settings) -> dict[str, float]:
    """Return the figures of one iteration of all workers."""
    data_bytes = 2 * 16 * settings.rows * settings.workers
    return {
        "throughput_bytes_per_s": data_bytes / max(one.wall_s for one in seen),
        "bandwidth_bytes_per_s": statistics.fmean(one.bandwidth_bytes_per_s for one in seen),
    }


def lead(settings: Settings, connections: Sequence[Connection]) -> None:
    """Connect the workers, then print their figures.

    Raises:
        SystemExit: an iteration gave no table or a wrong one.
    """
    addresses = received_from(connections, settings.patience_s)
    for connection in connections:
        connection.send(addresses)
    expected_rows = settings.workers**2 * matches_of_a_pair(settings.rows, settings.workers)
    answers, figures = set(), []
    for number in range(1 - settings.warm_up, settings.iterations + 1):
        seen = received_from(connections, settings.patience_s)
        rows, total = sum(one.rows for one in seen), sum(one.checksum for one in seen) % 2**_CHECKSUM_BITS
        answers.add(total)
        if rows != expected_rows or len(answers) > 1:
            raise SystemExit(f"wrong table: {rows} rows instead of {expected_rows}, checksums {sorted(answers)}")
        if number > 0:
            figures.append(reported(seen, settings))
            print(json.dumps({"step": number, **figures[-1]}), flush=True)
    lists = {name: [one[name] for one in figures] for name in figures[0]}
    medians = {name: statistics.median(values) for name, values in lists.items()}
    result = {**medians, "rows": expected_rows, "checksum": answers.pop(), "iterations": lists}
    print(json.dumps({"result": result}), flush=True)


def main() -> None:
    """Start the workers, lead them, and end with them."""
    parser = argparse.ArgumentParser(description="distributed merge of two tables over UCX")
    parser.add_argument("--frames", choices=("pandas", "cudf"), default="pandas")
    parser.add_argument("--rows", type=int, default=50_000, help="of each worker's left and right table")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument(
        "--patience-s", type=float, default=300.0, help="give up after that long without a sign of life"
    )
    settings = Settings(**vars(parser.parse_args()))
    context = multiprocessing.get_context("spawn")
    connections, processes = [], []
    for rank in range(settings.workers):
        ours, theirs = context.Pipe()
        process = context.Process(target=worker, args=(rank, settings, theirs), daemon=True)
        process.start()
        theirs.close()  # so that the connection closes when the worker ends
        connections.append(ours)
        processes.append(process)
    try:
        lead(settings, connections)
        for connection in connections:
            connection.send("end")
    finally:
        for process in processes:
            process.join(1.0)
            process.kill()


if __name__ == "__main__":
    main()
