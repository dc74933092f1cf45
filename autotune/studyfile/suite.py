"""The suite file: several studies that have one figure together."""

import importlib.resources
import os
from pathlib import Path

from pydantic import Field, model_validator

from autotune.errors import StudyFileError
from autotune.studyfile.loading import found, toml_files
from autotune.studyfile.model import NAME
from autotune.studyfile.section import Section
from autotune.tomlfiles import reading as tomlfiles


class MemberSection(Section):
    """A study of a suite: one that ships, by its name, or a study file, by its path from the suite file.

    It counts by its `weight`. The `reference` is a value of its metric, to which the winner's is compared.
    """

    study: str = Field(min_length=1)
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    reference: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: object) -> object:
        return {"study": given} if isinstance(given, str) else given


class SuiteSection(Section):
    """The studies of a suite, tables or names; one that is only named counts as much as any other."""

    members: list[MemberSection] = Field(min_length=1)


class SuiteFile(Section):
    """A whole suite file."""

    name: str = Field(pattern=NAME)
    description: str = ""
    suite: SuiteSection

    @property
    def members(self) -> tuple[MemberSection, ...]:
        """The studies, in the order in which they are tuned."""
        return tuple(self.suite.members)


def suites() -> dict[str, Path]:
    """Return the suites that ship with autotune: name -> file."""
    return toml_files(importlib.resources.files("studies").joinpath("suites"))


def load_suite(name_or_path: str) -> SuiteFile:
    """Read a suite that ships, or a file; a member's path leads from the suite file to its study.

    Raises:
        StudyFileError: there is none, or it has errors: all of them at once, each with its path.
    """
    path = found(name_or_path, suites(), "suite")
    table = tomlfiles.read(path, "suite file", StudyFileError)
    table.setdefault("name", path.stem)
    suite = tomlfiles.checked(table, SuiteFile, str(path), StudyFileError)
    members = [_rooted(member, path.parent) for member in suite.members]
    return suite.model_copy(update={"suite": SuiteSection(members=members)})


def member_path(number: int) -> str:
    """Return the path of a suite file's key that names the study of a member, counted from 0."""
    return f"suite.members.{number}.study"


def _rooted(member: MemberSection, folder: Path) -> MemberSection:
    """Return the member with its path from where the command is given; a name stays what it is."""
    if "/" not in member.study and not member.study.endswith(".toml"):
        return member
    path = folder / os.path.expanduser(member.study)  # noqa: PTH111  a user who is not there is no error
    return member.model_copy(update={"study": os.fspath(path)})
