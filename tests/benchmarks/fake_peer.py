"""A peer that does what its options say: what a library in an environment of its own may do."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "search" / "peers"))

from protocol import serve


def all_of(oracle, times=1):
    for row in oracle.problem.valid:
        for _ in range(times):
            oracle.evaluate(row)


def nearest_to_zero(oracle):
    while True:
        oracle.evaluate(oracle.nearest([0] * len(oracle.problem.names)))


def repeats(oracle):
    while True:
        oracle.evaluate([0, 0])


def raises(oracle):
    raise RuntimeError("a defect")


DOES = {
    "all": all_of,
    "twice": lambda oracle: all_of(oracle, 2),
    "nearest": nearest_to_zero,
    "invalid": lambda oracle: oracle.evaluate([3, 3]),
    "repeats": repeats,
    "raises": raises,
    "dies": lambda oracle: os._exit(1),
    "hangs": lambda oracle: time.sleep(3600),
}


def search(oracle, options, seed, budget):
    print("a library that prints")  # noqa: T201  standard output is the protocol's
    DOES[options["does"]](oracle)


if __name__ == "__main__":
    serve(search)
