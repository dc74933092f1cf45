"""How a service bears many at once: 200 followers and 50 programs that ask and tell, for five minutes, on PostgreSQL.

    python -m benchmarks.service.serving                  # five minutes
    python -m benchmarks.service.serving --seconds 30 --storage sqlite

A real service in a process of its own, over a real PostgreSQL server, asked over HTTP from another process. Afterwards
storage is compared with what the clients were answered: every run that was told is there once, and no other.
"""

import argparse
import asyncio
import json
import random
import resource
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from autotune.client import Client
from autotune.storage.address import storage_url
from autotune.storage.study_store import StudyStore
from tests.autotune.service.serving import serving
from tests.support import postgres

_STUDY = "wide"
_WIDE = """
objective = "external"
[options]
metrics = [{ name = "time_s", unit = "s", kind = "time" }]
[space.parameters]
a = { type = "integer", low = 1, high = 1000, default = 500 }
b = { type = "integer", low = 1, high = 1000, default = 500 }
c = { type = "choice", values = ["x", "y", "z"], default = "x" }
"""


@dataclass
class Heard:
    """What the clients were answered: seconds by what was asked, statuses, leases, and when news came to followers."""

    latencies_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    told: dict[str, float] = field(default_factory=dict)
    news: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    last: dict[int, int] = field(default_factory=dict)


async def timed(heard: Heard, what: str, asked: Awaitable[httpx.Response]) -> httpx.Response:
    begun = time.perf_counter()
    answer = await asked
    heard.latencies_s[what].append(time.perf_counter() - begun)
    heard.statuses[what, answer.status_code] += 1
    return answer


async def ask_and_tell(client: httpx.AsyncClient, heard: Heard, rng: random.Random, ends_at: float) -> None:
    """Measure what is asked for, which takes a little, until the time is over."""
    while time.monotonic() < ends_at:
        answer = await timed(heard, "ask", client.post(f"/studies/{_STUDY}/ask", json={"lease_s": 120}))
        if answer.status_code != 200:
            await asyncio.sleep(1.0)
            continue
        leased = answer.json()
        await asyncio.sleep(rng.uniform(0.5, 1.5))
        value = rng.lognormvariate(0.1 * abs(leased["configuration"]["a"] / 200 - 1), 0.02)
        content = {"lease": leased["lease"], "value": value, "elapsed_s": value}
        while True:
            answer = await timed(heard, "tell", client.post(f"/studies/{_STUDY}/tell", json=content))
            if answer.status_code not in {429, 503}:
                break
            await asyncio.sleep(1.0)
        if answer.status_code == 200:
            heard.told[leased["lease"]] = value
        if rng.random() < 0.05:
            await timed(heard, "study", client.get(f"/studies/{_STUDY}"))


async def follow(client: httpx.AsyncClient, heard: Heard, number: int) -> None:
    """Follow the study until the connection ends."""
    async with client.stream("GET", f"/studies/{_STUDY}/events", timeout=None) as answer:
        heard.statuses["follow", answer.status_code] += 1
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                version = json.loads(line[6:])["version"]
                heard.news[version].append(time.perf_counter())
                heard.last[number] = version


async def crowd(url: str, header: str, followers: int, clients: int, seconds: float) -> Heard:
    """Send the crowd to a service."""
    heard = Heard()
    limits = httpx.Limits(max_connections=None)
    name, _, value = header.partition(": ")
    async with httpx.AsyncClient(base_url=url, headers={name: value}, limits=limits, timeout=120) as client:
        following = [asyncio.create_task(follow(client, heard, number)) for number in range(followers)]
        ends_at = time.monotonic() + seconds
        rngs = [random.Random(number) for number in range(clients)]
        await asyncio.gather(*(ask_and_tell(client, heard, rng, ends_at) for rng in rngs))
        await asyncio.sleep(10)  # for the last news
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
    return heard


def report(heard: Heard, store: StudyStore, followers: int, seconds: float) -> None:
    """Print the figures, and what is wrong."""
    for what, found in sorted(heard.latencies_s.items()):
        ordered = sorted(found)
        quantiles = [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.95, 0.99)]
        median, high, higher = (1e3 * one for one in quantiles)
        print(
            f"{what:6} {len(found):6} requests, {len(found) / seconds:6.1f}/s: median {median:6.0f} ms, "
            f"95 % {high:6.0f} ms, 99 % {higher:6.0f} ms, longest {1e3 * ordered[-1]:6.0f} ms"
        )
    statuses = ", ".join(f"{what} {status}: {count}" for (what, status), count in sorted(heard.statuses.items()))
    print(f"answers: {statuses}")
    spreads = [max(times) - min(times) for times in heard.news.values() if len(times) == followers]
    if spreads:
        print(
            f"news: {len(heard.news)} versions, {sum(map(len, heard.news.values()))} events; from the first follower "
            f"to the last: median {1e3 * statistics.median(spreads):.0f} ms, longest {1e3 * max(spreads):.0f} ms"
        )
    newest = Counter(heard.last.values()).most_common(1)[0][1]
    print(f"followers at the newest version at the end: {newest} of {followers}")
    runs = store.runs()
    stored = Counter(str(run.outcome.details["lease"]) for run in runs if "lease" in run.outcome.details)
    lost = heard.told.keys() - stored.keys()
    doubled = [lease for lease, count in stored.items() if count > 1]
    unasked = stored.keys() - heard.told.keys()
    print(f"runs told: {len(heard.told)}, stored: {len(runs)}, of {len({run.trial for run in runs})} trials")
    print(f"lost {len(lost)}, doubled {len(doubled)}, stored and not told {len(unasked)}")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--followers", type=int, default=200)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--storage", choices=("postgresql", "sqlite"), default="postgresql")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="autotune-serving-")))
        storage = str(folder / "autotune.db")
        if given.storage == "postgresql":
            server = stack.enter_context(postgres.server())
            server.execute("CREATE DATABASE serving")
            storage = server.url("serving")
        service = stack.enter_context(serving(folder, storage=storage))
        (folder / "catalogue" / f"{_STUDY}.toml").write_text(_WIDE)
        with Client(service.url) as client:
            client.start(_STUDY, trials=100_000)
        heard = asyncio.run(crowd(service.url, service.header, given.followers, given.clients, given.seconds))
        with Client(service.url) as client:
            client.stop(_STUDY)
        print(f"{given.followers} followers, {given.clients} programs, {given.seconds:g} s, {given.storage}")
        report(heard, StudyStore.read(storage_url(storage), _STUDY), given.followers, given.seconds)
    # Only of processes that have ended.
    mebibytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest process of the service: {mebibytes:.0f} MiB")


if __name__ == "__main__":
    main()
