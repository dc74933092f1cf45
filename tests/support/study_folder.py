"""A study in a folder: its sessions, their log, the launches of its program and its stored table."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import warm
from tests.support.fork_server import Fork


@dataclass
class StudyFolder:
    """A folder with the study file `mine.toml`; its program may append lines to `launches.log`."""

    folder: Path
    sessions: list[Fork] = field(default_factory=list, init=False)

    def start(
        self, *words: str, python: Sequence[str] = ("-m", "autotune"), environment: Mapping[str, str] | None = None
    ) -> Fork:
        """Start a session that prints to `session.log`."""
        with (self.folder / "session.log").open("ab") as log:
            given = os.environ if environment is None else environment
            session = warm.start(self.folder, [*python, "study", "./mine.toml", *words], given, log)
        self.sessions.append(session)
        return session

    def close(self) -> None:
        """Kill the sessions that have not ended."""
        for session in self.sessions:
            session.kill()
            session.wait()

    @property
    def log(self) -> str:
        """The output of all sessions."""
        return (self.folder / "session.log").read_text()

    def table(self, *options: str) -> list[dict[str, object]]:
        """Return the output of `autotune trials mine --json` with these options; empty without a storage."""
        asked = warm.autotune(self.folder, "trials", "mine", *options, "--json")
        return json.loads(asked.stdout) if asked.returncode == 0 else []

    def launches(self, kind: str) -> list[list[str]]:
        """Return the lines of `launches.log` of this kind, the first word, as lists of the other words."""
        path = self.folder / "launches.log"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [words for first, *words in lines if first == kind]
