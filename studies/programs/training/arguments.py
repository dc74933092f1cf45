"""Options that several programs share."""

import argparse
from collections.abc import Callable

ACTIVATIONS = ("keep", "recompute", "host")


def whole(least: int) -> Callable[[str], int]:
    """Return a parser of integers of at least `least`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of {least} or more")
        return int(text)

    return read


def add_memory_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that save memory: see `microbatches` and `activations`."""
    group = parser.add_argument_group("memory")
    group.add_argument("--micro-batches", type=whole(1), default=1, help="parts in which a batch is computed")
    group.add_argument(
        "--activations", choices=ACTIVATIONS, default="keep", help="where they wait for the backward pass"
    )
