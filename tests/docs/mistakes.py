"""The mistakes of a page that can be found without running it.

Each command of a page is parsed by the parser of the command line, and each study file is read as
`autotune check --static` reads it. `test_pages.py` asserts that no page has a mistake.
"""

import copy
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import typer
from typer._click.core import Command as TyperCommand
from typer._click.exceptions import UsageError

from autotune import studyfile
from autotune.cli.app import app
from autotune.cli.options import StudyName, StudyNames
from autotune.cli.study_options import StudyOptions
from autotune.cli.study_request import input_name, read_request
from autotune.errors import AutotuneError
from autotune.machines.this_machine import this_machine
from autotune.planning.check import check
from autotune.studyfile.references import load_references, reference_files
from launchers.local import local_launcher
from spaces.parameters.errors import did_you_mean
from tests.docs.page import ROOT, Block, Command, Page
from tests.docs.reference import OBJECTIVES, commands_of, keys_of

OTHERS_OPTIONS = {
    *("--cpus-per-task", "--exclusive", "--gres", "--hint", "--licenses", "--mem"),
    *("--no-kill", "--nodelist", "--ntasks-per-core", "--overlap", "--partition", "--qos"),
    *("--threads-per-core", "--time"),  # of batch systems
    *("--between", "--epochs", "--link", "--mb", "--node-share", "--rate", "--restart", "--steps", "--threads"),
}
"""Options that pages name in prose without the program that has them, which is not autotune."""

_PROGRAMS = ("autotune", "./run")
_GROUP: Any = typer.main.get_command(app)
_COMMANDS = dict(commands_of(_GROUP))
_STORED = {get_args(kind)[1].help for kind in (StudyName, StudyNames)}
# Stands for a study of the reader's.
_PLACEHOLDER = re.compile(r"[A-Z]+|\.\.\.|\./mine\.toml|\$.*")
_LONG = re.compile(r"--[a-z][a-z-]*")
_PUNCTUATION = set("();<>|&")
_IN_OTHER_BLOCKS = re.compile(r"(?:.*&& |until )?(?:autotune|\./run) [a-z]")
_GENERATED = "docs/reference/"


def find_mistakes(page: Page, folder: Path) -> list[str]:
    """Return the mistakes of a page, each with the name of the page and the line.

    Args:
        folder: An empty folder, for the files of the page.
    """
    reader = _Reader(folder)
    before = page
    while before.after is not None:
        before = Page.read(before.after)
        list(reader.read(before))
    return [*reader.read(page), *_mistakes_of_prose(page)]


class _Reader:
    """Reads pages from top to bottom, and remembers the files and studies that a reader has by then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: set[Path] = set()
        """Files that a command writes: what is in them is not known."""
        self._studies = {"mine", *studyfile.catalogue()}
        """The names of studies that may be stored; pages call one of the reader's `mine`."""
        self._registered: set[str] = set()
        """The entry points of packages of the page: nothing is installed here."""

    def read(self, page: Page) -> Iterator[str]:
        """Yield the mistakes of the blocks of a page."""
        for block in page.blocks:
            for mistake in self._read_file(block):
                yield f"{page.name}:{block.place}: {mistake}"
            commands = block.commands or ([] if page.name.startswith(_GENERATED) else _commands_in_text(block))
            for command in commands:
                for mistake in self._read_command(command):
                    yield f"{page.name}:{command.place}: {command.words}: {mistake}"

    def _read_file(self, block: Block) -> Iterator[str]:
        is_read = block.language == "toml" and not block.exempt
        path = self._folder / block.attributes.get("file", f"block-{block.place}.toml")
        if is_read or "file" in block.attributes:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        if not is_read:
            return
        table = tomllib.loads(block.text)
        for names in table.get("project", {}).get("entry-points", {}).values():
            self._registered.update(names)
        if "objective" in table:
            yield from self._mistakes_of_study(path, ())
        elif "references" in table:
            yield from _errors_of(load_references, os.fspath(path))
        elif "file" not in block.attributes and table.keys() <= studyfile.StudyFile.model_fields.keys():
            yield from _errors_of(lambda given: studyfile.parse(_excerpt(given), "the block"), table)

    def _read_command(self, command: Command) -> Iterator[str]:
        here = self._folder
        for words, is_written in _simple_commands(command.kept[1] if command.kept else command.words):
            if is_written:
                self._made.add(_normal(here / words[0]))
            elif words[0] == "cd":
                here = here / words[1]
            elif (place := _place_of_program(words)) is not None:
                yield from self._read_call(words[place], words[place + 1 :], here)

    def _read_call(self, program: str, words: Sequence[str], here: Path) -> Iterator[str]:
        name = words[0]
        if name.startswith("-") or (program, name) == ("./run", "test"):
            yield from _unknown_options(words, _options_of("test" if program == "./run" else None))
            return
        name, rest = _split(words)
        command = _COMMANDS.get(name)
        if command is None:
            yield f"there is no command {name}{did_you_mean(name, _COMMANDS)}"
            return
        try:
            context = _without_callbacks(command).make_context(name, rest)
        except UsageError as error:
            yield error.format_message()
            return
        for parameter in command.params:
            if context.params.get(parameter.name) == "":
                # A command after -- stands for a study.
                yield from [] if "--" in words else [f"Missing argument {parameter.metavar}"]
            elif context.params.get(parameter.name) is not None:
                yield from self._mistakes_of_value(parameter, name, context.params, here)
        if name == "init":
            self._made.add(_normal(here / (context.params["file"] or context.params["target"] or "mine.toml")))
        if name == "pilot":
            yield from self._read_call(program, ["study", context.params["name"], *context.args], here)

    def _mistakes_of_value(self, parameter: Any, command: str, given: dict[str, Any], here: Path) -> Iterator[str]:
        """Yield the mistakes of the value of an argument or option: a study, references or a change of a study file."""
        value = given[parameter.name]
        if parameter.metavar == "STUDY":
            yield from self._mistakes_of_call(command, value, given, here)
        elif parameter.metavar == "KEY=VALUE" and not _names_a_study(_COMMANDS[command]):
            for change in value:
                yield from _mistakes_of_change(change, {"objective": "replay"} if command == "replay" else {})
        elif "--references" in parameter.opts and value not in reference_files():
            yield from _errors_of(load_references, os.fspath(_normal(here / value)))
        elif parameter.help in _STORED:
            for name in [value] if isinstance(value, str) else value:
                if name not in self._studies and not _PLACEHOLDER.fullmatch(name):
                    yield f"the page has made no study {name}{did_you_mean(name, self._studies)}"
        elif parameter.metavar == "NEW" or "--name" in parameter.opts:
            self._studies.add(value)

    def _mistakes_of_call(self, command: str, study: str, given: dict[str, Any], here: Path) -> Iterator[str]:
        """Yield the mistakes of a call that names a study file, or a study that ships."""
        path = studyfile.catalogue().get(study, _normal(here / study))
        if path in self._made:
            self._studies.add(path.stem)
        elif path.is_file():
            yield from self._mistakes_of_study(path, given.get("changes") or ())
            if given.get("input_file"):
                self._studies.add(f"{path.stem}-{input_name(given['input_file'])}")
            if command == "study":
                options = given | {"name": os.fspath(path), "changes": None, "input_file": None}
                yield from self._without_unknowable(_errors_of(read_request, StudyOptions(**options)))
        elif not _PLACEHOLDER.fullmatch(study) and not (
            command in {"sweep", "storage reread"} and study in self._studies
        ):
            yield f"there is no study {study}{did_you_mean(study, studyfile.catalogue())}"

    def _mistakes_of_study(self, path: Path, changes: Sequence[str]) -> Iterator[str]:
        report = check(path, changes, this_machine(), local_launcher(), static=True)
        self._studies.add(path.stem if report.study is None else report.study.name)
        yield from self._without_unknowable(str(mistake) for mistake in report.mistakes)
        # The check leaves the options of some programs to their plans, which need the programs.
        if report.study is not None and not report.mistakes and report.study.objective in OBJECTIVES:
            known = keys_of(OBJECTIVES[report.study.objective])
            for option in report.study.options.keys() - known.keys():
                yield f"options.{option}: there is no such option{did_you_mean(option, known)}"

    def _without_unknowable(self, mistakes: Iterator[str]) -> Iterator[str]:
        """Leave out mistakes about files of the reader's, and about packages that the page installs."""
        for mistake in mistakes:
            if "No such file" not in mistake and not any(f"'{name}'" in mistake for name in self._registered):
                yield mistake


def _commands_in_text(block: Block) -> list[Command]:
    """Return the commands that a block shows that is no shell to be played."""
    if block.language not in {"bash", "text"}:
        return []
    return [Command(line, number, block.exempt) for number, line in block.joined_lines if _IN_OTHER_BLOCKS.match(line)]


def _simple_commands(line: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the words between the punctuation of a line of shell, and whether they are a file that is written."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    is_written = False
    for word in [*lexer, ";"]:
        if set(word) <= _PUNCTUATION:
            if words:
                yield words, is_written
            words, is_written = [], word == ">"
        else:
            words.append(word)


def _place_of_program(words: Sequence[str]) -> int | None:
    """Return which of the words starts autotune: after variables and keywords, or after the `--` of a program."""
    for place, word in enumerate(words):
        if word in _PROGRAMS and (place == 0 or words[place - 1] in {"--", "do", "until"} or "=" in words[place - 1]):
            return place
    return None


def _split(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name of a command, of two words below a group, and what follows it."""
    length = 2 if " ".join(words[:2]) in _COMMANDS else 1
    return " ".join(words[:length]), list(words[length:])


def _normal(path: Path) -> Path:
    return Path(os.path.normpath(path))


def _without_callbacks(command: TyperCommand) -> TyperCommand:
    """Return a command that only parses: callbacks of options look for files."""
    bare = copy.copy(command)
    bare.params = [copy.copy(parameter) for parameter in command.params]
    for parameter in bare.params:
        parameter.callback = None
    return bare


def _names_a_study(command: TyperCommand) -> bool:
    return any(parameter.metavar == "STUDY" for parameter in command.params)


def _errors_of(read: Any, given: object) -> Iterator[str]:
    try:
        read(given)
    except AutotuneError as error:
        yield str(error)
    except UsageError as error:
        yield error.format_message()


def _mistakes_of_change(change: str, table: dict[str, Any]) -> Iterator[str]:
    """Yield the mistakes of a `--set` without its study file: the options may be those of any objective."""
    key, _, _ = change.partition("=")
    section, _, option = key.partition(".")
    if section == "options":
        models = [OBJECTIVES[table["objective"]]] if table else OBJECTIVES.values()
        known = {name for model in models for name in keys_of(model)}
        if option.partition(".")[0] not in known:
            yield f"--set {key}: there is no such option{did_you_mean(option, known)}"
        return
    yield from _errors_of(lambda given: studyfile.apply_overrides(_excerpt(table), [given], "--set"), change)


def _excerpt(table: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a study file with what every study file must have."""
    return {"name": "page", "objective": "command"} | table


def _mistakes_of_prose(page: Page) -> Iterator[str]:
    """Yield the options that the prose of a page names and that no command has."""
    if page.name.startswith(_GENERATED):
        return
    blocks = {number for block in page.blocks for number in block.numbers}
    for number, line in enumerate(page.text.splitlines(), start=1):
        for code in [] if number in blocks else re.findall(r"`([^`]+)`", line):
            # After -- comes the command of another program.
            for mistake in _mistakes_of_code(code.partition(" -- ")[0].split()):
                yield f"{page.name}:{number}: `{code}`: {mistake}"


def _mistakes_of_code(words: list[str]) -> Iterator[str]:
    """Yield the mistakes of code in prose: a command, which need not be complete, or options alone."""
    is_call = len(words) > 1 and words[0] in _PROGRAMS and words[1].isalpha()
    if is_call:
        words = words[1:]
    name, rest = _split(words)
    command = _COMMANDS.get(name)
    if command is not None or name == "test":
        yield from _unknown_options(rest, _options_of(name))
    elif is_call:
        yield f"there is no command {name}{did_you_mean(name, _COMMANDS)}"
    elif words and words[0].startswith("--"):
        yield from _unknown_options(words, _all_options())
    else:
        return
    if is_call and command is not None and _names_a_study(command) and name not in {"sweep", "storage reread"}:
        for study in rest[:1]:
            is_name = re.fullmatch(r"\w[\w-]*", study) and not _PLACEHOLDER.fullmatch(study)
            if is_name and study not in studyfile.catalogue():
                yield f"there is no study {study}{did_you_mean(study, studyfile.catalogue())}"
    for before, change in pairwise(words):
        if before == "--set" and not change.startswith("section."):
            yield from _mistakes_of_change(change.strip("'"), {})


def _unknown_options(words: Sequence[str], known: set[str]) -> Iterator[str]:
    for word in words:
        found = _LONG.match(word)
        if found and found[0] not in known:
            yield f"no such option: {found[0]}{did_you_mean(found[0], known)}"


@cache
def _options_of(command: str | None) -> set[str]:
    """Return the options of a command, of `./run` and its `test`, or of autotune itself."""
    if command == "test":
        return set(re.findall(r"^ +(--[\w-]+)[)/]", (ROOT / "run").read_text(encoding="utf-8"), re.MULTILINE))
    parameters = (_GROUP if command is None else _COMMANDS[command]).params
    own = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
    return {"--help", *own} | (_options_of("study") if command == "pilot" else set())


@cache
def _all_options() -> set[str]:
    return OTHERS_OPTIONS.union(*(_options_of(name) for name in (None, "test", *_COMMANDS)))
