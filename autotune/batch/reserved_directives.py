"""What a site may not set: directives that would replace those that every job needs, and another system's settings."""

from launchers.batch_systems.registry import find_batch_system, names


def refused(scheduler: str, directive: str) -> str | None:
    """Return why a line for the scheduler (without its `#SBATCH` or `#PBS`) cannot be used; None if it can."""
    reasons = find_batch_system(scheduler).reserved(directive) if scheduler in names() else {}
    return "; ".join(f"{option}: {reason}" for option, reason in reasons.items()) or None


def foreign(scheduler: str, setting: str) -> str | None:
    """Return what to write instead of a setting that a batch system does not know; None if it knows it."""
    if scheduler not in names():
        return None
    system = find_batch_system(scheduler)
    if setting == "energy" and system.scheduler.energy is None:
        return f"the accounting of {system.name} is not asked for energy, only Slurm's is; [meter] has a command for it"
    return system.foreign.get(setting)
