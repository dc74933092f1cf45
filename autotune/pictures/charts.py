"""The charts that a study has."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from autotune.pictures.ablation import ablation
from autotune.pictures.chart import Chart
from autotune.pictures.counts import failures, ledger
from autotune.pictures.curves import curves
from autotune.pictures.decisions import decisions
from autotune.pictures.over import over
from autotune.pictures.parts import parts
from autotune.pictures.predictions import Measured, predicted, started_with
from autotune.pictures.progress import progress
from autotune.pictures.slices import parallel, slices
from autotune.pictures.tradeoff import front_growth, tradeoff
from autotune.pictures.uncertainty import disturbance, noise, pairs

if TYPE_CHECKING:
    from autotune.decisions.table import DecisionTable
    from autotune.performance.regression.prediction import Prediction
    from autotune.results.summary import Summary
    from autotune.scheduling.hyperband import Bracket

NAMES = (
    *(
        "decisions",
        "progress",
        "pairs",
        "tradeoff",
        "hypervolume",
        "curves",
        "ablation",
        "parts",
        "importance",
        "slices",
        "over",
        "parallel",
        "predicted",
        "noise",
        "disturbance",
        "failures",
    ),
    "ledger",
)
"""The names of all charts, in the order in which a study shows those that it has."""


def charts_of(
    summary: "Summary",
    brackets: "Sequence[Bracket]" = (),
    prediction: "Prediction | None" = None,
    measured: Measured = (),
    table: "DecisionTable | None" = None,
) -> list[Chart]:
    """Return the charts of a study, in the order of `NAMES`; all but the importance, which takes half a second.

    `brackets` are Hyperband's (`autotune.scheduling.stored_brackets`). With a `prediction` the chart `predicted` is of
    that, beside `measured` values and those of the study; otherwise of what a warm start expected, if there was one.
    A study that looks for a decision `table` has that, and nothing of one winner: its trials do not compete.
    """
    standings = summary.standings
    if summary.has_decision_table:
        plain = (noise, disturbance, failures)
        drawn = [None if table is None else decisions(table), *(make(summary) for make in plain)]
        return [chart for chart in (*drawn, ledger(summary.ledger)) if chart is not None]
    charts = [make(summary) for make in _PLAIN]
    charts += [
        curves(summary, brackets),
        ledger(summary.ledger),
        ablation(summary.ablation, standings.metric, summary.definition.metrics) if summary.ablation else None,
        _predicted(summary, prediction, measured),
    ]
    return in_order(charts)


def in_order(charts: Iterable[Chart | None]) -> list[Chart]:
    """Return those of charts that there are, in the order of `NAMES`, and then any that only the page has."""
    drawn = [chart for chart in charts if chart is not None]
    return sorted(drawn, key=lambda chart: NAMES.index(chart.name) if chart.name in NAMES else len(NAMES))


_PLAIN = (
    progress,
    pairs,
    noise,
    disturbance,
    tradeoff,
    front_growth,
    parts,
    slices,
    over,
    parallel,
    failures,
)


def _predicted(summary: "Summary", prediction: "Prediction | None", measured: Measured) -> Chart | None:
    if prediction is None:
        return started_with(summary)
    standings = summary.standings
    own = [(trial.configuration, standings.value(trial)) for trial in standings.measured]
    return predicted(prediction, [*measured, *own])
