"""What matters: the share of the differences that each parameter explains, and each pair beyond that."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autotune.pictures.chart import Axis, Bars, Cell, Chart, Panel, Role, Table
from autotune.pictures.scales import short

if TYPE_CHECKING:
    from autotune.results.effects.importance import Importance, Share

_MOST = 15
_LETTERS = 28


def importance_chart(found: "Importance") -> Chart:
    """Draw the shares of the parameters, and those of the largest pairs, with their intervals."""
    panels = [_panel("each parameter alone", found.parameters)]
    if found.pairs:
        panels.append(_panel("each pair, beyond its two parameters", found.pairs))
    sentences = " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in found.sentences())
    drawn = [len(shares) > _MOST for shares in (found.parameters, found.pairs)]
    more = f" Drawn are the largest {_MOST}; the table has all." if any(drawn) else ""
    text = (
        f"Shares of the variance of the logarithms of {found.metric} over all valid configurations, each equally "
        f"likely, by a model of {found.trials} trials; the bars have 95% intervals, and one that reaches 0 may do "
        f"nothing. {sentences}{more}"
    )
    rows = tuple(_row(share.name, share) for share in (*found.parameters, *found.pairs))
    table = Table(("parameters", "share [%]", "from", "to"), (*rows, _row("all else", found.rest)))
    return Chart("importance", "What matters", text, tuple(panels), table, len(panels))


def _panel(title: str, shares: "Sequence[Share]") -> Panel:
    drawn = shares[:_MOST]
    places = tuple(map(float, range(len(drawn))))
    ticks = tuple((place, short(share.name, _LETTERS)) for place, share in zip(places, drawn, strict=True))
    bars = Bars(
        Role.TRIAL,
        "",
        places,
        tuple(_percent(share.share) for share in drawn),
        tuple(f"{share.name}\n{share.text()}" for share in drawn),
        tuple(_percent(share.low) for share in drawn),
        tuple(_percent(share.high) for share in drawn),
    )
    return Panel(Axis("share of the variance", "%"), Axis(ticks=ticks, reverse=True), (bars,), title)


def _row(name: str, share: "Share") -> tuple[Cell, ...]:
    return name, _percent(share.share), _percent(share.low), _percent(share.high)


def _percent(share: float) -> float:
    return round(100.0 * share, 1)
