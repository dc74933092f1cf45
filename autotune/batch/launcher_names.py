"""The names of launchers: this machine, and the batch systems."""

import shutil
from pathlib import Path

from launchers.batch_systems.registry import all_batch_systems, names

LOCAL = "local"
"""The launcher that starts runs on this machine."""


def launcher_names() -> list[str]:
    """Return the names of all launchers: this machine, and every batch system."""
    return [LOCAL, *names()]


def available_launchers() -> list[str]:
    """Return the names of the launchers that can be used from this host: their commands are installed."""
    commands = {system.name: system.scheduler.submit(Path("job.sh"))[0] for system in all_batch_systems()}
    return [LOCAL, *(name for name, command in commands.items() if shutil.which(command))]
