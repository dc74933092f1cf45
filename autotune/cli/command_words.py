"""Words after `--`: the command line of another program."""

import typer
from typer.core import TyperCommand

_WORDS = "autotune.words"


class WithWords(TyperCommand):
    """A command that keeps the words after `--` in its context."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Keep the words after `--`, and parse those before."""
        if "--" in args:
            separator = args.index("--")
            ctx.meta[_WORDS] = args[separator + 1 :]
            args = args[:separator]
        return super().parse_args(ctx, args)


def words_after(context: typer.Context) -> list[str]:
    """Return the words after `--`; none without it."""
    return list(context.meta.get(_WORDS) or ())


def commands_after(context: typer.Context) -> list[list[str]]:
    """Return the commands after `--`, which further `--` separate."""
    commands: list[list[str]] = [[]]
    for word in words_after(context):
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    return [command for command in commands if command]
