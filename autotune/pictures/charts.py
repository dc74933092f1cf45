"""The charts of a study."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from autotune.pictures.ablation import ablation
from autotune.pictures.chart import Chart
from autotune.pictures.costs_and_failures import failures, ledger
from autotune.pictures.curves import curves
from autotune.pictures.decisions import decisions
from autotune.pictures.over_parameter import over
from autotune.pictures.predictions import warm_start_prediction
from autotune.pictures.program_parts import parts
from autotune.pictures.progress import progress
from autotune.pictures.slices import parallel, slices
from autotune.pictures.tradeoff import front_growth, tradeoff
from autotune.pictures.uncertainty import disturbance, noise, pairs

if TYPE_CHECKING:
    from autotune.decisions.table import DecisionTable
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
"""The names of all charts, in the order in which they are shown."""


def charts_of(
    summary: "Summary",
    brackets: "Sequence[Bracket]" = (),
    table: "DecisionTable | None" = None,
) -> list[Chart]:
    """Return the charts of a study in the order of `NAMES`, without the importance, which takes half a second.

    A study that looks for a decision table has no charts of a winner, since its trials do not compete.

    Args:
        summary: The study.
        brackets: The brackets of Hyperband (`autotune.scheduling.hyperband`).
        table: The decision table, if the study looks for one.
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
    ]
    return in_order(charts)


def in_order(charts: Iterable[Chart | None]) -> list[Chart]:
    """Return the charts that are not None in the order of `NAMES`, then those that only the page has."""
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
    warm_start_prediction,
)
