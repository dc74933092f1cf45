"""Measurements of one configuration on one machine, from a study or an import.

Configurations compete within a setting: one program, machine, workload and metric. Models learn from several settings
together, but values of different settings are never compared.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Self

from autotune.records.stored import Stored
from objectives.base import Metric
from spaces import Configuration
from spaces.parameters.parameter import Value

Facts = Mapping[str, Value]
"""Numbers and words by name; the names contain the units (`memory_bytes`)."""


INSTALLATION = frozenset(
    {
        *("build", "compiler", "mpi", "blas", "system_blas", "pw_version", "openmp", "scalapack"),
        *("program_version", "library", "toolchain", "framework"),
    }
)
"""Facts of how the program was built; they count as the machine's, even if stored with the workload."""


@dataclass(frozen=True)
class Setting(Stored):
    """One program on one machine with one workload, judged by one metric.

    Attributes:
        program: The program's name.
        machine: The machine's name.
        workload: The workload's name.
        metric: The metric that is compared.
        machine_facts: Facts about the machine, which models learn from.
        workload_facts: Facts about the workload, which models learn from.
        source: The source of the measurements: a study, a file or a page.
        identity: A digest of the program's version and its input; empty if unknown.
        nodes_known: Whether the source says on how many nodes the program ran.
        marks: Marks of what runs, of a program that is named after its study.
        input: A digest of the input, or of the options that name it; empty if unknown.
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
    marks: tuple[str, ...] = ()
    input: str = ""

    @property
    def nodes(self) -> int:
        """The number of nodes in the machine's facts; 1 if they have none."""
        nodes = self.machine_facts.get("nodes", 1)
        return nodes if isinstance(nodes, int) and nodes > 1 else 1

    @property
    def place(self) -> str:
        """The machine, with its number of nodes if that is not one, or a remark if that is unknown."""
        if not self.nodes_known:
            return f"{self.machine}, unknown number of nodes"
        return self.machine if self.nodes == 1 else f"{self.machine}, {self.nodes} nodes"

    @property
    def built(self) -> tuple[tuple[str, Value], ...]:
        """The facts of the program's installation that the source gives with the workload."""
        return tuple(sorted(fact for fact in self.workload_facts.items() if fact[0] in INSTALLATION))

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The identity of the setting; another number of nodes is another setting."""
        return (self.program, self.place, self.workload, self.metric.name)

    def may_be_identical(self, other: Self) -> bool:
        """Return whether both may be about the same version of the program and the same input."""
        return len({self.identity, other.identity} - {""}) <= 1


@dataclass(frozen=True)
class Judged:
    """The verdict on a winner, from fresh runs beside the default of its study.

    Attributes:
        winner: The winner's configuration.
        over: The default configuration.
        holds: Whether the winner works and surely beats the default.
        confidence: The confidence of the interval.
        said: How many times better the winner is, and both ends of the interval; None after too few runs.
    """

    winner: Configuration
    over: Configuration
    holds: bool
    confidence: float
    said: tuple[float, float, float] | None


@dataclass(frozen=True)
class Measured(Stored):
    """The measurement of a configuration: a value, a bound, or a failure of all its runs.

    Attributes:
        setting: The setting in which it was measured.
        configuration: The configuration.
        value: The median of its runs.
        bound: The value is worse than this.
        runs: The number of runs.
        failure: How the runs failed, if there is neither a value nor a bound.
        default: Whether this is the configuration of a run without tuning.
        idle: The parameters that had no effect, according to the program.
        parts: The wall-clock seconds of the program's parts, if it prints them, in the run nearest to the value.
        told: The medians of the other metrics, those of the job included, by name.
        error: The standard error of the logarithm of the value, from the noise of its study; None if unknown.
        degrees: The degrees of freedom of that noise.
        judged: The verdict on this configuration, or on a winner chosen from a set that includes it.
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
        """The measurement without its source, to recognise the same runs from another path."""
        found = (self.value, self.bound, self.runs, self.failure)
        return (self.setting.key, self.setting.built, tuple(sorted(self.configuration.items())), found)

    @property
    def failed(self) -> bool:
        """Whether all runs failed."""
        return self.value is None and self.bound is None


def installation_of(setting: Setting) -> Facts:
    """Return the known facts of the program's build."""
    facts = {**setting.machine_facts, **setting.workload_facts}
    return {name: value for name, value in facts.items() if name in INSTALLATION}


def hardware(name: str, facts: Facts) -> str:
    """Return the name of a machine without the words of an installation at its end."""
    words = [value for value in facts.values() if isinstance(value, str) and value]
    while ends := [word for word in words if name.endswith(f", {word}")]:
        name = name.removesuffix(f", {ends[0]}")
    return name
