"""Run thousands of events: a session with one fault, then the same command again, and a check of the result.

`start` runs this module as a program, with the fault library preloaded.
"""

import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.support import postgres
from tests.support.faults import forks, library, server_database, sessions, twin
from tests.support.faults.library import FAULTS, Fault
from tests.support.faults.service import Service
from tests.support.faults.sessions import Session
from tests.support.faults.twin import Harm, Twin

SESSIONS: tuple[Session, ...] = (*sessions.SESSIONS, Service())
ROOT = Path(__file__).resolve().parents[3]
# The request that the library sends.
_RESTART = b"\0"
_IMPORTED = ("autotune.cli.app", "autotune.tuning.session", "autotune.asktell", "autotune.results.summary")


@dataclass(frozen=True)
class Event:
    """A fault at the N-th call of a session."""

    session: str
    fault: str
    at: int


@dataclass(frozen=True)
class Request:
    """Which sessions and faults to combine at random, and after how many events or seconds to stop."""

    sessions: Sequence[str] = tuple(session.name for session in SESSIONS if session.why_not() is None)
    faults: Sequence[str] = tuple(fault.name for fault in FAULTS)
    events: int | None = None
    seconds: float | None = None
    seed: int = 0
    at: int | None = None


def start(request: Request, folder: Path) -> Iterator[tuple[Event, dict[str, list[str]]]]:
    """Run events in a new process, in a folder; yield each event with the harm that it did."""
    environment = os.environ | {
        "LD_PRELOAD": str(library.built(folder)),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CONFIG_HOME": str(folder),
        "TMPDIR": str(folder),
    }
    words = [sys.executable, "-m", __name__, json.dumps(asdict(request)), str(folder)]
    restarts: tuple[int, ...] = ()
    with ExitStack() as stack:
        if any(session.has_server for session in SESSIONS if session.name in request.sessions):
            server = stack.enter_context(postgres.server(keeps=True))
            environment[server_database.SERVER] = server.url("")[:-1]
            restarts = stack.enter_context(_restarting(server))
            environment[library.RESTARTS] = " ".join(map(str, restarts))
        process = stack.enter_context(
            subprocess.Popen(
                words, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True, pass_fds=restarts
            )
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                event, harm = json.loads(line)
                yield Event(**event), harm
        finally:
            process.terminate()
        assert process.wait() in {0, -15}


@contextmanager
def _restarting(server: postgres.Server) -> Iterator[tuple[int, int]]:
    """Restart a server on request; provide the descriptors for requests and answers."""
    asked, ask_at = os.pipe()
    answer_at, answer = os.pipe()

    def serve() -> None:
        while os.read(asked, 1) == _RESTART:
            server.stop()
            server.start()
            os.write(answer, _RESTART)

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        yield ask_at, answer_at
    finally:
        os.write(ask_at, b"1")
        serving.join()
        for end in (asked, ask_at, answer_at, answer):
            os.close(end)


class Campaign:
    """Fork a process that has imported everything for each event."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._twins: dict[str, Twin] = {}
        self._counts: dict[str, dict[str, int]] = {}

    def learn(self, session: Session) -> None:
        """Run a session without faults, import what it imported, and count its calls by kind."""
        place = self._fresh(session)
        modules, counted = place.parent / "modules", place.parent / "counted"

        def alone() -> int:
            sessions.play_machine(place)
            library.count()
            code = session.run()
            library.disarm()
            counted.write_text(json.dumps(library.counts()))
            modules.write_text(forks.imported())
            return code

        code = forks.forked(place, place.parent / "log", alone)
        assert code == 0, (place.parent / "log").read_text()
        forks.import_all(modules.read_text())
        self._counts[session.name] = json.loads(counted.read_text())
        self._twins[session.name] = Twin.of(place, self._state(session, place))

    def count(self, session: Session, fault: Fault) -> int:
        """Return the number of calls in a session at which a fault can strike."""
        if fault.action == "ask" and not session.has_server:
            return 0
        return sum(self._counts[session.name][kind] for kind in fault.kinds)

    def strike(self, session: Session, fault: Fault, at: int) -> Harm:
        """Run one event."""
        place = self._fresh(session)
        log, again = place.parent / "log", place.parent / "again"
        code = forks.forked(place, log, lambda: self._run(session, place, fault, at))
        orphans = forks.orphans()
        states = place.parent / "states"

        def complete() -> int:
            # One fork for all three: a fork costs as much as each of them.
            between = twin.state(session.url(), ended=False)
            ended = self._run(session, place)
            states.write_text(json.dumps([between, twin.state(session.url())]))
            return ended

        completed = forks.forked(place, again, complete)
        between, after = json.loads(states.read_text()) if states.exists() else ({}, self._state(session, place))
        harm = twin.harm(place, fault, completed, between, after, self._twins[session.name])
        harm.left += ["a process"] * (orphans + forks.orphans())
        if not fault.kills and code in {None, forks.BROKEN}:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            harm.unsaid.append(f"{'hangs' if code is None else 'a traceback'}: {''.join(last)}")
        if harm.all:
            for path in (log, again):
                text = path.read_text(errors="replace") if path.exists() else ""
                print(f"--- {session.name}, {fault.name} at {at}: {path.name}\n{text}", file=sys.stderr, flush=True)
        return harm

    def _fresh(self, session: Session) -> Path:
        place, made = self._folder / "case" / "here", self._folder / f"made-{session.name}"
        shutil.rmtree(place.parent, ignore_errors=True)
        session.begin()
        if made.exists():
            shutil.copytree(made, place, symlinks=True)
            return place
        (place / "tmp").mkdir(parents=True)
        code = forks.forked(place, place.parent / "log", lambda: session.prepare(place) or 0)
        assert code == 0, (place.parent / "log").read_text()
        # The storage contains absolute paths, so every session needs this same place: copy it away and back.
        shutil.copytree(place, made, symlinks=True)
        return place

    def _run(self, session: Session, place: Path, fault: Fault | None = None, at: int = 0) -> int:
        sessions.play_machine(place)
        if fault is None:
            return session.run()
        library.arm(fault, at)
        try:
            return session.run()
        finally:
            library.disarm()

    def _state(self, session: Session, place: Path) -> dict[str, Any]:
        target = place.parent / "state"

        def looking() -> int:
            target.write_text(json.dumps(twin.state(session.url())))
            return 0

        log = place.parent / "looked"
        assert forks.forked(place, log, looking) == 0, log.read_text()
        return dict(json.loads(target.read_text()))


def _drawn(request: Request, campaign: Campaign) -> Iterator[tuple[Session, Fault, int]]:
    """Yield events, one of each session and fault in turn, in random order, and never a call twice."""
    chosen = [session for session in SESSIONS if session.name in request.sessions]
    faults = [fault for fault in FAULTS if fault.name in request.faults]
    for session in chosen:
        campaign.learn(session)
    rng = random.Random(request.seed)
    left: list[tuple[Session, Fault, list[int]]] = []
    for fault in faults:
        for session in chosen:
            calls = [request.at] if request.at is not None else list(range(1, campaign.count(session, fault) + 1))
            rng.shuffle(calls)
            left.append((session, fault, calls))
    # So that even a few events cover all kinds.
    rng.shuffle(left)
    while left := [entry for entry in left if entry[2]]:
        for session, fault, calls in left:
            yield session, fault, calls.pop()


def main() -> None:
    """Run the requested events."""
    asked, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    request = Request(**asked)
    began_s = forks.monotonic()
    sessions.be_quick()
    for name in _IMPORTED:
        importlib.import_module(name)
    sessions.know_before()
    forks.adopt_orphans()
    campaign = Campaign(folder)
    for number, (session, fault, at) in enumerate(_drawn(request, campaign), 1):
        harm = campaign.strike(session, fault, at)
        print(json.dumps([asdict(Event(session.name, fault.name, at)), harm.all]), flush=True)
        over = request.seconds is not None and forks.monotonic() - began_s >= request.seconds
        if over or number == request.events:
            return


if __name__ == "__main__":
    main()
