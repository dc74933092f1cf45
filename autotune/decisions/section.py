"""What a stored study says of its decision table."""

from autotune.records.study import Definition
from autotune.studyfile import DecisionsSection


def decisions_section(definition: Definition) -> DecisionsSection | None:
    """Return what a study says of its decision table; None if it has none."""
    section = definition.study.get("decisions")
    return DecisionsSection(**section) if section else None
