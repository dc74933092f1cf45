"""What the owner of a service has to wait for while strangers do their worst to it.

    python -m benchmarks.service.strangers                    # every attack, 15 s each; needs root, to be somebody else
    python -m benchmarks.service.strangers --seconds 5 --attacks idle flood

A real service in a process of its own. The strangers are processes of another user, who open up to 10,000 connections
and open them again when they are closed. The owner asks for the list of studies ten times a second, half of the time
over a new connection. Descriptors bound how many connections there can be; the figures say how many there were.
"""

import argparse
import asyncio
import http.client
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from tests.autotune.service.serving import Service, serving

_STRANGER = 65534
_PAUSE_S = 0.1
_ATTACKS = ("nobody", "idle", "headers", "bodies", "health", "flood", "pipeline", "unread", "reconnect")
_REFUSED = b"GET /studies HTTP/1.1\r\nHost: localhost\r\n\r\n"
# What a stranger sends at once, and then again and again.
_SENDS = {
    "idle": (b"", b""),
    "headers": (b"GET /studies HTTP/1.1\r\nHost: localhost\r\n", b"X-Slow: 1\r\n"),
    "bodies": (
        b"POST /studies HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n",
        b" ",
    ),
    "health": (b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", b""),
    "flood": (_REFUSED, _REFUSED),
    "pipeline": (_REFUSED * 500, _REFUSED * 500),
    "unread": (b"GET /page/style.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000, b""),
    "reconnect": (_REFUSED, b""),
}


class _Stranger(asyncio.Protocol):
    """One connection of a stranger."""

    open_now = 0
    answers = 0

    def __init__(self, attack: str, ended: asyncio.Event) -> None:
        self._first, self._again = _SENDS[attack]
        self._attack = attack
        self._ended = ended
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        _Stranger.open_now += 1
        self._transport = transport
        transport.write(self._first)  # type: ignore[attr-defined]
        if self._attack == "unread":
            transport.pause_reading()  # type: ignore[attr-defined]
        if self._again and self._attack not in {"flood", "pipeline"}:
            self._loop.call_later(1.0, self._drip)

    def _drip(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(self._again)  # type: ignore[attr-defined]
            self._loop.call_later(1.0, self._drip)

    def data_received(self, data: bytes) -> None:
        _Stranger.answers += data.count(b"HTTP/1.1 ")
        if self._attack in {"flood", "pipeline"}:
            self._transport.write(self._again)  # type: ignore[attr-defined]
        elif self._attack == "reconnect":
            self._transport.abort()  # type: ignore[attr-defined]

    def connection_lost(self, error: Exception | None) -> None:
        del error
        _Stranger.open_now -= 1
        self._ended.set()


async def _attack(attack: str, port: int, most: int, seconds: float) -> None:
    loop, ends_at = asyncio.get_running_loop(), time.monotonic() + seconds
    highest = made = 0

    async def again_and_again() -> None:
        nonlocal highest, made
        while time.monotonic() < ends_at:
            ended = asyncio.Event()
            try:
                await loop.create_connection(partial(_Stranger, attack, ended), "127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            made += 1
            highest = max(highest, _Stranger.open_now)
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), max(0.0, ends_at - time.monotonic()))

    # Those that ask all the time keep the service busy with few connections.
    count = min(most, 200) if attack in {"flood", "pipeline", "reconnect", "unread"} else most
    await asyncio.gather(*(again_and_again() for _ in range(count)))
    print(json.dumps({"open": highest, "made": made, "answers": _Stranger.answers}))


def _owner(service: Service, seconds: float) -> tuple[list[float], int]:
    """Ask as the owner; return how long the answers took, and how many were none."""
    took, failures = [], 0
    ends_at, port = time.monotonic() + seconds, service.port
    name, _, value = service.header.partition(": ")
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    turn = 0
    while time.monotonic() < ends_at:
        turn += 1
        fresh = turn % 2 == 1
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20) if fresh else kept
        begun = time.perf_counter()
        try:
            connection.request("GET", "/studies", headers={name: value})
            answer = connection.getresponse()
            answer.read()
            failures += answer.status != 200
        except (OSError, http.client.HTTPException):
            failures += 1
            connection.close()
        took.append(time.perf_counter() - begun)
        if fresh:
            connection.close()
        time.sleep(_PAUSE_S)
    return took, failures


def _measure(attack: str, service: Service, most: int, seconds: float) -> None:
    command = [sys.executable, "-m", "benchmarks.service.strangers", "--as-stranger", attack]
    command += [str(service.port), str(most)]
    strangers = None
    if attack != "nobody":
        strangers = subprocess.Popen(
            [*command, "--seconds", str(seconds + 3)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        time.sleep(3)
    took, failures = _owner(service, seconds)
    told = json.loads(strangers.communicate()[0]) if strangers else {"open": 0, "made": 0, "answers": 0}
    took.sort()
    middle, high = took[len(took) // 2], took[min(len(took) - 1, int(0.99 * len(took)))]
    print(
        f"{attack:10} owner: {len(took):4} requests, {failures:3} failed, median {1e3 * middle:6.0f} ms, "
        f"99 % {1e3 * high:6.0f} ms, longest {1e3 * took[-1]:6.0f} ms; strangers: {told['open']} connections at once, "
        f"{told['made']} made, {told['answers']} answers; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--attacks", nargs="*", choices=_ATTACKS, default=_ATTACKS)
    parser.add_argument("--as-stranger", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if given.as_stranger:
        attack, port, most = given.as_stranger
        import encodings.idna  # noqa: F401, PLC0415  somebody else may not be able to read it

        os.setuid(_STRANGER)
        asyncio.run(_attack(attack, int(port), int(most), given.seconds))
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="autotune-strangers-")))
        service = stack.enter_context(serving(folder))
        for attack in given.attacks:
            _measure(attack, service, given.connections, given.seconds)
            time.sleep(2)


if __name__ == "__main__":
    main()
