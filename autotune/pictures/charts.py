"""The charts of a study."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from autotune.pictures.ablation import ablation
from autotune.pictures.chart import Chart
from autotune.pictures.curves import curves
from autotune.pictures.decisions import decisions
from autotune.pictures.importance import importance
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
    *("decisions", "progress", "pairs", "tradeoff", "hypervolume", "curves", "ablation", "parts", "importance"),
    *("slices", "parallel", "predicted", "noise", "disturbance"),
)
"""The names of all charts, in the order of the report."""

Draw = Callable[[], Chart | None]
"""A function that draws a chart; None if there is too little to draw."""


def drawers_of(
    summary: "Summary",
    brackets: "Sequence[Bracket]" = (),
    table: "DecisionTable | None" = None,
) -> Mapping[str, Draw]:
    """Return a function for each chart that a study of this kind has, by name in the order of `NAMES`.

    A study that looks for a decision table has no charts of a winner, since its trials do not compete.

    Args:
        summary: The study.
        brackets: The brackets of Hyperband (`autotune.scheduling.hyperband`).
        table: The decision table, if the study looks for one.
    """
    uncertainty: dict[str, Draw] = {"noise": partial(noise, summary), "disturbance": partial(disturbance, summary)}
    if summary.has_decision_table:
        return {"decisions": lambda: None if table is None else decisions(table), **uncertainty}
    metric, metrics = summary.standings.metric, summary.definition.metrics
    drawers: dict[str, Draw] = {
        "progress": partial(progress, summary),
        "pairs": partial(pairs, summary),
        "tradeoff": partial(tradeoff, summary),
        "hypervolume": partial(front_growth, summary),
        "curves": partial(curves, summary, brackets),
        "parts": partial(parts, summary),
        "importance": partial(importance, summary),
        "slices": partial(slices, summary),
        "parallel": partial(parallel, summary),
        "predicted": partial(warm_start_prediction, summary),
        **uncertainty,
    }
    if summary.ablation is not None:
        drawers["ablation"] = partial(ablation, summary.ablation, metric, metrics)
    return {name: drawers[name] for name in NAMES if name in drawers}


def charts_of(
    summary: "Summary",
    brackets: "Sequence[Bracket]" = (),
    table: "DecisionTable | None" = None,
) -> list[Chart]:
    """Return the charts of a study: see `drawers_of`."""
    return [chart for draw in drawers_of(summary, brackets, table).values() if (chart := draw()) is not None]


def names_on_page(summary: "Summary") -> list[str]:
    """Return the names of the charts that the page of the service shows, the main one first, without drawing any."""
    if not any(trial.runs for trial in summary.trials):
        return []
    if summary.has_decision_table:
        shown = {"decisions": True}
    else:
        verdict, is_front = summary.present_verdict, summary.front is not None
        shown = {
            "curves": summary.steps is not None,
            "tradeoff": is_front,
            "progress": not is_front,
            "pairs": verdict is not None and verdict.known,
            "ablation": summary.ablation is not None,
            "importance": True,
            "slices": True,
        }
    return [name for name, has in (shown | {"timeline": not summary.definition.replay}).items() if has]
