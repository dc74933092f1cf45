"""The group of all commands, which imports a command's module only when the command is used."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from autotune.cli.command_table import COMMANDS, CommandEntry

if TYPE_CHECKING:
    from typer._click.core import Command
    from typer._click.formatting import HelpFormatter
    from typer._click.shell_completion import CompletionItem


# Typer checks values by pydantic, which puts this before its messages.
_PREFIX = "Value error, "


class CommandGroup(TyperGroup):
    """The commands of a table. Help and completion read the table and import no command."""

    entries: tuple[CommandEntry, ...] = COMMANDS

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401  Typer's own
        """Make the group as Typer does, with commands that are loaded on first use."""
        super().__init__(**settings | {"commands": {}})
        self.commands = _Commands(self.entries)  # type: ignore[assignment]  # read-only, unlike Typer's dict

    def format_commands(self, ctx: typer.Context, formatter: "HelpFormatter") -> None:  # type: ignore[override]
        """Write the groups of commands; wrap long summaries instead of cutting them off."""
        del ctx
        # Start the summaries of all groups in the same column.
        width = max(len(entry.name) for entry in self.entries)
        for group in dict.fromkeys(entry.group for entry in self.entries):
            with formatter.section(group):
                rows = [(entry.name.ljust(width), entry.summary) for entry in self.entries if entry.group == group]
                formatter.write_dl(rows)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # noqa: ANN401  what the command returns
        """Run the command; remove pydantic's prefix, and invisible characters, from messages about option values."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from autotune.formatting import plain

            error.message = plain(error.message.removeprefix(_PREFIX))
            raise

    def shell_complete(self, ctx: typer.Context, incomplete: str) -> "list[CompletionItem]":  # type: ignore[override]
        """Return the commands and options that begin with `incomplete`."""
        from typer._click.shell_completion import CompletionItem

        found = [CompletionItem(entry.name, help=entry.summary) for entry in self.entries]
        # Skip Typer's own completion, which imports every command for its help; its parent completes the options.
        options = super(TyperGroup, self).shell_complete(ctx, incomplete)
        return [item for item in found if item.value.startswith(incomplete)] + options


class _Commands(Mapping[str, "Command"]):
    """The commands by name; a command is imported on first access."""

    def __init__(self, entries: tuple[CommandEntry, ...]) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._loaded: dict[str, Command] = {}

    def __getitem__(self, name: str) -> "Command":
        if name not in self._loaded:
            self._loaded[name] = _load(self._entries[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _load(entry: CommandEntry) -> "Command":
    app = typer.Typer(name=entry.name, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    module = import_module(f"autotune.cli.commands.{entry.module}") if entry.module else None
    if entry.commands:
        group = type("Group", (CommandGroup,), {"entries": entry.commands})
        run = getattr(module, entry.function) if module is not None else _do_nothing
        app.callback(
            cls=group,
            help=run.__doc__ or entry.summary,
            invoke_without_command=bool(module),
            no_args_is_help=not module,
        )(run)
        return typer.main.get_group(app)
    kind = TyperCommand if entry.command_class is None else getattr(module, entry.command_class)
    app.command(entry.name, cls=kind)(getattr(module, entry.function))
    return typer.main.get_command(app)


def _do_nothing() -> None:
    pass
