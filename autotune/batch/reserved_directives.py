"""Reserved directives: a site may not set them, since they would replace those that every job needs."""

from launchers.batch_systems.registry import find_batch_system, names


def refused(scheduler: str, directive: str) -> str | None:
    """Return why a line for the scheduler (without its `#SBATCH` or `#PBS`) cannot be used; None if it can."""
    reasons = find_batch_system(scheduler).reserved(directive) if scheduler in names() else {}
    return "; ".join(f"{option}: {reason}" for option, reason in reasons.items()) or None
