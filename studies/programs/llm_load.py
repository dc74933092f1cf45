"""Send requests to an OpenAI-compatible server at a rate, and print throughput and latencies as JSON.

    python3 llm_load.py --url http://127.0.0.1:8080 --rate 10 --seconds 8 --ttft-ms 300 --tpot-ms 50

Requests arrive at random times (a Poisson process), however busy the server is. Prompts are random tokens, so that no
two begin alike. Answers are streamed, and each must have as many tokens as were asked for. Latencies begin when a
request was due: waiting in line counts. AUTOTUNE_SEED and the rate seed arrivals, lengths and tokens.

- TTFT, time to first token: until the first token.
- TPOT, time per output token: from the first to the last token, for each token after the first.
- Goodput: requests a second that keep both limits.
"""

# ruff: noqa: S311, T201  for programs of their own: they print, and draw numbers that are no secrets

import argparse
import asyncio
import json
import math
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

SHARE = 0.99
TICK_S = 0.02
PATIENCE_S = 10.0


class AnswerError(Exception):
    """A server refused a request, or its answer is not what was asked for."""


@dataclass
class Request:
    """A request, and what came back.

    Args:
        due_s: When it arrives, in seconds since the load began.
        prompt: Its tokens.
        asked: How many tokens the answer must have.
        events: What the server sent: the seconds since the load began, and the text of each event.
        error: Why it failed.
    """

    due_s: float
    prompt: list[int]
    asked: int
    events: list[tuple[float, bytes]] = field(default_factory=list)
    error: str = ""
    tokens_s: list[float] = field(default_factory=list)
    is_done: bool = False

    def read(self) -> None:
        """Read the events of the whole answer: when tokens came, and how many there are by the server's own count."""
        counted = 0
        for at_s, text in self.events:
            if text == b"[DONE]":
                continue
            event = json.loads(text)
            if "error" in event:
                raise AnswerError(json.dumps(event["error"]))
            if any(choice.get("text") for choice in event.get("choices", [])):
                self.tokens_s.append(at_s)
            counted = (event.get("usage") or {}).get("completion_tokens", counted)
        if counted != self.asked:
            msg = f"the answer has {counted} tokens, {self.asked} were asked for"
            raise AnswerError(msg)

    @property
    def ttft_s(self) -> float:
        """Time to first token."""
        return self.tokens_s[0] - self.due_s

    @property
    def tpot_s(self) -> float:
        """Time per output token after the first; a server may send several at once."""
        return (self.tokens_s[-1] - self.tokens_s[0]) / max(1, self.asked - 1)

    @property
    def whole_s(self) -> float:
        """Time until the last token."""
        return self.tokens_s[-1] - self.due_s


def draw_requests(given: argparse.Namespace, seed: int) -> list[Request]:
    """Return a load: exactly `rate * seconds` requests, whose times are independent and uniform (a Poisson process).

    Each rate has times and requests of its own: a search over rates then averages over several, and is not that of the
    one burst that all of its loads had.
    """
    drawn = random.Random(f"{seed} {given.rate:.6g}")
    due = sorted(drawn.uniform(0.0, given.seconds) for _ in range(max(1, round(given.rate * given.seconds))))
    first, last = given.tokens
    return [
        Request(
            at_s,
            [drawn.randrange(first, last) for _ in range(drawn.randint(*given.prompt))],
            drawn.randint(*given.answer),
        )
        for at_s in due
    ]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that a share of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


async def read_events(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the data of each event of a streamed answer (server-sent events, mostly in HTTP's chunked encoding)."""
    status = (await reader.readline()).decode(errors="replace").strip()
    headers = b""
    while (line := await reader.readline()).strip():
        headers += line.lower()
    if " 200 " not in f"{status} ":
        msg = f"{status}: {(await reader.read(500)).decode(errors='replace')}"
        raise AnswerError(msg)
    is_chunked, rest = b"chunked" in headers, b""
    while True:
        size = int((await reader.readline()).split(b";")[0] or b"0", 16) if is_chunked else 65536
        part = await (reader.readexactly(size) if is_chunked else reader.read(size))
        if not part:
            return
        if is_chunked:
            await reader.readline()
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()


async def send(request: Request, address: tuple[str, int], body: dict[str, Any], begun: float) -> None:
    """Send a request and store the events of its answer; an error is stored, too."""
    try:
        reader, writer = await asyncio.open_connection(*address)
        try:
            text = json.dumps({**body, "prompt": request.prompt, "max_tokens": request.asked}).encode()
            head = f"POST /v1/completions HTTP/1.1\r\nHost: {address[0]}\r\nConnection: close\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
            writer.write(head.encode() + text)
            async for event in read_events(reader):
                request.events.append((time.monotonic() - begun, event))
            request.is_done = True
        finally:
            writer.close()
    except (OSError, AnswerError, asyncio.IncompleteReadError, ValueError) as error:
        request.error = f"{type(error).__name__}: {error}"


def is_too_late(requests: Sequence[Request], now_s: float, limit_s: float) -> bool:
    """Return whether so many first tokens are late that their 99th percentile breaks a limit, whatever else comes."""
    late = sum(
        (request.events[0][0] if request.events else now_s) - request.due_s > limit_s
        for request in requests
        if request.due_s < now_s
    )
    return late > len(requests) - math.ceil(SHARE * len(requests))


async def run_load(requests: Sequence[Request], given: argparse.Namespace) -> float:
    """Send all requests when they are due; return the seconds until the last was answered.

    Requests that are unanswered some time after the last one came are dropped.
    """
    url = urlsplit(given.url)
    address = (url.hostname or "127.0.0.1", url.port or 80)
    # Servers ignore what they do not know; vLLM, SGLang and llama.cpp know ignore_eos.
    body = {"stream": True, "temperature": 0, "ignore_eos": True, "stream_options": {"include_usage": True}}
    if given.model:
        body["model"] = given.model
    begun = time.monotonic()
    tasks: list[asyncio.Task[None]] = []
    while len(tasks) < len(requests) or not all(task.done() for task in tasks):
        now_s = time.monotonic() - begun
        while len(tasks) < len(requests) and requests[len(tasks)].due_s <= now_s:
            tasks.append(asyncio.create_task(send(requests[len(tasks)], address, body, begun)))
        is_lost = given.give_up and is_too_late(requests, now_s, given.ttft_ms / 1e3)
        if (
            is_lost
            or now_s > given.seconds + max(given.seconds, PATIENCE_S)
            or any(request.error for request in requests)
        ):
            break
        next_s = requests[len(tasks)].due_s if len(tasks) < len(requests) else math.inf
        await asyncio.sleep(min(TICK_S, max(0.0, next_s - now_s)))
    took_s = time.monotonic() - begun
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return took_s


def figures(requests: Sequence[Request], took_s: float, given: argparse.Namespace) -> dict[str, float]:
    """Return what a load measured; an unanswered request has waited at least until the end, one not yet due for 0 s."""
    answered = [request for request in requests if request.is_done]
    # The last answer may come before the time of the load is over.
    spent_s = max(took_s, given.seconds) if len(answered) == len(requests) else took_s
    tokens = sum(request.asked for request in answered)
    good = [one for one in answered if one.ttft_s <= given.ttft_ms / 1e3 and one.tpot_s <= given.tpot_ms / 1e3]
    waited = [max(0.0, took_s - request.due_s) for request in requests if not request.is_done]
    times = {
        "ttft": [first_event_s(request, took_s) for request in requests],
        "tpot": [request.tpot_s for request in answered] + waited,
        "whole": [request.whole_s for request in answered] + waited,
    }
    found = {
        "requests": len(requests),
        "answered": len(answered),
        "seconds": spent_s,
        "requests_per_s": len(answered) / spent_s,
        "output_tokens": tokens,
        "output_tokens_per_s": tokens / spent_s,
        "goodput_per_s": len(good) / spent_s,
        "prompt_tokens": sum(len(request.prompt) for request in answered),
    }
    for name, values in times.items():
        found |= {f"{name}_p50_ms": 1e3 * percentile(values, 0.5), f"{name}_p99_ms": 1e3 * percentile(values, SHARE)}
    return {name: round(value, 3) for name, value in found.items()}


def first_event_s(request: Request, took_s: float) -> float:
    """Return the time to first token, also of an answer that was not waited for."""
    if request.is_done:
        return request.ttft_s
    return max(0.0, (request.events[0][0] if request.events else took_s) - request.due_s)


def a_range(text: str) -> tuple[int, int]:
    """Return the two ends of `low:high`; one number stands for both."""
    low, _, high = text.partition(":")
    return int(low), int(high or low)


def main() -> None:
    """Send a load and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="of the server: http://HOST:PORT")
    parser.add_argument("--model", help="the model's name, if the server wants it")
    parser.add_argument("--rate", type=float, required=True, help="requests a second")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long requests arrive")
    parser.add_argument("--prompt", type=a_range, default=(32, 128), help="tokens of a prompt, LOW:HIGH")
    parser.add_argument("--answer", type=a_range, default=(8, 32), help="tokens of an answer, LOW:HIGH")
    parser.add_argument("--tokens", type=a_range, default=(259, 8192), help="the tokens of prompts, FIRST:END")
    parser.add_argument("--ttft-ms", type=float, default=math.inf, help="limit of the time to first token")
    parser.add_argument("--tpot-ms", type=float, default=math.inf, help="limit of the time per output token")
    parser.add_argument("--give-up", action="store_true", help="end as soon as more than 1 %% break --ttft-ms")
    given = parser.parse_args()
    requests = draw_requests(given, int(os.environ.get("AUTOTUNE_SEED", "0")))
    took_s = asyncio.run(run_load(requests, given))
    for request in requests:
        if request.is_done:
            try:
                request.read()
            except (AnswerError, ValueError) as error:
                request.error = str(error)
    if errors := [request.error for request in requests if request.error]:
        sys.exit(f"error: {len(errors)} of {len(requests)} requests failed: {errors[0]}")
    print(json.dumps(figures(requests, took_s, given)))


if __name__ == "__main__":
    main()
