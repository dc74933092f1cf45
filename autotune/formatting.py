"""Values as people read them: configurations, their values, and quantities with their units."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from objectives.base import Metric
    from spaces import Configuration, Space


def shown(configuration: "Configuration") -> str:
    """Return a configuration for reading: only what is set."""
    return " ".join(f"{name}={written(value)}" for name, value in configuration.items()) or "(nothing set)"


def with_derived(space: "Space", configuration: "Configuration") -> str:
    """Return a configuration for reading, with the values that its space derives from it."""
    derived = space.derived_values(configuration)
    return shown(configuration) + (f"  (derived: {shown(derived)})" if derived else "")


def written(value: object) -> str:
    """Return a value for reading."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def quantity(value: float, metric: "Metric") -> str:
    """Return a value of a metric for reading, with its unit if it has one."""
    return f"{value:.4g} {metric.unit}".rstrip()


def output_folder(job: Mapping[str, Any]) -> str:
    """Say where the output of a run lies, by the description of its job; empty if it is not there any more."""
    folder = Path(job.get("folder", ""))
    if not folder.is_absolute() or not folder.is_dir():
        return ""
    here = Path.cwd()
    return f"output in {folder.relative_to(here) if folder.is_relative_to(here) else folder}"
