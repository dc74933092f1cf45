"""The question which of two machines is faster: by what is known of a program, at the sizes that are asked about."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from typing import Any

from autotune.performance.crossover.cases import Case, CaseTable
from autotune.performance.crossover.comparison import Answer, Comparison, Ratio
from autotune.performance.run_times.extrapolation import is_like_nothing
from autotune.records.measurement import Facts, Measured, Setting
from objectives.base import Metric
from spaces import Value


@dataclass(frozen=True)
class Crossover:
    """How two machines, by name, compare by a metric; with sizes, in the order of the fact or parameter `over`."""

    machines: tuple[str, str]
    metric: Metric
    ratios: tuple[Ratio, ...]
    others: int
    over: str | None = None

    def sentence(self) -> str:
        """Say which machine is faster: at all sizes, from one on, or nowhere for sure."""
        answers = [ratio.answer for ratio in self.ratios]
        known = [answer for answer in answers if answer is not Answer.NOT_KNOWN]
        if not known:
            return f"which of {self.machines[0]} and {self.machines[1]} is faster is not known"
        if len(set(answers)) == 1:
            return f"{self._name(answers[0])} is faster{' at each of them' * (len(answers) > 1)}"
        if self.over is None:
            counts = Counter(known)
            parts = [f"{self._name(answer)} is faster at {count}" for answer, count in counts.items()]
            return f"{', '.join(parts)} of {len(answers)}; at {len(answers) - len(known)} it is not known"
        return self._from_size()

    def _from_size(self) -> str:
        by_size: dict[float, set[Answer]] = {}
        for ratio in self.ratios:
            by_size.setdefault(float(ratio.case.facts[self.over or ""]), set()).add(ratio.answer)
        sizes = [(size, next(iter(said)) if len(said) == 1 else Answer.NOT_KNOWN) for size, said in by_size.items()]
        ends = []
        for ordered, words in ((sizes[::-1], "from {} on"), (sizes, "up to {}")):
            answer = ordered[0][1]
            if answer is not Answer.NOT_KNOWN:
                last = list(takewhile(lambda one, same=answer: one[1] is same, ordered))[-1][0]  # type: ignore[misc]
                ends.append(f"{self._name(answer)} is faster {words.format(f'{self.over}={last:.6g}')}")
        return "; ".join(ends) or f"from which {self.over} on one of them is faster is not known"

    def faster(self, ratio: Ratio) -> str:
        """Return the machine that is faster at a case; `not known` where the interval holds 1."""
        return ratio.answer.value if ratio.answer is Answer.NOT_KNOWN else self._name(ratio.answer)

    def _name(self, answer: Answer) -> str:
        return self.machines[answer is Answer.SECOND]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "machines": list(self.machines),
            "metric": self.metric.name,
            "other_machines": self.others,
            "over": self.over,
            "ratios": [
                {
                    "workload": ratio.case.workload,
                    "facts": dict(ratio.case.facts),
                    "ratio": asdict(ratio.speed) if ratio.speed is not None else None,
                    "measured": ratio.measured,
                    "faster": None if ratio.answer is Answer.NOT_KNOWN else self._name(ratio.answer),
                    "why": ratio.why,
                }
                for ratio in self.ratios
            ],
            "answer": self.sentence(),
        }


class CrossoverError(ValueError):
    """A question that the measurements have no case for."""


def crossover(
    rows: Sequence[Measured],
    machines: Mapping[str, Facts],
    at: Mapping[str, Value],
    over: str | None = None,
    metric: str | None = None,
) -> Crossover:
    """Compare two machines, given by name with their facts, by measurements of one program.

    `at` are values of parameters and facts of workloads: of the cases that have them, the best values are compared.
    Where no case has them, a number of the workload may be one that was never measured. They are compared by the
    `metric` of that name; without one, by that of which most is known of the two.

    Raises:
        CrossoverError: there is no such metric, parameter or fact, or no case with such a value.
    """
    chosen = _metric(rows, machines, metric)
    rows = [row for row in rows if row.setting.metric.compares_with(chosen)]
    first, second = machines
    named = [*at, *([over] if over else [])]
    there = {name for row in rows for name in (*row.configuration, *row.setting.workload_facts)}
    if unknown := [name for name in named if name not in there]:
        names = ", ".join(sorted(there)) or "none"
        msg = f"no measurement has a parameter or a fact of its workload called {unknown[0]!r}; there is: {names}"
        raise CrossoverError(msg)
    table = CaseTable.of(rows, named)
    cases = _asked(table.cases, at, over)
    strange = [
        name
        for name, facts in machines.items()
        if name not in table.machines and is_like_nothing(rows, _setting(rows[0].setting, name, facts))
    ]
    for case in cases:
        table = table.with_case(case)
    for name, facts in machines.items():
        table = table.with_machine(name, facts)
    keys = {case.key: place for place, case in enumerate(table.cases)}
    if strange:
        why = f"{strange[0]} has nothing in common with the machines that were measured"
        return Crossover((first, second), chosen, tuple(Ratio(case, None, why=why) for case in cases), 0, over)
    comparison = Comparison.of(table, first, second)
    ratios = tuple(comparison.ratios([keys[case.key] for case in cases]))
    return Crossover((first, second), chosen, ratios, comparison.others, over)


def _metric(rows: Sequence[Measured], machines: Mapping[str, Facts], asked: str | None) -> Metric:
    """Return the metric of that name, or that which was measured on most of the two machines, and there most often."""
    counts = Counter(row.setting.metric for row in rows if asked in {None, row.setting.metric.name})
    if not counts:
        names = ", ".join(sorted({row.setting.metric.name for row in rows}))
        msg = f"no measurement is of a metric called {asked!r}; there is: {names}"
        raise CrossoverError(msg)
    there = Counter((row.setting.metric, row.setting.place) for row in rows if row.setting.place in machines)

    def known(metric: Metric) -> tuple[int, int, int]:
        of_two = [there[metric, machine] for machine in machines]
        return sum(count > 0 for count in of_two), sum(of_two), counts[metric]

    return max(counts, key=known)


def _setting(known: Setting, name: str, facts: Facts) -> Setting:
    return replace(known, machine=name, machine_facts=facts)


def _asked(cases: Sequence[Case], at: Mapping[str, Value], over: str | None) -> list[Case]:
    asked = [case for case in cases if all(case.facts.get(name) == value for name, value in at.items())]
    if not asked:
        if any(isinstance(value, str | bool) for value in at.values()):
            msg = f"no measurement has {', '.join(f'{name}={value}' for name, value in at.items())}"
            raise CrossoverError(msg)
        described = [f"{name}={value}" for name, value in at.items()]
        made = [
            Case(" ".join([*(str(word) for _, word in case.kind), *described]), {**case.facts, **at}) for case in cases
        ]
        asked = list({case.key: case for case in made}.values())
    if over is None:
        return asked
    sized = [case for case in asked if isinstance(case.facts.get(over), int | float)]
    if not sized:
        msg = f"{over!r} is no number, so there is no size from which on a machine is faster"
        raise CrossoverError(msg)
    return sorted(sized, key=lambda case: float(case.facts[over]))
