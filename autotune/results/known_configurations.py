"""The best known configuration of each program on each machine, and how sure it is."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from autotune.formatting import quantity
from autotune.performance.measurements.dataset import setting_of
from autotune.records.limit import breaks
from autotune.records.study import REPORTER
from autotune.results.summary import Summary, summarise
from autotune.storage.damage import left_out_if_damaged
from autotune.storage.readable_study import ReadableStudy
from objectives.base import Metric
from spaces import Configuration


@dataclass(frozen=True)
class KnownConfiguration:
    """The best configuration of a program on a machine with a workload.

    Attributes:
        program: The program.
        machine: The machine.
        workload: The workload.
        identity: A digest of the program's version and its input.
        facts: The facts of the workload.
        configuration: The configuration.
        metric: The metric.
        value: Its value, in the metric's unit: of the fresh runs behind the verdict, or of tuning without one.
        default: The default of its study; None if that failed.
        default_value: The default's value, in the metric's unit.
        speed_up: How many times better it is than the default; only an impression if not confirmed. None without one.
        interval: The ends of the verdict's interval.
        confirmed: Whether a verdict found that it beats the default.
        why: Why it has no speed-up.
        doubt: The verdict's doubt.
        study: The study that found it.
        studies: All studies with the same program, machine, workload, identity and metric.
        trials: The number of settled trials of its study.
        runs: The number of complete runs of the configuration.
        when: When the newest of these runs began.
        who: The user who started that run, or the client that reported it; empty if not known.
        host: The host of that run; empty if another program made it.
    """

    program: str
    machine: str
    workload: str
    identity: str
    facts: Mapping[str, Any]
    configuration: Configuration
    metric: Metric
    value: float
    default: Configuration | None
    default_value: float | None
    speed_up: float | None
    interval: tuple[float, float] | None
    confirmed: bool
    why: str
    doubt: str
    study: str
    studies: tuple[str, ...]
    trials: int
    runs: int
    when: str
    who: str
    host: str

    @property
    def key(self) -> tuple[str, ...]:
        """The key that is equal for values that can be compared."""
        metric = self.metric
        return self.program, self.machine, self.workload, metric.name, metric.unit, metric.direction, self.identity

    @property
    def sentence(self) -> str:
        """The gain over the default's value in a few words, with how sure it is."""
        return self._sure("" if self.default_value is None else f" over {quantity(self.default_value, self.metric)}")

    @property
    def gain(self) -> str:
        """The gain without the default's value."""
        return self._sure("")

    def _sure(self, over: str) -> str:
        if self.speed_up is None:
            return self.why
        if self.interval is None:
            return f"looks {self.speed_up:.3g}x{over}, not confirmed"
        low, high = self.interval
        text = f"{self.speed_up:.3f}x ({low:.3f} to {high:.3f}){over}"
        return text if self.confirmed else f"{text}, not sure to beat the default"

    @property
    def figure(self) -> str:
        """The value with its unit."""
        return f"{self.metric.name} {quantity(self.value, self.metric)}"

    @property
    def by(self) -> str:
        """The user and host that measured it, if known."""
        return "@".join(word for word in (self.who, self.host) if word)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return asdict(self) | {"sentence": self.sentence}


def known_configurations(stores: Iterable[ReadableStudy]) -> list[KnownConfiguration]:
    """Return the best configurations of all studies together, one for each group; leave damaged studies out."""
    every = []
    for store in stores:
        with left_out_if_damaged(store.name):
            every.append(known_configuration(store, summarise(store)))
    return best_of(known for known in every if known is not None)


def best_of(every: Iterable[KnownConfiguration]) -> list[KnownConfiguration]:
    """Return the best of each group, sorted by program, machine and workload, and then the newest first.

    A confirmed configuration is better than an unconfirmed one; otherwise the value decides and not the speed-up, since
    the winner of one study may be the default of the next.
    """
    groups: dict[tuple[str, ...], list[KnownConfiguration]] = defaultdict(list)
    for known in every:
        groups[known.key].append(known)
    best = [
        replace(min(group, key=_rank), studies=tuple(sorted(known.study for known in group)))
        for group in groups.values()
    ]
    best.sort(key=lambda known: known.when, reverse=True)
    return sorted(best, key=lambda known: (known.program, known.machine, known.workload))


def _rank(known: KnownConfiguration) -> tuple[bool, float]:
    return not known.confirmed, known.metric.cost(known.value)


def _not_comparable(summary: Summary) -> str:
    """Return why the best trial has no speed-up over the default; empty if it has one."""
    best, baseline = summary.best, summary.standings.baseline
    if baseline is None:
        return f"the default {summary.standings.missing_baseline}"
    if best is not None and best.number == baseline.number:
        return "nothing beat the default"
    broken = summary.on_limits.default_breaks
    return f"not comparable: the default {breaks(broken)}" if broken else ""


def known_configuration(store: ReadableStudy, summary: Summary) -> KnownConfiguration | None:
    """Return the best configuration that one study knows.

    It is None without a valid measurement, for a trade-off, which has no winner, and for a replay, which ran nothing.
    """
    best, standings = summary.winner, summary.standings
    baseline = standings.baseline
    value, default_value = summary.medians
    if best is None or value is None or summary.definition.replay:
        return None
    setting = setting_of(store.name, summary.definition)
    verdict, speed_up = summary.present_verdict, summary.speed_up
    why = _not_comparable(summary)
    if why:
        speed_up = None
    runs = [run for run in store.runs() if run.outcome.complete and dict(run.configuration) == dict(best.configuration)]
    newest = max(runs, key=lambda run: run.started, default=None)
    who, host = ("", "") if newest is None else (newest.session.get("user", ""), newest.host)
    if newest is not None and summary.definition.is_asktell:
        who, host = newest.outcome.details.get(REPORTER) or who, ""
    metric = standings.metric
    return KnownConfiguration(
        program=setting.program,
        machine=setting.place,
        workload=setting.workload,
        identity=setting.identity,
        facts=setting.workload_facts,
        configuration=best.configuration,
        metric=metric,
        value=value,
        default=None if baseline is None else baseline.configuration,
        default_value=default_value,
        speed_up=None if speed_up is None else speed_up.ratio,
        interval=None if speed_up is None else speed_up.interval,
        confirmed=not why and verdict is not None and verdict.significant(metric),
        why=why,
        doubt=(
            "; ".join(verdict.doubts(metric, store.name, standings.tuned_default))
            if verdict is not None and verdict.known
            else ""
        ),
        study=store.name,
        studies=(store.name,),
        trials=summary.finished,
        runs=len(runs),
        when=newest.started[:19] if newest is not None else "",
        who=who,
        host=host,
    )
