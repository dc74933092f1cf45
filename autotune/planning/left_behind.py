"""Files that a command names and that lie here, but will not be in the folder of a run."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from launchers import Job

_OUTPUT = "-o"


def left_behind(job: Job, folders: Sequence[Path]) -> Iterator[str]:
    """Yield a warning for each; the job's folder has its input files, `folders` are where its user may mean files."""
    prepared = {word for step in job.prepare for word in step}
    named = [word for step in job.prepare for word in _read(step)]
    named += [word for word in _read(job.argv) if word not in prepared]
    for name in dict.fromkeys(named):
        home = next((folder for folder in folders if _is_file(folder / name)), None)
        if home is not None and not (job.folder / name).exists():
            yield (
                f"{name} lies in {home}, but a run has a folder of its own, where it will not be: give its full path, "
                f"or copy it there: [[options.files]] with name = {name!r} and copy = {name!r}"
            )


def _read(words: Sequence[str]) -> Iterator[str]:
    """Yield the relative paths that the words of a command may be, without what a compiler writes."""
    before = ""
    for word in words[1:]:
        option, equals, value = word.partition("=")
        name = value if equals and option.startswith("-") else word
        if name and before != _OUTPUT and not name.startswith("-") and not Path(name).is_absolute():
            yield name
        before = word


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # no name of a file: too long, a NUL
        return False
