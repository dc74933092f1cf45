"""Run reports: the result of a run, as its client reports it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

from autotune.asktell.errors import InvalidRequestError
from autotune.records.outcome import Outcome
from launchers import Usage
from launchers.software.digest import text_digest
from objectives.base import FailureKind, InvalidResult
from objectives.external import ExternalObjective

_MESSAGE_CHARACTERS = 400
_MOST_CORES = 10**8


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """The result of a run: exactly one of `value`, `metrics`, `failure` and `bound`.

    Attributes:
        value: The value of the target metric.
        metrics: The values of several metrics, by name.
        failure: A word of `objectives.base.FailureKind`. After an infrastructure error, the configuration runs again.
        bound: The run was stopped because it had lost: the target metric would not have been better than this.
        message: The reason of a failure.
        elapsed_s: The duration of the run, in seconds.
        cores: The number of cores that the run held.
    """

    value: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    failure: str | None = None
    bound: float | None = None
    message: str = ""
    elapsed_s: float | None = None
    cores: int = 1

    @property
    def digest(self) -> str:
        """A digest of all fields."""
        return text_digest(json.dumps(asdict(self) | {"metrics": dict(self.metrics)}, sort_keys=True, default=repr))

    def outcome(self, objective: ExternalObjective, held_s: float, *, cappable: bool) -> Outcome:
        """Return the outcome of the run.

        Args:
            objective: The objective of the study.
            held_s: The seconds since the client asked for the run.
            cappable: Whether a bound is enough.

        Raises:
            InvalidRequestError: The report has not exactly one result, or one that is not valid.
        """
        self._check()
        usage = Usage(elapsed_s=self._duration_s(objective, held_s))
        words = self.message.strip()[:_MESSAGE_CHARACTERS]
        try:
            if self.failure is not None:
                kind = _kind(self.failure)
                return Outcome(failure=kind, code="told", message=words or f"reported: {kind.value}", usage=usage)
            if self.bound is not None:
                objective.check_target(_number("bound", self.bound))
                if not cappable:
                    _refuse_bound()
                better = "above" if objective.metrics[0].direction == "maximize" else "below"
                said = words or f"was stopped, {objective.metrics[0].name} not {better} {self.bound:g}"
                return Outcome(bound=float(self.bound), code="capped", message=said, usage=usage)
            values: Mapping[str, Any] = self.metrics or {objective.metrics[0].name: self.value}
            return Outcome(metrics=objective.measurement_of(values).metrics, message=words, usage=usage)
        except InvalidResult as error:
            raise InvalidRequestError(str(error)) from None

    def _check(self) -> None:
        given = [
            name
            for name, there in (
                ("value", self.value is not None),
                ("metrics", bool(self.metrics)),
                ("failure", self.failure is not None),
                ("bound", self.bound is not None),
            )
            if there
        ]
        if len(given) != 1:
            msg = f"a report has exactly one of value, metrics, failure and bound; got {', '.join(given) or 'none'}"
            raise InvalidRequestError(msg)
        if self.elapsed_s is not None and _number("elapsed_s", self.elapsed_s) < 0.0:
            msg = f"elapsed_s is {self.elapsed_s:g}: it must not be negative"
            raise InvalidRequestError(msg)
        if isinstance(self.cores, bool) or not isinstance(self.cores, int) or not 1 <= self.cores <= _MOST_CORES:
            msg = f"cores is {self.cores!r}: a run holds a whole number of cores, from 1 up"
            raise InvalidRequestError(msg)

    def _duration_s(self, objective: ExternalObjective, held_s: float) -> float:
        """Return the run's duration: as reported, else the target metric if that is in seconds, else `held_s`."""
        if self.elapsed_s is not None:
            return float(self.elapsed_s)
        target = objective.metrics[0]
        value = self.metrics.get(target.name, self.value)
        if target.is_seconds and value is not None and _is_finite(value) and value > 0.0:
            return float(value)
        return max(0.0, held_s)


def _is_finite(value: Any) -> bool:  # noqa: ANN401  what others send
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def _number(name: str, value: float) -> float:
    if _is_finite(value):
        return value
    msg = f"{name} is {value!r}: it must be a finite number"
    raise InvalidRequestError(msg)


def _kind(word: str) -> FailureKind:
    try:
        return FailureKind(word)
    except ValueError:
        known = ", ".join(repr(kind.value) for kind in FailureKind)
        msg = f"failure is {word!r}; known: {known}"
        raise InvalidRequestError(msg) from None


def _refuse_bound() -> None:
    msg = (
        "this run cannot have a bound: the default configuration, and the runs that it is compared with at the end, "
        "must be run to their ends; report a value or a failure"
    )
    raise InvalidRequestError(msg)
