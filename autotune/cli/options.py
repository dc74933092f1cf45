"""Options that several commands share, and `with_options`, which turns the fields of a dataclass into options."""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from autotune.cli.completion import any_studies, study_files, study_names
from autotune.storage import address

DEFAULT_STORAGE = address.DEFAULT


def _storage_option(callback: Callable[[typer.Context, str], str] | None = None) -> Any:  # noqa: ANN401  Typer's own
    return typer.Option(
        "--storage",
        envvar="AUTOTUNE_STORAGE",
        help="A SQLite file, or postgresql+psycopg://user@host/database.",
        show_default=True,
        callback=callback,
    )


def _check_storage(context: typer.Context, storage: str) -> str:
    """Refuse a missing storage before the command imports what reads one; a shell that completes words needs none."""
    if not context.resilient_parsing:
        address.check_exists(address.storage_url(storage))
    return storage


Storage = Annotated[str, _storage_option()]
ExistingStorage = Annotated[str, _storage_option(_check_storage)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for another program.")]
WeightsOption = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="METRIC=WEIGHT,...",
        help="Choose the point of a trade-off: time_s=2,energy_j=1.",
    ),
]
TrialsOption = Annotated[
    str | None,
    typer.Option(
        "--trials",
        metavar="NUMBER|auto",
        help="Total number of trials; auto: until search no longer pays.",
    ),
]
TimeoutOption = Annotated[
    str | None,
    typer.Option("--timeout", metavar="DURATION", help="Start no new trial after this time (15m, 1h30m)."),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TIME",
        help="Stop before this time (17:30, 2026-11-22T17:30). Default: the end of the job.",
    ),
]
WaitOption = Annotated[bool, typer.Option("--wait", help="Wait while another process uses the study or the cores.")]
TakeOverOption = Annotated[
    bool,
    typer.Option("--take-over", help="Stop the process that runs the study, and resume it here."),
]


class Noise(StrEnum):
    """What to do about disturbed runs."""

    ACCEPT = "accept"
    WAIT = "wait"
    REFUSE = "refuse"


NoiseOption = Annotated[
    Noise | None,
    typer.Option(
        "--noise",
        help="If other programs disturb a run: count it, repeat it later, or give up.",
    ),
]
StatusOption = Annotated[
    Path | None,
    typer.Option("--status", metavar="FILE", help="Write the progress to this file as JSON."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print the result only.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Print the end of every run.")]
NotifyOption = Annotated[
    str | None,
    typer.Option(
        "--notify",
        metavar="COMMAND|URL",
        help="Run this command at the end, or post the result to this URL.",
    ),
]
StudyName = Annotated[
    str, typer.Argument(metavar="NAME", help="The study's name in the storage.", autocompletion=study_names)
]
StudyNames = Annotated[
    list[str], typer.Argument(metavar="NAME", help="The studies' names in the storage.", autocompletion=study_names)
]
StudyArgument = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="A study that ships (qe), or a study file (./mine.toml).",
        autocompletion=study_files,
    ),
]
AnyStudyArgument = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="A stored study, a study that ships (qe), or a study file (./mine.toml).",
        autocompletion=any_studies,
    ),
]
InstallationOption = Annotated[
    list[str] | None,
    typer.Option(
        "--installation",
        metavar="NAME=VALUE",
        help="How the program is installed on the machine: compiler=gcc. Repeatable.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the study file: budget.workers=2. Repeatable."),
]
InputOption = Annotated[
    str | None,
    typer.Option("--input", metavar="FILE", help="Use this input file of the program."),
]
RunsOption = Annotated[
    Path | None, typer.Option("--runs", help="Folder for the runs' folders. Default: beside the storage.")
]


def check_drawable(path: Path | None) -> Path | None:
    """Refuse a picture file whose ending is not a known format, or that cannot be drawn here.

    Raises:
        typer.BadParameter: The format is unknown.
        CannotRunHereError: This installation cannot draw.
    """
    if path is None:
        return None
    from autotune.cli.packages import require_modules
    from autotune.pictures import FORMATS

    if path.suffix.lower() not in FORMATS:
        msg = f"{path}: a picture ends in {', '.join(FORMATS)}"
        raise typer.BadParameter(msg)
    require_modules("matplotlib")
    return path


NameOption = Annotated[
    str | None, typer.Option("--name", help="Name of the study in the storage. Default: that of the study file.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and change nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
PictureOption = Annotated[
    Path | None,
    typer.Option(
        "--picture",
        metavar="FILE",
        help="File for the picture (.png, .svg, .pdf).",
        callback=check_drawable,
    ),
]
ScriptFileOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the job script to this file.")
]


def _check_storages(context: typer.Context, storages: list[str] | None) -> list[str] | None:
    for storage in storages or ():
        _check_storage(context, storage)
    return storages


AlsoOption = Annotated[
    list[str] | None,
    typer.Option(
        "--also",
        metavar="STORAGE",
        help="Learn from the measurements in this storage, too. Repeatable.",
        callback=_check_storages,
    ),
]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is a dataclass by its fields, so that Typer reads them as arguments and options."""
    hints = get_type_hints(command, include_extras=True)
    kinds = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    parameters: list[Parameter] = []
    for one in signature(command).parameters.values():
        if one.name in kinds:
            parameters += _parameters(kinds[one.name])
        else:
            parameters.append(one.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[one.name]))

    @wraps(command)
    def from_options(**given: Any) -> None:  # noqa: ANN401  the values of the options
        for name, kind in kinds.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    # Typer reads the parameters from these two attributes.
    from_options.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    from_options.__annotations__ = {one.name: one.annotation for one in parameters}
    return from_options


def _parameters(kind: Any) -> list[Parameter]:  # noqa: ANN401  a dataclass
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]
