"""Catalogue: the study files that may be started. No other study can be started."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune import studyfile
from autotune.errors import StudyFileError
from autotune.studyfile import StudyFile
from objectives import registry


@dataclass(frozen=True)
class CatalogueStudy:
    """A study that may be started: its name, its file, and the file's content."""

    name: str
    file: Path
    study: StudyFile

    @property
    def ask_tell(self) -> bool:
        """Whether an outside program makes the study's runs; the service launches nothing."""
        return registry.runs(self.study.objective) == "told"


@dataclass(frozen=True)
class Catalogue:
    """The study files of a folder, or those that ship with autotune. Each call reads them again."""

    folder: Path | None = None

    def check(self) -> list[str]:
        """Return the errors of the files, a text for each file with errors.

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
        """Return the studies without errors, sorted by name."""
        studies = []
        for name, file in sorted(self._files().items()):
            try:
                studies.append(CatalogueStudy(name, file, studyfile.load(file)))
            except StudyFileError:
                continue  # `check` returns its errors
        return studies

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name, with errors or without."""
        return name in self._files()

    def find(self, name: str) -> CatalogueStudy | None:
        """Return the study of that name; None if the catalogue has no such study, or it has errors."""
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
