"""Run hundreds of kills, each at a random instant of a session, which the same command then completes.

`start` runs this module as a program, which becomes the parent of every orphan.
"""

import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from launchers.process_tree import descendants
from tests.support import postgres
from tests.support.faults import forks, server_database, twin
from tests.support.faults.library import Fault
from tests.support.faults.sessions import know_revisions
from tests.support.faults.twin import Twin
from tests.support.kills import roles, sessions
from tests.support.kills.sessions import Session
from tests.support.kills.slurm import Slurm, serving
from tests.support.kills.supervised import Supervised

ROOT = Path(__file__).resolve().parents[3]
SESSIONS: tuple[type[Session], ...] = (
    sessions.Local,
    sessions.Ranks,
    sessions.Serving,
    sessions.Batch,
    sessions.OnServer,
    Supervised,
    Slurm,
)

_KILL = Fault("kill -9", "crash")
_IMPORTED = ("autotune.cli.app", "autotune.tuning.session", "rich.table")
_LEAVE_S = 120.0
_PATIENCE_S = 900.0
_STARTS = 12


@dataclass(frozen=True)
class Request:
    """Which targets to kill, such as `local coordinator` or `ranks start command+supervisor`, and when to stop."""

    targets: Sequence[str]
    events: int | None = None
    seconds: float | None = None
    seed: int = 0


@dataclass
class Report:
    """The harm, by kind, that `events` kills did to a study."""

    target: str
    events: int = 0
    harm: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, found: Sequence[str]) -> None:
        """Record harm."""
        if found:
            self.harm.setdefault(kind, []).extend(found)


def targets() -> list[str]:
    """Return every role and every pair of roles as targets."""
    pairs = [
        f"{session.name} {'+'.join(together)}"
        for session in SESSIONS
        if session.why_not() is None
        for number, first in enumerate(session.roles)
        for together in [(first,), *((first, second) for second in session.roles[number + 1 :])]
        if len({role.partition(",")[0] for role in together}) == len(together)
    ]
    return sorted(pairs, key=lambda target: "+" in target)


def start(request: Request, folder: Path) -> Iterator[Report]:
    """Run events in a new process, in a folder with a short path; yield a report of each study."""
    environment = os.environ | {
        # Recorded times do not depend on the load of this machine, which could end an undisturbed session.
        "AUTOTUNE_NOISE": "accept",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CONFIG_HOME": str(folder),
        "TMPDIR": str(folder),
        "AUTOTUNE_USER_FOLDER": str(folder / "l"),
    }
    words = [sys.executable, "-m", __name__, json.dumps(asdict(request)), str(folder)]
    with ExitStack() as stack:
        if any(target.startswith(Slurm.name) for target in request.targets):
            environment |= stack.enter_context(serving())
        if any(target.startswith(sessions.OnServer.name) for target in request.targets):
            server = stack.enter_context(postgres.server(keeps=True))
            assert server.process is not None
            environment[server_database.SERVER] = server.url("")[:-1]
            environment[roles.SERVER_PROCESS] = str(server.process.pid)
        process = stack.enter_context(
            subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                yield Report(**json.loads(line))
        finally:
            process.terminate()
        assert process.wait() in {0, -signal.SIGTERM}


class Campaign:
    """Fork a process that has imported everything for each session, and adopt the orphans."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder = folder
        self._rng = rng
        self._token = f"autotune-kill-{os.getpid()}"
        self._twins: dict[str, tuple[Twin, float]] = {}

    def twin(self, kind: type[Session]) -> tuple[Twin, float]:
        """Return the result of an undisturbed session, and how many seconds it takes."""
        if kind.name not in self._twins:
            # The first session imports what later ones need.
            self._alone(kind)
            self._twins[kind.name] = self._alone(kind)
        return self._twins[kind.name]

    def _alone(self, kind: type[Session]) -> tuple[Twin, float]:
        """Run an undisturbed session; on a busy machine this may need several attempts."""
        for _ in range(_STARTS):
            session, place = self._fresh(kind)
            modules, log, began_s = place.parent / "modules", place.parent / "log", time.monotonic()
            code = forks.forked(place, log, partial(_noting, session.run, modules), _PATIENCE_S)
            took_s = time.monotonic() - began_s
            whole = Twin.of(place, self._state(session, place))
            session.clear()
            forks.orphans()
            if code == 0:
                forks.import_all(modules.read_text())
                return whole, took_s
        raise RuntimeError(log.read_text())

    def study(self, target: str, most: int) -> Report:
        """Kill the target again and again, until the study is complete."""
        name, _, together = target.partition(" ")
        kind = next(session for session in SESSIONS if session.name == name)
        whole, took_s = self.twin(kind)
        session, place = self._fresh(kind)
        report, between, log = Report(target), {}, place.parent / "log"
        try:
            for number in range(_STARTS):
                left = min(most - report.events, kind.kills) if number < _STARTS - 1 else 0
                began_s = time.monotonic()
                code, kills = self._session(session, place, together.split("+"), took_s, left)
                if not kills:
                    # The machine has become less busy: later kills would come after the end.
                    took_s = min(took_s, time.monotonic() - began_s)
                    self._twins[name] = whole, took_s
                report.events += kills
                report.add("left", [*session.left(), *self._processes()])
                found = self._state(session, place)
                report.add("lost", twin.lost(place, between, found))
                if code in {None, forks.BROKEN}:
                    report.add("unsaid", [f"{'hangs' if code is None else 'a traceback'}: {_last_line(log)}"])
                if code == 0:
                    break
                between = found
            harm = twin.harm(place, _KILL, code, between, found, whole)
            for what, said in harm.all.items():
                report.add(what, said)
            report.add("left", [f"{path}" for path in self._leftovers()])
        finally:
            session.clear()
        if report.harm:
            print(f"--- {target}\n{log.read_text(errors='replace')[-6000:]}", file=sys.stderr, flush=True)
            shutil.rmtree(self._folder / "harmed", ignore_errors=True)
            # A killed mpirun leaves named pipes, which cannot be copied.
            with suppress(shutil.Error):
                shutil.copytree(place.parent, self._folder / "harmed", symlinks=True, ignore_dangling_symlinks=True)
        return report

    def _session(
        self, session: Session, place: Path, together: list[str], took_s: float, most: int
    ) -> tuple[int | None, int]:
        """Run a session and kill these roles, only once if that ends it; return its exit code and the kills."""
        pid = forks.begun(place, place.parent / "log", session.run)
        once = "coordinator" in together
        kills = 0
        while kills < (min(most, 1) if once else most):
            strike_at = time.monotonic() + self._rng.uniform(0.0, took_s * (1.0 if once else 0.8 / session.kills))
            while time.monotonic() < strike_at and not _has_ended(pid):
                time.sleep(0.02)
            find = lambda role: roles.victim(role, pid)  # noqa: E731
            struck = roles.strike(together, find, lambda: _has_ended(pid))
            if not struck:
                break
            kills += 1
        return forks.ended(pid, _PATIENCE_S), kills

    def _fresh(self, kind: type[Session]) -> tuple[Session, Path]:
        place, session = self._folder / "c" / "here", kind()
        shutil.rmtree(place.parent, ignore_errors=True)
        (place / "tmp").mkdir(parents=True)
        session.prepare(place, self._token)
        return session, place

    def _state(self, session: Session, place: Path) -> dict[str, Any]:
        target = place.parent / "state"

        def looking() -> int:
            session.settle()
            target.write_text(json.dumps(twin.state(session.url())))
            return 0

        log = place.parent / "looked"
        assert forks.forked(place, log, looking) == 0, log.read_text()
        return dict(json.loads(target.read_text()))

    def _processes(self) -> list[str]:
        """Return the processes that a session has left after a generous wait, and end them."""
        give_up_at = time.monotonic() + _LEAVE_S
        while (left := _living()) and time.monotonic() < give_up_at:
            time.sleep(0.05)
        said = [_said(pid) for pid in left]
        forks.orphans()
        return said

    def _leftovers(self) -> Iterator[Path]:
        """Yield remaining segments of shared memory, and remove them."""
        for path in Path("/dev/shm").glob(f"{self._token}-*"):
            yield path
            path.unlink()


def _noting(run: Callable[[], int], modules: Path) -> int:
    code = run()
    modules.write_text(forks.imported())
    return code


def _living() -> list[int]:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return descendants(os.getpid())


def _said(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:150]
    return f"process {pid}"


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _last_line(log: Path) -> str:
    return "".join(log.read_text(errors="replace").strip().splitlines()[-1:])


def main() -> None:
    """Run the requested events, a study of each target in turn."""
    request, folder = Request(**json.loads(sys.argv[1])), Path(sys.argv[2])
    (folder / "l").mkdir(mode=0o700, exist_ok=True)
    for name in _IMPORTED:
        importlib.import_module(name)
    know_revisions()
    forks.adopt_orphans()
    campaign = Campaign(folder, random.Random(request.seed))
    began_s, events = time.monotonic(), 0
    while True:
        for target in request.targets:
            left = sys.maxsize if request.events is None else request.events - events
            report = campaign.study(target, left)
            events += report.events
            print(json.dumps(asdict(report)), flush=True)
            over = request.seconds is not None and time.monotonic() - began_s >= request.seconds
            if over or (request.events is not None and events >= request.events):
                return


if __name__ == "__main__":
    main()
