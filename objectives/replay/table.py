"""The recorded table: for each configuration that was measured its runs, whatever file they were read from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from objectives.base import FailureKind, Metric
from spaces import Configuration, Value

Key = tuple[Value | None, ...]
"""The values of a table's parameters, in its order; None for one without a value."""


@dataclass(frozen=True)
class TableRun:
    """One recorded run: a value of the metric, or a failure, or a bound that its value was not better than.

    `elapsed_s` is how long its job took, without what is paid to set it up (compilation).
    """

    elapsed_s: float
    value: float | None = None
    failure: FailureKind | None = None
    bound: float | None = None
    code: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        """Refuse a run that is several of these or none."""
        if [self.value is not None, self.failure is not None, self.bound is not None].count(True) != 1:
            msg = f"a recorded run has a value, a failure or a bound, got {self.value}, {self.failure}, {self.bound}"
            raise ValueError(msg)


@dataclass(frozen=True)
class Recording:
    """All recorded runs of one configuration; each pays `setup_s` first, and holds `cores`."""

    runs: tuple[TableRun, ...]
    setup_s: float = 0.0
    cores: int = 1

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The values of the runs that have one."""
        return tuple(run.value for run in self.runs if run.value is not None)


@dataclass(frozen=True)
class RecordedTable:
    """What was measured: configuration -> recording. Keys have the values of `parameters`, in their order."""

    parameters: tuple[str, ...]
    metric: Metric
    recordings: Mapping[Key, Recording]

    def key(self, configuration: Configuration) -> Key:
        """Return the key of a configuration."""
        return tuple(configuration.get(name) for name in self.parameters)

    def configuration(self, key: Key) -> dict[str, Value]:
        """Return the configuration of a key."""
        return {name: value for name, value in zip(self.parameters, key, strict=True) if value is not None}

    def recording(self, configuration: Configuration) -> Recording | None:
        """Return what was recorded of a configuration; None if nothing was."""
        return self.recordings.get(self.key(configuration))

    def true_value(self, configuration: Configuration) -> float | None:
        """Return the median of the recorded values of a configuration; None if it has none."""
        found = self.recording(configuration)
        return median(found.values) if found is not None and found.values else None

    @cached_property
    def best(self) -> float | None:
        """The best median of all configurations; None if no run gave a value."""
        values = [median(recording.values) for recording in self.recordings.values() if recording.values]
        return min(values, key=self.metric.cost, default=None)

    def first_good(self) -> Key | None:
        """Return the first configuration that has a value; None if there is none."""
        return next((key for key, recording in self.recordings.items() if recording.values), None)

    def distinct(self) -> list[list[Value | None]]:
        """Return the values of each parameter, in the order in which they come first."""
        keys: Sequence[Key] = list(self.recordings)
        return [list(dict.fromkeys(key[place] for key in keys)) for place in range(len(self.parameters))]
