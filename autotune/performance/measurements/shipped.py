"""The measurements that ship with autotune: published figures, each file with the address of their source."""

import importlib.resources
from functools import cache
from pathlib import Path

from autotune.performance.measurements.files import read_any
from autotune.performance.measurements.machine_names import find_machine_facts
from autotune.records.measurement import Measured
from autotune.tomlfiles.reading import toml_files


def shipped_files() -> list[Path]:
    """Return the mappings that ship, by name."""
    return list(toml_files(importlib.resources.files("studies") / "measurements").values())


@cache
def load_shipped_measurements() -> tuple[Measured, ...]:
    """Return every measurement that ships."""
    return tuple(
        measurement for path in shipped_files() for measurement in read_any(path, None, {}, find_machine_facts).measured
    )
