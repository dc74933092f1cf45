"""The chart of the importance of each parameter."""

from typing import TYPE_CHECKING

from autotune.formatting import as_sentence
from autotune.pictures.chart import Axis, Bars, Chart, Panel, Role, Table
from autotune.pictures.scales import short

if TYPE_CHECKING:
    from autotune.results.summary import Summary

IMPORTANCE = "importance"
"""The name of the picture."""

_MOST = 15
_LETTERS = 28


def importance(summary: "Summary") -> Chart | None:
    """Return the chart of the shares of the parameters, in half a second; None without an importance."""
    from autotune.results.importance import importance_of  # noqa: PLC0415  imports Optuna

    found = importance_of(summary)
    if found is None:
        return None
    drawn = found.parameters[:_MOST]
    places = tuple(map(float, range(len(drawn))))
    ticks = tuple((place, short(one.name, _LETTERS)) for place, one in zip(places, drawn, strict=True))
    percent = [round(100.0 * one.share, 1) for one in found.parameters]
    bars = Bars(Role.TRIAL, "", places, tuple(percent[: len(drawn)]), tuple(one.text() for one in drawn))
    text = " ".join(map(as_sentence, found.sentences()))
    if len(drawn) < len(percent):
        text += f" The largest {_MOST} are drawn; the table has all."
    table = Table(("parameter", "share [%]"), tuple(zip((one.name for one in found.parameters), percent, strict=True)))
    panel = Panel(Axis("importance", "%"), Axis(ticks=ticks, reverse=True), (bars,))
    return Chart(IMPORTANCE, "What matters", text, (panel,), table)
