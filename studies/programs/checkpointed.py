"""Computes on several ranks that are killed at random, and resumes from checkpoints: the study `checkpoint`.

    python3 checkpointed.py --scheme levels --level partner --interval 0.1 --flush-every 4

Each rank is a process with its own state, and its neighbour reads the edge of that state in every step. AUTOTUNE_SEED
alone decides when a rank is killed (SIGKILL), and whether its node fails with it and loses its memory and local disk.
All ranks then restart from the newest checkpoint that is complete for every rank. Checkpoints are

- `naive`: rank 0 gathers all states and writes them to the file system, while the others wait;
- `levels`: each rank writes its own state to memory (which outlives the process, not the node), to its local disk, or
  to memory with a copy on the next rank's node. Every n-th checkpoint also goes to the file system, in the foreground
  or background.

The file system is a folder limited to `--rate` MB/s, shared by all ranks that write or read at once; an incomplete
checkpoint does not count. Copies to another node, and states that rank 0 gathers, go over a link of `--link` MB/s.
Prints the time to finish, the share of it spent computing, and a checksum of the final states, which failures must not
change.
"""

# ruff: noqa: S311, T201  a program of its own: it prints, and draws numbers that are no secrets

import argparse
import hashlib
import math
import multiprocessing
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from checkpoint_stores import Disk, FarMemory, PartnerMemory, SlowDisk, Stores, newest

FORK = multiprocessing.get_context("fork")
MB = 10**6
EDGE = 32
# Bytes have only this many values, so that states can be compressed, as those of most simulations can.
LETTERS = 16
TURN = bytes((5 * value + 3) % LETTERS for value in range(256))


@dataclass(frozen=True)
class Failure:
    """A rank that is killed `at_s` seconds after the start, alone or with its node."""

    at_s: float
    rank: int
    takes_node: bool


class Rank:
    """One rank between two failures: computes from a checkpoint on, and writes checkpoints."""

    def __init__(self, asked: argparse.Namespace, number: int, places: Stores, shared: "SharedState") -> None:
        self.asked, self.number, self.places, self.shared = asked, number, places, shared
        self.saved, self.last_s = shared.saved, time.monotonic()
        # The newest checkpoint that every rank has; it is overwritten only after every rank has a newer one.
        self.whole = shared.whole
        self.flushed = self.flushing = shared.flushed
        self.flush: threading.Thread | None = None

    def run(self) -> None:
        """Compute to the end, and publish the edge of every step for the neighbour's next step."""
        step = self.whole
        state = self.places.state(self.number, step) or initial_state(self.number, self.asked.mb)
        self.shared.publish_edge(self.number, step, state)
        while step < self.asked.steps:
            if self.number == 0:
                self.shared.due[step % 2] = self._is_due()
            self.shared.wait_for_all()
            due = self.shared.due[step % 2]
            begun = time.monotonic()
            around = self.shared.edge(self.number - 1, step)
            edge = hashlib.blake2b(around + state[:EDGE], digest_size=EDGE).digest().translate(LOW)
            state, step = edge + state.translate(TURN)[:-EDGE], step + 1
            self.shared.publish_edge(self.number, step, state)
            if self.number == 0:
                self.shared.computed.value += time.monotonic() - begun
                self.shared.made.value += 1
            if due:
                self._save(step, state)
        if self.flush is not None:
            self.flush.join()
        self.shared.checksums[self.number] = int.from_bytes(hashlib.sha256(state).digest()[:6], "little")

    def _is_due(self) -> bool:
        return self.asked.scheme != "none" and time.monotonic() - self.last_s >= self._interval_s()

    def _interval_s(self) -> float:
        if self.asked.rule == "fixed":
            return float(self.asked.interval)
        cost_s, between_s = self.shared.cost_s, self.asked.between
        if cost_s is None:
            return 0.0  # write one at once, to learn its cost
        young_s = math.sqrt(2.0 * cost_s * between_s)
        if self.asked.rule == "young":
            return young_s
        part = math.sqrt(cost_s / (2.0 * between_s))
        return between_s if part >= 1.0 else young_s * (1.0 + part / 3.0 + part**2 / 9.0) - cost_s

    def _save(self, step: int, state: bytes) -> None:
        begun = time.monotonic()
        self.saved += 1
        (self._save_through_rank_0 if self.asked.scheme == "naive" else self._save_own)(step, state)
        self.whole, self.last_s = step, time.monotonic()
        if self.number == 0:
            self.shared.add_cost(self.last_s - begun)

    def _save_through_rank_0(self, step: int, state: bytes) -> None:
        if self.number:
            self.shared.mail[self.number].put(step, state, but=0)
        self.shared.wait_for_all()
        if self.number == 0:
            for rank, mail in enumerate(self.shared.mail):
                self.places.file_system[rank].put(step, mail.get(step) or state, self.whole)
        self.shared.wait_for_all()

    def _save_own(self, step: int, state: bytes) -> None:
        own, level = self.number, self.asked.level
        if level == "local":
            self.places.local[own].put(step, state, self.whole)
        else:
            self.places.memory[own].put(step, state, self.whole)
        if level == "partner":
            self.places.copy[own].put(step, state, self.whole)
        if self.saved % self.asked.flush_every == 0:
            self._flush(step, state)
        self.shared.wait_for_all()

    def _flush(self, step: int, state: bytes) -> None:
        if self.flush is not None:
            self.flush.join()
            self.shared.wait_for_all()
            self.flushed = self.flushing
        self.flushing = step
        put: Callable[..., None] = self.places.file_system[self.number].put
        self.flush = threading.Thread(target=put, args=(step, state, self.flushed), daemon=True)
        self.flush.start()
        if not self.asked.background:
            self.flush.join()


class SharedState:
    """Shared state of the ranks between two failures.

    Args:
        ranks: number of ranks.
        mail: for each rank, the memory in which rank 0 receives its state.
        places: where the ranks' checkpoints are.
        costs: total seconds and number of the checkpoints of the whole job.
    """

    def __init__(self, ranks: int, mail: list[FarMemory], places: Stores, costs: Any) -> None:  # noqa: ANN401  shared
        self.mail, self.computed, self.made = mail, FORK.RawValue("d"), FORK.RawValue("q")
        self._costs = costs
        # Counted over the whole job, as SCR does: between two failures there may be fewer than n checkpoints.
        self.saved = int(costs[1])
        self.whole = places.newest()
        self.flushed = newest([store.steps() for store in places.file_system])
        # For this step and the next one, which rank 0 may begin before another rank has read the flag.
        self.due: Any = FORK.RawArray("i", 2)
        self.checksums: Any = FORK.RawArray("q", ranks)
        self._edges: Any = FORK.RawArray("c", 2 * ranks * EDGE)
        self._barrier, self._ranks = FORK.Barrier(ranks), ranks

    @property
    def cost_s(self) -> float | None:
        """The mean seconds of a checkpoint of this job; None before the first."""
        total_s, count = self._costs
        return total_s / count if count else None

    def add_cost(self, cost_s: float) -> None:
        """Add the seconds of a checkpoint."""
        self._costs[0] += cost_s
        self._costs[1] += 1.0

    def wait_for_all(self) -> None:
        """Wait for all ranks."""
        self._barrier.wait()

    def publish_edge(self, rank: int, step: int, state: bytes) -> None:
        """Publish the edge of a step for the neighbour; that of the step before stays readable."""
        place = self._place(rank, step)
        self._edges[place : place + EDGE] = state[:EDGE]

    def edge(self, rank: int, step: int) -> bytes:
        """Return a rank's edge of a step."""
        place = self._place(rank, step)
        return bytes(self._edges[place : place + EDGE])

    def _place(self, rank: int, step: int) -> int:
        return (step % 2 * self._ranks + rank % self._ranks) * EDGE


LOW = bytes(value % LETTERS for value in range(256))


def initial_state(rank: int, mb: int) -> bytes:
    """Return a rank's state before the first step."""
    return random.Random(rank).randbytes(mb * MB).translate(LOW)


def failures(asked: argparse.Namespace, seed: int) -> Iterator[Failure]:
    """Yield all failures of a job; they depend on the seed alone."""
    drawn, at_s = random.Random(seed), 0.0
    for _ in range(asked.failures):
        at_s += drawn.expovariate(1.0 / asked.between)
        yield Failure(at_s, drawn.randrange(asked.ranks), drawn.random() < asked.node_share)


def run_job(asked: argparse.Namespace, seed: int) -> None:
    """Run the job to its end, through its failures."""
    places = Stores(
        asked.ranks,
        [
            # If rank 0 writes alone, it has the whole rate.
            SlowDisk(
                Path("file-system", str(rank)),
                asked.rate * MB,
                1 if asked.scheme == "naive" else asked.ranks,
                asked.ranks,
                asked.compress,
            )
            for rank in range(asked.ranks)
        ],
        [Disk(Path("local", str(rank))) for rank in range(asked.ranks)],
        [PartnerMemory(asked.link * MB) for _ in range(asked.ranks)],
    )
    if places.newest():
        sys.exit("error: there are checkpoints of another job here: begin in an empty folder")
    # All other ranks send to rank 0 over its one link.
    mail = [FarMemory(asked.link * MB, asked.ranks - 1) for _ in range(asked.ranks)]
    costs = FORK.RawArray("d", 2)
    upcoming, begun, starts, computed_s, made = failures(asked, seed), time.monotonic(), 0, 0.0, 0
    while True:
        failure = next(upcoming, None)
        shared = SharedState(asked.ranks, mail, places, costs)
        ranks = [FORK.Process(target=Rank(asked, number, places, shared).run) for number in range(asked.ranks)]
        for rank in ranks:
            rank.start()
        failed = wait_and_kill(ranks, failure, begun)
        starts, computed_s, made = starts + 1, computed_s + shared.computed.value, made + shared.made.value
        if not any(rank.exitcode for rank in ranks):
            break
        if failure is None or not failed:
            sys.exit("error: a rank ended by itself")
        if failure.takes_node:
            places.lose_node(failure.rank)
        print(f"failure at {failure.at_s:.2f} s: rank {failure.rank}{' and its node' * failure.takes_node}", flush=True)
        time.sleep(asked.restart)
    took_s = time.monotonic() - begun
    print(f"finished in {took_s:.4f} s after {starts - 1} failures")
    computing = asked.steps * computed_s / made / took_s
    print(f"computing {100.0 * computing:.1f} % of the time, {made - asked.steps} steps again")
    print(f"checksum {sum(shared.checksums) % 2**48}")


def wait_and_kill(ranks: list[Any], failure: Failure | None, begun: float) -> bool:
    """Wait for the ranks; at the failure kill its rank, then the others. Return whether the failure happened."""
    left, failed = {rank.sentinel for rank in ranks}, False
    while left and not any(rank.exitcode for rank in ranks):
        until_s = None if failure is None else max(0.0, begun + failure.at_s - time.monotonic())
        ended = wait(left, until_s)
        if not ended and failure is not None:
            ranks[failure.rank].kill()
            failed = True
            break
        for rank in ranks:
            if rank.sentinel in ended:
                rank.join()  # its sentinel closes before its exit code is known
        left -= set(ended)
    for rank in ranks:
        if left:
            rank.kill()
        rank.join()
    return failed


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--mb", type=int, default=8, help="size of a rank's state")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--scheme", choices=["none", "naive", "levels"], default="naive")
    parser.add_argument("--rule", choices=["fixed", "young", "daly"], default="fixed")
    parser.add_argument("--interval", type=float, default=0.5, help="seconds from one checkpoint to the next")
    parser.add_argument("--level", choices=["memory", "local", "partner"], default="memory")
    parser.add_argument("--flush-every", type=int, default=4)
    parser.add_argument("--background", type=int, default=0)
    parser.add_argument("--compress", type=int, default=0)
    parser.add_argument("--between", type=float, default=0.8, help="mean seconds between failures")
    parser.add_argument("--failures", type=int, default=8, help="the most failures of a run")
    parser.add_argument("--node-share", type=float, default=0.25)
    parser.add_argument("--restart", type=float, default=0.1, help="seconds until the ranks restart")
    parser.add_argument("--rate", type=float, default=100.0, help="MB/s of the file system")
    parser.add_argument("--link", type=float, default=1000.0, help="MB/s of the link of a node")
    return parser.parse_args()


if __name__ == "__main__":
    run_job(arguments(), int(os.environ.get("AUTOTUNE_SEED", "0")))
