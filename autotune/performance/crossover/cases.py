"""Cases: what machines are compared by: the best value of a problem, or of one size of it, on each machine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from autotune.performance.installation import hardware
from autotune.performance.regression.features import Features, FloatArray
from autotune.performance.regression.table import Places
from autotune.records.measurement import Facts, Measured
from spaces.expressions.quantities import column_of


@dataclass(frozen=True)
class Case:
    """A workload, with the values of parameters that tell its sizes apart: its name, and the facts of both."""

    workload: str
    facts: Facts

    @property
    def kind(self) -> tuple[tuple[str, object], ...]:
        """What it is, whatever its size: its facts that are no numbers."""
        return tuple(sorted((name, fact) for name, fact in self.facts.items() if isinstance(fact, str | bool)))

    @property
    def key(self) -> tuple[str, tuple[tuple[str, object], ...]]:
        """What tells it from others."""
        return (self.workload, tuple(sorted(self.facts.items())))


@dataclass(frozen=True, eq=False)
class CaseTable:
    """The logarithms of the least costs, (n,), with the places of the machine and of the case of each, (n,).

    Each number of nodes of a machine, and each build on it, is one of the `machines`; `hardware` is the name that these
    have in common.
    """

    machines: tuple[str, ...]
    hardware: tuple[str, ...]
    machine_facts: tuple[Facts, ...]
    cases: tuple[Case, ...]
    machine: Places
    case: Places
    costs: FloatArray

    @classmethod
    def of(cls, rows: Sequence[Measured], parameters: Sequence[str] = ()) -> "CaseTable":
        """Read measurements of one program by one metric; `parameters` tell cases of a workload apart."""
        machines: dict[str, tuple[str, Facts]] = {}
        cases: dict[object, tuple[int, Case]] = {}
        best: dict[tuple[str, int], float] = {}
        for row in rows:
            if row.value is None or row.value <= 0.0:
                continue
            facts = row.setting.machine_facts
            machines.setdefault(row.setting.place, (hardware(row.setting.machine, facts), facts))
            chosen = {name: row.configuration[name] for name in parameters if name in row.configuration}
            case = Case(row.setting.workload, {**row.setting.workload_facts, **chosen})
            place, _ = cases.setdefault(case.key, (len(cases), case))
            key, cost = (row.setting.place, place), row.setting.metric.cost(log(row.value))
            best[key] = min(cost, best.get(key, cost))
        places = {name: number for number, name in enumerate(machines)}
        return cls(
            tuple(machines),
            tuple(name for name, _ in machines.values()),
            tuple(facts for _, facts in machines.values()),
            tuple(case for _, case in cases.values()),
            np.array([places[name] for name, _ in best], dtype=np.intp),
            np.array([case for _, case in best], dtype=np.intp),
            np.array(list(best.values()), dtype=float),
        )

    def with_machine(self, name: str, facts: Facts) -> "CaseTable":
        """Return the table with a machine, or some nodes of one, that nothing was measured on."""
        if name in self.machines:
            return self
        own = hardware(name.removesuffix(f", {facts.get('nodes')} nodes"), facts)
        return replace(
            self,
            machines=(*self.machines, name),
            hardware=(*self.hardware, own),
            machine_facts=(*self.machine_facts, facts),
        )

    def with_case(self, case: Case) -> "CaseTable":
        """Return the table with a case that nothing was measured of."""
        if case.key in {known.key for known in self.cases}:
            return self
        return replace(self, cases=(*self.cases, case))

    def at(self, rows: Places) -> "CaseTable":
        """Return the table with the values at the places `rows` only."""
        return replace(self, machine=self.machine[rows], case=self.case[rows], costs=self.costs[rows])

    def beside(self, machine: int) -> Places:
        """Return a machine and the others of the same hardware."""
        own = self.hardware[machine]
        return np.array([number for number, other in enumerate(self.hardware) if other == own], dtype=np.intp)

    def cost(self, machine: int, case: int) -> float | None:
        """Return what was measured of a case on a machine, if anything was."""
        there = np.flatnonzero((self.machine == machine) & (self.case == case))
        return float(self.costs[there[0]]) if len(there) else None

    def features(self) -> FloatArray:
        """Return the facts of the cases as standardised features, (c, d)."""
        names = dict.fromkeys(name for case in self.cases for name in case.facts)
        columns = {name: column_of([case.facts.get(name) for case in self.cases]) for name in names}
        return Features.learnt(columns).of(columns) if columns else np.zeros((len(self.cases), 0))
