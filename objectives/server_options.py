"""The `[options.server]` of `objective = "command"`: the server that the command is the load of."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from launchers.server import PORT
from objectives.base import Metric
from objectives.mentions.words import CommandLine, VariableName


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ReadyOptions(_Section):
    """The sign that a server is ready: its port accepts connections, a URL answers, or a line of its log matches."""

    port: Literal[True] | None = None
    url: str | None = None
    line: str | None = None

    @property
    def sign(self) -> tuple[str, str]:
        """The sign for the launcher."""
        return (
            ("url", self.url) if self.url is not None else ("line", self.line) if self.line is not None else (PORT, "")
        )


class HighestOptions(_Section):
    """A search for the highest value of the load at which its metrics keep limits.

    Args:
        name: The name of the value, for placeholders and as a metric.
        unit: Its unit.
        low: The lowest value.
        high: The highest value; with two whole numbers only these are tried.
        keep: The limits, by metric: the most of one that is minimized, the least of one that is maximized.
    """

    name: str
    unit: str = ""
    low: int | float = Field(alias="from", gt=0)
    high: int | float = Field(alias="to", gt=0)
    keep: dict[str, float] = Field(min_length=1)

    @property
    def metric(self) -> Metric:
        """The value as the metric that is optimised."""
        return Metric(self.name, self.unit, "maximize")

    def broken_limit(self, metrics: Sequence[Metric], values: Mapping[str, float]) -> str | None:
        """Return which limit the figures of a load break; None if they keep all."""
        for metric in metrics:
            limit = self.keep.get(metric.name)
            if limit is None or metric.cost(values[metric.name]) <= metric.cost(limit):
                continue
            than = "less" if metric.direction == "maximize" else "more"
            shown = f"{values[metric.name]:g} {metric.unit}".rstrip()
            return f"{metric.name} is {shown}, {than} than {limit:g}"
        return None


class ServerOptions(_Section):
    """The `[options.server]` of a command, which then is the server's load.

    All words are templates, as those of the command: `{port}` is a free port of the run, `{seed}` its AUTOTUNE_SEED.

    Args:
        argv: The server.
        environment: Its environment variables, beside those of the command.
        ready: The sign that it is ready.
        ready_within_s: The seconds that it may take.
        warm_up: Commands that run once when it is ready.
        reset: Commands that run before each load.
        stop: The signal that stops it.
        stop_within_s: The seconds after which it is killed.
        failure: Patterns of lines of its log that mean that it failed.
        highest: The search for the highest load; without it a run has one load.
    """

    argv: CommandLine = Field(min_length=1)
    environment: dict[VariableName, str] = Field(default_factory=dict)
    ready: ReadyOptions = ReadyOptions(port=True)
    ready_within_s: float = Field(default=60.0, gt=0)
    warm_up: list[CommandLine] = Field(default_factory=list)
    reset: list[CommandLine] = Field(default_factory=list)
    stop: str = "SIGTERM"
    stop_within_s: float = Field(default=10.0, ge=0)
    failure: list[str] = Field(default_factory=list)
    highest: HighestOptions | None = None

    @property
    def steps(self) -> list[tuple[str, CommandLine]]:
        """The command lines besides the server's own, each with its path below the server's options."""
        groups = (("warm_up", self.warm_up), ("reset", self.reset))
        return [(f"{key}.{i}", step) for key, steps in groups for i, step in enumerate(steps)]

    @property
    def run_values(self) -> tuple[str, ...]:
        """The names of the values that a run finds when it starts the server."""
        return (PORT,) if self.highest is None else (PORT, self.highest.name)
