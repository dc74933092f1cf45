"""Observation: what the sampler knows of a trial."""

from dataclasses import dataclass

from optuna.trial import FrozenTrial, TrialState

BOUND = "bound"
"""The attribute of a capped trial: its value would not have been better."""


@dataclass(frozen=True)
class Observation:
    """A value from that many runs, or a bound that the value is not better than, or nothing.

    Without both, the trial failed, unless it is `pending`. A `partial` value is that of a trial that was left before
    its last step. `second` is the value of the other metric of a trade-off as a logarithm, lower is better.
    """

    value: float | None = None
    bound: float | None = None
    runs: int = 1
    pending: bool = False
    partial: bool = False
    second: float | None = None


def observed(trial: FrozenTrial) -> Observation:
    """Read what storage tells of a trial."""
    match trial.state:
        case TrialState.COMPLETE:
            return Observation(value=trial.value)
        case TrialState.RUNNING | TrialState.WAITING:
            return Observation(pending=True)
        case _:
            bound = trial.user_attrs.get(BOUND)
            return Observation(bound=None if bound is None else float(bound))
