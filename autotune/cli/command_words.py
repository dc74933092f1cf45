"""Words after `--`: the command line of another program."""

from typing import Any

import typer
from typer.core import TyperCommand

_WORDS = "autotune.words"
# Click's, or that of the copy of Click that Typer ships.
_UsageError: Any = typer.BadParameter.__base__
_EXTRA = "Got unexpected extra argument"  # as click begins that message


class WithWords(TyperCommand):
    """A command that keeps the words after `--` in its context."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Keep the words after `--`, and parse those before."""
        has_words = "--" in args
        if has_words:
            separator = args.index("--")
            ctx.meta[_WORDS] = args[separator + 1 :]
            args = args[:separator]
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            # With an option that resembles one of ours, the user meant that.
            is_foreign = getattr(error, "possibilities", True) in (None, [])
            if not has_words and (is_foreign or error.message.startswith(_EXTRA)):
                error.message += f"; a command stands after --: {ctx.command_path} -- ./solve --threads 2"
            raise


def words_after(context: typer.Context) -> list[str]:
    """Return the words after `--`; none without it."""
    return list(context.meta.get(_WORDS) or ())


def commands_after(context: typer.Context) -> list[list[str]]:
    """Return the commands after `--`, which further `--` separate; a command may be quoted as a whole.

    Raises:
        StudyFileError: A quoted command needs a shell.
    """
    commands: list[list[str]] = [[]]
    for word in words_after(context):
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    return [_unquoted(command) for command in commands if command]


def _unquoted(command: list[str]) -> list[str]:
    if len(command) > 1 or " " not in command[0].strip():
        return command
    from autotune.planning.shell_words import read_shell_words

    written = read_shell_words(command)
    if written.input_file:
        raise typer.BadParameter(f"give the standard input as --input {written.input_file}", param_hint="--")
    return written.words
