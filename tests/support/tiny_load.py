"""The load of `tiny_server.py`: `python -I -S tiny_load.py PORT RATE [MODE]`.

Prints `rate`, `asked` (how many requests the server has had) and `p99`: 10 ms at the server's capacity, in proportion.
"""

# ruff: noqa: T201  a program of its own: it prints

import mmap
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path


def leave_memory() -> None:
    """Start a process of another session with a segment of shared memory."""
    segment = os.open(f"/dev/shm/autotune-tiny-{os.getpid()}", os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(segment, 4096)
    mapped = mmap.mmap(segment, 4096)
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
        mapped.close()


def main() -> None:
    """Ask once, and print the figures of a load."""
    port, rate, mode = int(sys.argv[1]), float(sys.argv[2]), (*sys.argv[3:4], "")[0]
    if mode == "leaves-memory":
        leave_memory()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /load HTTP/1.0\r\n\r\n")
        answer = b""
        while got := connection.recv(4096):
            answer += got
    if not answer and mode == "leaves-memory":
        os.kill(os.getpid(), signal.SIGKILL)
    if not answer:
        sys.exit("the server closed the connection")
    words = answer.split()
    capacity = float(words[words.index(b"capacity") + 1])
    if mode == "waits":
        print("waiting", flush=True)
        time.sleep(1000)
    if mode == "fails" and rate > 1.0:
        sys.exit("too many open files")
    if mode == "stumbles":
        with suppress(FileExistsError), Path("stumbled").open("x"):
            capacity = 0.01
    if mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    print(f"rate {rate:g}\nasked {int(words[-1])}\np99 {10.0 * rate / capacity:.6g} ms")


if __name__ == "__main__":
    main()
