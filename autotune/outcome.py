"""Outcome: how a trial ended, as it is stored."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from launchers import Usage
from objectives.base import Answer, FailureKind


@dataclass(frozen=True)
class Outcome:
    """The end of a trial: a measurement (`failure` is None) or a typed failure.

    `attempts` counts the runs that were needed: more than one only after infrastructure errors. `usage` is that of
    the last run's whole job, start-up of the ranks included.
    """

    metrics: Mapping[str, float] = field(default_factory=dict)
    failure: FailureKind | None = None
    code: str = ""
    message: str = ""
    answer: Answer | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    attempts: int = 1

    def __post_init__(self) -> None:
        """Refuse an outcome that is both or neither."""
        if (self.failure is None) != bool(self.metrics):
            msg = f"an outcome has either metrics or a failure, got {dict(self.metrics)} and {self.failure}"
            raise ValueError(msg)

    @property
    def retryable(self) -> bool:
        """Whether the same configuration deserves another run: the failure was not its fault."""
        return self.failure is FailureKind.INFRASTRUCTURE_ERROR

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form that is stored."""
        return asdict(self) | {"failure": self.failure and self.failure.value}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Read the stored form."""
        values = dict(stored)
        if values.get("failure"):
            values["failure"] = FailureKind(values["failure"])
        if values.get("answer"):
            values["answer"] = Answer(**values["answer"])
        return cls(**values | {"usage": Usage(**values["usage"])})
