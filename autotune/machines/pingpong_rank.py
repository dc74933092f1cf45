"""Do the work of `pingpong.c` without a compiler and `mpi.h`, by calls of the installed MPI library.

    mpirun -np 2 python pingpong_rank.py openmpi|mpich

The latency includes the time of a call from Python, about 1 us.
"""

import ctypes
import sys
import time
from typing import Any

_SMALL_BYTES, _LARGE_BYTES, _REPEATS = 8, 4 * 2**20, 9


class Mpi:
    """The few MPI calls needed here, through the binary interface of Open MPI (from 1.7 on) or MPICH and its relatives.

    In Open MPI handles are addresses of variables in the library, in MPICH they are numbers (mpi.h of either).
    """

    def __init__(self, kind: str) -> None:
        if kind == "openmpi":
            self.library = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
            self.world: Any = self._address("ompi_mpi_comm_world")
            self.char: Any = self._address("ompi_mpi_char")
            self.ignore = ctypes.c_void_p(None)
        else:
            self.library = _first("libmpi.so.12", "libmpich.so.12")
            self.world, self.char = ctypes.c_int(0x44000000), ctypes.c_int(0x4C000101)
            self.ignore = ctypes.c_void_p(1)
        self.library.MPI_Init(None, None)
        rank = ctypes.c_int(-1)
        self.library.MPI_Comm_rank(self.world, ctypes.byref(rank))
        self.rank = rank.value

    def half_trip_s(self, buffer: Any, size: int, trips: int) -> float:  # noqa: ANN401  ctypes has no name for it
        """Return half of the time of a round trip of a message, averaged over `trips`."""
        other, tag = ctypes.c_int(1 - self.rank), ctypes.c_int(0)
        sent = (buffer, ctypes.c_int(size), self.char, other, tag, self.world)
        send, receive = self.library.MPI_Send, self.library.MPI_Recv
        self.library.MPI_Barrier(self.world)
        start = time.perf_counter()
        for _ in range(trips):
            if self.rank == 0:
                send(*sent)
                receive(*sent, self.ignore)
            else:
                receive(*sent, self.ignore)
                send(*sent)
        return (time.perf_counter() - start) / (2 * trips)

    def _address(self, variable: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self.library, variable)))


def main() -> None:
    """Measure on both ranks, and print the times of rank 0."""
    mpi = Mpi(sys.argv[1])
    buffer = ctypes.create_string_buffer(b"\1" * _LARGE_BYTES)
    mpi.half_trip_s(buffer, _SMALL_BYTES, 1000)
    mpi.half_trip_s(buffer, _LARGE_BYTES, 5)
    for _ in range(_REPEATS):
        latency_s = mpi.half_trip_s(buffer, _SMALL_BYTES, 2000)
        bandwidth = _LARGE_BYTES / mpi.half_trip_s(buffer, _LARGE_BYTES, 20)
        if mpi.rank == 0:
            sys.stdout.write(f"latency {latency_s:.9e}\nbandwidth {bandwidth:.9e}\n")
    sys.stdout.flush()
    mpi.library.MPI_Finalize()


def _first(*names: str) -> ctypes.CDLL:
    for name in names[:-1]:
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    return ctypes.CDLL(names[-1], mode=ctypes.RTLD_GLOBAL)


if __name__ == "__main__":
    main()
