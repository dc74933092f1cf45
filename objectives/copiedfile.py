"""Files that are copied into each run's folder as they are, with the files beside them that they mention."""

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from objectives.inputfile import MOST_BYTES, name_error
from spaces import Value
from spaces.mention import Mention

# What stands between the words of an input file: blanks, quotes, and the punctuation of its language.
_BETWEEN_WORDS = re.compile(r"""[\s"'`=,;:()<>\[\]{}]+""")


@dataclass(frozen=True)
class CopiedFile:
    """A file that is copied from `source` into the run's folder as `name`, whatever the configuration.

    The program gets a copy of its own, so that nothing it writes reaches the original.
    """

    name: str
    source: Path
    digest: str

    def mentioned(self, path: str = "") -> list[Mention]:
        """Return what it mentions: nothing."""
        del path
        return []

    @property
    def copied_from(self) -> str:
        """The file that it is a copy of."""
        return str(self.source)

    def write(self, folder: Path, values: Mapping[str, Value]) -> None:
        """Copy it into a run's folder."""
        del values
        target = folder / self.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self.source, target)


def short_text(path: Path) -> str | None:
    """Return the text of a file; None if it is none in UTF-8, or too large for a person to have written it.

    Raises:
        OSError: it cannot be read.
    """
    if path.stat().st_size > MOST_BYTES:
        return None
    text = path.read_bytes()
    try:
        return None if b"\0" in text else text.decode()
    except UnicodeDecodeError:
        return None


def mentioned_files(text: str, folder: Path) -> dict[str, Path]:
    """Return the files in `folder` that a text mentions, and those that these mention: relative name -> file.

    Names that lead out of the folder are left out.
    """
    known: dict[str, Path] = {}
    texts = [text]
    while texts:
        for name, path in _mentioned(texts.pop(), folder):
            if name not in known:
                known[name] = path
                inner = short_text(path)
                texts += [] if inner is None else [inner]
    return known


def _mentioned(text: str, folder: Path) -> Iterator[tuple[str, Path]]:
    for word in dict.fromkeys(_BETWEEN_WORDS.split(text)):
        if not word or name_error(word) is not None:
            continue
        path = folder / word
        try:
            if path.is_file():
                yield Path(word).as_posix(), path
        except OSError:  # no name of a file: too long
            continue
