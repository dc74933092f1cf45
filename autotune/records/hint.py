"""Hint: a configuration that somebody outside the search proposes, a person or a program."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.records.stored import Stored


@dataclass(frozen=True)
class Hint(Stored):
    """A valid configuration, who proposed it, when (ISO 8601, UTC), and the reason that they gave."""

    configuration: Mapping[str, Any]
    by: str
    given: str
    why: str = ""
