"""The sessions whose processes are killed, started as users start them, and a program with recorded times."""

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path

from launchers.detect import detect
from tests.launchers.fakes.cluster import FakeCluster
from tests.launchers.fakes.state import State
from tests.support import postgres, tiny_server
from tests.support.faults import server_database
from tests.support.faults.queue import called
from tests.support.faults.recorded import LAUNCHES
from tests.support.faults.sessions import DATABASE, NAME, command, note_acknowledged
from tests.support.quick_study import quick_sections

# When killed, it leaves a process in another session and a segment of shared memory, as real programs do.
_PROGRAM = """
import mmap, os, sys, time, zlib
x, log, token, nap_s = sys.argv[1:]
name = os.path.basename(os.getcwd())
file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(file, f"{name} {x}\\n".encode())
segment = f"/dev/shm/{token}-{os.getpid()}"
memory = os.open(segment, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
os.ftruncate(memory, 4096)
mapped = mmap.mmap(memory, 4096)
if os.fork() == 0:
    os.setsid()
    os.close(1)  # a start command would wait for whoever can still write
    os.close(2)
    time.sleep(600)
time.sleep(float(nap_s))
kind, *rest = name.split("-")
which = rest[0] if kind.isdigit() and rest else rest[-2] if len(rest) > 1 else ""
noise = zlib.crc32(f"{x} {'' if kind.isdigit() else kind} {which}".encode()) % 1000 / 10000
print("took", round(3 + abs(int(x) - 20) / 10 + noise, 4), flush=True)
os.unlink(segment)
"""
_STUDY = """
objective = "command"

[options]
argv = ["{python}", "-I", "-S", "{folder}/work.py", "{{x}}", "{folder}/{log}", "{token}", "{nap_s}"]
{more}
success = ["took"]
metrics = [{{ name = "took_s", unit = "s", pattern = 'took (\\S+)' }}]
"""


class Session(ABC):
    """A kind of session, and the roles that may be killed in it."""

    name: str
    roles: tuple[str, ...]
    # Runs are retried this often; another kill would make the run fail.
    kills = 2

    @classmethod
    def why_not(cls) -> str | None:
        """Return why this machine cannot run the session; None if it can."""
        return None

    @abstractmethod
    def prepare(self, folder: Path, token: str) -> None:
        """Write the files that the session needs; its segments of shared memory begin with `token`."""

    @abstractmethod
    def run(self) -> int:
        """Run the session in the current folder to its end; return its exit code."""

    def url(self) -> str:
        """Return the address of the storage; a file is in the current folder."""
        return f"sqlite:///{Path(DATABASE).absolute()}"

    def settle(self) -> None:  # noqa: B027  most need not
        """Wait until the storage answers."""

    def left(self) -> list[str]:
        """Return leftovers of the session that no other check finds."""
        return []

    def clear(self) -> None:  # noqa: B027  most have nothing
        """End what was started for the session but does not belong to it."""


class Local(Session):
    """`autotune study` on this machine, on one core that it does not reserve."""

    name = "local"
    roles = ("coordinator", "supervisor")
    more = ""

    def prepare(self, folder: Path, token: str) -> None:
        """Write the program and the study file."""
        write_study(folder, token, 0.05, self.more)

    def run(self) -> int:
        """Tune to the verdict."""
        on_one_core()
        note_acknowledged()
        return command("study", f"./{NAME}.toml", "--warm-start", "off")


class Ranks(Local):
    """The same with a program that an MPI start command starts."""

    name = "ranks"
    roles = ("start command", "supervisor", "coordinator")
    more = "ranks = 1"

    @classmethod
    def why_not(cls) -> str | None:
        """Return why this machine starts no ranks."""
        return None if detect() else "no MPI start command"


class Serving(Local):
    """The same with the program as the load of a server."""

    name = "server"
    roles = ("server", "load", "driver", "coordinator")

    def prepare(self, folder: Path, token: str) -> None:
        """Write the program, which runs a little longer, and the study file."""
        words = [sys.executable, "-I", "-S", str(Path(tiny_server.__file__)), "{port}"]
        write_study(folder, token, 0.2, f"server = {{ argv = {json.dumps(words)} }}")


class Batch(Session):
    """`autotune study` with a batch system, whose jobs outlive the session."""

    name = "batch"
    roles = ("coordinator", "supervisor")

    def __init__(self) -> None:
        self._cluster: FakeCluster | None = None

    def prepare(self, folder: Path, token: str) -> None:
        """Start a cluster of its own, and write the program and the study file."""
        self._cluster = FakeCluster("slurm")
        (folder / "queue").symlink_to(self._cluster.bin.parent)
        write_study(folder, token, 0.05)
        site = 'base = "slurm"\nqueue = "debug"\nwalltime = "5m"\npoll_s = 0.05\nworkers = 1\n'
        (folder / "site.toml").write_text(site)

    def run(self) -> int:
        """Tune to the verdict, a job a run."""
        from launchers.batch import launcher

        # Calling the commands in this process halves the time; jobs remain processes.
        state = State(Path("queue").absolute())
        launcher.run_command = lambda argv, folder=None, answer_file=None, *_, **__: called(
            state, argv, folder, answer_file
        )
        # A job whose supervisor was killed has no status. No network file system delays files here: wait three seconds.
        launcher.BatchLauncher.__init__.__defaults__ = (None, time.monotonic, 3.0, "")
        os.environ["PATH"] = os.pathsep.join([str(Path("queue", "bin").absolute()), os.environ["PATH"]])
        note_acknowledged()
        words = ("--warm-start", "off", "--launcher", "slurm", "--site", "./site.toml", "--storage", self.url())
        return command("study", f"./{NAME}.toml", *words)

    def clear(self) -> None:
        """End the cluster."""
        if self._cluster is not None:
            with self._cluster:
                self._cluster = None


class OnServer(Batch):
    """The same with the storage in PostgreSQL; if one of its parts is killed, it drops all connections and recovers."""

    name = "postgresql"
    roles = ("backend", "coordinator", "supervisor")

    @classmethod
    def why_not(cls) -> str | None:
        """Return why there can be no server here."""
        return postgres.missing()

    def url(self) -> str:
        """Return the address of the database."""
        return server_database.url()

    def prepare(self, folder: Path, token: str) -> None:
        """Create an empty database, too."""
        super().prepare(folder, token)
        server_database.make_empty()

    def settle(self) -> None:
        """Wait until the server has recovered."""
        server_database.wait()


def on_one_core() -> None:
    """Give this process the campaign's core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def write_study(folder: Path, token: str, nap_s: float, more: str = "") -> None:
    """Write a program that runs for `nap_s`, and its study file."""
    (folder / "work.py").write_text(_PROGRAM)
    words = {"python": sys.executable, "folder": folder, "log": LAUNCHES, "token": token, "nap_s": nap_s}
    (folder / f"{NAME}.toml").write_text(_STUDY.format(more=more, **words) + quick_sections(trials=2, high=40))
