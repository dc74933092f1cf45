"""A check of a watch: a few pairs of runs of default and winner, with their surroundings, from the stored runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from autotune.comparison.round_table import RoundTable, Side
from autotune.records.series import Series, SeriesKind
from autotune.records.study import Run
from autotune.statistics.verdict import FAILED_OFTEN
from autotune.studyfile.definition import Definition
from objectives.base import Metric

# An interrupted check continues within this time; later a new check begins.
_ONE_DAY = timedelta(hours=24)
# The facts of a session that a run time may depend on, with their names for the user.
_FACTS = {"system": "operating system", "mpi": "MPI", "governor": "governor", "turbo": "turbo"}
_IDENTITY, _MACHINE = "identity ", "machine "


@dataclass(frozen=True)
class Check:
    """A check of a watch.

    Attributes:
        number: Counts from 1.
        started: When its first run began, in ISO 8601.
        pairs: The (default, winner) values.
        failures: The messages of failed runs.
        surroundings: What a run time may depend on and what may change between checks, by name.
    """

    number: int
    started: str
    pairs: tuple[tuple[float, float], ...]
    failures: tuple[str, ...] = ()
    surroundings: Mapping[str, str] = field(default_factory=dict)

    @property
    def day(self) -> str:
        """The date on which it began."""
        return self.started[:10]

    def is_unfinished(self, pairs: int, now: datetime) -> bool:
        """Whether it has fewer than `pairs` pairs and began recently enough to continue."""
        return len(self.pairs) < pairs and now - datetime.fromisoformat(self.started) < _ONE_DAY


def checks_of(runs: Iterable[Run], sides: tuple[Side, Side], metric: Metric) -> list[Check]:
    """Return the checks of a winner in their order.

    Runs that were started together and hardly overlapped count as a pair in turns.
    """
    by_series: dict[Series, list[Run]] = {}
    for run in runs:
        if run.series.kind is SeriesKind.WATCH and run.series.of[0] == str(sides[1].trial):
            by_series.setdefault(run.series, []).append(run)
    checks = [_check(int(series.of[1]), made, RoundTable.of(sides, made, metric)) for series, made in by_series.items()]
    return sorted(checks, key=lambda check: check.number)


def next_number(checks: Sequence[Check], pairs: int) -> int:
    """Return the number of the check to make: that of the last check if it is unfinished."""
    if not checks:
        return 1
    last = checks[-1]
    # A check ends when a side has failed too often, however many pairs it has.
    sides = Counter(text.partition(":")[0] for text in last.failures)
    failed_often = max(sides.values(), default=0) >= FAILED_OFTEN
    return last.number + (failed_often or not last.is_unfinished(pairs, datetime.now(UTC)))


def _check(number: int, runs: Sequence[Run], table: RoundTable) -> Check:
    started = min(run.started for run in runs)
    return Check(number, started, tuple(table.pairs(0, 1)), tuple(table.named_failures((0, 1))), surroundings(runs))


def differences(stored: Definition, now: Definition) -> dict[str, str]:
    """Return what has changed since a study was created, for the facts of a session."""
    pairs = ((_IDENTITY, stored.identity, now.identity), (_MACHINE, stored.machine_identity, now.machine_identity))
    return {
        f"{prefix}{name}": after.get(name, "nothing")
        for prefix, before, after in pairs
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }


def surroundings(runs: Iterable[Run]) -> dict[str, str]:
    """Return the known surroundings of runs, by name."""
    known: dict[str, set[str]] = {}
    for run in runs:
        entries = {"node": run.host} | {_word(name): text for name, text in run.session.items()}
        for name, text in entries.items():
            if name and text:
                known.setdefault(name, set()).add(text)
    return {name: ", ".join(sorted(texts)) for name, texts in known.items()}


def _word(name: str) -> str:
    if name.startswith(_IDENTITY):
        return name.removeprefix(_IDENTITY)
    return name if name.startswith(_MACHINE) else _FACTS.get(name, "")


def differences_between(before: Mapping[str, str], after: Mapping[str, str], stored: Definition) -> list[str]:
    """Return a line for each difference between surroundings; an absent identity is that of the study's definition."""
    study = {**stored.identity, **{f"{_MACHINE}{name}": text for name, text in stored.machine_identity.items()}}
    said = []
    for name in sorted({*before, *after}):
        first, second = (facts.get(name, study.get(name, "")) for facts in (before, after))
        if first and second and first != second:
            said.append(f"{name}: {first} before, {second} now")
    return said
