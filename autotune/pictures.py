"""Pictures for reports, as files: PNG, SVG or PDF, by the file's name."""

from collections.abc import Sequence
from pathlib import Path

from autotune.bars import Bar
from autotune.errors import CannotRunHereError
from objectives.base import Metric

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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except OSError as error:
        msg = f"the picture {path} cannot be written: {error.strerror or error}; name another with --picture"
        raise CannotRunHereError(msg) from error
