"""`autotune ablate`: measure what each changed option of the winner gains, and drop those that gain nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.commands.confirm import weighted_study
from autotune.cli.common import output, picture_path, print_json
from autotune.cli.notify import notify_at_end
from autotune.cli.options import PictureOption, StudyName, WeightsOption, with_options
from autotune.cli.session_options import SessionOptions
from autotune.comparison.findings import Ablation, OptionEffect, Worth, alongside
from autotune.errors import ExitCode
from autotune.formatting import configuration_text, join_words, value_text
from autotune.statistics.ratio_words import Interval

if TYPE_CHECKING:
    from rich.table import Table

    from autotune.coordination.session_settings import SessionSettings
    from autotune.studyfile.definition import Definition


@with_options
def ablate(
    name: StudyName,
    rounds: Annotated[int | None, typer.Option("--rounds", min=3, help="Number of runs of each variant.")] = None,
    picture: PictureOption = None,
    weights: WeightsOption = None,
    *,
    session: SessionOptions,
) -> None:
    """Measure what each changed option of the winner gains.

    Each option is measured alone on the default, and by its absence from the winner. Options that do not help are
    dropped.
    """
    from autotune.pictures.ablation import ablation as chart_of
    from autotune.pictures.files import save
    from autotune.storage.study_store import StudyStore
    from autotune.tuning.session import ablate_study

    study, settings = session.load_stored(name, {"pairs": rounds} if rounds else None)
    if weights is not None:
        study = weighted_study(study, settings, weights)
    with notify_at_end(session.notify, settings.name) as end:
        with session.open_display(settings) as (paused, display):
            ablation = ablate_study(study, paused, display, study.verdict.pairs)
        end.verdict = conclusion(ablation) if ablation is not None else ""
        if session.as_json:
            print_json(_to_dict(ablation) if ablation else None)
        if ablation is None:
            _report_no_winner(settings, as_json=session.as_json)
            return
        definition = StudyStore.read(settings.url, name).definition
        if not session.as_json:
            _print_effects(ablation, definition)
        chart = chart_of(ablation, definition.target, definition.metrics)
        if chart is None or (session.as_json and picture is None):
            return
        if (path := picture or picture_path(settings.runs / "ablation.png")) is not None:
            save(replace(chart, title=f"study {name}: what each option is worth"), path)
            if not session.as_json:
                output().print(f"picture: {path}")


def _print_effects(ablation: "Ablation", definition: "Definition") -> None:
    from autotune.pictures.ablation import bars, lines

    for metric, one in ablation.readings(definition.target, definition.metrics):
        output().print(table_of(one, metric.name if ablation.further else None))
        for effect in one.effects:
            if effect.why:
                output().print(f"{effect.name}: {effect.why}")
        for line in lines(bars(one, metric), metric):
            output().print(line)
    output().print(conclusion(ablation))


def _report_no_winner(settings: "SessionSettings", *, as_json: bool) -> None:
    """Print why a study has no winner to ablate.

    Raises:
        typer.Exit: No configuration keeps the limits; the exit code is that of the study.
    """
    from autotune.results.summary import summarise
    from autotune.storage.stored_study import open_stored_study

    summary = summarise(open_stored_study(settings.url, settings.name))
    why = (summary.verdict_sentence() or "no configuration of this study is better than the default").rstrip(".")
    if not as_json:
        output().print(f"{why}: there is no winner to ablate")
    if summary.nearest is not None:
        raise typer.Exit(ExitCode.NOTHING_FEASIBLE)


def _to_dict(ablation: Ablation) -> dict[str, Any]:
    """Return an ablation as JSON-able values, with the worth of each option."""
    values = ablation.to_dict() | {"accepted": ablation.is_accepted}
    effects = zip(values["effects"], ablation.effects, strict=True)
    return values | {
        "effects": [row | {"worth": effect.worth.value} for row, effect in effects],
        "further": [_to_dict(one) for one in ablation.further],
    }


def table_of(ablation: Ablation, metric: str | None = None) -> "Table":
    """Return a table with a row for each option; its title names the `metric`, if one is given."""
    from rich.table import Column, Table

    place = "in the winner" if metric is None else f"in trial {ablation.winner}"
    measured = (Column(name, min_width=16) for name in ("alone on the default", place))
    title = None if metric is None else f"trial {ablation.winner}, by {metric}"
    table = Table(Column("option", overflow="fold"), *measured, "", title=title)
    for effect in ablation.effects:
        table.add_row(
            "\n".join(_change(effect, name) for name in effect.parameters),
            _figure_lines(effect.alone, effect.alone_with),
            _figure_lines(effect.within, effect.within_with),
            effect.worth.value,
        )
    return table


def _change(effect: OptionEffect, name: str) -> str:
    before, after = (value_text(values.get(name)) for values in (effect.default, effect.value))
    return f"{name}: {before} -> {after}"


def _figure_lines(interval: Interval | None, others: Sequence[str]) -> str:
    """Return a ratio and its interval on separate lines, so that the table fits 80 columns."""
    lines = ["not measured"] if interval is None else [f"{interval[0]:.3f}x", f"{interval[1]:.3f} to {interval[2]:.3f}"]
    return "\n".join(filter(None, (*lines, alongside(others))))


def _interval(interval: Interval) -> str:
    return f"{interval[0]:.3f}x ({interval[1]:.3f} to {interval[2]:.3f})"


def conclusion(ablation: Ablation) -> str:
    """Return the conclusion of an ablation in words."""
    heading = (
        f"{ablation.confidence:.0%} intervals, {ablation.rounds} interleaved rounds; "
        "above 1: the option makes it better"
    )
    if not ablation.dropped or ablation.simplified is None:
        return f"{heading}\n{_nothing_dropped(ablation)}"
    if ablation.breaks:
        names, they = ", ".join(ablation.dropped), "it stays" if len(ablation.dropped) == 1 else "they stay"
        return f"{heading}\nwithout {names} {ablation.subject} breaks {', '.join(ablation.breaks)}: {they}"
    if not ablation.is_accepted:
        return f"{heading}\n{_why_kept(ablation)}"
    gone = [row for row in ablation.rows if _is_dropped(row, ablation.dropped)]
    dropped = "; ".join(f"{row[0].name} ({_worth(row, ablation)})" for row in gone)
    return f"{heading}\ndropped: {dropped}\nsimplified: {configuration_text(ablation.simplified)}{_gain(ablation)}"


def _nothing_dropped(ablation: Ablation) -> str:
    if not all(any(effect.worth is Worth.HELPS for effect in row) for row in ablation.rows):
        return f"no option of {ablation.subject} can be left out" + f": trial {ablation.winner}" * (
            not ablation.further
        )
    if ablation.further:
        return f"every option of {ablation.subject} helps in one metric or more"
    return f"every option of the winner helps: trial {ablation.winner}"


def _is_dropped(row: Sequence[OptionEffect], dropped: Sequence[str]) -> bool:
    return all(effect.is_dispensable for effect in row) and {*row[0].without} <= {*dropped}


def _worth(row: Sequence[OptionEffect], ablation: Ablation) -> str:
    if not ablation.further:
        return row[0].worth.value
    pairs = zip(row, ablation.by_metric, strict=True)
    return ", ".join(f"{effect.worth.value} in {one.metric}" for effect, one in pairs)


def _gain(ablation: Ablation) -> str:
    if not ablation.further:
        return f", {_interval(ablation.over_default)} over the default" if ablation.over_default else ""
    gains = [f"{one.metric} {_interval(one.over_default)}" for one in ablation.by_metric if one.over_default]
    return f", over the default: {', '.join(gains)}"


def _why_kept(ablation: Ablation) -> str:
    options, worse = ablation.dropped, f"{ablation.subject} is worse"
    worse += f" in {join_words(ablation.worse)}" if ablation.further else ""
    if len(options) == 1:
        return f"{options[0]} seems to be worth nothing, but without it {worse}: it stays"
    return f"each of {', '.join(options)} alone is worth nothing, but without all of them {worse}: they stay"
