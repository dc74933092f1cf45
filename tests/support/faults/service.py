"""The service, and a client on another host that asks for configurations and reports results."""

import atexit
import http.client
import os
import signal
import socket
import sys
import time
from pathlib import Path

from tests.support.faults.library import elsewhere
from tests.support.faults.sessions import NAME, Session, be_patient, command, note
from tests.support.quick_study import ONE_RUN, quick_sections

STUDY = """
objective = "external"

[options]
metrics = [{ name = "took_s", unit = "s", kind = "time" }]
""" + quick_sections(trials=3, high=40, repeats=ONE_RUN + "baseline_every = 0\n")
_CATALOGUE = "catalogue"
# The client gives up after this many refusals in a row, or after this time; the service has longer to start.
_PATIENCE = 40
_PATIENCE_S = 180.0
_BEGINS_S = 240.0
# After this time the service gives out a run again whose answer was lost.
_LEASE_S = 10.0
_PAUSE_S = 0.05
_GONE = 410


class Service(Session):
    """`autotune serve`, and a client that starts a study of its catalogue and makes the runs.

    The client is another process, whose calls do not fail. It keeps its current run in a file. When the study is
    finished, or the service no longer answers, it interrupts the service as a person would.
    """

    name = "service"

    def prepare(self, folder: Path) -> None:
        """Write the catalogue."""
        (folder / _CATALOGUE).mkdir()
        (folder / _CATALOGUE / f"{NAME}.toml").write_text(STUDY)

    def run(self) -> int:
        """Serve until the client has ended the service."""
        with elsewhere(), socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        # A shell starts background processes with this signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        served = os.getpid()
        client = os.fork()
        if client == 0:
            be_patient()
            code = 1
            try:
                code = _Visitor(f"http://127.0.0.1:{port}", served).work()
            finally:
                os._exit(code)
        ended = command("serve", f"--catalogue={_CATALOGUE}", f"--port={port}", "--json")
        # This process does not end with its service.
        from autotune.service.server import end_at_once

        atexit.unregister(end_at_once)
        with elsewhere():
            os.kill(client, signal.SIGKILL)
            _, status = os.waitpid(client, 0)
        # Interrupted, as a service usually is.
        return ended if ended not in {0, 130} else abs(os.waitstatus_to_exitcode(status))


class _Visitor:
    """The client of the service in process `served`."""

    def __init__(self, address: str, served: int) -> None:
        from autotune.client import Client

        self._client = Client(address, timeout_s=60.0, patience_s=5.0)
        self._served = served
        self._refused = 0
        self._give_up_at = time.monotonic() + _BEGINS_S

    def work(self) -> int:
        """Ask and tell until the study is finished; return 0, or 3 if the service stops answering."""
        from autotune.client import ServiceError

        is_finished, last = False, ""
        while not is_finished and self._refused < _PATIENCE and time.monotonic() < self._give_up_at:
            if os.getppid() != self._served:
                return 3
            try:
                is_finished = self._next()
            except (ServiceError, OSError, http.client.HTTPException) as error:
                self._refused += not isinstance(error, ConnectionRefusedError)
                last = f"{type(error).__name__}: {error}"
                time.sleep(_PAUSE_S)
        if not is_finished:
            print(f"the client: {last}", file=sys.stderr, flush=True)
        os.kill(self._served, signal.SIGINT)
        # The exit code of this process tells the parent how it went, even if the service has ended already.
        return 0 if is_finished else 3

    def _next(self) -> bool:
        """Report the last run and ask for the next; return whether the study is finished."""
        from autotune.client import ServiceError

        out = Path("out")
        lease, _, x = out.read_text().partition(" ") if out.exists() else ("", "", "")
        if not lease:
            self._client.start(NAME)
        try:
            if lease:
                self._client.tell(NAME, lease, value=3.0 + abs(int(x) - 20) / 10)
                note(f"told {lease}")
        except ServiceError as error:
            if error.status != _GONE:
                raise
        out.unlink(missing_ok=True)
        try:
            asked = self._client.ask(NAME, lease_s=_LEASE_S, wait_s=5.0)
        except ServiceError as error:
            if error.status == _GONE:
                return True
            raise
        self._refused, self._give_up_at = 0, time.monotonic() + _PATIENCE_S
        if asked is not None:
            out.write_text(f"{asked.lease} {asked.configuration['x']}")
        return False
