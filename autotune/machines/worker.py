"""A program that keeps a core busy and reports its rate: `autotune.machines.workers` starts one on each core.

    python worker.py CPU

It reads requests, one JSON object a line, and answers each with a JSON object. `{"prepare": "copy", "bytes": N}` and
`{"prepare": "blas", "order": N, "libraries": [...]}` allocate the arrays; `{"run_s": T}` works for T seconds and
reports the rate. It exits at the end of its input, so it does not outlive its parent.
"""

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

# A step of work, and its amount: bytes moved, or floating-point operations.
Work = tuple[Callable[[], object], float]


def copy_work(array_bytes: int) -> Work:
    """Return the work of copying an array. Bytes read and bytes written count, as in STREAM (McCalpin, 1995)."""
    import numpy as np  # noqa: PLC0415  takes a while, and only some need it

    source = np.ones(max(1, array_bytes // 8))
    target = np.zeros_like(source)
    return lambda: np.copyto(target, source), 2.0 * source.nbytes


def multiply_work(order: int, libraries: Sequence[str]) -> tuple[Work, str]:
    """Return the work of multiplying two square matrices, and the file of the BLAS library that does it.

    The library is the first that can be loaded, or else numpy's own.
    """
    for library in libraries:
        try:
            dgemm = ctypes.CDLL(library).dgemm_
        except (OSError, AttributeError):
            continue
        return (_calls(dgemm, order), 2.0 * order**3), _file_of_library(library)
    import numpy as np  # noqa: PLC0415  takes a while, and only some need it

    a, b, c = (np.ones((order, order)) for _ in range(3))
    return (lambda: np.matmul(a, b, out=c), 2.0 * order**3), "numpy's own"


def _calls(dgemm: Callable[..., object], order: int) -> Callable[[], object]:
    """Return a call of DGEMM (netlib.org/blas) with Fortran's conventions: all by address, lengths of strings last."""
    matrices = [(ctypes.c_double * order**2)(*([1.0] * order**2)) for _ in range(3)]
    n, word = ctypes.byref(ctypes.c_int(order)), ctypes.c_char_p(b"N")
    one, zero = ctypes.byref(ctypes.c_double(1.0)), ctypes.byref(ctypes.c_double(0.0))
    a, b, c = matrices
    length = ctypes.c_size_t(1)
    return lambda: dgemm(word, word, n, n, n, one, a, n, b, n, zero, c, n, length, length)


def _file_of_library(library: str) -> str:
    """Return the file that the loader found for the name of a library."""
    stem = library.partition(".so")[0]
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123  pathlib takes a while
        paths = [line.split(maxsplit=5)[5].strip() for line in maps if line.count("/")]
    # The list has the target of a link, not the link itself; usually both names begin alike.
    return next((path for path in paths if os.path.basename(path).startswith(stem)), library)  # noqa: PTH119


def rate(work: Work, duration_s: float) -> float:
    """Work for `duration_s` seconds, at least one step; return the amount of work a second."""
    step, amount = work
    start, steps = time.perf_counter(), 0
    while True:
        step()
        steps += 1
        elapsed_s = time.perf_counter() - start
        if elapsed_s >= duration_s:
            return amount * steps / elapsed_s


def main() -> None:
    """Answer the requests in the input until it ends."""
    os.sched_setaffinity(0, {int(sys.argv[1])})
    work: Work = (lambda: None, 0.0)
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        answer: dict[str, Any] = {}
        if "run_s" in request:
            answer["rate"] = rate(work, request["run_s"])
        else:
            # Free the old arrays before the new ones are allocated.
            work = (lambda: None, 0.0)
            try:
                if request["prepare"] == "copy":
                    work = copy_work(request["bytes"])
                else:
                    work, answer["library"] = multiply_work(request["order"], request["libraries"])
                work[0]()
            except MemoryError:
                answer["error"] = "no memory"
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
