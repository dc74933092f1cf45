"""The state of a stand-in scheduler, as files in a folder that all its commands share.

There is no daemon. A queued job is started by the process that finds room for it: the command that submits it, or the
end of another job. Each running job has a process of its own (`runner.py`).
"""

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]

Record = dict[str, Any]

# Until its runner waits for them.
HELD_BACK = (signal.SIGTERM, signal.SIGCHLD)


class State:
    """The jobs of a stand-in, and the switches in its folder that change how it behaves.

    Switches:
        slots: Its number of cores, shared by jobs.
        walltime_scale: By how much its wall times are shortened.
        history: Ended jobs are remembered.
        away: No command gets an answer.
        refuse: Why submissions are refused.
        limit: How many jobs may be queued or running at a time.
        resource limit: How many cores a job may have.
        held: No job is started.
        one core: All jobs are bound to the same core.
        owner: The jobs belong to somebody else, so no request to end one is accepted.
        waits: How queued jobs are shown.
        version: The version of the batch system, if the stand-in knows several.
        nodes: Slurm's answer about its nodes.
        federation: Slurm's answer about its federation.
        host names: Its hosts; a job gets the first host that it may have.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def switch(self, name: str) -> str | None:
        """Return the value of a switch; None if it is off."""
        try:
            return (self.folder / name).read_text()
        except FileNotFoundError:
            return None

    def connect(self) -> None:
        """Count a connection to the server."""
        with (self.folder / "connections").open("ab") as file:
            file.write(b".")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from changing the state. Must not be nested."""
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def read(self, number: str) -> Record | None:
        """Return a job."""
        for place in ("active", "ended"):
            try:
                return json.loads((self.folder / place / number).read_text())
            except (FileNotFoundError, NotADirectoryError):
                continue
        return None

    def write(self, job: Record) -> None:
        """Store a job that has not ended."""
        new = self.folder / "new"
        new.write_text(json.dumps(job))
        new.replace(self.folder / "active" / job["id"])

    def jobs(self) -> list[Record]:
        """Return all known jobs, the oldest first."""
        numbers = [path.name for place in ("active", "ended") for path in (self.folder / place).iterdir()]
        return [job for number in sorted(numbers, key=_age) if (job := self.read(number)) is not None]

    def active(self) -> list[Record]:
        """Return the jobs that have not ended, the oldest first."""
        numbers = sorted((path.name for path in (self.folder / "active").iterdir()), key=_age)
        return [job for number in numbers if (job := self.read(number)) is not None]

    def host_of(self, job: Record) -> str | None:
        """Return the first host that a job may have by its `only` and `never`; None without such a host."""
        hosts = (self.switch("host names") or "node1").split()
        only, never = job.get("only") or hosts, job.get("never") or ()
        return next((host for host in hosts if host in only and host not in never), None)

    def submit(self, job: Record, number: str = "{}", variable: str | None = None) -> str:
        """Queue a job, start it if there is room, and return its number.

        The job finds its number in a `variable` of its environment.
        """
        with self.locked():
            counter = self.folder / "counter"
            count = int(counter.read_text()) + 1 if counter.exists() else 1
            counter.write_text(str(count))
            job = job | {"id": number.format(count), "state": "queued", "runner": None, "asked": None}
            if variable is not None:
                job["environment"] = job["environment"] | {variable: job["id"]}
            script = self.folder / "scripts" / job["id"]
            script.write_text(job["script"])
            script.chmod(0o700)
            self.write(job)
        self.schedule()
        return job["id"]

    def schedule(self) -> None:
        """Start jobs while there is room for the first one in the queue."""
        with self.locked():
            jobs = self.active()
            free = int(self.switch("slots") or 1) - sum(job["cores"] for job in jobs if job["state"] == "running")
            living = {job["id"] for job in jobs}
            for job in (job for job in jobs if job["state"] == "queued" and job.get("after") not in living):
                if job["cores"] > free or self.switch("held") is not None:
                    break
                if (host := self.host_of(job)) is None:
                    continue
                free -= job["cores"]
                self.write(job | {"state": "running", "host": host, "runner": self._start(job["id"])})

    def ask(self, number: str, why: str) -> bool:
        """Ask a job to end, with a reason; return whether there was a job to end."""
        with self.locked():
            job = self.read(number)
            if job is None or job["state"] == "ended":
                return False
            if job["state"] == "queued":
                self._end(job, why, None)
                return True
            # The first reason counts.
            self.write(job | {"asked": job["asked"] or why})
            os.kill(job["runner"], signal.SIGTERM)
        return True

    def ended(self, number: str, how: str, code: int | None) -> None:
        """Record the end of a job that ran."""
        with self.locked():
            job = self.read(number)
            if job is not None:
                self._end(job, job["asked"] or how, code)
        self.schedule()

    def forget(self, number: str) -> None:
        """Forget a job, whether or not it runs."""
        with self.locked():
            for place in ("active", "ended"):
                (self.folder / place / number).unlink(missing_ok=True)

    def _end(self, job: Record, how: str, code: int | None) -> None:
        self.write(job | {"state": "ended", "how": how, "code": code})
        path = self.folder / "active" / job["id"]
        if self.switch("history") is None:
            path.unlink()
        else:
            path.replace(self.folder / "ended" / job["id"])

    def _start(self, number: str) -> int:
        program = Path(__file__).parent / "runner.py"
        argv = [sys.executable, "-IS", str(program), str(self.folder), number]
        files = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
        files.append((os.POSIX_SPAWN_OPEN, 2, str(self.folder / "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        pid = os.posix_spawn(
            sys.executable, argv, {"LANG": "C.UTF-8"}, file_actions=files, setsid=True, setsigmask=HELD_BACK
        )
        (self.folder / "runners" / str(pid)).touch()
        return pid


def _age(number: str) -> int:
    return int("".join(sign for sign in number.partition(".")[0] if sign.isdigit()))
