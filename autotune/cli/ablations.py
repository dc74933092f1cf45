"""An ablation as the command line shows it: a table of the options, and what follows from it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from autotune.comparison.findings import Ablation, OptionEffect, Worth, alongside
from autotune.formatting import listed, shown, written
from autotune.statistics.ratio_words import Interval

if TYPE_CHECKING:
    from rich.table import Table


def described(ablation: Ablation) -> dict[str, Any]:
    """Return the JSON-able form, with the worth of each option."""
    values = ablation.to_dict() | {"accepted": ablation.accepted}
    effects = zip(values["effects"], ablation.effects, strict=True)
    return values | {
        "effects": [row | {"worth": effect.worth.value} for row, effect in effects],
        "further": [described(one) for one in ablation.further],
    }


def table_of(ablation: Ablation, metric: str | None = None) -> "Table":
    """Return a row for each option; the title names the `metric`, where there are several."""
    from rich.table import Column, Table

    place = "in the winner" if metric is None else f"in trial {ablation.winner}"
    measured = (Column(name, min_width=16) for name in ("alone on the default", place))
    title = None if metric is None else f"trial {ablation.winner}, by {metric}"
    table = Table(Column("option", overflow="fold"), *measured, "", title=title)
    for effect in ablation.effects:
        table.add_row(
            "\n".join(_change(effect, name) for name in effect.parameters).replace("[", r"\["),
            _measured(effect.alone, effect.alone_with),
            _measured(effect.within, effect.within_with),
            effect.worth.value,
        )
    return table


def _change(effect: OptionEffect, name: str) -> str:
    before, after = (_shown(values.get(name)) for values in (effect.default, effect.value))
    return f"{name}: {before} -> {after}"


def _shown(value: object) -> str:
    return "unset" if value is None else written(value)


def _measured(interval: Interval | None, others: Sequence[str]) -> str:
    """Return a figure on lines of its own: a line with both would not leave room for the others at 80 columns."""
    lines = ["not measured"] if interval is None else [f"{interval[0]:.3f}x", f"{interval[1]:.3f} to {interval[2]:.3f}"]
    return "\n".join(filter(None, (*lines, alongside(others)))).replace("[", r"\[")


def _interval(interval: Interval) -> str:
    return f"{interval[0]:.3f}x ({interval[1]:.3f} to {interval[2]:.3f})"


def conclusion(ablation: Ablation) -> str:
    """Return the conclusion of an ablation in words."""
    said = (
        f"{ablation.confidence:.0%} intervals, {ablation.rounds} interleaved rounds; "
        "above 1: the option makes it better"
    )
    if not ablation.dropped or ablation.simplified is None:
        return f"{said}\n{_nothing_dropped(ablation)}"
    if ablation.breaks:
        names, they = ", ".join(ablation.dropped), "it stays" if len(ablation.dropped) == 1 else "they stay"
        return f"{said}\nwithout {names} {ablation.subject} breaks {', '.join(ablation.breaks)}: {they}"
    if not ablation.accepted:
        return f"{said}\n{_kept(ablation)}"
    gone = [row for row in ablation.rows if _is_dropped(row, ablation.dropped)]
    dropped = "; ".join(f"{row[0].name} ({_worth(row, ablation)})" for row in gone)
    return f"{said}\ndropped: {dropped}\nsimplified: {shown(ablation.simplified)}{_gain(ablation)}"


def _nothing_dropped(ablation: Ablation) -> str:
    if not all(any(effect.worth is Worth.HELPS for effect in row) for row in ablation.rows):
        return f"no option of {ablation.subject} can be left out" + f": trial {ablation.winner}" * (
            not ablation.further
        )
    if ablation.further:
        return f"every option of {ablation.subject} helps in one metric or more"
    return f"every option of the winner helps: trial {ablation.winner}"


def _is_dropped(row: Sequence[OptionEffect], dropped: Sequence[str]) -> bool:
    return all(effect.dispensable for effect in row) and {*row[0].without} <= {*dropped}


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


def _kept(ablation: Ablation) -> str:
    options, worse = ablation.dropped, f"{ablation.subject} is worse"
    worse += f" in {listed(ablation.worse)}" if ablation.further else ""
    if len(options) == 1:
        return f"{options[0]} seems to be worth nothing, but without it {worse}: it stays"
    return f"each of {', '.join(options)} alone is worth nothing, but without all of them {worse}: they stay"
