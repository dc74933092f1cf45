"""What the options of several programs have in common."""

import argparse
from collections.abc import Callable

ACTIVATIONS = ("keep", "recompute", "host")


def whole(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers that are not less than `least`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of {least} or more")
        return int(text)

    return read


def add_memory_options(parser: argparse.ArgumentParser) -> None:
    """Add what a training does where memory is the limit: see `microbatches` and `activations`."""
    group = parser.add_argument_group("memory")
    group.add_argument("--micro-batches", type=whole(1), default=1, help="parts of a batch that are learnt in turn")
    group.add_argument("--activations", choices=ACTIVATIONS, default="keep", help="what is done until they are needed")
