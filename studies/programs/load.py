"""Puts requests to models at random times, and finds how many a second they bear: for `serving.py` and `ensemble.py`.

Requests come at times that only a seed and the rate decide, however busy the service is (an open loop), so that waiting
counts: a request's latency is from when it was due to when its answer was there. Each needs an answer of every model
(of one, unless it is an ensemble), and is answered when the last is there. The requests of a model wait in one line. An
instance of it takes as many as a batch holds; if there are fewer, it waits for more until the first has waited as long
as it may. Each instance is a thread with an engine of its own, which may keep to some of the cores.
"""

# ruff: noqa: S311, T201  for programs of their own: they print, and draw what need not be secret

import argparse
import itertools
import math
import os
import random
import sys
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Run = Callable[[Any], Any]

SHARE = 0.99  # of the requests, which are to be answered in time
LEAST = 1.0  # requests a second: what does not bear these bears none
FINE = 1.03  # the highest load is known to that
PROBE_S, LONGEST_PROBE_S = 0.5, 2.0
PROBED = 200  # requests of a probe, if it may be that long
LIMITS = 10.0  # a probe lasts so many limits: what waits at its end is late beyond a tenth more than a service bears
COUNTED, LONGEST_S = 500, 10.0  # requests of a window, if it may be that long: of few, 99 % is all but the worst
TRIES = 3  # a load is too high when it was so three times: a machine may pause for a moment
MEASURED = 900  # after so many seeds for probes, of which none needs as many, come those of what is measured
WINDOWS = 3  # the middle one of so many is told, for the same reason
WRONG = 0.5  # an answer that is off by this share of its size is no matter of precision


def arrivals(rate: float, seconds: float, seed: int) -> list[float]:
    """Return when requests are due: a Poisson process of which the number is known, so that its rate is what was asked.

    Given their number, the times of a Poisson process are independent and uniform.
    """
    drawn = random.Random(seed)
    return sorted(drawn.uniform(0.0, seconds) for _ in range(max(1, round(rate * seconds))))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that a share of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def hold_s(waiting: int, oldest_s: float, limit: int, wait_s: float, *, more_come: bool) -> float:
    """Return how long to wait for a fuller batch, when so many requests wait, the oldest of them for `oldest_s`."""
    return 0.0 if waiting >= limit or not more_come else max(0.0, wait_s - oldest_s)


def highest(bears: Callable[[float], bool], start: float) -> float:
    """Return the highest rate that a service bears, looked for from `start` on; 0 if it does not bear the least."""
    low = start
    if bears(low):
        while bears(2.0 * low):
            low *= 2.0
    else:
        low /= 2.0
        while not bears(low):
            if low <= LEAST:
                return 0.0
            low /= 2.0
    high = 2.0 * low
    while high / low > FINE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if bears(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class Instance:
    """An engine with its model, and the cores to which it keeps, if it does."""

    run: Run
    cores: frozenset[int] | None = None


@dataclass(frozen=True)
class Model:
    """A model that every request needs: its instances, its inputs (requests take turns), and how batches are made."""

    instances: Sequence[Instance]
    inputs: Any
    batch: int = 1
    wait_s: float = 0.0

    def some(self, size: int) -> Any:  # noqa: ANN401  an array
        """Return a batch of inputs."""
        return self.inputs[[number % len(self.inputs) for number in range(size)]]


@dataclass(frozen=True)
class Window:
    """What became of the requests of some seconds: their latencies, in seconds, and their answers, by number.

    A request that was given up has no answer, and the time that it had waited.
    """

    due_s: Sequence[float]
    latencies_s: Sequence[float]
    answers: dict[int, Any]

    def keeps(self, limit_s: float) -> bool:
        """Return whether enough requests were answered within a time."""
        return self.p99_s <= limit_s

    @property
    def p99_s(self) -> float:
        """The time within which that share of the requests is answered."""
        return percentile(self.latencies_s, SHARE)

    @property
    def took_s(self) -> float:
        """From when the first could come to when the last was answered or given up."""
        return max(at_s + latency_s for at_s, latency_s in zip(self.due_s, self.latencies_s, strict=True))


class Line:
    """Requests that wait for one model, by number; each came when it was due."""

    def __init__(self, due: Sequence[float], limit: int, wait_s: float, until_s: float) -> None:
        self.due, self.limit, self.wait_s, self.until_s = due, limit, wait_s, until_s
        self.waiting: deque[int] = deque()
        self.more_come = True
        self.changed = threading.Condition()

    def put(self, number: int) -> None:
        """Put a request at the end; the last one says that no more come."""
        with self.changed:
            self.waiting.append(number)
            self.more_come = number + 1 < len(self.due)
            if self.more_come:
                self.changed.notify()
            else:
                self.changed.notify_all()

    def give_up(self) -> None:
        """Let nobody take any more."""
        with self.changed:
            self.until_s = -math.inf
            self.changed.notify_all()

    def take(self) -> list[int]:
        """Return the next batch, and wait for it; nothing when all is done, or given up."""
        with self.changed:
            while True:
                now = time.monotonic()
                if now >= self.until_s or not (self.waiting or self.more_come):
                    return []
                if not self.waiting:
                    self.changed.wait(self.until_s - now)
                    continue
                oldest_s = now - self.due[self.waiting[0]]
                hold = hold_s(len(self.waiting), oldest_s, self.limit, self.wait_s, more_come=self.more_come)
                if hold == 0.0:
                    return [self.waiting.popleft() for _ in range(min(self.limit, len(self.waiting)))]
                self.changed.wait(hold)


class Requests:
    """Requests in flight, and what has become of them."""

    def __init__(self, due: Sequence[float], models: int, limit_s: float) -> None:
        self.due, self.models, self.limit_s = due, models, limit_s
        self.parts: dict[int, list[Any]] = {}
        self.answered: dict[int, float] = {}
        self.in_time = 0
        self.failures: list[Exception] = []
        self.changing = threading.Lock()

    def answer(self, numbers: Sequence[int], results: Any) -> None:  # noqa: ANN401  an array
        """Note a model's results; a request that has those of all models is answered."""
        with self.changing:
            now = time.monotonic()
            for number, result in zip(numbers, results, strict=True):
                parts = self.parts.setdefault(number, [])
                parts.append(result)
                if len(parts) == self.models:
                    self.answered[number] = now
                    self.in_time += now - self.due[number] <= self.limit_s

    def surely_too_late(self) -> bool:
        """Return whether so many of those that are due are late already that the rest cannot make up for it."""
        overdue = bisect_right(self.due, time.monotonic() - self.limit_s)
        return overdue - self.in_time > (1.0 - SHARE) * len(self.due)


class Service:
    """Models that answer requests."""

    def __init__(self, models: Sequence[Model], limit_s: float) -> None:
        self.models, self.limit_s = models, limit_s

    def warm_up(self) -> float:
        """Let every instance prepare itself; return about how many requests a second all could answer together."""
        rates = []
        for model in self.models:
            rates.append(0.0)
            for instance in model.instances:
                # An engine may prepare itself for each new size of a batch.
                for size in range(1, model.batch + 1):
                    instance.run(model.some(size))
                begun = time.monotonic()
                instance.run(model.some(model.batch))
                rates[-1] += model.batch / (time.monotonic() - begun)
        return min(rates)

    def highest_load(self, start: float, seed: int) -> float:
        """Return the highest rate at which enough requests are answered in time."""
        seeds = itertools.count(1000 * seed)

        def bears(rate: float) -> bool:
            seconds = max(min(max(PROBE_S, PROBED / rate), LONGEST_PROBE_S), LIMITS * self.limit_s)
            return any(
                self.window(arrivals(rate, seconds, next(seeds)), seconds, probe=True).keeps(self.limit_s)
                for _ in range(TRIES)
            )

        return highest(bears, start)

    def window(self, due_s: Sequence[float], seconds: float, *, probe: bool = False) -> Window:
        """Put requests to the models when they are due.

        They are given up when they have come for `seconds` and as long has passed again; those of a probe when it is
        sure that too many are late.
        """
        begun = time.monotonic()
        due = [begun + at_s for at_s in due_s]
        until_s = begun + seconds + (self.limit_s if probe else seconds)
        requests = Requests(due, len(self.models), self.limit_s)
        lines = [Line(due, model.batch, model.wait_s, until_s) for model in self.models]
        threads = [
            threading.Thread(target=_serve, args=(model, instance, line, requests))
            for model, line in zip(self.models, lines, strict=True)
            for instance in model.instances
        ]
        for thread in threads:
            thread.start()
        for number, at in enumerate(due):
            time.sleep(max(0.0, at - time.monotonic()))
            for line in lines:
                line.put(number)
            if requests.failures or (probe and requests.surely_too_late()):
                for line in lines:
                    line.give_up()
                break
        for thread in threads:
            thread.join()
        if requests.failures:
            raise requests.failures[0]
        ended = max(time.monotonic(), begun + seconds)
        latencies_s = [requests.answered.get(number, ended) - at for number, at in enumerate(due)]
        answers = {number: sum(requests.parts[number]) / len(self.models) for number in requests.answered}
        return Window(due_s, latencies_s, answers)


def _serve(model: Model, instance: Instance, line: Line, requests: Requests) -> None:
    try:
        if instance.cores is not None:
            os.sched_setaffinity(0, instance.cores)  # of this thread
        while numbers := line.take():
            results = instance.run(model.inputs[[number % len(model.inputs) for number in numbers]])
            requests.answer(numbers, results)
    except Exception as error:  # noqa: BLE001  of a thread: told by the one that waits for it
        requests.failures.append(error)
        line.give_up()


def options(parser: argparse.ArgumentParser) -> None:
    """Add what the load is to a command line."""
    parser.add_argument("--within-ms", type=float, default=50.0, help="99 %% of the requests are answered within that")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a window, of which three are measured, at least")
    parser.add_argument("--headroom", type=float, default=0.2, help="this share of the highest load is not used")
    parser.add_argument("--rate", type=float, help="requests a second; otherwise the highest load that is borne")


def measure(service: Service, references: Any, asked: argparse.Namespace) -> None:  # noqa: ANN401  an array
    """Find the highest load of a service, put nearly that on it, and print what came of it.

    That is measured in windows of time, and the one with the middle p99 is told: a moment in which the machine stands
    still spoils only its own. The answers are those of all.
    """
    seed = int(os.environ.get("AUTOTUNE_SEED", "0"))
    start, rate, seconds = service.warm_up(), asked.rate, asked.seconds
    if rate is None:
        borne = service.highest_load(start, seed)
        print(f"the highest load is {borne:.1f} requests/s")
        rate = max(LEAST, (1.0 - asked.headroom) * borne)
        seconds = max(seconds, 2.0 * LIMITS * service.limit_s, min(COUNTED / rate, LONGEST_S))
    dues = [arrivals(rate, seconds, 1000 * seed + MEASURED + number) for number in range(WINDOWS)]
    windows = sorted((service.window(due_s, seconds) for due_s in dues), key=lambda window: window.p99_s)
    window = windows[WINDOWS // 2]
    if not window.answers:
        sys.exit(f"error: no request was answered in {2 * seconds:g} s")
    if wrong := next((said for one in windows if (said := wrong_answer(one.answers, references))), ""):
        sys.exit(f"error: {wrong}")
    took_s = max(seconds, window.took_s)
    print(f"answered {len(window.answers)} of {len(window.due_s)} requests in {took_s:.3f} s")
    print(f"throughput {len(window.answers) / took_s:.2f} requests/s")
    print(f"p50 {1000.0 * percentile(window.latencies_s, 0.5):.3f} ms")
    print(f"p99 {1000.0 * window.p99_s:.3f} ms")
    print("p99 of each window: " + ", ".join(f"{1000.0 * one.p99_s:.3f}" for one in windows) + " ms")
    print(f"agreement {min(agreement(one.answers, references) for one in windows if one.answers):.3f} %")


def agreement(answers: dict[int, Any], references: Any) -> float:  # noqa: ANN401  an array
    """Return how far answers agree with what they should be, in percent of the size of that."""
    off, size = (sum(squares) for squares in zip(*(_squares(answers, references, one) for one in answers), strict=True))
    return 100.0 * (1.0 - math.sqrt(off / size))


def wrong_answer(answers: dict[int, Any], references: Any) -> str:  # noqa: ANN401  an array
    """Say which answer is wrong, if one is: among many that are right it hardly shows in their agreement."""
    for number in answers:
        off, size = _squares(answers, references, number)
        if not math.sqrt(off / size) < WRONG:
            return f"the answer to request {number} is off by {math.sqrt(off / size):.0%} of its size"
    return ""


def _squares(answers: dict[int, Any], references: Any, number: int) -> tuple[float, float]:  # noqa: ANN401  an array
    """Return the sum of squares of what an answer is off by, and that of what it should be."""
    right = references[number % len(references)]
    return float(((answers[number] - right) ** 2).sum()), float((right**2).sum())
