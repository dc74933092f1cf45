"""Hint: a configuration that a person or a program outside the search proposes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.records.stored import Stored


@dataclass(frozen=True)
class Hint(Stored):
    """A valid configuration with its author (`by`), its time (`given`, ISO 8601, UTC) and its reason (`why`)."""

    configuration: Mapping[str, Any]
    by: str
    given: str
    why: str = ""
