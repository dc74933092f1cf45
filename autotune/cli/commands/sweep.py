"""`autotune sweep`: measure the values of one or two parameters while the others stay fixed."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.command_words import WithWords, words_after  # noqa: F401  the table of commands names it
from autotune.cli.commands.compare import command_starter, compare_sides
from autotune.cli.common import names_over, output, picture_path, print_json
from autotune.cli.notify import notify_at_end
from autotune.cli.options import AnyStudyArgument, InputOption, PictureOption, with_options
from autotune.cli.session_options import SessionOptions
from autotune.formatting import configuration_text, plain_line
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from rich.table import Table

    from autotune.comparison.command_rounds import CommandComparison
    from autotune.comparison.scaling import Estimate, ScalingPoint
    from autotune.comparison.sweep import Sweep
    from autotune.coordination.session_settings import SessionSettings
    from autotune.results.summary import Summary
    from autotune.studyfile import StudyFile
    from spaces import Configuration, Space


# Options that also apply to a command after `--`.
_OF_COMMANDS = frozenset({"over", "repeats", "input_file", "as_json"})


@with_options
def sweep(
    context: typer.Context,
    over: Annotated[
        str,
        typer.Option(
            "--over",
            metavar="NAME[,NAME]",
            help="Sweep this, or two. Of a command: NAME=1,2,4 or NAME=1..64*2.",
        ),
    ],
    name: AnyStudyArgument = "",
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--values",
            metavar="VALUE,...",
            help="Values of the parameter; again for the second. Default: up to a dozen.",
        ),
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Fix another parameter at this value. Repeatable."),
    ] = None,
    at: Annotated[
        str,
        typer.Option("--at", metavar="default|best|TRIAL", help="Take the other values from this configuration."),
    ] = "default",
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Number of runs of each value.")] = 6,
    picture: PictureOption = None,
    input_file: InputOption = None,
    *,
    session: SessionOptions,
) -> None:
    """Measure the values of one or two parameters.

    The same command again resumes; more --repeats add rounds of runs. Of a command, nothing is stored:
    autotune sweep --over threads=1,2,4 -- ./solve --threads {threads}
    """
    if not name or words_after(context):
        _sweep_command(context, over, repeats, input_file, as_json=session.as_json)
        return
    from autotune.comparison.sweep import Request, conclusion
    from autotune.pictures.ablation import lines
    from autotune.pictures.files import save
    from autotune.pictures.sweep import sweep_bars, sweep_chart
    from autotune.tuning.session import sweep_study

    swept = _parse_over(over, values or [])
    base_name = "default" if at == "default" else "best" if at == "best" else f"trial {_parse_trial(at)}"
    request = Request(swept, _parse_fixed(fixed or []), repeats, base_name)
    study, settings = _load_study(name, input_file, session)
    with notify_at_end(session.notify, settings.name) as end:

        def drawn(result: "Sweep") -> str:
            return "\n".join(lines(sweep_bars(result), result.metric))

        def base(summary: "Summary", space: "Space") -> "Configuration":
            return _base(at, summary, space)

        with session.open_display(settings) as (paused, display):
            result = sweep_study(study, paused, display, request, base, drawn)
        end.verdict = conclusion(result)
        chart = sweep_chart(result, settings.name)
        if session.as_json:
            print_json({"study": settings.name, **result.to_dict()})
            if chart is not None and picture is not None:
                save(chart, picture)
            return
        leading = [leader.sentence(result.metric) for leader in result.leaders]
        for line in (drawn(result), *_notes_on_left_out(result), *leading, end.verdict):
            output().print(line)
        for kind in ("strong", "weak"):
            points = [point for point in result.scaling if point.kind == kind]
            if points:
                output().print(_scaling_table(points, f"{kind} scaling"))
        default = settings.runs / f"sweep-{'-'.join(result.over)}.png"
        if chart is not None and (path := picture or picture_path(default)) is not None:
            save(chart, path)
            output().print(f"picture: {path}")


def _check_only_of_commands(context: typer.Context) -> None:
    """Refuse options that need a study."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in _OF_COMMANDS:
            msg = "is for the sweep of a study; a command after -- takes --over, --repeats, --input and --json"
            raise typer.BadParameter(msg, param_hint="STUDY" if parameter.name == "name" else parameter.opts[0])


def _sweep_command(context: typer.Context, over: str, repeats: int, input_file: str | None, *, as_json: bool) -> None:
    """Sweep a word of a command line."""
    words = words_after(context)
    if not words:
        msg = "give a study, or a command after --: autotune sweep --over threads=1,2,4 -- ./solve --threads {threads}"
        raise typer.BadParameter(msg, param_hint="STUDY")
    _check_only_of_commands(context)
    from autotune.comparison.command_rounds import CommandSide
    from autotune.planning.knob_values import parse_values
    from launchers.secret import placeholder_options
    from objectives.mentions.templates import fill_in, names_in, template_errors

    parameter, values = parse_values(over)
    wrong = template_errors(("", word) for word in words)
    if wrong or {name for word in words for name in names_in(word)} != {parameter}:
        msg = f"{{{parameter}}} must stand in the command, and no other name; write {{{{ or }}}} for a brace"
        raise typer.BadParameter(msg, param_hint="--")

    def side(value: int | str) -> CommandSide:
        filled = tuple(fill_in(word, {parameter: value}) or "" for word in words)
        return CommandSide(
            plain_line(f"{parameter}={value}"), {parameter: value}, None, filled, placeholder_options(words)
        )

    given = None if input_file is None else Path(input_file)
    with command_starter(None, given, None, 0.0) as starter:
        compare_sides(tuple(map(side, values)), starter, repeats, None, _bar_lines, as_json=as_json, rounds=repeats)


def _bar_lines(found: "CommandComparison") -> list[str]:
    from statistics import median

    from autotune.pictures.ablation import Bar, lines
    from objectives.command import ELAPSED

    base, bars = list(found.table.values(0).values()), []
    for index, side in enumerate(found.table.sides):
        values, ratio = list(found.table.values(index).values()), found.ratio(index) if index else None
        if ratio is not None and base:
            middle, low, high = (median(base) / factor for factor in (ratio[0], ratio[2], ratio[1]))
            bars.append(Bar(side.label, middle, low, high))
        elif values:
            bars.append(Bar(side.label, median(values), median(values), median(values)))
    return lines(tuple(bars), ELAPSED)


def _scaling_table(points: "list[ScalingPoint]", title: str) -> "Table":
    from rich.table import Column, Table

    others = list(dict.fromkeys(name for point in points for name in point.others))
    fixed = (Column(name, no_wrap=True) for name in ("processes", "runs", "value", "speed-up", "efficiency"))
    table = Table(*fixed, *(Column(name.replace("_", " ")) for name in others), title=title)
    table.caption = f"the first: {configuration_text(points[0].configuration)}"
    for point in points:
        table.add_row(
            str(point.processes),
            str(point.runs),
            f"{point.value:.4g}",
            _estimate(point.speed_up, ".2f"),
            _estimate(point.efficiency, ".0%"),
            *(f"{point.others[name]:.2g}" if name in point.others else "" for name in others),
        )
    return table


def _estimate(estimate: "Estimate", form: str) -> str:
    value, low, high = estimate
    return f"{value:{form}}" if low is None or high is None else f"{value:{form}} ({low:{form}} to {high:{form}})"


def _notes_on_left_out(result: "Sweep") -> list[str]:
    missing = [f"not measured, {point.label}: {point.why}" for point in result.points if point.why]
    return missing + [f"breaks {'; '.join(point.broken)}, {point.label}" for point in result.points if point.broken]


def _parse_over(over: str, values: Sequence[str]) -> dict[str, list[str] | None]:
    names = names_over(over)
    if len(values) > len(names):
        msg = f"given {len(values)} times, but --over has {len(names)}; give the values of one parameter as 1,2,4"
        raise typer.BadParameter(msg, param_hint="--values")
    texts: list[list[str] | None] = [[text.strip() for text in some.split(",")] for some in values]
    return dict(zip(names, [*texts, *[None] * (len(names) - len(texts))], strict=True))


def _parse_fixed(words: Sequence[str]) -> dict[str, str]:
    fixed = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.strip():
            msg = f"{word!r} is not NAME=VALUE, where NAME is a parameter"
            raise typer.BadParameter(msg, param_hint="--set")
        fixed[key.strip()] = text.strip()
    return fixed


def _parse_trial(at: str) -> int:
    number = re.fullmatch(r"(?:trial\s+)?(\d+)", at.strip())
    if number is None:
        msg = f"{at!r} is neither default, nor best, nor the number of a trial"
        raise typer.BadParameter(msg, param_hint="--at")
    return int(number[1])


def _base(at: str, summary: "Summary", space: "Space") -> "Configuration":
    from autotune.errors import CannotRunHereError

    if at == "default":
        return space.default()
    if at == "best":
        best = summary.best
        if best is None:
            msg = "no configuration of this study has worked yet, so there is no best: leave --at out"
            raise CannotRunHereError(msg)
        # `best` is the best trial even if the verdict recommends the default.
        chosen = summary.configuration if summary.to_use is best else None
        return best.configuration if chosen is None else chosen
    trial = summary.standings.trials.get(_parse_trial(at))
    if trial is None:
        msg = f"the study has no trial {_parse_trial(at)}; `autotune trials {summary.name}` lists them"
        raise CannotRunHereError(msg)
    return trial.configuration


def _load_study(name: str, input_file: str | None, session: SessionOptions) -> "tuple[StudyFile, SessionSettings]":
    """Return the stored study of that name, or else the study of a study file, and the settings of its session."""
    from autotune import studyfile
    from autotune.cli.study_request import choose
    from autotune.storage.stored_study import find_stored_studies

    if input_file is None and name in [store.name for store in find_stored_studies(storage_url(session.storage))]:
        return session.load_stored(name)
    study = choose(name, None, input_file)
    return session.resolve_study(study, study.name, studyfile.find(name))
