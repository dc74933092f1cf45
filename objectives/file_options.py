"""Options for the files of each run's folder, and the checks of these options."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from launchers.software.digest import file_digest
from objectives.base import PlanError
from objectives.made_file import NotMadeError, make_once, path_of_made_file
from objectives.run_files import (
    BRACES,
    MOST_BYTES,
    CopiedFile,
    EditedFile,
    InputFile,
    LineEdit,
    edit_errors,
    mentioned_files,
    name_error,
    short_text,
)
from spaces.mention import Mention
from spaces.parameters.problem import OptionProblem, Problem

RunFile = InputFile | CopiedFile | EditedFile
"""A file that each run gets."""

_SOURCES = ("template", "text", "copy_of", "made_by")
_REPLACED_KEYS = frozenset({"template", "text", "copy", "made_by", "made_from"})


class FileOptions(BaseModel):
    """A file that each run gets as `name`; exactly one of `text`, `template`, `copy` and `made_by` says where it comes
    from.

    Args:
        name: Its name in the run's folder.
        template: The path of a text file with placeholders.
        text: The text itself, with placeholders.
        copy_of: The path of a file that is copied; it may have any type and size.
        made_by: Commands that make the file once on a machine.
        made_from: The paths of the files that those commands get copies of.
        lines: Lines to change in a copied text.
        delimiters: The texts around the name of a parameter; without any, nothing is replaced.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    template: str | None = None
    text: str | None = None
    copy_of: str | None = Field(default=None, alias="copy")
    made_by: list[list[str]] | None = None
    made_from: list[str] = Field(default_factory=list)
    lines: list[LineEdit] = Field(default_factory=list)
    delimiters: list[str] = Field(default=list(BRACES))

    def with_text(self, text: str) -> InputFile:
        """Return the file with the text of its template."""
        return InputFile(self.name, text, tuple(self.delimiters))


def read_run_files(files: Sequence[FileOptions], *, make: bool = True) -> tuple[tuple[RunFile, ...], list[Problem]]:
    """Return the files whose content is available, and everything that is wrong.

    Files that are made once are only made with `make`; without it no run will need them.
    """
    known: list[RunFile] = []
    errors: list[Problem] = [*find_repeated_names("options.files", [file.name for file in files])]
    taken = {file.name for file in files}
    for i, file in enumerate(files):
        place = f"options.files.{i}"
        wrong = [*_file_errors(file, place)]
        if not wrong and file.copy_of is not None:
            copies, wrong = _copy_with_mentioned(file, file.copy_of, place)
            known += [copy for copy in copies if copy.name == file.name or copy.name not in taken]
            taken |= {copy.name for copy in copies}
        elif not wrong and file.made_by is not None:
            made, wrong = _make_file(file, file.made_by, place, make=make)
            known += made
        elif not wrong:
            text, wrong = _template_text(file, place)
            if text is not None:
                written = file.with_text(text)
                known.append(written)
                wrong += written.problems(f"{place}.{'text' if file.template is None else 'template'}")
        errors += wrong
    return tuple(known), errors


def mentions_in_files(declared: Sequence[FileOptions], files: Sequence[RunFile]) -> list[Mention]:
    """Return what the files mention, each with the path of the file's options."""
    paths = {file.name: f"options.files.{i}" for i, file in enumerate(declared)}
    return [mention for file in files for mention in file.mentions(paths.get(file.name, "options.files"))]


def files_identity(files: Sequence[RunFile]) -> dict[str, str]:
    """Return the digests of the files, as a part of what makes measurements comparable."""
    return {"files": ", ".join(f"{file.name} sha256:{file.digest}" for file in files)} if files else {}


def _template_text(file: FileOptions, place: str) -> tuple[str | None, list[Problem]]:
    if file.template is None:
        return file.text, []
    try:
        return _text(Path(file.template)), []
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return None, [Problem(f"cannot read {file.template}: {why}", f"{place}.template")]


def _copy_with_mentioned(file: FileOptions, source: str, place: str) -> tuple[list[RunFile], list[Problem]]:
    """Return a copied file, and copies of the files beside it that it mentions."""
    path = Path(source)
    try:
        text = short_text(path)
        if file.lines and text is None:
            msg = f"lines can be changed only in text of {MOST_BYTES} bytes at most, which {source} is not"
            return [], [Problem(msg, f"{place}.copy")]
        beside = {} if text is None else mentioned_files(text, path.parent)
    except OSError as error:
        return [], [Problem(f"cannot read {source}: {error.strerror}", f"{place}.copy")]
    copied = {name: other for name, other in beside.items() if other != path}
    itself: RunFile = (
        EditedFile(file.name, text, tuple(file.lines))
        if file.lines and text is not None
        else CopiedFile(file.name, path, file_digest(path))
    )
    return [itself, *(CopiedFile(name, other, file_digest(other)) for name, other in copied.items())], []


def _make_file(
    file: FileOptions, commands: Sequence[Sequence[str]], place: str, *, make: bool
) -> tuple[list[RunFile], list[Problem]]:
    if any(shutil.which(command[0]) is None for command in commands):
        return [], []  # reported together with the other missing programs
    try:
        path = (make_once if make else path_of_made_file)(
            file.name, commands, [Path(source) for source in file.made_from]
        )
    except OSError as error:
        return [], [Problem(f"cannot make {file.name}: {error.filename or ''}: {error.strerror}", f"{place}.made_by")]
    except NotMadeError as error:
        return [], [Problem(str(error), f"{place}.made_by")]
    # The digest covers its sources and commands, not its bytes: making it twice need not give the same bytes.
    return [CopiedFile(file.name, path, path.parent.name)], []


def making_programs(files: Sequence[FileOptions]) -> list[tuple[str, str]]:
    """Return the programs that make files, each with its path below `[options]`."""
    return [
        (f"files.{i}.made_by.{k}.0", step[0])
        for i, file in enumerate(files)
        for k, step in enumerate(file.made_by or [])
        if step
    ]


def find_repeated_names(place: str, names: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each name that occurs a second time."""
    for i, name in enumerate(names):
        if name in names[:i]:
            yield Problem(f"{name!r} occurs twice: names must differ", f"{place}.{i}.name")


def _file_errors(file: FileOptions, place: str) -> Iterator[Problem]:
    if error := name_error(file.name):
        yield Problem(error, f"{place}.name")
    if sum(getattr(file, key) is not None for key in _SOURCES) != 1:
        msg = "a file has a template (a path), a text, a copy (a path) or made_by (commands): exactly one of them"
        yield Problem(msg, f"{place}.template")
    if file.lines and file.copy_of is None:
        msg = "lines change a copy only: in a template or a text, write {name} in place of the value"
        yield Problem(msg, f"{place}.lines")
    for k, command in enumerate(file.made_by or []):
        if not command:
            yield Problem("a command needs at least the name of a program", f"{place}.made_by.{k}")
    yield from edit_errors(file.lines, f"{place}.lines")
    if len(file.delimiters) not in {0, 2} or not all(file.delimiters):
        wrong = f'delimiters are two, as in ["@", "@"], or none, [], got {file.delimiters!r}'
        yield Problem(wrong, f"{place}.delimiters")


def _text(path: Path) -> str:
    """Read a template.

    Raises:
        OSError: It cannot be read.
        ValueError: It is too large, or not text.
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


def with_own_input(options: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the options of a command with the user's file in place of the one that `input` names.

    Raises:
        PlanError: The options name no input, or no file of that name, or the user's file does not exist.
    """
    files = options.get("files")
    named = [
        index
        for index, file in enumerate(files if isinstance(files, list) else [])
        if isinstance(file, Mapping) and file.get("name") == options.get("input")
    ]
    if not named or not isinstance(files, list):
        msg = "this study has no input to replace; `input` in its [options] names one of its files"
        raise PlanError(OptionProblem(msg, option=f"--input {path}"))
    if not Path(path).is_file():
        msg = "there is no such file" if not Path(path).exists() else "it is not a file"
        raise PlanError(OptionProblem(msg, option=f"--input {path}"))
    source = str(Path(path).absolute())
    return {**options, "files": [_with_source(file, source) if i in named else file for i, file in enumerate(files)]}


def _with_source(file: Mapping[str, Any], source: str) -> dict[str, Any]:
    return {**{key: value for key, value in file.items() if key not in _REPLACED_KEYS}, "copy": source}
