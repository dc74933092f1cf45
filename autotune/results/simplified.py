"""What was measured of a simplified configuration, in a sentence."""

from collections.abc import Sequence

from autotune.comparison.findings import Ablation
from autotune.statistics.ratio_words import moved
from autotune.statistics.speed_up import SpeedUp
from objectives.base import Metric


def simplified_speed_up(ablation: Ablation | None) -> SpeedUp | None:
    """Return the speed-up over the default; None where it was not measured."""
    if ablation is None or ablation.over_default is None:
        return None
    ratio, low, high = ablation.over_default
    return SpeedUp(ratio, (low, high))


def simplified_sentence(ablation: Ablation, target: Metric, metrics: Sequence[Metric]) -> str:
    """Say what was measured, of a point of a front in each metric of the trade-off; `target` is the optimised one."""
    without = f"trial {ablation.winner} without {', '.join(ablation.dropped)}"
    rounds = f"{ablation.rounds} interleaved rounds"
    if ablation.further:
        readings = ablation.readings(target, metrics)
        said = "; ".join(moved(one.over_default, metric) for metric, one in readings if one.over_default is not None)
        return f"{without} is in no metric worse than with them; against the default {said}, {rounds}"
    speed_up = simplified_speed_up(ablation)
    return (
        f"{without} is as good as with them" if speed_up is None else f"{without} is {speed_up.words(target)}, {rounds}"
    )
