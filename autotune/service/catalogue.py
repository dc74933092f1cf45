"""Catalogue: the studies that the operator lets others start. No other study can be started."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune import studyfile
from autotune.errors import StudyFileError
from autotune.studyfile import StudyFile
from objectives import registry


@dataclass(frozen=True)
class CatalogueStudy:
    """A study that may be started: its file, and what it says."""

    name: str
    file: Path
    study: StudyFile

    @property
    def ask_tell(self) -> bool:
        """Whether the study launches nothing: an outside program asks for configurations, and makes the runs."""
        return registry.runs(self.study.objective) == "told"


@dataclass(frozen=True)
class Catalogue:
    """The study files of a folder, or those that ship with autotune; read anew each time: there may be new ones."""

    folder: Path | None = None

    def check(self) -> list[str]:
        """Return the errors of its files, a text for each file that has some.

        Raises:
            StudyFileError: the folder cannot be read.
        """
        wrong = []
        for file in self._files().values():
            try:
                studyfile.load(file)
            except StudyFileError as error:
                wrong.append(str(error))
        return wrong

    def entries(self) -> list[CatalogueStudy]:
        """Return the studies without errors, by name."""
        studies = []
        for name, file in sorted(self._files().items()):
            try:
                studies.append(CatalogueStudy(name, file, studyfile.load(file)))
            except StudyFileError:
                continue  # `check` tells the operator
        return studies

    def has(self, name: str) -> bool:
        """Whether there is a file of that name, whatever is in it."""
        return name in self._files()

    def find(self, name: str) -> CatalogueStudy | None:
        """Return the study of that name; None if there is none, or it has errors."""
        file = self._files().get(name)
        try:
            return None if file is None else CatalogueStudy(name, file, studyfile.load(file))
        except StudyFileError:
            return None

    def _files(self) -> Mapping[str, Path]:
        if self.folder is None:
            return studyfile.catalogue()
        if not self.folder.is_dir():
            msg = f"the catalogue {self.folder} is no folder; --catalogue names one with study files (*.toml)"
            raise StudyFileError(msg)
        return {file.stem: file.resolve() for file in self.folder.glob("*.toml") if file.is_file()}
