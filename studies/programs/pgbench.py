"""Runs pgbench against a PostgreSQL server that exists for this run only: see the study `pgbench`.

    python3 pgbench.py --scale 5 --clients 4 --seconds 5 -- shared_buffers=256MB wal_compression=on

The database is made in a private folder below TMPDIR (or /tmp), which is removed at the end; the server listens on a
socket in that folder, and on no network. Root may not run a server, so for root it runs as user postgres, who must be
able to enter that folder. After the run the balances are checked against the history. Prints pgbench's output, and
`consistent`.
"""

# ruff: noqa: T201  a program of its own: it prints

import argparse
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

PREFIX = "autotune-pgbench-"
OWNER = "postgres"
PATIENCE_S = 30.0
BALANCES = (
    "SELECT sum(abalance) FROM pgbench_accounts",
    "SELECT sum(bbalance) FROM pgbench_branches",
    "SELECT sum(tbalance) FROM pgbench_tellers",
    "SELECT coalesce(sum(delta), 0) FROM pgbench_history",
)


class Server:
    """A server with all its files in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self._as_owner: dict[str, Any] = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam(OWNER)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            self._as_owner = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [owner.pw_gid]}

    def make(self) -> None:
        """Make the files of an empty database."""
        options = ["--username=autotune", "--auth=trust", "--locale=C", "--encoding=UTF8", "--no-sync"]
        self.call("initdb", "-D", str(self.folder / "data"), *options)

    def start(self, settings: list[str]) -> None:
        """Start the server with settings, and wait until it answers."""
        own = ["listen_addresses=", f"unix_socket_directories={self.folder}"]
        options = [word for one in (*settings, *own) for word in ("-c", one)]
        command = [program("postgres"), "-D", str(self.folder / "data"), *options]
        log = self.folder / "log"
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file, cwd=self.folder, **self._as_owner)
        give_up_at = time.monotonic() + PATIENCE_S
        ask = [program("psql"), *self.connection_options, "-c", "SELECT 1"]
        while self.process.poll() is None and time.monotonic() < give_up_at:
            if subprocess.run(ask, capture_output=True, check=False, cwd=self.folder, **self._as_owner).returncode == 0:
                return
            time.sleep(0.02)
        fail(f"the server does not start: {log.read_text(errors='replace').strip()[-400:]}")

    def call(self, name: str, *words: str) -> str:
        """Run one of PostgreSQL's programs; return what it prints."""
        command = [program(name), *words]
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, **self._as_owner)
        if run.returncode != 0:
            fail(f"{name}: {(run.stderr or run.stdout).strip()[-400:]}")
        return run.stdout

    def ask(self, statement: str) -> str:
        """Return the one value that a statement gives."""
        return self.call("psql", *self.connection_options, "--tuples-only", "--no-align", "-c", statement).strip()

    @property
    def connection_options(self) -> list[str]:
        """The options with which clients connect."""
        return ["-h", str(self.folder), "-U", "autotune", "-d", "postgres"]

    def stop(self) -> None:
        """Stop the server at once; its data are not needed any more."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()


def program(name: str) -> str:
    """Return the path of one of PostgreSQL's programs; Debian has most of them outside PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    found = str(installed[-1]) if installed else shutil.which(name)
    if found is None:
        fail(f"there is no {name} here: module load postgresql   (or: apt-get install postgresql)")
    return found


def fail(message: str) -> NoReturn:
    """End with an error."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)


def remove_killed_runs() -> None:
    """Remove the folders of this user's killed runs; a running one holds a lock on a file of its folder."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder / "lock", os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue  # another user's
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


def measure(server: Server, asked: argparse.Namespace) -> None:
    """Fill the database, run pgbench, and check the balances."""
    server.make()
    server.start(asked.settings)
    server.call("pgbench", "-i", "-q", "-s", str(asked.scale), *server.connection_options[:4], "postgres")
    server.ask("CHECKPOINT")
    clients = ["-c", str(asked.clients), "-j", str(min(asked.clients, os.cpu_count() or 1))]
    limits = ["-T", str(asked.seconds), "--random-seed=1"]
    print(server.call("pgbench", *clients, *limits, *server.connection_options[:4], "postgres"), flush=True)
    sums = [server.ask(statement) for statement in BALANCES]
    if len(set(sums)) != 1:
        fail(f"accounts, branches, tellers and history disagree: {', '.join(sums)}")
    print("consistent", flush=True)


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=int, default=5)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("settings", nargs="*")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    remove_killed_runs()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    server = Server(folder)
    try:
        measure(server, asked)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
