"""Run programs before a study to ask what is installed; and where the programs lie that ship with studies."""

import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from launchers import Job, LaunchError
from objectives.base import Output, RunJob


@dataclass(frozen=True)
class Probe:
    """Runs programs to ask them about the machine.

    Args:
        run_job: Runs a job to its end.
        folder: Each run gets a folder of its own in it.
        limit_s: The time limit of each run.
    """

    run_job: RunJob
    folder: Path
    limit_s: float

    def run(self, name: str, argv: tuple[str, ...], environment: Mapping[str, str] | None = None) -> Output | None:
        """Run a program to its end; None if it fails."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        job = Job(argv, folder, dict(environment or {}), time_limit_s=self.limit_s, name=name)
        try:
            output = self.run_job(job)
        except LaunchError:
            return None
        return output if output.status.exit_code == 0 else None

    def find_pythons(self, chosen: str | None, own: str, script: str) -> Iterator[tuple[str, str]]:
        """Yield the interpreters in which `script` works: the path, and the JSON object that the script prints last.

        Args:
            asked: The only interpreter to try, if the user named one.
            own: The name under which autotune may have installed an interpreter. It is tried first, then this one, then
                `python3`.
            script: The Python code to run.
        """
        for number, name in enumerate((chosen,) if chosen else _known_names(own)):
            path = shutil.which(name)
            output = self.run(f"python-{number}", (path, "-P", "-c", script)) if path else None
            lines = output.stdout.strip().splitlines() if output else []
            if path and lines and lines[-1].startswith("{"):
                yield str(Path(path).absolute()), lines[-1]


def _known_names(own: str) -> tuple[str, ...]:
    installed = Path(sys.prefix) / "share" / "autotune" / own / "bin" / "python"
    return (*([str(installed)] if installed.exists() else []), sys.executable, "python3")


PROGRAMS = Path(__file__).parents[1] / "studies" / "programs"
"""The programs that ship with the studies that measure them."""
