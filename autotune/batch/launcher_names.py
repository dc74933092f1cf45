"""What can start runs from this host: the machine itself, and the batch systems whose commands are here."""

import shutil
from pathlib import Path

from launchers.batch_systems.registry import all_batch_systems, names

LOCAL = "local"
"""The launcher that starts runs on this machine."""


def launcher_names() -> list[str]:
    """Return what may start runs: this machine, or a batch system."""
    return [LOCAL, *names()]


def available_launchers() -> list[str]:
    """Return those that can be used from this host."""
    commands = {system.name: system.scheduler.submit(Path("job.sh"))[0] for system in all_batch_systems()}
    return [LOCAL, *(name for name, command in commands.items() if shutil.which(command))]
