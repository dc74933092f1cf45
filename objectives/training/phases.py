"""Where the time of a data-parallel training goes, in a sentence where too little of it is computing."""

from collections.abc import Mapping

from objectives.base import Metric

DATA, COMPUTE, COMMUNICATE = Metric("data_s", "s"), Metric("compute_s", "s"), Metric("communicate_s", "s")
PHASES = (DATA, COMPUTE, COMMUNICATE)
"""Of the reports that count, each the mean over workers; as metrics, and in the program's own names."""

VALIDATE = Metric("validate_s", "s")

_WORTH_SAYING = 0.25
_NEAREST = 0.05  # runs of one configuration are to say the same


def parts_of(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the phases by their names, the validation with them where there was one: `data_s` is `data`."""
    names = [metric.name for metric in (*PHASES, VALIDATE)]
    return {name.removesuffix("_s"): seconds[name] for name in names if name in seconds}


def idle_sentence(seconds: Mapping[str, float], *, gpus: bool) -> str:
    """Say for which share of the phases' time nothing is computed; empty where that is less than a quarter."""
    whole = sum(seconds[metric.name] for metric in PHASES)
    idle = whole - seconds[COMPUTE.name]
    if not whole or idle / whole < _WORTH_SAYING:
        return ""
    data, communication = (_rounded(seconds[metric.name] / whole) for metric in (DATA, COMMUNICATE))
    who = "GPUs idle" if gpus else "workers do not compute"
    # The sum of what is said of both, so that nobody wonders.
    return f"the {who} for {data + communication:.0%} of the time: data {data:.0%}, communication {communication:.0%}"


def _rounded(share: float) -> float:
    return _NEAREST * round(share / _NEAREST)
