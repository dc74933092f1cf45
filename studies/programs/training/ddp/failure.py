"""Why a worker failed, and the exit code for it."""

import re
from dataclasses import dataclass

ERROR = 1
DIVERGED = 3
OUT_OF_MEMORY = 12  # ENOMEM

_MEMORY = re.compile(
    r"out of memory|not enough memory|(can't|cannot|unable to) allocate|MemoryError|bad_alloc", re.IGNORECASE
)
_COMPILER = re.compile(r"InvalidCxxCompiler|No working C\+\+ compiler", re.IGNORECASE)
_LONGEST = 2000  # characters of another library's message


class DivergedError(ArithmeticError):
    """The loss is infinite or undefined."""


@dataclass(frozen=True)
class Failure:
    """An exit code with its message."""

    exit_code: int
    message: str


def failure_of(error: BaseException) -> Failure:
    """Classify an error: memory, divergence, a missing compiler, or another one."""
    text = str(error)
    if isinstance(error, DivergedError):
        return Failure(DIVERGED, f"diverged: {text}")
    if isinstance(error, MemoryError) or _MEMORY.search(text):
        return Failure(OUT_OF_MEMORY, f"out of memory: {_one_line(text)[:300]}")
    if _COMPILER.search(text):
        return Failure(ERROR, "--compile 1 needs a C++ compiler, and none works here: install g++, or use --compile 0")
    return Failure(ERROR, f"{type(error).__name__}: {text[:_LONGEST]}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
