"""Runs two processes of ucx_perftest, prints their figures as JSON, and leaves neither running.

For each message size it starts a server, and a client that measures. Prints one JSON line per iteration (all sizes
once) and one at the end.
"""

import argparse
import json
import math
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

_VOLUME_BYTES = 2**31  # of one measurement; for small messages their number is the limit
_MESSAGES = (100, 20_000)
_ROUND_TRIPS = 2_000  # of a latency measurement, in which each message waits for the one before
_START_S = 10.0  # a server that does not listen by then has failed to start
_PAUSE_S = 0.02
_REFUSED = "Connection refused"
_TAKEN = "Address already in use"
_PORTS_TRIED = 3
_OF_UCX = re.compile(r" UCX |\] +\|").search  # its warnings and tables of protocols


class PairError(Exception):
    """The two processes gave no measurement; the message is their output."""


def messages(test: str, size_bytes: int) -> int:
    """Return the number of messages of a size, for some tenths of a second."""
    low, high = _MESSAGES
    return min(high if test.endswith("_bw") else _ROUND_TRIPS, max(low, _VOLUME_BYTES // size_bytes))


def parse(text: str) -> dict[str, float]:
    """Read the last line of `ucx_perftest -f -v` by the column names above it.

    Raises:
        PairError: there are no figures.
    """
    lines = [line.split(",") for line in text.splitlines() if "," in line and " " not in line.strip()]
    names = next((line for line in lines if line[0] == "iterations"), None)
    if names is None or lines[-1] is names or len(lines[-1]) != len(names):
        raise PairError(f"ucx_perftest printed no figures: {text.strip()[-400:] or 'nothing at all'}")
    try:
        return {name: float(value) for name, value in zip(names, lines[-1], strict=True)}
    except ValueError:
        raise PairError(f"ucx_perftest printed no numbers: {','.join(lines[-1])}") from None


def figure(test: str, size_bytes: int, columns: Mapping[str, float]) -> float:
    """Return the bandwidth in bytes a second, or the latency in seconds.

    The bandwidth is computed from the message rate: ucx_perftest prints bandwidth in units of 2**20 bytes with two
    decimals, too few for small messages. The latency is the median, since interruptions dominate the mean.
    """
    value = columns["overall_mr"] * size_bytes if test.endswith("_bw") else columns["50.0_percentile_lat"] * 1e-6
    if not 0 < value < math.inf:
        raise PairError(f"ucx_perftest measured {value:g} with messages of {size_bytes} bytes: nothing to compare")
    return value


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("", 0))
        port: int = found.getsockname()[1]
        return port


def content_of(file: IO[str]) -> str:
    """Return the content of an open file so far."""
    file.seek(0)
    return file.read()


def run_client(argv: Sequence[str], server: "subprocess.Popen[str]", patience_s: float) -> tuple[int, str]:
    """Run the client, again until the server listens; return its exit code and output.

    Raises:
        PairError: the client did not end.
    """
    give_up_at = time.monotonic() + _START_S
    while True:
        try:
            client = subprocess.run(
                argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patience_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise PairError(f"gave up: the client did not end within {patience_s:g} s") from None
        if _REFUSED not in client.stdout or server.poll() is not None or time.monotonic() > give_up_at:
            return client.returncode, client.stdout
        time.sleep(_PAUSE_S)


def on_host(server: Sequence[str], argv: Sequence[str], patience_s: float) -> list[str]:
    """Return the command that runs the server, on another host if `server` names how to start it there.

    ssh neither passes on our variables nor ends the remote command with itself, so both are part of the command:
    the server ends after `patience_s`.
    """
    if not server:
        return list(argv)
    variables = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("UCX_")]
    return [*server, "env", *variables, "timeout", "--kill-after=5", f"{patience_s:g}", *argv]


def measure(given: argparse.Namespace, size_bytes: int) -> float:
    """Start a server and a client, and return the client's figure.

    Raises:
        PairError: they gave no figure.
    """
    program, test, patience_s = given.program, given.test, given.patience_s
    name = {"am_bw": "ucp_am_bw", "am_lat": "ucp_am_lat"}.get(test, test)  # am_bw is a test of another layer
    for attempt in range(_PORTS_TRIED):
        common = [program, "-p", str(free_port())]
        task = ["-t", name, "-s", str(size_bytes), "-n", str(messages(test, size_bytes)), "-f", "-v"]
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log,
            subprocess.Popen(
                on_host(given.server, common, patience_s), stdout=log, stderr=subprocess.STDOUT, text=True
            ) as server,
        ):
            try:
                code, text = run_client([*common, given.address, *task], server, patience_s)
                if code == 0:
                    server.wait(_START_S)
            except subprocess.TimeoutExpired:
                raise PairError("gave up: the server did not end with the client") from None
            finally:
                server.kill()
            server.wait()
            server_text = content_of(log)
        if _TAKEN in server_text and attempt + 1 < _PORTS_TRIED:
            continue
        break
    sys.stderr.write("".join(f"{line}\n" for line in (server_text + text).splitlines() if _OF_UCX(line)))
    if code != 0 or server.returncode not in (0, -9):
        raise PairError(f"exit code {code} of the client, {server.returncode} of the server: {text.strip()[-400:]}")
    return figure(test, size_bytes, parse(text))


def main() -> None:
    """Measure all sizes, again and again.

    Raises:
        SystemExit: there was no measurement.
    """
    parser = argparse.ArgumentParser(description="ucx_perftest between two processes")
    parser.add_argument("--program", default="ucx_perftest")
    parser.add_argument("--test", default="tag_bw")
    parser.add_argument("--sizes", default="65536", help="bytes, with commas between them")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=0)
    parser.add_argument("--patience-s", type=float, default=300.0, help="how long one measurement may take")
    parser.add_argument("--server", type=json.loads, default=[], help="a list: what runs a command on another host")
    parser.add_argument("--address", default="127.0.0.1", help="of the host of the server")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    by_size: dict[int, list[float]] = {size: [] for size in sizes}
    try:
        for number in range(1 - given.warm_up, given.iterations + 1):
            figures = {size: measure(given, size) for size in sizes}
            if number > 0:
                for size, value in figures.items():
                    by_size[size].append(value)
                print(json.dumps({"step": number, "value": statistics.geometric_mean(figures.values())}), flush=True)
    except (PairError, OSError) as error:
        raise SystemExit(str(error)) from None
    medians = {size: statistics.median(values) for size, values in by_size.items()}
    result = {"value": statistics.geometric_mean(medians.values()), "medians": medians, "iterations": by_size}
    print(json.dumps({"result": result}), flush=True)


if __name__ == "__main__":
    main()
