"""The chart of the front of time against core-hours, with the chosen size."""

from autotune.formatting import configuration_text
from autotune.performance.rightsizing.right_size import RightSize, Size
from autotune.pictures.chart import Axis, Chart, Line, Mark, Panel, Points, Role, Table
from autotune.pictures.labels import count_noun, is_wide


def right_size_chart(found: RightSize, study: str) -> Chart:
    """Return the chart of the times of the front, with their intervals, over the core-hours."""
    groups = {
        (Role.MEASURED, "measured"): [size for size in found.front if size.measured and size != found.chosen],
        (Role.PREDICTED, "predicted"): [size for size in found.front if not size.measured and size != found.chosen],
        (Role.WINNER, "chosen"): [found.chosen],
    }
    hours, times = ([size.core_hours for size in found.front], [size.time_s for size in found.front])
    marks: list[Mark] = [Line(Role.GUIDE, "", tuple(hours), tuple(times))]
    for (role, label), sizes in groups.items():
        if sizes:
            low, high = tuple(size.low_s for size in sizes), tuple(size.high_s for size in sizes)
            x, y = tuple(size.core_hours for size in sizes), tuple(size.time_s for size in sizes)
            marks.append(Points(role, label, x, y, tuple(map(_hover_text, sizes)), low, high))
    panel = Panel(
        Axis("core-hours", log=is_wide(hours)),
        Axis("time", "s", log=is_wide([*times, found.chosen.high_s])),
        tuple(marks),
    )
    text = (
        f"The time of a run of {study} over its core-hours, with intervals: {count_noun(len(found.front), 'size')}; no "
        f"size is both slower and dearer than another. {found.sentence()}"
    )
    columns = ("nodes", "cores", "time [s]", "from", "to", "core-hours", "configuration")
    rows = tuple(
        (
            size.nodes,
            size.cores,
            size.time_s,
            size.low_s,
            size.high_s,
            size.core_hours,
            configuration_text(size.configuration),
        )
        for size in found.front
    )
    return Chart("rightsize", f"{study}: time against core-hours", text, (panel,), Table(columns, rows))


def _hover_text(size: Size) -> str:
    taken = f"{count_noun(size.nodes, 'node')}, {count_noun(size.cores, 'core')}"
    return f"{taken}\n{configuration_text(size.configuration)}\n{size.time_s:.4g} s, {size.core_hours:.3g} core-hours"
