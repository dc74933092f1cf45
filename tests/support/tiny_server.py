"""A server for tests, with the ways to fail of real ones: `python -I -S tiny_server.py PORT [MODE] [CAPACITY]`.

It answers every request with a page that says its capacity and how often it was asked: `tiny_load.py` asks it.
"""

# ruff: noqa: T201  a program of its own: it prints

import os
import signal
import socket
import sys
import time
from pathlib import Path


def serve(port: int, mode: str, capacity: str) -> None:
    """Answer every request with the capacity."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen()
    print(f"serving on {port}", flush=True)
    asked = 0
    while True:
        connection, _ = listening.accept()
        with connection:
            request = connection.recv(4096)
            if not request:
                continue  # it was only looked for
            asked += 1
            if mode == "dies-asked" and b"/load" in request:
                print("double free or corruption (fasttop)", flush=True)
                os._exit(3)
            if mode == "killed" and b"/load" in request:
                os.kill(os.getpid(), signal.SIGKILL)
            connection.sendall(f"HTTP/1.0 200 OK\r\n\r\ncapacity {capacity} asked {asked}\n".encode())


def leave() -> None:
    """Start a process that leaves session, parent and group, and ignores requests to end."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            Path("left").write_text(str(os.getpid()))
            time.sleep(1000)
        os._exit(0)


def main() -> None:  # noqa: C901  one line a way to fail
    """Serve, or fail as the mode says."""
    port, mode, capacity = int(sys.argv[1]), (*sys.argv[2:3], "serves")[0], (*sys.argv[3:4], "10")[0]
    match mode:
        case "dies":
            sys.exit("cannot open the model: no such file")
        case "memory":
            sys.exit("terminate called after throwing an instance of 'std::bad_alloc'")
        case "never":
            print("loading", flush=True)
            time.sleep(1000)
        case "stuck":
            print("FATAL: no card\nwaiting for one", flush=True)
            time.sleep(1000)
        case "loud":
            for _ in range(100):
                print("x" * 2**20)
        case "leaves":
            leave()
        case "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "daemon" | "daemon-of-two-forks":
            if os.fork():
                os._exit(0)
            os.setsid()
            if mode != "daemon":
                time.sleep(0.3)
                if os.fork():
                    os._exit(0)
    serve(port, mode, capacity)


if __name__ == "__main__":
    main()
