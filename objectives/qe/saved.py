"""The saved files of an earlier run of pw.x, for inputs that continue from it: nscf, bands, restarts."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from launchers.software.digest import file_digest, text_digest
from objectives.base import Context, Objective, PlanError, RunFailure, RunJob
from objectives.qe.deck import Deck
from spaces import Configuration
from spaces.parameters.problem import Problem

OUTPUT_FOLDER = "./out/"
BAND_STRUCTURES = ("nscf", "bands")
_FROM_FILES = ("startingpot", "startingwfc")
_WAVES = "wfc"
_SAVE = ".save"
_CONTENTS = ".contents.json"
_TIME_LIMIT_S = 24 * 3600.0


def is_continuation(deck: Deck) -> bool:
    """Return whether the input reads what another run saved."""
    return (
        deck.calculation in BAND_STRUCTURES
        or _restarts(deck)
        or reads_structure(deck)
        or any(_is_from_file(deck, name) for name in _FROM_FILES)
    )


def reads_structure(deck: Deck) -> bool:
    """Return whether the input takes the cell and the atoms from what another run saved, although it has its own."""
    return (deck.get("ion_positions") or "").lower() == "from_file"


@dataclass(frozen=True)
class Saved:
    """The folder PREFIX.save that a run of pw.x left, and the files beside it."""

    folder: Path

    @classmethod
    def find(cls, path: str, prefix: str) -> "Saved":
        """Return the saved files in `path`, which is such a folder or the `outdir` that contains it.

        Raises:
            PlanError: There is no such folder.
        """
        place = Path(path).expanduser().resolve()
        folder = place if place.suffix == _SAVE else place / f"{prefix}{_SAVE}"
        if not any(folder.glob("data-file*.xml")):
            msg = f"{folder} was not saved by pw.x; name the outdir of an scf run with prefix {prefix!r}"
            raise PlanError(Problem(msg, "options.saved"))
        return cls(folder)

    @property
    def digest(self) -> str:
        """The digest of the density and of pw.x's description of the run."""
        return text_digest("".join(f"{file.name} {file_digest(file)}\n" for file in sorted(self._files(waves=False))))

    def copy_into(self, deck: Deck, folder: Path, prefix: str) -> tuple[tuple[str, str], ...]:
        """Copy what the input reads into a run's folder: the density, and wave functions or everything if it asks for
        them.

        Return the copies, by their names in that folder, with the paths of the originals.
        """
        copies = tuple(self._copies(deck, prefix))
        for name, original in copies:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(original, folder / name)
        return copies

    def _copies(self, deck: Deck, prefix: str) -> Iterator[tuple[str, str]]:
        outdir = PurePosixPath(OUTPUT_FOLDER)
        for file in self._files(waves=_restarts(deck) or _is_from_file(deck, "startingwfc")):
            yield str(outdir / f"{prefix}{_SAVE}" / file.name), str(file)
        for file in self.folder.parent.glob(f"{self.folder.stem}.*") if _restarts(deck) else ():
            if file.is_file():
                yield str(outdir / f"{prefix}{file.name.removeprefix(self.folder.stem)}"), str(file)

    def _files(self, *, waves: bool) -> Iterator[Path]:
        return (
            file for file in self.folder.iterdir() if file.is_file() and (waves or not file.stem.startswith(_WAVES))
        )


def save_once(
    objective: Objective, configuration: Configuration, identity: Mapping[str, str], prefix: str, run_job: RunJob
) -> Saved:
    """Return what a run of the configuration saves under `prefix`; it is made once on this machine.

    Raises:
        PlanError: It fails.
        OSError: Its folder cannot be written.
    """
    kept = _cache() / text_digest(repr((prefix, sorted(identity.items()))))
    if not _is_whole(kept):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
            outdir = Path(scratch) / OUTPUT_FOLDER
            try:
                job = objective.job(configuration, Context(Path(scratch), time_limit_s=_TIME_LIMIT_S))
                objective.measure(run_job(job))
            except RunFailure as error:
                msg = f"the run that the input continues from failed: {error}"
                raise PlanError(Problem(msg, "options.prepared_by")) from error
            for waves in outdir.glob(f"*.{_WAVES}*"):  # the files of single ranks; PREFIX.save holds those of all
                waves.unlink()
            _write_contents(outdir)
            # Two studies may start at once: the first to finish wins.
            with suppress(OSError):
                if not _is_whole(kept):
                    kept.rename(Path(scratch) / "spoilt")
            with suppress(OSError):
                outdir.rename(kept)
    return Saved.find(str(kept), prefix)


def _write_contents(folder: Path) -> None:
    """Record the files and their sizes, so that a folder from which a clean-up removed some is recognised."""
    sizes = {str(file.relative_to(folder)): file.stat().st_size for file in folder.rglob("*") if file.is_file()}
    (folder / _CONTENTS).write_text(json.dumps(sizes))


def _is_whole(folder: Path) -> bool:
    try:
        sizes = json.loads((folder / _CONTENTS).read_text())
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "autotune" / "qe-saved"


def _restarts(deck: Deck) -> bool:
    return (deck.get("restart_mode") or "").lower() == "restart"


def _is_from_file(deck: Deck, name: str) -> bool:
    return (deck.get(name) or "").lower() == "file"
