"""The forms of the winner's job script: one for each supported batch system, and one for a plain shell."""

from collections.abc import Iterable, Sequence

from launchers.batch_systems.registry import BATCH_SYSTEMS, all_batch_systems
from launchers.batch_systems.system import BatchSystem

SHELL = "sh"
"""The form of a script for a shell on this machine."""


def script_forms() -> list[str]:
    """Return the names of all forms."""
    return _forms(all_batch_systems())


def shipped_forms() -> list[str]:
    """Return the names of the forms that autotune itself ships."""
    return _forms(BATCH_SYSTEMS.values())


def script_labels() -> Sequence[tuple[str, str]]:
    """Return every form with a readable label, such as `Slurm (sbatch)`."""
    systems = {system.name: system for system in all_batch_systems()}
    return [(form, _label(systems[form]) if form in systems else "Shell script") for form in script_forms()]


def _label(system: BatchSystem) -> str:
    command = system.winner.submit if system.winner is not None else ""
    return f"{system.label} ({command})"


def _forms(systems: Iterable[BatchSystem]) -> list[str]:
    return [*(system.name for system in systems if system.winner is not None), SHELL]
