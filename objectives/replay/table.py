"""The recorded table: the runs of each measured configuration, whatever file they were read from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import Self

from objectives.base import FailureKind, Metric
from spaces import Configuration, Value

Key = tuple[Value | None, ...]
"""The values of a table's parameters, in its order; None for one without a value."""


@dataclass(frozen=True)
class TableRun:
    """One recorded run: it has a value, a failure, or a bound that its value was not better than.

    Args:
        elapsed_s: How long its job took, without set-up (compilation).
        value: Its value of the metric.
        failure: Why it failed.
        bound: A value that its own was not better than.
        code: The code of its failure.
        message: The message of its failure.
        others: Its values of the other metrics, by name, as far as recorded.
        worker: The node that made it, if recorded.
    """

    elapsed_s: float
    value: float | None = None
    failure: FailureKind | None = None
    bound: float | None = None
    code: str = ""
    message: str = ""
    others: Mapping[str, float] = field(default_factory=dict)
    worker: str = ""

    def __post_init__(self) -> None:
        """Refuse a run that does not have exactly one of value, failure and bound."""
        if [self.value is not None, self.failure is not None, self.bound is not None].count(True) != 1:
            msg = f"a recorded run has a value, a failure or a bound, got {self.value}, {self.failure}, {self.bound}"
            raise ValueError(msg)


def _comparable(run: TableRun, metric: Metric) -> TableRun:
    """Return a run; a failed one instead if its value or bound cannot be compared by ratio."""
    number = run.bound if run.value is None else run.value
    why = None if number is None else metric.why_not_comparable(number)
    return (
        run
        if why is None
        else TableRun(
            run.elapsed_s, failure=FailureKind.INVALID_RESULT, code="not-positive", message=why, worker=run.worker
        )
    )


@dataclass(frozen=True)
class Recording:
    """All recorded runs of one configuration; each needs `setup_s` first, and holds `cores`."""

    runs: tuple[TableRun, ...]
    setup_s: float = 0.0
    cores: int = 1

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The values of the runs that have one."""
        return tuple(run.value for run in self.runs if run.value is not None)


@dataclass(frozen=True)
class RecordedTable:
    """The recorded runs of a table's configurations.

    Args:
        parameters: The names of the parameters.
        metric: The optimised metric.
        recordings: The recordings; a key has the values of `parameters` in their order.
        others: The other recorded metrics.
    """

    parameters: tuple[str, ...]
    metric: Metric
    recordings: Mapping[Key, Recording]
    others: tuple[Metric, ...] = ()

    def with_comparable_values(self) -> tuple[Self, list[str]]:
        """Return the table with a failure in place of each value that a study would refuse, and a remark on those."""
        recordings, refused = {}, []
        for key, one in self.recordings.items():
            runs = tuple(_comparable(run, self.metric) for run in one.runs)
            refused += [run for run, before in zip(runs, one.runs, strict=True) if run is not before]
            recordings[key] = one if runs == one.runs else replace(one, runs=runs)
        if not refused:
            return self, []
        count = "1 recorded run counts" if len(refused) == 1 else f"{len(refused)} recorded runs count"
        return replace(self, recordings=recordings), [f"{count} as failed: {refused[0].message}"]

    def key(self, configuration: Configuration) -> Key:
        """Return the key of a configuration."""
        return tuple(configuration.get(name) for name in self.parameters)

    def configuration(self, key: Key) -> dict[str, Value]:
        """Return the configuration of a key."""
        return {name: value for name, value in zip(self.parameters, key, strict=True) if value is not None}

    def recording(self, configuration: Configuration) -> Recording | None:
        """Return the recording of a configuration; None if it was not recorded."""
        return self.recordings.get(self.key(configuration))

    def true_metrics(self, configuration: Configuration) -> dict[str, float]:
        """Return the medians of all recorded metrics of a configuration, by name."""
        found = self.recording(configuration)
        return self._medians(found) if found is not None else {}

    def best_of(self, allowed: Callable[[Mapping[str, float]], bool]) -> float | None:
        """Return the best median among configurations whose medians are allowed, or None."""
        medians = (self._medians(recording) for recording in self.recordings.values())
        values = [known[self.metric.name] for known in medians if self.metric.name in known and allowed(known)]
        return min(values, key=self.metric.cost, default=None)

    @cached_property
    def best(self) -> float | None:
        """The best median of all configurations; None if no run gave a value."""
        return self.best_of(lambda _: True)

    def _medians(self, recording: Recording) -> dict[str, float]:
        known = {self.metric.name: recording.values}
        runs = [run for run in recording.runs if run.value is not None]
        known |= {name: tuple(run.others[name] for run in runs if name in run.others) for name in self._other_names}
        return {name: median(values) for name, values in known.items() if values}

    @property
    def _other_names(self) -> list[str]:
        return [metric.name for metric in self.others]

    def workers(self, configurations: Sequence[Configuration]) -> list[str]:
        """Return the workers on which all of some configurations were recorded."""
        recorded = [self.recording(configuration) for configuration in configurations]
        known = [{run.worker for run in one.runs if run.worker} if one is not None else set() for one in recorded]
        return sorted(set.intersection(*known)) if known else []

    def first_good(self) -> Key | None:
        """Return the first configuration that has a value, or None."""
        return next((key for key, recording in self.recordings.items() if recording.values), None)

    def distinct(self) -> list[list[Value | None]]:
        """Return the values of each parameter in the order of their first occurrence."""
        keys: Sequence[Key] = list(self.recordings)
        return [list(dict.fromkeys(key[place] for key in keys)) for place in range(len(self.parameters))]
