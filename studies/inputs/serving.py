"""Serves a model to requests that come at random times, and says how long they took: see the study `inference`.

    python3 serving.py --model conv --engine onnxruntime --rate 200 --batch 8 --wait-ms 2 --instances 2

Requests come at times that only AUTOTUNE_SEED and the rate decide, however busy the service is (an open loop), so that
waiting counts: a request's latency is from when it was due to when its answer was there. They wait in one line. An
instance takes as many as a batch holds; if there are fewer, it waits for more until the first has waited `--wait-ms`.
Each instance is a thread with an engine of its own, which computes on `--intra` threads.

Prints the requests answered a second, the median and the 99th percentile of latency, and how far the answers agree
with those of the model computed plainly, in 32 bits and one at a time (100 %: they are the same). What was not answered
when the load has been over for as long as it lasted is given up, and counts with the time that it had waited.
"""

# ruff: noqa: S311, T201  a program of its own: it prints, and draws what need not be secret

import argparse
import importlib
import importlib.util
import math
import os
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

PACKAGES = {"onnxruntime": ("numpy", "onnx", "onnxruntime"), "openvino": ("numpy", "onnx", "onnxruntime", "openvino")}


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


class Line:
    """Requests that wait, by number; each came when it was due."""

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


class Service:
    """Instances that answer requests, and what became of each request."""

    def __init__(self, runs: Sequence[Callable[[Any], Any]], inputs: Any) -> None:  # noqa: ANN401  an array
        self.runs, self.inputs = runs, inputs
        self.answers: dict[int, Any] = {}
        self.answered: dict[int, float] = {}
        self.failures: list[Exception] = []

    def answer(self, due_s: Sequence[float], asked: argparse.Namespace) -> list[float]:
        """Put requests to the instances when they are due; return the latency of each, in seconds."""
        begun = time.monotonic()
        due = [begun + at_s for at_s in due_s]
        line = Line(due, asked.batch, asked.wait_ms / 1000.0, begun + 2.0 * asked.seconds)
        threads = [threading.Thread(target=self._serve, args=(run, line)) for run in self.runs]
        for thread in threads:
            thread.start()
        for number, at in enumerate(due):
            time.sleep(max(0.0, at - time.monotonic()))
            line.put(number)
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]
        ended = time.monotonic()
        return [self.answered.get(number, ended) - at for number, at in enumerate(due)]

    def _serve(self, run: Callable[[Any], Any], line: Line) -> None:
        try:
            while batch := line.take():
                results = run(self.inputs[[number % len(self.inputs) for number in batch]])
                now = time.monotonic()
                for number, result in zip(batch, results, strict=True):
                    self.answers[number], self.answered[number] = result, now
        except Exception as error:  # noqa: BLE001  of a thread: told by the one that waits for it
            self.failures.append(error)


def agreement(answers: dict[int, Any], references: Any) -> float:  # noqa: ANN401  an array
    """Return how far answers agree with what they should be, in percent of the size of that."""
    right = {number: references[number % len(references)] for number in answers}
    wrong = sum(float(((answer - right[number]) ** 2).sum()) for number, answer in answers.items())
    size = sum(float((value**2).sum()) for value in right.values())
    return 100.0 * (1.0 - math.sqrt(wrong / size))


def serve(asked: argparse.Namespace, seed: int) -> None:
    """Make the model and its engines, put a load on them, and print what came of it."""
    served = packages(asked.engine)
    content, inputs = served.model(asked.model), served.inputs(asked.model)
    references = served.reference(content, inputs)
    if asked.precision == "int8":
        content = served.quantised(content)
    runs = [served.engine(content, asked) for _ in range(asked.instances)]
    for run in runs:
        # An engine may prepare itself for each new size of a batch.
        for size in range(1, asked.batch + 1):
            run(inputs[[number % len(inputs) for number in range(size)]])
    service, due = Service(runs, inputs), arrivals(asked.rate, asked.seconds, seed)
    latencies = service.answer(due, asked)
    if not service.answers:
        sys.exit(f"error: no request was answered in {2 * asked.seconds:g} s")
    took_s = max(asked.seconds, *(at_s + latency for at_s, latency in zip(due, latencies, strict=True)))
    print(f"answered {len(service.answers)} of {len(due)} requests in {took_s:.3f} s")
    print(f"throughput {len(service.answers) / took_s:.2f} requests/s")
    print(f"p50 {1000.0 * percentile(latencies, 0.5):.3f} ms")
    print(f"p99 {1000.0 * percentile(latencies, 0.99):.3f} ms")
    print(f"agreement {agreement(service.answers, references):.3f} %")


def packages(engine: str) -> Any:  # noqa: ANN401  a module
    """Return the module of models and engines, whose packages this Python may not have."""
    missing = [name for name in PACKAGES[engine] if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(
            f"error: {sys.executable} has no {', '.join(missing)}: './run study inference' installs what is needed, "
            f"and so does {sys.executable} -m pip install {' '.join(missing)}"
        )
    return importlib.import_module("served")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["conv", "attention"], default="conv")
    parser.add_argument("--engine", choices=list(PACKAGES), default="onnxruntime")
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long requests come")
    parser.add_argument("--batch", type=int, default=1, help="requests that are computed together, at most")
    parser.add_argument("--wait-ms", type=float, default=0.0, help="how long the first of a batch waits for more")
    parser.add_argument("--instances", type=int, default=1, help="engines that compute side by side")
    parser.add_argument("--intra", type=int, default=1, help="threads of one operation")
    parser.add_argument("--inter", type=int, default=1, help="operations at once (ONNX Runtime)")
    parser.add_argument("--spinning", type=int, default=1, help="1: threads without work stay busy (ONNX Runtime)")
    parser.add_argument("--arena", type=int, default=1, help="1: memory is kept for the next run (ONNX Runtime)")
    parser.add_argument("--graph", choices=["disable", "basic", "extended", "all"], default="all")
    parser.add_argument("--precision", choices=["float32", "int8"], default="float32")
    return parser.parse_args()


if __name__ == "__main__":
    serve(arguments(), int(os.environ.get("AUTOTUNE_SEED", "0")))
