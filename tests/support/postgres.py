"""A private PostgreSQL server, in a temporary folder and on a free port of 127.0.0.1, which ends with the test run.

The kernel signals the server when its parent dies, so it also ends with a killed test run. The next server then removes
the folder.
"""

import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

_PREFIX = "autotune-postgres-"
# The path of a socket must be short and open to user postgres; TMPDIR may be neither. Memory is much quicker.
_MEMORY, _DISK = Path("/dev/shm"), Path("/tmp")
USER = "autotune"
_OWNER = "postgres"  # root may not run a server
_AUTHENTICATION = ("--auth-local=trust", "--auth-host=scram-sha-256")
# Tests need no durability: no data here must survive a crash of the machine.
_SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=60", "shared_buffers=16MB")

_KEEPING = ("synchronous_commit=on", "full_page_writes=on")


def missing() -> str | None:
    """Return why this machine can run no server; None if it can."""
    if _binaries() is None or shutil.which("setpriv") is None:
        return "no PostgreSQL server, or no setpriv: apt-get install postgresql util-linux"
    return None if find_spec("psycopg") else "no driver: pip install 'psycopg[binary]'"


@dataclass
class Server:
    """A server with its files, and a socket that needs no password, in `folder`."""

    folder: Path
    password: str = field(default_factory=lambda: secrets.token_hex(8))
    # Whether acknowledged data survive a crash of the server (not of the machine).
    keeps: bool = False
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres", *, password: str | None = None, user: str = USER) -> str:
        """Return the address of a database."""
        return f"postgresql+psycopg://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Execute a statement outside of a transaction."""
        import psycopg  # noqa: PLC0415  not everywhere

        where = f"host={self.folder} port={self.port} user={USER} dbname={database}"
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute(statement.encode())

    def make(self) -> None:
        """Create the server's files."""
        password = self.folder / "password"
        password.write_text(self.password)
        if os.geteuid() == 0:
            for path in (self.folder, password):
                shutil.chown(path, _OWNER, _OWNER)
        options = ("-U", USER, f"--pwfile={password}", "--no-sync", "--locale=C", "--encoding=UTF8", *_AUTHENTICATION)
        command = [*_started("initdb"), "-D", str(self.folder / "data"), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def start(self) -> None:
        """Start the server, on the same port as before if it ran before."""
        for _ in range(3):
            self.port = self.port or _free_port()
            settings = (
                *_SETTINGS,
                *(_KEEPING if self.keeps else ()),
                "listen_addresses=127.0.0.1",
                f"port={self.port}",
            )
            options = [word for one in settings for word in ("-c", one)]
            command = [*_started("postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder), *options]
            with (self.folder / "log").open("ab") as log:
                self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
            while self.process.poll() is None:
                if self._answers():
                    return
                time.sleep(0.02)
            self.port = 0  # another process has taken it
        raise RuntimeError((self.folder / "log").read_text(errors="replace")[-2000:])

    def _answers(self) -> bool:
        import psycopg  # noqa: PLC0415  not everywhere

        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """Stop the server at once, as a crash would."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
            self.process = None


@contextmanager
def server(*, keeps: bool = False) -> Iterator[Server]:
    """Provide a new server until the context ends. Set `keeps` to stop and restart it without losing data."""
    for folder in (*_MEMORY.glob(f"{_PREFIX}*"), *_DISK.glob(f"{_PREFIX}*")):
        _remove_if_left(folder)
    in_memory = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 2**31
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_MEMORY if in_memory else _DISK))
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    made = Server(folder, keeps=keeps)
    try:
        made.make()
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_if_left(folder: Path) -> None:
    """Remove the folder of a server of this user whose test run was killed."""
    try:
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # another user's, or not yet locked
    with os.fdopen(lock), suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


def _started(program: str) -> list[str]:
    """Return the command that starts a program of the server, not as root, and ends it with this process."""
    owner = [f"--reuid={_OWNER}", f"--regid={_OWNER}", "--init-groups"] if os.geteuid() == 0 else []
    return ["setpriv", "--pdeathsig=QUIT", *owner, f"{_binaries()}/{program}"]


def _binaries() -> Path | None:
    found = shutil.which("postgres")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return Path(found).parent if found else installed[-1].parent if installed else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
