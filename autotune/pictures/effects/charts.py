"""The charts of a model of a study's trials, and all charts that a study has."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autotune.pictures.chart import Chart
from autotune.pictures.charts import charts_of, place_of
from autotune.pictures.effects.contour import contour
from autotune.pictures.effects.importance import importance_chart

if TYPE_CHECKING:
    from autotune.decisions.table import DecisionTable
    from autotune.results.summary import Summary
    from autotune.scheduling.hyperband import Bracket


def modelled_charts(summary: "Summary") -> list[Chart]:
    """Return the charts of a model of a study's trials: what matters, and the two that matter most over each other.

    They take half a second, however many trials there are.
    """
    from autotune.results.effects.importance import importance_of  # noqa: PLC0415  takes a second to import
    from autotune.results.effects.process import study_process  # noqa: PLC0415

    known = study_process(summary)
    found = None if known is None else importance_of(summary, known)
    if known is None or found is None:
        return []
    first, second = found.leading
    drawn = contour(summary, known, (first, second)) if second else None
    return [importance_chart(found), *([drawn] if drawn is not None else [])]


def every_chart_of(
    summary: "Summary", brackets: "Sequence[Bracket]" = (), table: "DecisionTable | None" = None
) -> list[Chart]:
    """Return all charts that a study has, in the order of `NAMES`; the arguments are those of `charts_of`."""
    charts = [*charts_of(summary, brackets, table=table), *modelled_charts(summary)]
    return sorted(charts, key=lambda chart: place_of(chart.name))
