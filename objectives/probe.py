"""Asking programs before a study: which interpreters there are, and what a short run says."""

import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from launchers import Job, LaunchError
from objectives.base import Output, RunJob


@dataclass(frozen=True)
class Probe:
    """How programs are asked here: each run has `limit_s` seconds, and a folder of its own in `folder`."""

    run_job: RunJob
    folder: Path
    limit_s: float

    def run(self, name: str, argv: tuple[str, ...], environment: Mapping[str, str] | None = None) -> Output | None:
        """Run a program to its end; None if it did not end well."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        job = Job(argv, folder, dict(environment or {}), time_limit_s=self.limit_s, name=name)
        try:
            output = self.run_job(job)
        except LaunchError:
            return None
        return output if output.status.exit_code == 0 else None

    def find_pythons(self, asked: str | None, own: str, script: str) -> Iterator[tuple[str, str]]:
        """Return the interpreters in which `script` works, by path, with the JSON object that it prints at its end.

        Looked at are the one that was `asked` for, or the one that was installed as `own`, this one, and `python3`.
        """
        for number, name in enumerate((asked,) if asked else _known(own)):
            path = shutil.which(name)
            output = self.run(f"python-{number}", (path, "-P", "-c", script)) if path else None
            lines = output.stdout.strip().splitlines() if output else []
            if path and lines and lines[-1].startswith("{"):
                yield str(Path(path).absolute()), lines[-1]


def _known(own: str) -> tuple[str, ...]:
    installed = Path(sys.prefix) / "share" / "autotune" / own / "bin" / "python"
    return (*([str(installed)] if installed.exists() else []), sys.executable, "python3")


PROGRAMS = Path(__file__).parents[1] / "studies" / "programs"
