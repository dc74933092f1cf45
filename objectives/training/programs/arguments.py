"""What the options of several programs have in common."""

import argparse
from collections.abc import Callable


def whole(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers that are not less than `least`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of {least} or more")
        return int(text)

    return read
