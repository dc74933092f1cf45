"""Pictures for reports, as files: PNG, SVG or PDF, by the file's name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.bars import Bar
from autotune.errors import CannotRunHereError
from objectives.base import Metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
_INCHES_PER_BAR = 0.32


def draw_bars(found: Sequence[Bar], metric: Metric, title: str, path: Path) -> None:
    """Draw an ablation: a bar for each row with its interval, and a line at the default's value; nothing without bars.

    Raises:
        CannotRunHereError: the file cannot be written.
    """
    if not found:
        return
    from matplotlib.figure import Figure  # noqa: PLC0415  takes a second to import

    figure = Figure(figsize=(9, 1.6 + _INCHES_PER_BAR * len(found)), layout="constrained")
    axes = figure.add_subplot()
    places = list(range(len(found)))
    values = [bar.value for bar in found]
    whiskers = ([bar.value - bar.low for bar in found], [bar.high - bar.value for bar in found])
    colours = ["tab:gray", *("tab:blue" for _ in found[1:])]
    axes.barh(places, values, xerr=whiskers, color=colours, error_kw={"capsize": 3, "lw": 1})
    axes.axvline(values[0], color="black", lw=0.8, ls=":")
    # A dollar sign would begin a formula.
    axes.set_yticks(places, [bar.label.replace("$", r"\$") for bar in found], fontsize=8)
    axes.invert_yaxis()
    better = "more is better" if metric.direction == "maximize" else "less is better"
    axes.set_xlabel(f"{metric.name} [{metric.unit}], {better}")
    axes.set_title(title.replace("$", r"\$"), fontsize=10)
    _save(figure, path)


Point = tuple[float, float, float, float]
"""A measured value, the predicted one, and the ends of its interval."""


def draw_calibration(found: Mapping[str, Mapping[str, Sequence[Point]]], path: Path) -> None:
    """Draw predicted over measured values, a panel for each way to leave out, a colour for each setting.

    Raises:
        CannotRunHereError: the file cannot be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415  takes a second to import

    figure = Figure(figsize=(9 * max(1, len(found)), 6), layout="constrained")
    for place, (title, settings) in enumerate(found.items(), start=1):
        axes = figure.add_subplot(1, len(found), place)
        for name, points in settings.items():
            measured, predicted, low, high = (list(column) for column in zip(*points, strict=True))
            ends = (
                [middle - end for middle, end in zip(predicted, low, strict=True)],
                [end - middle for middle, end in zip(predicted, high, strict=True)],
            )
            label = name.replace("$", r"\$")
            axes.errorbar(measured, predicted, yerr=ends, fmt="o", ms=3, lw=0.6, alpha=0.7, label=label)
        if settings:
            axes.set_xscale("log")
            axes.set_yscale("log")
            values = [value for points in settings.values() for point in points for value in point[:2]]
            axes.plot([min(values), max(values)], [min(values), max(values)], color="black", lw=0.8, ls=":")
            axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
        axes.set_xlabel("measured")
        axes.set_ylabel("predicted, with its 90 % interval")
        axes.set_title(title, fontsize=10)
    _save(figure, path)


def _save(figure: "Figure", path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except OSError as error:
        msg = f"the picture {path} cannot be written: {error.strerror or error}; name another with --picture"
        raise CannotRunHereError(msg) from error
