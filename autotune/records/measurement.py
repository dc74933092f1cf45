"""Measured: what is known of one configuration on one machine, from a study or from elsewhere.

A setting is where configurations compete: one program, machine and workload, and one metric. Values of different
settings are never compared with each other, only learned from together.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Self

from autotune.records.stored import Stored
from objectives.base import Metric
from spaces import Configuration
from spaces.parameters.parameter import Value

Facts = Mapping[str, Value]
"""Numbers and words by name; units are in the names (`memory_bytes`)."""


@dataclass(frozen=True)
class Setting(Stored):
    """One program on one machine with one workload, judged by one metric.

    `machine` and `workload` are names; their facts are what a model learns from. `source` says where the figures come
    from: a study, a file, the page that they stand on; `identity` is a digest of the program's version and its input,
    where they are known. Some sources do not say on how many nodes it was: then `nodes_known` is false.
    """

    program: str
    machine: str
    workload: str
    metric: Metric
    machine_facts: Facts = field(default_factory=dict)
    workload_facts: Facts = field(default_factory=dict)
    source: str = ""
    identity: str = ""
    nodes_known: bool = True

    @property
    def nodes(self) -> int:
        """On how many nodes of its machine it was measured, as its facts say; one where they do not."""
        nodes = self.machine_facts.get("nodes", 1)
        return nodes if isinstance(nodes, int) and nodes > 1 else 1

    @property
    def place(self) -> str:
        """The machine, and how many of its nodes if there are several, or nobody knows how many."""
        if not self.nodes_known:
            return f"{self.machine}, nobody says how many nodes"
        return self.machine if self.nodes == 1 else f"{self.machine}, {self.nodes} nodes"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from others: an allocation of more nodes is another place."""
        return (self.program, self.place, self.workload, self.metric.name)

    def may_be_identical(self, other: Self) -> bool:
        """Return whether nobody knows of another version of the program, or another input, there."""
        return len({self.identity, other.identity} - {""}) <= 1


@dataclass(frozen=True)
class Judged:
    """What a verdict says of configurations: the `winner` among them, in fresh runs beside the default of its study.

    `said` is how many times better it is than that default (`over`), with the ends of the interval at a `confidence`;
    None where the runs were too few. It `holds` if the winner surely beats the default, and works.
    """

    winner: Configuration
    over: Configuration
    holds: bool
    confidence: float
    said: tuple[float, float, float] | None


@dataclass(frozen=True)
class Measured(Stored):
    """What is known of a configuration: the median `value` of its `runs`, a `bound` that it is worse than, or neither.

    With neither it failed, always: `failure` says how. `default` tells that it is what runs when nobody tunes. `idle`
    are the parameters that had no effect where it was measured, in the program's own words. `parts` are the wall-clock
    seconds of the program's parts in one of the runs, the one nearest to the value, where the program says them. `told`
    are the medians of its other metrics, by name, with what is measured of every run.

    `error` is the standard error of the logarithm of the value, by the noise that its study saw with so many `degrees`
    of freedom; None where nobody knows it. `judged` is what a verdict says of it, or of a winner that was chosen among
    it and others.
    """

    setting: Setting
    configuration: Configuration
    value: float | None = None
    bound: float | None = None
    runs: int = 1
    failure: str = ""
    default: bool = False
    idle: tuple[str, ...] = ()
    parts: Mapping[str, float] = field(default_factory=dict)
    told: Mapping[str, float] = field(default_factory=dict)
    error: float | None = None
    degrees: float = 0.0
    judged: Judged | None = None

    @property
    def content(self) -> Hashable:
        """What was measured, wherever the figures come from: the same runs under another path are the same."""
        found = (self.value, self.bound, self.runs, self.failure)
        return (self.setting.key, tuple(sorted(self.configuration.items())), found)

    @property
    def failed(self) -> bool:
        """Whether it does not work there."""
        return self.value is None and self.bound is None
