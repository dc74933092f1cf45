"""Cases: what machines are compared by: the best value of a problem, or of one size of it, on each machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

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
    """The logarithms of the least costs, (n,), with the places of the machine and of the case of each, (n,)."""

    machines: tuple[str, ...]
    machine_facts: tuple[Facts, ...]
    cases: tuple[Case, ...]
    machine: Places
    case: Places
    costs: FloatArray

    @classmethod
    def of(cls, rows: Sequence[Measured], parameters: Sequence[str] = ()) -> "CaseTable":
        """Read measurements of one program by one metric; `parameters` tell cases of a workload apart."""
        machines: dict[str, Facts] = {}
        cases: dict[object, tuple[int, Case]] = {}
        best: dict[tuple[str, int], float] = {}
        for row in rows:
            if row.value is None or row.value <= 0.0:
                continue
            machines.setdefault(row.setting.place, row.setting.machine_facts)
            chosen = {name: row.configuration[name] for name in parameters if name in row.configuration}
            case = Case(row.setting.workload, {**row.setting.workload_facts, **chosen})
            place, _ = cases.setdefault(case.key, (len(cases), case))
            key, cost = (row.setting.place, place), row.setting.metric.cost(log(row.value))
            best[key] = min(cost, best.get(key, cost))
        places = {name: number for number, name in enumerate(machines)}
        return cls(
            tuple(machines),
            tuple(machines.values()),
            tuple(case for _, case in cases.values()),
            np.array([places[name] for name, _ in best], dtype=np.intp),
            np.array([case for _, case in best], dtype=np.intp),
            np.array(list(best.values()), dtype=float),
        )

    def with_machine(self, name: str, facts: Facts) -> "CaseTable":
        """Return the table with a machine that nothing was measured on."""
        if name in self.machines:
            return self
        return CaseTable(
            (*self.machines, name), (*self.machine_facts, facts), self.cases, self.machine, self.case, self.costs
        )

    def with_case(self, case: Case) -> "CaseTable":
        """Return the table with a case that nothing was measured of."""
        if case.key in {known.key for known in self.cases}:
            return self
        return CaseTable(self.machines, self.machine_facts, (*self.cases, case), self.machine, self.case, self.costs)

    def at(self, rows: Places) -> "CaseTable":
        """Return the table with the values at the places `rows` only."""
        return CaseTable(
            self.machines, self.machine_facts, self.cases, self.machine[rows], self.case[rows], self.costs[rows]
        )

    def cost(self, machine: int, case: int) -> float | None:
        """Return what was measured of a case on a machine, if anything was."""
        there = np.flatnonzero((self.machine == machine) & (self.case == case))
        return float(self.costs[there[0]]) if len(there) else None

    def features(self) -> FloatArray:
        """Return the facts of the cases as standardised features, (c, d)."""
        names = dict.fromkeys(name for case in self.cases for name in case.facts)
        columns = {name: column_of([case.facts.get(name) for case in self.cases]) for name in names}
        return Features.learnt(columns).of(columns) if columns else np.zeros((len(self.cases), 0))
