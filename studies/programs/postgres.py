"""Runs programs of PostgreSQL, with the database in the folder `data`: see the study `pgbench`.

    python3 postgres.py initdb --username=autotune
    python3 postgres.py postgres -c port=5433
    python3 postgres.py measure --port 5433 --clients 4 --seconds 5

Debian has most of these programs outside PATH. Root may not run the server, so for root all of them run as user
postgres. That user may be unable to enter the folders above `data`, so they find it by an open descriptor.

`measure` runs pgbench, then compares the balances with the history. It prints pgbench's output, and `consistent`.
"""

# ruff: noqa: T201  a program of its own: it prints

import argparse
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

OWNER = "postgres"
DATA = 9  # a descriptor
BALANCES = (
    "SELECT sum(abalance) FROM pgbench_accounts",
    "SELECT sum(bbalance) FROM pgbench_branches",
    "SELECT sum(tbalance) FROM pgbench_tellers",
    "SELECT coalesce(sum(delta), 0) FROM pgbench_history",
)


def open_data() -> None:
    """Make the folder and pass it on to the program, as the user who may run the server."""
    data = Path("data")
    data.mkdir(mode=0o700, exist_ok=True)
    owner = pwd.getpwnam(OWNER) if os.geteuid() == 0 else None
    if owner is not None:
        os.chown(data, owner.pw_uid, owner.pw_gid)
    os.set_inheritable(os.dup2(os.open(data, os.O_RDONLY), DATA), True)
    os.environ["PGDATA"] = f"/proc/self/fd/{DATA}"
    os.chdir("/")
    if owner is not None:
        os.setgroups([owner.pw_gid])
        os.setgid(owner.pw_gid)
        os.setuid(owner.pw_uid)


def program(name: str) -> str:
    """Return the path of one of PostgreSQL's programs."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    found = str(installed[-1]) if installed else shutil.which(name)
    if found is None:
        fail(f"there is no {name} here: module load postgresql   (or: apt-get install postgresql)")
    return found


def fail(message: str) -> NoReturn:
    """End with an error."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)


def call(name: str, *words: str) -> str:
    """Run one of PostgreSQL's programs; return what it prints."""
    run = subprocess.run([program(name), *words], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        fail(f"{name}: {(run.stderr or run.stdout).strip()[-400:]}")
    return run.stdout


def measure(words: list[str]) -> None:
    """Run pgbench, and check the balances."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", required=True)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=5)
    asked = parser.parse_args(words)
    server = ["-h", "127.0.0.1", "-p", asked.port, "-U", "autotune"]
    clients = ["-c", str(asked.clients), "-j", str(min(asked.clients, os.cpu_count() or 1))]
    seed = os.environ.get("AUTOTUNE_SEED", "1")
    print(call("pgbench", *server, *clients, "-T", str(asked.seconds), f"--random-seed={seed}", "postgres"), flush=True)
    ask = [*server, "-d", "postgres", "--tuples-only", "--no-align", "-c"]
    sums = [call("psql", *ask, statement).strip() for statement in BALANCES]
    if len(set(sums)) != 1:
        fail(f"accounts, branches, tellers and history disagree: {', '.join(sums)}")
    print("consistent", flush=True)


if __name__ == "__main__":
    open_data()
    if sys.argv[1] == "measure":
        measure(sys.argv[2:])
    else:
        path = program(sys.argv[1])
        os.execv(path, [path, *sys.argv[2:]])  # noqa: S606  that is what this is for
