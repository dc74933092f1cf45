"""The look of each role in files and in the report.

The colours are those of Okabe & Ito ("Color universal design", 2008), which differ for people with any common kind of
colour blindness. Shapes and dashes differ as well, so that a picture can be read in grey. `DARK` has the colours for
dark screens.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.pictures.chart import Role


@dataclass(frozen=True)
class Look:
    """The look of a mark.

    Attributes:
        colour: As #rrggbb.
        marker: A marker of matplotlib.
        size: The size of the marker in points.
        hollow: Whether the marker is only an outline.
        width: The width of lines in points.
        dash: The line style of matplotlib.
        alpha: The opacity, from 0 to 1.
        above: The drawing order; larger values are drawn over smaller ones.
    """

    colour: str
    marker: str = "o"
    size: float = 4.5
    hollow: bool = False
    width: float = 1.0
    dash: str = "-"
    alpha: float = 1.0
    above: int = 2


LOOKS: Mapping[Role, Look] = {
    Role.TRIAL: Look("#0072b2", alpha=0.7),
    Role.BEST: Look("#d55e00", width=1.8, above=4),
    Role.WINNER: Look("#009e73", marker="*", size=11, width=2.4, above=6),
    Role.BASELINE: Look("#4d4d4d", marker="D", size=5.5, width=1.5, dash="--", above=5),
    Role.BAND: Look("#d55e01", alpha=0.2, above=1),
    Role.CAPPED: Look("#8a6d3b", marker="^", hollow=True),
    Role.FAILED: Look("#b3123f", marker="x"),
    Role.INVALID: Look("#b3124f", marker="P"),
    Role.PAUSED: Look("#7a7a7a", hollow=True, width=0.8, alpha=0.7),
    Role.RUNG: Look("#a6a6a6", dash=":", above=1),
    Role.PREDICTED: Look("#a8457e", hollow=True, size=6),
    Role.MEASURED: Look("#009e74", marker="D", size=5.5, above=4),
    Role.GUIDE: Look("#b8b8b8", width=0.8, dash=":", above=1),
    Role.SERIES: Look("#0072b4", size=3.5, alpha=0.7),
}

SERIES = ("#0072b4", "#d55e03", "#009e75", "#a8458e", "#8a6d4b", "#4d4d5d", "#57a0d4", "#b3125f")
"""The colours of the series, in rotation."""

SERIES_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
"""The markers of the series, in rotation."""

INK = "#222222"
GRID = "#e3e3e3"
PAPER = "#fefefe"

DARK: Mapping[str, str] = {
    INK: "#e6e6e6",
    GRID: "#3a3f45",
    PAPER: "#16191d",
    "#0072b2": "#56b4e9",
    "#0072b4": "#56b4e9",
    "#d55e00": "#f5a34a",
    "#d55e01": "#f5a34a",
    "#d55e03": "#f5a34a",
    "#009e73": "#2fd3a3",
    "#009e74": "#2fd3a3",
    "#009e75": "#2fd3a3",
    "#4d4d4d": "#c9c9c9",
    "#4d4d5d": "#c9c9c9",
    "#8a6d3b": "#d9b877",
    "#8a6d4b": "#d9b877",
    "#b3123f": "#ff7d98",
    "#b3124f": "#ff7d98",
    "#b3125f": "#ff7d98",
    "#7a7a7a": "#9a9a9a",
    "#a6a6a6": "#7c7c7c",
    "#57a0d4": "#9ad0f5",
    "#a8457e": "#f09ccb",
    "#a8458e": "#f09ccb",
    "#b8b8b8": "#6a6a6a",
}
"""The colour on dark screens for each colour of a picture."""
