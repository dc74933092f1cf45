"""Files that a study file has written into each run's folder: its options for them, and what is wrong with them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from objectives.inputfile import BRACES, MOST_BYTES, InputFile, name_error
from spaces.parameters.problem import Problem


class FileOptions(BaseModel):
    """A file that is written into the run's folder as `name`: `text`, or the text of the file `template`.

    What stands between the `delimiters` is the name of a parameter; without any nothing is replaced.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    template: str | None = None
    text: str | None = None
    delimiters: list[str] = Field(default=list(BRACES))

    def with_text(self, text: str) -> InputFile:
        """Return the file, whose text was read."""
        return InputFile(self.name, text, tuple(self.delimiters))


def input_files(files: Sequence[FileOptions]) -> tuple[tuple[InputFile, ...], list[Problem]]:
    """Return the files whose text can be had, and everything that is wrong."""
    found: list[InputFile] = []
    errors: list[Problem] = []
    for i, file in enumerate(files):
        place = f"options.files.{i}"
        wrong = [*_file_errors(file, place)]
        if not wrong and file.template is not None:
            try:
                made = file.with_text(_text(Path(file.template)))
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) else error
                wrong.append(Problem(f"cannot read {file.template}: {why}", f"{place}.template"))
            else:
                found.append(made)
                wrong += made.problems(f"{place}.template")
        elif not wrong and file.text is not None:
            made = file.with_text(file.text)
            found.append(made)
            wrong += made.problems(f"{place}.text")
        errors += wrong
    errors += repeated_names("options.files", [file.name for file in files])
    return tuple(found), errors


def repeated_names(place: str, names: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each name of a list that is there for a second time."""
    for i, name in enumerate(names):
        if name in names[:i]:
            yield Problem(f"{name!r} is there twice: names must differ", f"{place}.{i}.name")


def _file_errors(file: FileOptions, place: str) -> Iterator[Problem]:
    if error := name_error(file.name):
        yield Problem(error, f"{place}.name")
    if (file.template is None) == (file.text is None):
        yield Problem("a file has a template (a path) or a text: exactly one of the two", f"{place}.template")
    if len(file.delimiters) not in {0, 2} or not all(file.delimiters):
        wrong = f'delimiters are two, as in ["@", "@"], or none, [], got {file.delimiters!r}'
        yield Problem(wrong, f"{place}.delimiters")


def _text(path: Path) -> str:
    """Read a template.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too large, or not text.
    """
    if path.stat().st_size > MOST_BYTES:
        msg = f"a template has {MOST_BYTES} bytes at most; give a larger file to the program by its full path"
        raise ValueError(msg)
    with path.open(encoding="utf-8", newline="") as file:
        try:
            return file.read()
        except UnicodeDecodeError:
            msg = "it is not text in UTF-8; give it to the program by its full path"
            raise ValueError(msg) from None
