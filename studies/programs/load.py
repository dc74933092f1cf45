"""Sends requests to models at random times, and finds their highest load: for `serving.py` and `ensemble.py`.

Requests arrive at times that depend only on seed and rate, however busy the service is (an open loop). So waiting
counts: the latency of a request runs from the time it was due to its answer. A request needs an answer of every model
(one, unless it is an ensemble), and is answered with the last of them. The requests of a model wait in one queue. An
instance takes as many as a batch holds; if there are fewer, it waits for more until the first has waited as long as it
may. Each instance is a thread with its own engine, which may be bound to some cores.
"""

# ruff: noqa: S311, T201  for programs of their own: they print, and draw numbers that are no secrets

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

SHARE = 0.99  # of the requests must be answered in time
LEAST = 1.0  # requests a second: the lowest rate that is tried
FINE = 1.03  # the factor to which the highest load is searched
PROBE_S, LONGEST_PROBE_S = 0.5, 2.0
PROBED = 200  # requests of a probe, unless that takes too long
LIMITS = 10.0  # a probe lasts ten latency limits: an overload of a tenth then makes the last requests late
COUNTED, LONGEST_S = 500, 10.0  # requests and longest time of a window: of few requests, 99 % is all but the worst
TRIES = 3  # a load is too high if it failed three times: a machine may pause for a moment
MEASURED = 900  # first seed of the measured windows; lower ones are for probes, which need fewer
WINDOWS = 3  # the middle one is reported, since a machine may pause for a moment
WRONG = 0.5  # relative error of an answer that low precision cannot explain


def arrivals(rate: float, seconds: float, seed: int) -> list[float]:
    """Return when requests are due, in seconds: a Poisson process with exactly `rate * seconds` requests.

    Given their number, the times of a Poisson process are independent and uniform.
    """
    drawn = random.Random(seed)
    return sorted(drawn.uniform(0.0, seconds) for _ in range(max(1, round(rate * seconds))))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that a share of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def hold_s(waiting: int, oldest_s: float, limit: int, wait_s: float, *, more_coming: bool) -> float:
    """Return how long to wait for a fuller batch, if `waiting` requests wait, the oldest of them for `oldest_s`."""
    return 0.0 if waiting >= limit or not more_coming else max(0.0, wait_s - oldest_s)


def find_highest_rate(is_fast_enough: Callable[[float], bool], start: float) -> float:
    """Return the highest rate at which a service is fast enough, searched from `start` on; 0 if `LEAST` is too high."""
    low = start
    if is_fast_enough(low):
        while is_fast_enough(2.0 * low):
            low *= 2.0
    else:
        low /= 2.0
        while not is_fast_enough(low):
            if low <= LEAST:
                return 0.0
            low /= 2.0
    high = 2.0 * low
    while high / low > FINE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_fast_enough(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class Instance:
    """An engine with its model, and the cores that it is bound to, if any."""

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
    """The requests of some seconds: their latencies, in seconds, and their answers, by number.

    A request without an answer has the time that it waited as its latency.
    """

    due_s: Sequence[float]
    latencies_s: Sequence[float]
    answers: dict[int, Any]

    def keeps(self, limit_s: float) -> bool:
        """Return whether enough requests were answered within a time limit."""
        return self.p99_s <= limit_s

    @property
    def p99_s(self) -> float:
        """The time within which 99 % of the requests are answered."""
        return percentile(self.latencies_s, SHARE)

    @property
    def took_s(self) -> float:
        """Seconds from the start until the last request was answered or dropped."""
        return max(at_s + latency_s for at_s, latency_s in zip(self.due_s, self.latencies_s, strict=True))


class Queue:
    """The queue of requests of one model, by number; each arrived when it was due."""

    def __init__(self, due: Sequence[float], limit: int, wait_s: float, until_s: float) -> None:
        self.due, self.limit, self.wait_s, self.until_s = due, limit, wait_s, until_s
        self.waiting: deque[int] = deque()
        self.more_coming = True
        self.changed = threading.Condition()

    def put(self, number: int) -> None:
        """Append a request; the last one closes the queue."""
        with self.changed:
            self.waiting.append(number)
            self.more_coming = number + 1 < len(self.due)
            if self.more_coming:
                self.changed.notify()
            else:
                self.changed.notify_all()

    def drop_all(self) -> None:
        """Drop all waiting requests."""
        with self.changed:
            self.until_s = -math.inf
            self.changed.notify_all()

    def take(self) -> list[int]:
        """Wait for the next batch, and return it; it is empty when all requests are done or dropped."""
        with self.changed:
            while True:
                now = time.monotonic()
                if now >= self.until_s or not (self.waiting or self.more_coming):
                    return []
                if not self.waiting:
                    self.changed.wait(self.until_s - now)
                    continue
                oldest_s = now - self.due[self.waiting[0]]
                hold = hold_s(len(self.waiting), oldest_s, self.limit, self.wait_s, more_coming=self.more_coming)
                if hold == 0.0:
                    return [self.waiting.popleft() for _ in range(min(self.limit, len(self.waiting)))]
                self.changed.wait(hold)


class Requests:
    """Requests in flight, and those that were answered."""

    def __init__(self, due: Sequence[float], models: int, limit_s: float) -> None:
        self.due, self.models, self.limit_s = due, models, limit_s
        self.parts: dict[int, list[Any]] = {}
        self.answered: dict[int, float] = {}
        self.in_time = 0
        self.failures: list[Exception] = []
        self.changing = threading.Lock()

    def answer(self, numbers: Sequence[int], results: Any) -> None:  # noqa: ANN401  an array
        """Store results of a model; a request is answered when it has those of all models."""
        with self.changing:
            now = time.monotonic()
            for number, result in zip(numbers, results, strict=True):
                parts = self.parts.setdefault(number, [])
                parts.append(result)
                if len(parts) == self.models:
                    self.answered[number] = now
                    self.in_time += now - self.due[number] <= self.limit_s

    def is_too_late(self) -> bool:
        """Return whether too many requests are late already for the others to make up for it."""
        overdue = bisect_right(self.due, time.monotonic() - self.limit_s)
        return overdue - self.in_time > (1.0 - SHARE) * len(self.due)


class Service:
    """Models that answer requests."""

    def __init__(self, models: Sequence[Model], limit_s: float) -> None:
        self.models, self.limit_s = models, limit_s

    def warm_up(self) -> float:
        """Run every instance once per batch size; return roughly the requests a second that all can answer together."""
        rates = []
        for model in self.models:
            rates.append(0.0)
            for instance in model.instances:
                # An engine may compile for each new batch size.
                for size in range(1, model.batch + 1):
                    instance.run(model.some(size))
                begun = time.monotonic()
                instance.run(model.some(model.batch))
                rates[-1] += model.batch / (time.monotonic() - begun)
        return min(rates)

    def highest_load(self, start: float, seed: int) -> float:
        """Return the highest rate at which enough requests are answered in time."""
        seeds = itertools.count(1000 * seed)

        def is_fast_enough(rate: float) -> bool:
            seconds = max(min(max(PROBE_S, PROBED / rate), LONGEST_PROBE_S), LIMITS * self.limit_s)
            return any(
                self.window(arrivals(rate, seconds, next(seeds)), seconds, probe=True).keeps(self.limit_s)
                for _ in range(TRIES)
            )

        return find_highest_rate(is_fast_enough, start)

    def window(self, due_s: Sequence[float], seconds: float, *, probe: bool = False) -> Window:
        """Send requests to the models when they are due.

        Requests that are unanswered after twice `seconds` are dropped. A probe ends as soon as too many are late.
        """
        begun = time.monotonic()
        due = [begun + at_s for at_s in due_s]
        until_s = begun + seconds + (self.limit_s if probe else seconds)
        requests = Requests(due, len(self.models), self.limit_s)
        queues = [Queue(due, model.batch, model.wait_s, until_s) for model in self.models]
        threads = [
            threading.Thread(target=_serve, args=(model, instance, queue, requests))
            for model, queue in zip(self.models, queues, strict=True)
            for instance in model.instances
        ]
        for thread in threads:
            thread.start()
        for number, at in enumerate(due):
            time.sleep(max(0.0, at - time.monotonic()))
            for queue in queues:
                queue.put(number)
            if requests.failures or (probe and requests.is_too_late()):
                for queue in queues:
                    queue.drop_all()
                break
        for thread in threads:
            thread.join()
        if requests.failures:
            raise requests.failures[0]
        ended = max(time.monotonic(), begun + seconds)
        latencies_s = [requests.answered.get(number, ended) - at for number, at in enumerate(due)]
        answers = {number: sum(requests.parts[number]) / len(self.models) for number in requests.answered}
        return Window(due_s, latencies_s, answers)


def _serve(model: Model, instance: Instance, queue: Queue, requests: Requests) -> None:
    try:
        if instance.cores is not None:
            os.sched_setaffinity(0, instance.cores)  # of this thread
        while numbers := queue.take():
            results = instance.run(model.inputs[[number % len(model.inputs) for number in numbers]])
            requests.answer(numbers, results)
    except Exception as error:  # noqa: BLE001  the main thread raises it
        requests.failures.append(error)
        queue.drop_all()


def add_load_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the load to a command line."""
    parser.add_argument("--within-ms", type=float, default=50.0, help="limit of the latency of 99 %% of the requests")
    parser.add_argument("--seconds", type=float, default=1.0, help="least length of each of the three measured windows")
    parser.add_argument("--headroom", type=float, default=0.2, help="share of the highest load that is not used")
    parser.add_argument("--rate", type=float, help="requests a second, instead of searching for the highest load")


def measure(service: Service, references: Any, asked: argparse.Namespace) -> None:  # noqa: ANN401  an array
    """Find the highest load of a service, measure slightly below it, and print the figures.

    Of several windows the one with the median p99 is reported, so that a short pause of the machine spoils only its own
    window. Answers of all windows are checked.
    """
    seed = int(os.environ.get("AUTOTUNE_SEED", "0"))
    start, rate, seconds = service.warm_up(), asked.rate, asked.seconds
    if rate is None:
        highest_rate = service.highest_load(start, seed)
        print(f"the highest load is {highest_rate:.1f} requests/s")
        rate = max(LEAST, (1.0 - asked.headroom) * highest_rate)
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
    """Return how well answers agree with the references, in percent of the references' size."""
    off, size = (sum(squares) for squares in zip(*(_squares(answers, references, one) for one in answers), strict=True))
    return 100.0 * (1.0 - math.sqrt(off / size))


def wrong_answer(answers: dict[int, Any], references: Any) -> str:  # noqa: ANN401  an array
    """Return a message if an answer is wrong; among many right ones it would hardly change their agreement."""
    for number in answers:
        off, size = _squares(answers, references, number)
        if not math.sqrt(off / size) < WRONG:
            return f"the answer to request {number} is off by {math.sqrt(off / size):.0%} of its size"
    return ""


def _squares(answers: dict[int, Any], references: Any, number: int) -> tuple[float, float]:  # noqa: ANN401  an array
    """Return the sums of squares of an answer's error and of its reference."""
    right = references[number % len(references)]
    return float(((answers[number] - right) ** 2).sum()), float((right**2).sum())
