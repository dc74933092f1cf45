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
    shares = f"data {_share(seconds[DATA.name] / whole)}, communication {_share(seconds[COMMUNICATE.name] / whole)}"
    who = "GPUs idle" if gpus else "workers do not compute"
    return f"the {who} for {_share(idle / whole)} of the time: {shares}"


def _share(value: float) -> str:
    return f"{_NEAREST * round(value / _NEAREST):.0%}"
