"""`autotune init`: write a first study file for a command."""

import os
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.command_words import WithWords, words_after
from autotune.cli.common import echo, errors, output
from autotune.errors import StudyFileError
from autotune.files import write_output

_STDOUT = "-"
_DEFAULT = "mine.toml"


class WithCommand(WithWords):
    """`init`, which says where `--` is missing."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Keep the words after `--`, and parse those before."""
        if "--" not in args and (start := self._start_of_command(ctx, args)) is not None and not ctx.resilient_parsing:
            msg = f"put -- before the command: autotune init {shlex.join([*args[:start], '--', *args[start:]])}"
            raise StudyFileError(msg)
        return super().parse_args(ctx, args)

    def _start_of_command(self, ctx: typer.Context, args: list[str]) -> int | None:
        """Return the index of the first word that is neither an option nor a study file, if unknown options follow."""
        known = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        unknown = [word.startswith("-") and word.partition("=")[0] not in {*known, _STDOUT} for word in args]
        for index, word in enumerate(args):
            if unknown[index]:
                return None
            is_value = index > 0 and args[index - 1] in {"-o", "--output"}
            if not (is_value or word.startswith("-") or word.endswith(".toml")):
                return index if any(unknown[index:]) else None
        return None


def init(
    context: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help=f"The file to write, {_DEFAULT} by default.", show_default=False),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="The file to write; - prints the text."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented study file for a command.

    Give the command after --: autotune init mine.toml -- mpirun -np 4 ./solve --threads 2
    """
    from autotune.machines.this_machine import this_machine
    from autotune.planning.command_line import propose_knobs
    from autotune.planning.study_template import example_command, parameter_notes, study_text
    from autotune.planning.training_template import find_training, training_text
    from launchers.secret import mask_words

    words = words_after(context) or list(example_command())
    if target is not None and file is not None:
        msg = f"{file} and -o {target}: give one file to write"
        raise StudyFileError(msg)
    name = target or file or _DEFAULT
    try:
        training = find_training(words, os.environ)
        text = study_text(words, os.environ) if training is None else training_text(words, training)
        text.encode()
    except UnicodeEncodeError:
        msg = "the command has bytes that are not UTF-8; a study file must be UTF-8"
        raise StudyFileError(msg) from None
    proposal = propose_knobs(words, os.environ)
    if name == _STDOUT:
        echo(text)
    else:
        _write(name, text, force=force, private=mask_words(words) != words)
        if (study := proposal.program.study) is not None:
            ships = f"\nA study of this program ships, with more of its knobs: autotune study {study}"
            output().print(ships)
    if not words_after(context):
        errors().print(f"note: no command was given: this is an example that tunes {Path(words[0]).name}")
    differences = [training.note] if training else parameter_notes(words, os.environ, this_machine().facts)
    for note in (*proposal.notes, *differences):
        errors().print(f"note: {note}")
    if shutil.which(proposal.argv[0]) is None:
        errors().print(f"note: no program {proposal.argv[0]} on this host")


def _write(name: str, text: str, *, force: bool, private: bool) -> None:
    """Write the study file, and print what to do next."""
    path = Path(name)
    if path.suffix != ".toml":
        msg = f"{name}: a study file ends in .toml ({path.name or 'mine'}.toml); give a command after --"
        raise StudyFileError(msg)
    if path.exists() and not force:
        msg = f"{name} exists: replace it with --force, give another name, or print with -o -"
        raise StudyFileError(msg)
    try:
        write_output(path, text, private=private)
    except OSError as error:
        msg = f"cannot write {name}: {error.strerror}"
        raise StudyFileError(msg) from error
    here = name if "/" in name else f"./{name}"
    output().print(f"wrote {name}: read it, correct what is wrong, then\n")
    output().print(f"    autotune check {here} --run\n    autotune study {here}")
