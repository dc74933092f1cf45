"""Measure how quickly the service answers ask and tell: latency quantiles and CPU time per pair, by number of clients.

    python -m benchmarks.asktell [--clients 1,10,50,200] [--storage sqlite,postgresql] [--seconds 15] [--work 2]
    python -m benchmarks.asktell --against FOLDER    # alternate with the checkout in FOLDER

A real service runs in its own process, and one other process simulates all clients. Each client asks, sleeps 0.5 to 1.5
times `--work` seconds in place of a run, tells the value, and asks again; with `--work 0` it only waits for the
service. A warm-up of half of `--seconds` precedes the measurement. CPU time includes all processes of the service but
not the PostgreSQL server. On a busy machine compare CPU times: latencies include the wait for a core.
"""

import argparse
import asyncio
import json
import math
import os
import random
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.autotune.service.serving import Service
from tests.support import postgres

_STUDY = """
objective = "external"
[options]
metrics = [{ name = "time_s", unit = "s", kind = "time" }]
[space.parameters]
a = { type = "integer", low = 1, high = 100, default = 50 }
b = { type = "integer", low = 1, high = 100, default = 50 }
c = { type = "choice", values = ["x", "y", "z"], default = "x" }
[[space.constraints]]
name = "small"
rule = "a * b <= 5000"
reason = "it must fit"
[sampler]
name = "%s"
"""


def value_of(configuration: dict[str, object], rng: random.Random) -> float:
    a, b = float(configuration["a"]), float(configuration["b"])  # type: ignore[arg-type]
    worse = {"x": 0.3, "y": 0.0, "z": 0.6}[str(configuration["c"])]
    smooth = abs(math.log(a / 20)) + 0.5 * abs(math.log(b / 70)) + worse
    return 10.0 * math.exp(0.4 * smooth + rng.gauss(0.0, 0.01))


@dataclass
class Measured:
    """Requests in the measured time: seconds of each ask and tell, counts by HTTP status, CPU time of the service."""

    asks: list[float] = field(default_factory=list)
    tells: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    cpu_s: float = 0.0
    seconds: float = 0.0

    def line(self) -> str:
        pairs = max(1, len(self.tells))
        others = "".join(f", {count} x {status}" for status, count in sorted(self.statuses.items()) if status != 200)
        return (
            f"ask {_quantiles(self.asks)}  tell {_quantiles(self.tells)}  {len(self.tells) / self.seconds:6.1f} pairs/s"
            f"  {1e3 * self.cpu_s / pairs:5.1f} CPU-ms/pair{others}"
        )


def _quantiles(seconds: list[float]) -> str:
    ordered = sorted(seconds) or [math.nan]
    return "/".join(f"{1e3 * ordered[int(share * (len(ordered) - 1))]:5.0f}" for share in (0.5, 0.9, 0.99))


class Program:
    """A minimal HTTP client on one connection; a full one would take CPU time from the service that is measured."""

    def __init__(self, service: Service) -> None:
        self.port = service.port
        self._header = service.header

    async def __aenter__(self) -> "Program":
        self._in, self._out = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._out.close()

    async def post(self, path: str, body: dict[str, object]) -> tuple[int, dict[str, object]]:
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{self._header}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: "
        self._out.write(head.encode() + str(len(content)).encode() + b"\r\n\r\n" + content)
        head = (await self._in.readuntil(b"\r\n\r\n")).decode()
        length = next((line[16:] for line in head.lower().split("\r\n") if line.startswith("content-length: ")), "0")
        content = await self._in.readexactly(int(length))
        return int(head[9:12]), json.loads(content) if content else {}


async def ask_and_tell(service: Service, number: int, work_s: float, measured: Measured, counts_from: float) -> None:
    """Ask and tell until the measured time is over; requests that begin before `counts_from` are warm-up."""
    rng = random.Random(number)
    async with Program(service) as client:
        while time.monotonic() < counts_from + measured.seconds:
            begun = time.monotonic()
            status, leased = await client.post("/studies/crowd/ask", {"lease_s": 600, "wait_s": 10})
            if begun >= counts_from:
                measured.statuses[status] += 1
            if status != 200:
                await asyncio.sleep(0.2)
                continue
            if begun >= counts_from:
                measured.asks.append(time.monotonic() - begun)
            if work_s:
                await asyncio.sleep(work_s * rng.uniform(0.5, 1.5))
            value = value_of(leased["configuration"], rng)  # type: ignore[arg-type]
            while True:
                begun = time.monotonic()
                status, _ = await client.post("/studies/crowd/tell", {"lease": leased["lease"], "value": value})
                if begun >= counts_from:
                    measured.statuses[status] += 1
                if status == 200:
                    break
                await asyncio.sleep(0.2)
            if begun >= counts_from:
                measured.tells.append(time.monotonic() - begun)


async def measure_clients(service: Service, clients: int, seconds: float, work_s: float) -> Measured:
    """Run `clients` clients at once, and measure for `seconds` after a warm-up of half as long."""
    measured = Measured(seconds=seconds)
    counts_from = time.monotonic() + seconds / 2
    programs = [
        asyncio.create_task(ask_and_tell(service, number, work_s, measured, counts_from)) for number in range(clients)
    ]
    await asyncio.sleep(seconds / 2)
    before = _cpu_s(service)
    await asyncio.sleep(seconds)
    measured.cpu_s = _cpu_s(service) - before
    await asyncio.gather(*programs)
    return measured


def _cpu_s(service: Service) -> float:
    assert service.process is not None
    root = psutil.Process(service.process.pid)
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def measure(code: Path, storage: str, clients: int, options: argparse.Namespace) -> Measured:
    """Start a service from the checkout at `code`, and measure it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="autotune-asktell-")))
        url = str(folder / "autotune.db")
        if storage == "postgresql":
            server = stack.enter_context(postgres.server())
            server.execute("CREATE DATABASE asktell")
            url = server.url("asktell")
        os.environ["PYTHONPATH"] = str(code)
        service = Service(folder, storage=url)
        (folder / "catalogue" / "crowd.toml").write_text(_STUDY % options.sampler)
        service.start()
        try:
            with service.client() as client:
                client.start("crowd", trials=100_000)
            return asyncio.run(measure_clients(service, clients, options.seconds, options.work))
        finally:
            service.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", default="1,10,50,200")
    parser.add_argument("--storage", default="sqlite,postgresql")
    parser.add_argument("--seconds", type=float, default=15.0, help="measured time")
    parser.add_argument("--work", type=float, default=2.0, help="mean duration of a run in seconds")
    parser.add_argument("--sampler", default="autotune")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--against", type=Path, help="another checkout to alternate with")
    options = parser.parse_args()
    here = Path(__file__).parents[1]
    checkouts = {"this": here} | ({"against": options.against.resolve()} if options.against else {})
    print(f"milliseconds at 50/90/99 %; runs take {options.work:g} s")
    for storage in options.storage.split(","):
        for clients in map(int, options.clients.split(",")):
            for _ in range(options.rounds):
                for name, code in checkouts.items():
                    measured = measure(code, storage, clients, options)
                    print(f"{storage:10} {clients:3} clients {name:7} {measured.line()}", flush=True)


if __name__ == "__main__":
    main()
