"""Peers run in their own environment: one child process per script, which serves one cell after another."""

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from benchmarks.search.recording import BudgetSpentError, Recording

PEERS = Path(__file__).parent / "peers"

_START_S = 120.0


class Child:
    """A peer's process, started at its first use, and again after it was killed."""

    def __init__(self, python: str, script: str) -> None:
        self._argv = [python, str(PEERS / script)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ready(self) -> bool:
        """Start the process if needed, and wait until it is ready, so that imports do not count as overhead."""
        if self._process is not None:
            return True
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            bufsize=0,
        )
        if self._receive(_START_S) is None:
            self.close()
        return self._process is not None

    def search(self, request: Mapping[str, Any], recording: Recording, limit_s: float) -> str:
        """Serve one search; return why it ended (see `Cell`)."""
        until_s = time.monotonic() + limit_s
        self._send(request)
        while True:
            message = self._receive(until_s - time.monotonic())
            if message is None:
                self.close()
                return "time" if time.monotonic() >= until_s else "error: the process ended"
            if "error" in message:
                # Ignore an error that a library raises because the budget is spent.
                return recording.over or f"error: {message['error']}"
            if "done" in message:
                return str(message["done"])
            try:
                self._send({"value": recording.evaluate(message["ask"])})
            except BudgetSpentError as reason:
                self._send({"stop": str(reason)})

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def _receive(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next message; None after `timeout_s`, or if the process has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = b""
        until_s = time.monotonic() + timeout_s
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, until_s - time.monotonic()))
            part = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not part:
                return None
            line += part
        message: dict[str, Any] = json.loads(line)
        return message
