"""Computes on several ranks that are killed now and then, and goes on from checkpoints: see the study `checkpoint`.

    python3 checkpointed.py --scheme levels --level partner --interval 0.1 --flush-every 4

Each rank is a process with a state of its own, and an edge that its neighbour reads in every step. At times that only
AUTOTUNE_SEED decides, a rank is killed (SIGKILL): alone, or with its node, whose memory and local disk are then lost.
All ranks are started again, from the newest checkpoint of which every rank's part is left. Checkpoints are

- `naive`: rank 0 gathers all states and writes them to the file system, while the others wait;
- `levels`: each rank keeps its own, in memory (which outlives the process, not the node), on its local disk, or in
  memory with a copy at the next rank's node; every n-th goes to the file system, too, waited for or in the background.

The file system is a folder whose rate is limited to `--rate` MB/s, shared by those who write, or read, at once; what
has not arrived as a whole is no checkpoint. A copy at another node, and what rank 0 gathers, takes its time on a link
of `--link` MB/s. Prints the time to finish, the share of it that was computing, and a
checksum of the final states, which no failure may change.
"""

# ruff: noqa: S311, T201  a program of its own: it prints, and draws what need not be secret

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

from shelves import Disk, FarMemory, PartnerMemory, Places, SlowDisk, newest

FORK = multiprocessing.get_context("fork")
MB = 10**6
EDGE = 32
# So few values of a byte that a compressor finds something, as in the states of most simulations.
LETTERS = 16
TURN = bytes((5 * value + 3) % LETTERS for value in range(256))


@dataclass(frozen=True)
class Failure:
    """A rank that is killed so many seconds after the start; with its node, or alone."""

    at_s: float
    rank: int
    takes_node: bool


class Rank:
    """One rank in one life: computes from a step to the end, and keeps checkpoints."""

    def __init__(self, asked: argparse.Namespace, number: int, places: Places, life: "Life") -> None:
        self.asked, self.number, self.places, self.life = asked, number, places, life
        self.kept, self.last_s = life.kept, time.monotonic()
        # What every rank has may not be written over before every rank has something newer.
        self.whole = life.whole
        self.flushed = self.flushing = life.flushed
        self.flush: threading.Thread | None = None

    def run(self) -> None:
        """Compute to the end; the edge of every step is where the neighbour reads it in the next one."""
        step = self.whole
        state = self.places.state(self.number, step) or start_of(self.number, self.asked.mb)
        self.life.show(self.number, step, state)
        while step < self.asked.steps:
            if self.number == 0:
                self.life.due[step % 2] = self._is_due()
            self.life.meet()
            due = self.life.due[step % 2]
            begun = time.monotonic()
            around = self.life.edge(self.number - 1, step)
            edge = hashlib.blake2b(around + state[:EDGE], digest_size=EDGE).digest().translate(LOW)
            state, step = edge + state.translate(TURN)[:-EDGE], step + 1
            self.life.show(self.number, step, state)
            if self.number == 0:
                self.life.computed.value += time.monotonic() - begun
                self.life.made.value += 1
            if due:
                self._keep(step, state)
        if self.flush is not None:
            self.flush.join()
        self.life.sums[self.number] = int.from_bytes(hashlib.sha256(state).digest()[:6], "little")

    def _is_due(self) -> bool:
        return self.asked.scheme != "none" and time.monotonic() - self.last_s >= self._interval_s()

    def _interval_s(self) -> float:
        if self.asked.rule == "fixed":
            return float(self.asked.interval)
        cost_s, between_s = self.life.cost_s, self.asked.between
        if cost_s is None:
            return 0.0  # the first checkpoint of the job says what one costs
        young_s = math.sqrt(2.0 * cost_s * between_s)
        if self.asked.rule == "young":
            return young_s
        part = math.sqrt(cost_s / (2.0 * between_s))
        return between_s if part >= 1.0 else young_s * (1.0 + part / 3.0 + part**2 / 9.0) - cost_s

    def _keep(self, step: int, state: bytes) -> None:
        begun = time.monotonic()
        self.kept += 1
        (self._gather if self.asked.scheme == "naive" else self._keep_own)(step, state)
        self.whole, self.last_s = step, time.monotonic()
        if self.number == 0:
            self.life.note_cost(self.last_s - begun)

    def _gather(self, step: int, state: bytes) -> None:
        if self.number:
            self.life.mail[self.number].put(step, state, but=0)
        self.life.meet()
        if self.number == 0:
            for rank, mail in enumerate(self.life.mail):
                self.places.file_system[rank].put(step, mail.get(step) or state, self.whole)
        self.life.meet()

    def _keep_own(self, step: int, state: bytes) -> None:
        own, level = self.number, self.asked.level
        if level == "local":
            self.places.local[own].put(step, state, self.whole)
        else:
            self.places.memory[own].put(step, state, self.whole)
        if level == "partner":
            self.places.copy[own].put(step, state, self.whole)
        if self.kept % self.asked.flush_every == 0:
            self._flush(step, state)
        self.life.meet()

    def _flush(self, step: int, state: bytes) -> None:
        if self.flush is not None:
            self.flush.join()
            self.life.meet()
            self.flushed = self.flushing
        self.flushing = step
        put: Callable[..., None] = self.places.file_system[self.number].put
        self.flush = threading.Thread(target=put, args=(step, state, self.flushed), daemon=True)
        self.flush.start()
        if not self.asked.background:
            self.flush.join()


class Life:
    """What the ranks share from one start of the job to the next; `costs`, of its checkpoints, is of the whole job.

    It has `kept` so many before.
    """

    def __init__(self, ranks: int, mail: list[FarMemory], places: Places, costs: Any) -> None:  # noqa: ANN401  shared
        self.mail, self.computed, self.made = mail, FORK.RawValue("d"), FORK.RawValue("q")
        self._costs = costs
        # Every n-th of the job, as SCR counts them, and not of each life: a short one would never reach the n-th.
        self.kept = int(costs[1])
        self.whole = places.newest()
        self.flushed = newest([shelf.steps() for shelf in places.file_system])
        # Of a step and of the next one, which rank 0 may begin before another has looked.
        self.due: Any = FORK.RawArray("i", 2)
        self.sums: Any = FORK.RawArray("q", ranks)
        self._edges: Any = FORK.RawArray("c", 2 * ranks * EDGE)
        self._barrier, self._ranks = FORK.Barrier(ranks), ranks

    @property
    def cost_s(self) -> float | None:
        """What a checkpoint of this job takes in the mean; None before the first."""
        total_s, count = self._costs
        return total_s / count if count else None

    def note_cost(self, cost_s: float) -> None:
        """Note what a checkpoint took."""
        self._costs[0] += cost_s
        self._costs[1] += 1.0

    def meet(self) -> None:
        """Wait for all ranks."""
        self._barrier.wait()

    def show(self, rank: int, step: int, state: bytes) -> None:
        """Show the neighbour the edge of a step; that of the step before stays."""
        place = self._place(rank, step)
        self._edges[place : place + EDGE] = state[:EDGE]

    def edge(self, rank: int, step: int) -> bytes:
        """Return a rank's edge of a step."""
        place = self._place(rank, step)
        return bytes(self._edges[place : place + EDGE])

    def _place(self, rank: int, step: int) -> int:
        return (step % 2 * self._ranks + rank % self._ranks) * EDGE


LOW = bytes(value % LETTERS for value in range(256))


def start_of(rank: int, mb: int) -> bytes:
    """Return a rank's state before the first step."""
    return random.Random(rank).randbytes(mb * MB).translate(LOW)


def failures(asked: argparse.Namespace, seed: int) -> Iterator[Failure]:
    """Yield all failures of a job: the same ones for the same seed, whatever the job does."""
    drawn, at_s = random.Random(seed), 0.0
    for _ in range(asked.failures):
        at_s += drawn.expovariate(1.0 / asked.between)
        yield Failure(at_s, drawn.randrange(asked.ranks), drawn.random() < asked.node_share)


def finish(asked: argparse.Namespace, seed: int) -> None:
    """Run the job to its end, through its failures."""
    places = Places(
        asked.ranks,
        [
            # Where rank 0 writes alone, it has the whole rate.
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
    # What all others send to rank 0 comes by its one link.
    mail = [FarMemory(asked.link * MB, asked.ranks - 1) for _ in range(asked.ranks)]
    costs = FORK.RawArray("d", 2)
    coming, begun, lives, computed_s, made = failures(asked, seed), time.monotonic(), 0, 0.0, 0
    while True:
        failure = next(coming, None)
        life = Life(asked.ranks, mail, places, costs)
        ranks = [FORK.Process(target=Rank(asked, number, places, life).run) for number in range(asked.ranks)]
        for rank in ranks:
            rank.start()
        met = struck(ranks, failure, begun)
        lives, computed_s, made = lives + 1, computed_s + life.computed.value, made + life.made.value
        if not any(rank.exitcode for rank in ranks):
            break
        if failure is None or not met:
            sys.exit("error: a rank ended by itself")
        if failure.takes_node:
            places.lose_node(failure.rank)
        print(f"failure at {failure.at_s:.2f} s: rank {failure.rank}{' and its node' * failure.takes_node}", flush=True)
        time.sleep(asked.restart)
    took_s = time.monotonic() - begun
    print(f"finished in {took_s:.4f} s after {lives - 1} failures")
    computing = asked.steps * computed_s / made / took_s
    print(f"computing {100.0 * computing:.1f} % of the time, {made - asked.steps} steps again")
    print(f"checksum {sum(life.sums) % 2**48}")


def struck(ranks: list[Any], failure: Failure | None, begun: float) -> bool:
    """Wait for the ranks, kill one when its time comes, then the rest; return whether the time came."""
    left, met = {rank.sentinel for rank in ranks}, False
    while left and not any(rank.exitcode for rank in ranks):
        until_s = None if failure is None else max(0.0, begun + failure.at_s - time.monotonic())
        ended = wait(left, until_s)
        if not ended and failure is not None:
            ranks[failure.rank].kill()
            met = True
            break
        for rank in ranks:
            if rank.sentinel in ended:
                rank.join()  # it closes what is waited for before how it ended can be asked
        left -= set(ended)
    for rank in ranks:
        if left:
            rank.kill()
        rank.join()
    return met


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
    parser.add_argument("--failures", type=int, default=8, help="no more than these")
    parser.add_argument("--node-share", type=float, default=0.25)
    parser.add_argument("--restart", type=float, default=0.1, help="seconds until the ranks are started again")
    parser.add_argument("--rate", type=float, default=100.0, help="MB/s of the file system")
    parser.add_argument("--link", type=float, default=1000.0, help="MB/s of the link of a node")
    return parser.parse_args()


if __name__ == "__main__":
    finish(arguments(), int(os.environ.get("AUTOTUNE_SEED", "0")))
