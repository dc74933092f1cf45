"""A real service in a process of its own, to be asked, killed and started again."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from autotune.client import Client

SLEEPY = """
objective = "command"
description = "Sleeps for longer and shorter"
[options]
argv = ["sleep", "0.{a}{b}"]
[space.parameters.a]
type = "integer"
low = 0
high = 2
default = 1
[space.parameters.b]
type = "integer"
low = 0
high = 9
default = 5
[budget]
trials = 6
[verdict]
candidates = 1
confidence = 0.75
pairs = 3
max_pairs = 3
[repeats]
warm_up_runs = 0
"""

OUTSIDE = """
objective = "external"
description = "Somebody else measures"
[options]
metrics = [{ name = "time_s", unit = "s", kind = "time" }]
[space.parameters.a]
type = "integer"
low = 1
high = 40
default = 5
[space.parameters.b]
type = "integer"
low = 0
high = 40
default = 5
[[space.constraints]]
name = "a divides b"
rule = "b % a == 0"
reason = "the parts are equal"
[budget]
trials = 8
"""


@dataclass
class Service:
    """A service over a storage, with a catalogue and files of its own in `folder`."""

    folder: Path
    storage: str = "autotune.db"
    options: tuple[str, ...] = ()
    token: str | None = None
    command: tuple[str, ...] = (sys.executable, "-m", "autotune")
    url: str = ""
    token_file: Path | None = None
    process: subprocess.Popen | None = None
    _log: Path = field(init=False)

    def __post_init__(self):
        self._log = self.folder / "serve.log"
        catalogue = self.folder / "catalogue"
        catalogue.mkdir(exist_ok=True)
        (catalogue / "sleepy.toml").write_text(SLEEPY)
        for name in ("outside", "unmeasured"):
            (catalogue / f"{name}.toml").write_text(OUTSIDE)

    def start(self, port=0):
        argv = [*self.command, "serve", "--catalogue=catalogue", f"--port={port}", "--json"]
        env = os.environ | {"AUTOTUNE_STORAGE": self.storage}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*argv, *self.options], cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=log
            )
        said = b""
        while not said.endswith(b"}\n"):
            line = self.process.stdout.readline()
            assert line, self.log
            said += line
        described = json.loads(said)
        self.url = described["url"].rstrip("/")
        self.token_file = Path(described["token_file"])
        return self

    @property
    def header(self):
        """The header that shows the service's own token."""
        return self.token_file.read_text().strip()

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    @property
    def log(self):
        return self._log.read_text()

    def client(self):
        return Client(self.url, self.token)

    def kill(self):
        self.process.kill()
        self._gone()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self._gone()

    def _gone(self):
        status = self.process.wait(60)
        self.process.stdout.close()
        return status

    def until(self, name, *states):
        """Wait until a study is in one of these states; return it."""
        with self.client() as client:
            ends_at = time.monotonic() + 120
            while True:
                found = client.study(name)
                if found["state"] in states:
                    return found
                assert time.monotonic() < ends_at, (found, self.log)
                assert found["state"] != "failed", (found, self.log)
                time.sleep(0.1)


@contextmanager
def serving(folder, **options):
    """Provide a service; afterwards nothing of it, or of its studies, is left."""
    service = Service(folder, **options).start()
    try:
        yield service
        with service.client() as client:
            for study in client.studies():
                if study["state"] in {"running", "waiting", "pausing", "open"}:
                    client.stop(study["name"])
            while any(study["state"] in {"stopping", "running"} for study in client.studies()):
                time.sleep(0.1)
    finally:
        if service.process.poll() is None:
            service.stop()
