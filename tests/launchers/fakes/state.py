"""What a stand-in for a scheduler knows, as files in a folder, so that every command of it sees the same.

There is no daemon. A queued job is started by whoever finds room for it: the command that submits it, or the end of
another job. Each job that runs has a process of its own that runs it (`runner.py`).
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
    """The jobs of a stand-in, and its switches: files in its folder that change how it behaves.

    `slots` is its number of cores, `walltime_scale` by how much its wall times are shortened, `history` says that jobs
    are remembered when they have ended, `away` that no command gets an answer, `refuse` why submissions are refused,
    `limit` how many jobs may be queued or running at a time, `resource limit` how many cores a job may have, `held`
    that no job is started, `one core` that all jobs are bound to the same one, `waits` how queued jobs are shown.
    `version` is the batch system's, where the stand-in knows several; `nodes` and `federation` are what Slurm says of
    these. `host names` are those of its hosts, of which a job gets the first that it may have; jobs share the `slots`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def switch(self, name: str) -> str | None:
        """Return what a switch says; None if it is off."""
        try:
            return (self.folder / name).read_text()
        except FileNotFoundError:
            return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep everybody else from changing anything. Not to be nested."""
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def read(self, number: str) -> Record | None:
        """Return what is known of a job."""
        for place in ("active", "ended"):
            try:
                return json.loads((self.folder / place / number).read_text())
            except (FileNotFoundError, NotADirectoryError):
                continue
        return None

    def write(self, job: Record) -> None:
        """Store what is known of a job that has not ended."""
        new = self.folder / "new"
        new.write_text(json.dumps(job))
        new.replace(self.folder / "active" / job["id"])

    def jobs(self) -> list[Record]:
        """Return all jobs that are known, the oldest first."""
        numbers = [path.name for place in ("active", "ended") for path in (self.folder / place).iterdir()]
        return [job for number in sorted(numbers, key=_age) if (job := self.read(number)) is not None]

    def active(self) -> list[Record]:
        """Return the jobs that have not ended, the oldest first."""
        numbers = sorted((path.name for path in (self.folder / "active").iterdir()), key=_age)
        return [job for number in numbers if (job := self.read(number)) is not None]

    def host_of(self, job: Record) -> str | None:
        """Return the host that a job gets: one of its `only`, and none of its `never`; None if there is none."""
        hosts = (self.switch("host names") or "node1").split()
        only, never = job.get("only") or hosts, job.get("never") or ()
        return next((host for host in hosts if host in only and host not in never), None)

    def submit(self, job: Record, number: str = "{}", variable: str | None = None) -> str:
        """Queue a job, start it if there is room, and return its number, made from a running one.

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
        """Start jobs while there is room for the first one that waits."""
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
        """End a job, and say why; tell whether there was anything to end."""
        with self.locked():
            job = self.read(number)
            if job is None or job["state"] == "ended":
                return False
            if job["state"] == "queued":
                self._end(job, why, None)
                return True
            # The first reason is the reason.
            self.write(job | {"asked": job["asked"] or why})
            os.kill(job["runner"], signal.SIGTERM)
        return True

    def ended(self, number: str, how: str, code: int | None) -> None:
        """Note the end of a job that ran."""
        with self.locked():
            job = self.read(number)
            if job is not None:
                self._end(job, job["asked"] or how, code)
        self.schedule()

    def forget(self, number: str) -> None:
        """Know nothing of a job any more, whether it runs or not."""
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
