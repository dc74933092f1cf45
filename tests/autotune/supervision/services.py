"""Fixtures of the tests of supervision: a service folder, fake studies, and waiting with a time limit."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from autotune.supervision import Order, StudySupervisor, SupervisorSettings, Task, shim, spawn

PATIENCE_S = 900.0
QUICK = SupervisorSettings(pause_s=0.01)
FAKE = Path(__file__).with_name("fakestudy.py")


def until(condition: Callable[[], object], said: Callable[[], object] = lambda: "") -> None:
    """Wait for something that is going to happen, however slow the machine is."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_at, said()
        time.sleep(0.02)


class Service:
    """A service folder with its catalogue, for tests that play its server themselves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "service"
        self.cwd = folder
        self.url = f"sqlite:///{folder / 'autotune.db'}"

    def open(self) -> StudySupervisor:
        """Return a new supervisor."""
        return StudySupervisor(self.folder, self.url, cwd=self.cwd, settings=QUICK)

    def order(self, name: str = "mine", does: str = "run", **more: object) -> Order:
        """Return an order for a study that does something."""
        self.tell(does, name)
        return Order(study="mine", file=self.file(name), name=name, **more)

    def file(self, name: str = "mine") -> Path:
        return self.cwd / f"{name}.toml"

    def tell(self, does: str, name: str = "mine") -> None:
        """Tell the study that is played what to do."""
        aside = self.cwd / f".{name}"
        aside.write_text(does)
        aside.replace(self.file(name))

    def note(self, what: str = shim.PROCESS, name: str = "mine") -> dict:
        """Return what a file of the study says; empty if it is not there."""
        with suppress(FileNotFoundError):
            return json.loads((self.folder / "studies" / name / what).read_text())
        return {}

    def pid(self, of: str = "child", name: str = "mine") -> int | None:
        """Return the pid of a study's process; None without a process."""
        known = self.note(name=name).get(of)
        return known["pid"] if shim.lives(known) else None

    def starts(self, name: str = "mine") -> list[str]:
        """Return the lines that started studies wrote first."""
        log = self.folder / "studies" / name / shim.LOG
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if line.startswith("study ")]

    def kill(self, of: str = "child", number: int = signal.SIGKILL) -> None:
        """Kill the warden of a study, or its child, and wait until it is gone."""
        pid = self.pid(of)
        os.kill(pid, number)
        until(lambda: self.pid(of) != pid)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Keep the process of a study from doing anything, so that what it is asked for is not done yet."""
        pid = self.pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def ticks_until(self, supervisor: StudySupervisor, *states: str, name: str = "mine") -> None:
        """Let time pass until a study is in one of these states."""

        def there() -> bool:
            supervisor.tick()
            return supervisor.state(name).state in states

        until(there, lambda: (supervisor.state(name), supervisor.log(name)))

    def ticks_while(self, supervisor: StudySupervisor, condition: Callable[[], object], name: str = "mine") -> None:
        """Let time pass as long as something holds."""

        def over() -> bool:
            supervisor.tick()
            return not condition()

        until(over, lambda: (supervisor.state(name), supervisor.log(name)))

    def clean(self) -> None:
        """Leave no process behind."""
        for path in (self.folder / "studies").glob("*/process.json"):
            with suppress(ValueError):
                known = json.loads(path.read_text())
                for one in (known.get("warden"), known.get("child")):
                    if shim.lives(one):
                        os.kill(one["pid"], signal.SIGKILL)
                until(lambda known=known: not any(shim.lives(known.get(one)) for one in ("warden", "child")))


@pytest.fixture
def real_service(tmp_path):
    """Provide a service folder for real studies."""
    service = Service(tmp_path)
    yield service
    service.clean()


@pytest.fixture
def service(real_service, monkeypatch):
    """Provide a service folder whose studies are played."""
    monkeypatch.setattr(spawn, "command", played)
    return real_service


def played(order: Order, status: Path) -> list[str]:
    """Return the command of a study that is played."""
    tunes = order.task is Task.TUNE
    words = starting_words(order, status) if tunes else [str(order.file), order.task.value, "--status", str(status)]
    return [sys.executable, str(FAKE), *words]


_command = spawn.command


def starting_words(order: Order, status: Path) -> list[str]:
    """Return the words of the real command that come after `study`."""
    words = _command(order, status)
    return words[words.index("study") + 1 :]


SERVER = """
import sys, time
from pathlib import Path
from autotune.supervision import Order, StudySupervisor, spawn
from tests.autotune.supervision.services import QUICK, played

folder, url, cwd, plays = sys.argv[1:]
if plays == "played":
    spawn.command = played
supervisor = StudySupervisor(Path(folder), url, cwd=Path(cwd), settings=QUICK)
for line in sys.stdin:
    verb, _, rest = line.strip().partition(" ")
    if verb == "submit":
        supervisor.submit(Order.model_validate_json(rest))
    else:
        getattr(supervisor, verb)(*filter(None, [rest]))
    print("done", flush=True)
"""


@contextmanager
def server(service: Service, plays: str = "played"):
    """Provide a supervisor in a process of its own, and a function that asks it; it is killed in the end."""
    root = os.fspath(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    words = [os.fspath(service.folder), service.url, os.fspath(service.cwd), plays]
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:

        def ask(verb: str, rest: str = "") -> None:
            process.stdin.write(f"{verb} {rest}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"

        try:
            yield process, ask
        finally:
            process.kill()
