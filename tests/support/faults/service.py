"""The service, and a program of another host that asks it for configurations and tells what came of them."""

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
# So often in a row the client is refused before it goes home, or for so long; the service has so long to begin.
_PATIENCE = 40
_PATIENCE_S = 180.0
_BEGINS_S = 240.0
# A run whose answer was lost is given out again after that.
_LEASE_S = 10.0
_PAUSE_S = 0.05
_GONE = 410


class Service(Session):
    """`autotune serve`, and a client that begins a study of its catalogue and makes its runs.

    The client is another process, whose calls do not fail; what it was given it keeps in a file of its own. When
    nothing more is to be done, or the service no longer answers, it ends the service as a person would.
    """

    name = "service"

    def prepare(self, folder: Path) -> None:
        """Make the catalogue."""
        (folder / _CATALOGUE).mkdir()
        (folder / _CATALOGUE / f"{NAME}.toml").write_text(STUDY)

    def run(self) -> int:
        """Serve until the client has ended the service."""
        with elsewhere(), socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        # A background process may have been started with this signal ignored.
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
        with elsewhere():
            os.kill(client, signal.SIGKILL)
            _, status = os.waitpid(client, 0)
        # Ended by a signal, as it ends every day.
        return ended if ended not in {0, 130} else abs(os.waitstatus_to_exitcode(status))


class _Visitor:
    """The client, of the service that is process `served`."""

    def __init__(self, address: str, served: int) -> None:
        from autotune.client import Client

        self._client = Client(address, timeout_s=60.0, patience_s=5.0)
        self._served = served
        self._refused = 0
        self._give_up_at = time.monotonic() + _BEGINS_S

    def work(self) -> int:
        """Ask and tell until there is nothing more; return 0 then, and 3 if the service does not answer any more."""
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
        # The service may have ended already, and is told by this process's own end how it went.
        return 0 if is_finished else 3

    def _next(self) -> bool:
        """Tell what was asked, and ask for more; return whether there is nothing more."""
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
