"""Observation: what the sampler knows about a trial."""

from dataclasses import dataclass

from optuna.trial import FrozenTrial, TrialState

BOUND = "bound"
"""The attribute of a capped trial: its value would not have been better."""


@dataclass(frozen=True)
class Observation:
    """A trial's value or bound. A trial with neither has failed, unless it is pending.

    Attributes:
        value: The value of the target metric.
        bound: The value would not have been better than this.
        runs: The number of runs behind the value.
        pending: Whether the trial has not ended.
        partial: Whether the trial stopped before its last step.
        curve: The best value up to each step, for a program that works in steps.
        others: The other metrics of a trade-off as costs (lower is better) in their units; None if not measured.
        limited: The metrics with a limit, in their units; None if not measured.
        points: The values by point, for a run that measures several points.
    """

    value: float | None = None
    bound: float | None = None
    runs: int = 1
    pending: bool = False
    partial: bool = False
    curve: tuple[tuple[int, float], ...] = ()
    others: tuple[float | None, ...] = ()
    limited: tuple[float | None, ...] = ()
    points: tuple[tuple[float, float], ...] = ()


def observation_of(trial: FrozenTrial) -> Observation:
    """Return the observation of a trial as Optuna stores it."""
    match trial.state:
        case TrialState.COMPLETE:
            return Observation(value=trial.value)
        case TrialState.RUNNING | TrialState.WAITING:
            return Observation(pending=True)
        case _:
            bound = trial.user_attrs.get(BOUND)
            return Observation(bound=None if bound is None else float(bound))
