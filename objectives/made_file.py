"""Files that commands make once on this machine and every run gets a copy of, such as a topology or a mesh."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from launchers.software.ask import ask
from launchers.software.digest import file_digest, text_digest

_TIMEOUT_S = 3600
_LINES = 3


class NotMadeError(Exception):
    """The commands that make a file failed; the message says which one and what it printed."""


def make_once(name: str, commands: Sequence[Sequence[str]], sources: Sequence[Path]) -> Path:
    """Return the file `name` that the commands make in a folder with copies of `sources`; run them if it does not exist
    yet.

    Raises:
        OSError: A source cannot be read, or nothing can be written.
        NotMadeError: A command fails, or leaves no such file.
    """
    folder = path_of_made_file(name, commands, sources).parent
    if not (folder / name).is_file():
        # Programs are run from there.
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = Path(scratch) / folder.name
            made.mkdir()
            _make(made, name, commands, sources)
            # Two studies may make it at once: the first to finish wins.
            with suppress(OSError):
                made.rename(folder)
            if not (folder / name).is_file():  # an incomplete folder was in the way
                shutil.rmtree(folder, ignore_errors=True)
                made.rename(folder)
    return folder / name


def path_of_made_file(name: str, commands: Sequence[Sequence[str]], sources: Sequence[Path]) -> Path:
    """Return where the file lies once it is made.

    Raises:
        OSError: A source cannot be read.
    """
    return _cache(os.environ) / _digest(name, commands, sources) / name


def _cache(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "autotune" / "made"


def _digest(name: str, commands: Sequence[Sequence[str]], sources: Sequence[Path]) -> str:
    """Return a digest of the sources, the commands and their programs."""
    programs = {path: file_digest(Path(path)) for command in commands if (path := shutil.which(command[0]))}
    files = {source.name: file_digest(source) for source in sources}
    text = json.dumps([name, [list(command) for command in commands], files, programs], sort_keys=True)
    return text_digest(text)


def _make(folder: Path, name: str, commands: Sequence[Sequence[str]], sources: Sequence[Path]) -> None:
    for source in sources:
        shutil.copy(source, folder / source.name)
    for command in commands:
        line = " ".join(command)
        try:
            ended = ask(command, _TIMEOUT_S, folder=folder, merge=True)
        except OSError as error:
            msg = f"{line!r}, which makes {name}, cannot be run: {error}"
            raise NotMadeError(msg) from error
        if ended.exit_code != 0:
            printed = [text.strip() for text in ended.text.splitlines() if text.strip()]
            errors = next(
                (printed[i : i + _LINES] for i, text in enumerate(printed) if "error" in text.lower()), printed[-1:]
            )
            msg = f"{line!r}, which makes {name}, ended with exit code {ended.exit_code}: {' '.join(errors)}"
            raise NotMadeError(msg)
    if not (folder / name).is_file():
        msg = f"the commands that make {name} succeeded, but left no such file"
        raise NotMadeError(msg)
