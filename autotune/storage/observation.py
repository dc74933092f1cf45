"""Observation: what the sampler knows of a trial."""

from dataclasses import dataclass

from optuna.trial import FrozenTrial, TrialState

BOUND = "bound"
"""The attribute of a capped trial: its value would not have been better."""


@dataclass(frozen=True)
class Observation:
    """A value from that many runs, or a bound that the value is not better than, or nothing.

    Without both, the trial failed, unless it is `pending`. A `partial` value is that of a trial that was left before
    its last step. `others` are the values of the
    other metrics of a trade-off as costs, lower is better; `limited` are those of the metrics with a limit. Both are in
    their units, None where one was not measured. `points` are the values by point of a run that measures several.
    """

    value: float | None = None
    bound: float | None = None
    runs: int = 1
    pending: bool = False
    partial: bool = False
    others: tuple[float | None, ...] = ()
    limited: tuple[float | None, ...] = ()
    points: tuple[tuple[float, float], ...] = ()


def observation_of(trial: FrozenTrial) -> Observation:
    """Read what storage tells of a trial."""
    match trial.state:
        case TrialState.COMPLETE:
            return Observation(value=trial.value)
        case TrialState.RUNNING | TrialState.WAITING:
            return Observation(pending=True)
        case _:
            bound = trial.user_attrs.get(BOUND)
            return Observation(bound=None if bound is None else float(bound))
