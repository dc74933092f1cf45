"""Reference figures: published values of metrics, with which a report of several studies compares its own."""

import importlib.resources
from pathlib import Path
from typing import Annotated

from pydantic import Field

from autotune.errors import StudyFileError
from autotune.studyfile.loading import find_file
from autotune.studyfile.section import Section
from autotune.tomlfiles import reading as tomlfiles

Figure = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ReferencesFile(Section):
    """A file of reference figures: values by the name of the study and of the metric, in the unit of the metric."""

    description: str
    references: dict[str, dict[str, Figure]] = Field(min_length=1)


def reference_files() -> dict[str, Path]:
    """Return the reference figures that ship with autotune: name -> file."""
    return tomlfiles.toml_files(importlib.resources.files("studies") / "references")


def load_references(name_or_path: str) -> ReferencesFile:
    """Read the reference figures of a shipped name or of a file.

    Raises:
        StudyFileError: No such name or file exists, or it has errors: all of them at once, each with its path.
    """
    path = find_file(name_or_path, reference_files(), "reference")
    table = tomlfiles.read(path, "reference file", StudyFileError)
    return tomlfiles.validate(table, ReferencesFile, str(path), StudyFileError)
