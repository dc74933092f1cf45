"""Options that several commands share, and commands whose options are the fields of a dataclass."""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from autotune.cli.completion import study_files, study_names
from autotune.storage import address

DEFAULT_STORAGE = address.DEFAULT

Storage = Annotated[
    str,
    typer.Option(
        "--storage",
        envvar="AUTOTUNE_STORAGE",
        help="Where studies are kept: a SQLite file, or an address such as postgresql+psycopg://user@host/database.",
        show_default=True,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for another program.")]
WeightsOption = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="METRIC=WEIGHT,...",
        help="Of a trade-off: the point of its front for these weights, such as time_s=2,energy_j=1.",
    ),
]
TrialsOption = Annotated[
    str | None,
    typer.Option(
        "--trials",
        metavar="NUMBER|auto",
        help="Total number of trials, earlier sessions included; auto: until more search no longer pays.",
    ),
]
TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="DURATION", help="Start no new trial after this time (15m, 1h30m); then confirm."
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TIME",
        help="Stop cleanly before this time (17:30, 2026-11-22T17:30). Exit code 7: there is more to do. "
        "Inside a job of a batch system, the default is the job's end.",
    ),
]
WaitOption = Annotated[
    bool, typer.Option("--wait", help="If another process holds the study or the cores, wait until it is done.")
]
TakeOverOption = Annotated[
    bool,
    typer.Option(
        "--take-over", help="If another process holds the study, ask it to stop, and continue from what is stored."
    ),
]


class Noise(StrEnum):
    """What is done about disturbed runs."""

    ACCEPT = "accept"
    WAIT = "wait"
    REFUSE = "refuse"


NoiseOption = Annotated[
    Noise | None,
    typer.Option(
        "--noise",
        help="What is done about runs that others on the machine disturb: make them again, and wait until it is "
        "quiet (wait); give up (refuse); let them count (accept).",
    ),
]
StatusOption = Annotated[
    Path | None,
    typer.Option("--status", metavar="FILE", help="Write the study's progress to FILE as JSON, at most once a second."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print the result only, nothing on the way to it.")]
NotifyOption = Annotated[
    str | None,
    typer.Option(
        "--notify",
        metavar="COMMAND|URL",
        help="At the end, however that comes, run this command without a shell (AUTOTUNE_STUDY, AUTOTUNE_EXIT_CODE and "
        "AUTOTUNE_VERDICT say what came of it), or post that as JSON to this http or https address.",
    ),
]
StudyName = Annotated[
    str, typer.Argument(help="The study's name; `autotune list` shows the names.", autocompletion=study_names)
]
StudyNames = Annotated[
    list[str], typer.Argument(help="Names of studies; `autotune list` shows them.", autocompletion=study_names)
]
StudyArgument = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="A study that ships with autotune (qe), or a study file (./mine.toml).",
        autocompletion=study_files,
    ),
]
InstallationOption = Annotated[
    list[str] | None,
    typer.Option(
        "--installation",
        metavar="NAME=VALUE",
        help="How the program is installed on a described machine: compiler=gcc. Repeatable. Default: as in most "
        "of what was measured there.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the study file: budget.workers=2. Repeatable."),
]
InputOption = Annotated[
    str | None,
    typer.Option("--input", metavar="FILE", help="The program's input file. autotune copies it and never changes it."),
]
RunsOption = Annotated[
    Path | None, typer.Option("--runs", help="Folder for the runs' folders; by default beside the storage.")
]


def _there(storages: list[str] | None) -> list[str] | None:
    """Refuse a storage that is not there, before anything else takes its time.

    Raises:
        StorageError: it is a file that is not there.
    """
    if storages:
        from autotune.storage.connection import readable_address

        for storage in storages:
            readable_address(address.storage_url(storage))
    return storages


AlsoOption = Annotated[
    list[str] | None,
    typer.Option(
        "--also",
        metavar="STORAGE",
        help="Learn from the measurements in this storage, too. Repeatable.",
        callback=_there,
    ),
]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of its parameters that are dataclasses, in their place, as arguments and options."""
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

    # What Typer reads.
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
