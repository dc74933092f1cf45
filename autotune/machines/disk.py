"""Measure how fast the disk of a folder writes and reads a file."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from autotune.machines.figure import Figure, best_figure

MIB = 2**20
FILE_BYTES = 256 * MIB
_CHUNK_BYTES = 4 * MIB
_LEAST_BYTES = 16 * MIB
_REPEATS = 3
# On a slow or busy disk, stop writing or reading after this time: the rate of a part of the file is enough.
_PATIENCE_S = 3.0


class DiskError(RuntimeError):
    """The disk cannot be measured: it is full, or the folder is not writable."""


def disk_rates(folder: Path, file_bytes: int = FILE_BYTES, repeats: int = _REPEATS) -> dict[str, Figure]:
    """Measure the rates of writing a file through to the disk and of reading it again, in bytes/s.

    The file has no name, so nothing remains of it even if this process is killed. It takes at most a tenth of the free
    space. If the system does not drop its cached copy of the file, the reading rate is that of memory.

    Raises:
        DiskError: the disk is full, or the folder is not writable.
    """
    try:
        size = min(file_bytes, shutil.disk_usage(folder).free // 10)
        if size < min(_LEAST_BYTES, file_bytes):
            msg = f"less than {10 * _LEAST_BYTES // MIB} MiB are free in {folder}"
            raise DiskError(msg)
        measured = [_measure_file(folder, size) for _ in range(repeats)]
    except OSError as error:
        msg = f"{folder}: {error.strerror}"
        raise DiskError(msg) from error
    return {
        "disk_write_bytes_per_s": best_figure([write for write, _ in measured]),
        "disk_read_bytes_per_s": best_figure([read for _, read in measured]),
    }


def _measure_file(folder: Path, size: int) -> tuple[float, float]:
    """Write and read a file of `size` bytes once; return both rates."""
    # Random bytes, since some file systems and drives compress repeated data.
    chunk = os.urandom(min(_CHUNK_BYTES, size))
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        descriptor = file.fileno()
        write = _rate(lambda: os.write(descriptor, chunk), size, lambda: os.fsync(descriptor))
        written = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return write, _rate(lambda: len(os.read(descriptor, len(chunk))), written)


def _rate(step: Callable[[], int], size: int, finish: Callable[[], object] = lambda: None) -> float:
    start, done = time.perf_counter(), 0
    while done < size and time.perf_counter() - start < _PATIENCE_S:
        moved = step()
        if not moved:
            break
        done += moved
    finish()
    return max(1, done) / max(1e-9, time.perf_counter() - start)
