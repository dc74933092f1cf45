"""The targets of fuzzing, and functions that make them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

ROOT = Path(__file__).resolve().parents[3]
OUTPUTS = "tests/objectives/outputs/*"

Read = Callable[[bytes], object]
Made = tuple[Read, tuple[type[BaseException], ...]]
"""A function that parses bytes, and the exceptions that it may raise."""


@dataclass(frozen=True)
class Target:
    """A parser and its initial inputs.

    make: Returns the parser, and the errors with which it may refuse an input.
    seeds: Glob patterns of initial inputs among the files of the project.
    words: Initial inputs as texts.
    most_bytes: The greatest length of an input.
    """

    name: str
    make: Callable[[], Made]
    seeds: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    most_bytes: int = 4096

    def corpus(self) -> list[bytes]:
        """Return the initial inputs."""
        files = [path for pattern in self.seeds for path in sorted(ROOT.glob(pattern)) if path.is_file()]
        return [path.read_bytes()[: self.most_bytes] for path in files] + [word.encode() for word in self.words]


def text_of(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def of_text(read: Callable[[str], object], *errors: type[BaseException]) -> Made:
    return lambda data: read(text_of(data)), errors


@cache
def _around() -> "TemporaryDirectory[str]":
    return TemporaryDirectory(prefix="fuzz-")


def folder() -> Path:
    """Return an empty folder that is removed when this process ends."""
    return Path(mkdtemp(dir=_around().name))


def of_file(read: Callable[[Path], object], name: str, *errors: type[BaseException]) -> Made:
    path = folder() / name

    def write_and_read(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return write_and_read, errors
