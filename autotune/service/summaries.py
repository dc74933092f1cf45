"""Summaries of stored studies, in the forms that the service answers. Each is cached until its study changes."""

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from statistics import median
from threading import Lock
from time import monotonic, thread_time
from typing import Any

from autotune.comparison.watching.watch import Watch
from autotune.decisions.table import DecisionTable, table_of
from autotune.errors import AutotuneError, StorageError
from autotune.formatting import quantity, without_rounding_error
from autotune.pictures import Chart
from autotune.pictures.charts import drawers_of, names_on_page
from autotune.pictures.timeline import timeline
from autotune.records.labels import Labels
from autotune.records.limit import metrics_of_run
from autotune.records.series import TUNING, SeriesKind
from autotune.records.study import Run, State, TrialRecord
from autotune.results.disturbed_runs import disturbance_sentence
from autotune.results.estimate import Estimate, estimate
from autotune.results.known_configurations import KnownConfiguration, best_of, known_configuration
from autotune.results.noise import noise_sentence
from autotune.results.pareto import ParetoPoint
from autotune.results.summary import Summary, summarise
from autotune.results.trial_columns import row_of, trial_columns
from autotune.scheduling.successive_halving import stored_brackets
from autotune.service.json_values import json_value, with_tilde
from autotune.service.models.studies import FirstError, FreshMedians, FrontPoint, Known, MetricRow, StudyTexts, Trial
from autotune.service.models.trials import TrialRow
from autotune.service.models.values import MetricModel
from autotune.statistics.standings import Standings
from autotune.storage.readable_study import ReadableStudy, labels_of
from autotune.storage.studies import StoredStudies
from objectives.base import Metric
from spaces import Space, SpaceError

_KEPT = 64
_KEPT_CHARTS = 512
# A summary that took more than `_LONG_S` of processor time is served for `_SERVES` times as long, even if its study has
# changed: many clients may ask at once, and the search needs the processor, too.
_LONG_S = 0.5
_SERVES = 4.0
_KEPT_BRIEFS = 4096
# The valid configurations of larger spaces are not counted for a list.
_COUNTED = 10_000


@dataclass
class _Kept:
    """A summary with the version of its study, the study as it was read, and a lock so that it is computed once."""

    lock: Lock = field(default_factory=Lock)
    version: int | None = None
    study: ReadableStudy | None = None
    summary: Summary | None = None
    until: float = 0.0


def _served_until(begun: float) -> float:
    """Return the time until which an answer is served; `begun` is its begin, in processor time of this thread."""
    took_s = thread_time() - begun
    return monotonic() + (_SERVES * took_s if took_s > _LONG_S else 0.0)


class StudySummaries:
    """The studies of a storage as they are now."""

    def __init__(self, stored: StoredStudies) -> None:
        """Read from `stored`."""
        self.stored = stored
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = Lock()
        self._charts = lru_cache(maxsize=_KEPT_CHARTS)(self._chart_at)
        self._tables = lru_cache(maxsize=_KEPT)(self._table_at)
        # The list needs all studies: with a cache as small as that of summaries, each request would read all again.
        self._briefs = lru_cache(maxsize=_KEPT_BRIEFS)(self._brief_at)
        self._known = lru_cache(maxsize=_KEPT_BRIEFS)(self._best_at)

    def _chart_at(self, name: str, version: int, picture: str) -> Chart | None:
        store, summary = self._as_read(name, version)
        with self._extend_if_costly(name):
            if picture == "timeline":
                return timeline(summary, store.runs())
            table = self._tables(name, version) if summary.has_decision_table else None
            return drawers_of(summary, stored_brackets(store), table)[picture]()

    def _table_at(self, name: str, version: int) -> DecisionTable | None:
        with self._extend_if_costly(name):
            return table_of(self._as_read(name, version)[0])

    @contextmanager
    def _extend_if_costly(self, name: str) -> Iterator[None]:
        """Serve the present version of a study for longer if the code in this context takes much processor time."""
        kept, begun = self._entry(name), thread_time()
        yield
        kept.until = max(kept.until, _served_until(begun))

    def _brief_at(self, name: str, version: int) -> Mapping[str, Any]:
        study, summary = self._as_read(name, version)
        return brief_of(summary) | _notes_of(study)

    def detail(self, name: str, version: int) -> dict[str, Any]:
        """Return the details of a study beyond its brief, at `version` or later. Raises the errors of `summary`."""
        return _detail_of(*self._as_read(name, version))

    def brief(self, name: str, version: int) -> Mapping[str, Any]:
        """Return the brief of a study, at `version` or later. Raises the errors of `summary`."""
        return self._briefs(name, version)

    def summary(self, name: str, version: int) -> Summary:
        """Return the summary of a study, at `version` or later.

        Raises:
            StorageError: No study has that name, or the storage cannot be read.
        """
        return self._as_read(name, version)[1]

    def _as_read(self, name: str, version: int) -> tuple[ReadableStudy, Summary]:
        """Return a study at `version` or later, as it was read then, and its summary."""
        kept = self._entry(name)
        with kept.lock:
            if kept.study is None or kept.summary is None or kept.version != version:
                begun = thread_time()
                study = self.stored.snapshot(name)
                summary = summarise(study)
                kept.study, kept.summary, kept.version = study, summary, version
                kept.until = _served_until(begun)
            return kept.study, kept.summary

    def _entry(self, name: str) -> _Kept:
        with self._lock:
            kept = self._kept.get(name)
            if kept is None:
                kept = self._kept[name] = _Kept()
            self._kept.move_to_end(name)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return kept

    def forget(self, name: str) -> None:
        """Read a study again before its summary is served: it has changed, or was deleted."""
        with self._lock:
            self._kept.pop(name, None)

    def note(self, name: str, labels: Labels) -> None:
        """Store the labels of a study.

        Raises:
            StorageError: No study has that name, or the storage cannot be written.
        """
        self.stored.note(name, labels)
        self.forget(name)

    def versions(self, ended: Set[str] = frozenset()) -> Mapping[str, int]:
        """Return the versions of all studies, by name; one that is costly to read and has not `ended` may be older.

        Raises:
            StorageError: the storage cannot be read.
        """
        return {
            name: newest if name in ended else self._version_to_serve(name, newest)
            for name, newest in self.stored.versions().items()
        }

    def _version_to_serve(self, name: str, newest: int) -> int:
        kept = self._kept.get(name)
        return newest if kept is None or kept.version is None or monotonic() >= kept.until else kept.version

    def known(self) -> list[Known]:
        """Return the best known configurations of all studies that can be read.

        Raises:
            StorageError: the storage cannot be read.
        """
        every = []
        for name, version in self.versions().items():
            with suppress(StorageError):
                every.append(self._known(name, version))
        best = best_of(known for known in every if known is not None)
        return [_known_model(known) for known in best]

    def estimate(self, name: str, trials: int, workers: int) -> Estimate | None:
        """Estimate the cost of `trials` more trials of a study, `workers` at a time; None if too few were measured.

        Raises:
            StorageError: No study has that name, or the storage cannot be read.
        """
        _, summary = self._as_read(name, self.version(name) or 0)
        return estimate(summary, trials, workers)

    def _best_at(self, name: str, version: int) -> KnownConfiguration | None:
        return known_configuration(*self._as_read(name, version))

    def version(self, name: str) -> int | None:
        """Return the version of a study; None without such a study."""
        return self.versions().get(name)

    def chart(self, name: str, version: int, picture: str) -> Chart | None:
        """Return a chart of `names_on_page` of a study at `version` or later; None if there is too little to draw.

        Raises:
            StorageError: No study has that name, or the storage cannot be read.
        """
        return self._charts(name, version, picture)

    def decision_table(self, name: str, version: int) -> DecisionTable | None:
        """Return the decision table of a study at `version` or later; None without one, or before enough runs.

        Raises:
            StorageError: No study has that name, or the storage cannot be read.
        """
        return self._tables(name, version)

    def get(self, name: str, version: int | None = None) -> Summary | None:
        """Return the summary of a study, at `version` or later; None without such a study.

        Without `version` it is the one of `versions`, which may be older than what a client has seen.
        """
        version = self.version(name) if version is None else version
        if version is None:
            return None
        try:
            return self.summary(name, version)
        except StorageError:
            if self.version(name) is None:  # removed meanwhile
                return None
            raise


@lru_cache(maxsize=_KEPT)
def _count_configurations(stored: str) -> int | None:
    """Return the number of valid configurations of a small space, which may be below the budget; None for others.

    A study's brief is made again after each of its runs, and its space, as JSON, stays the same.
    """
    try:
        space = Space.from_dict(json.loads(stored))
    except SpaceError:
        return None
    size = space.size if space.raw_size <= _COUNTED else None
    return size.value if size is not None and size.exact else None


def brief_of(summary: Summary) -> dict[str, Any]:
    """Return the brief of a stored study, without its state."""
    definition, standings = summary.definition, summary.standings
    best, baseline, speed_up = _chosen(summary), standings.baseline, summary.speed_up
    speed_up = None if best is None else speed_up
    return {
        "study": summary.study.name,
        "objective": definition.objective,
        "metric": metric_model(standings.metric),
        "trials": summary.finished,
        "budget": summary.study.budget.most,
        "configurations": _count_configurations(json.dumps(definition.space)),
        "failures": dict(standings.counts),
        "front": None if summary.front is None else len(summary.front.points),
        "baseline": None if baseline is None else without_rounding_error(standings.value(baseline)),
        "best": without_rounding_error(standings.value(best)) if best is not None and best.complete else None,
        "fresh": (fresh := _fresh(summary)),
        "texts": _texts(summary, fresh),
        "speed_up": None if speed_up is None else speed_up.ratio,
        "interval": None if speed_up is None else speed_up.interval,
        "verdict": json_value(summary.verdict_sentence()),
        "machine": json_value(str(definition.machine.get("host", ""))),
        "replay": definition.replay,
        "trouble": trouble_of(summary),
    }


def _known_model(known: KnownConfiguration) -> Known:
    fields = json_value(asdict(known)) | {"metric": metric_model(known.metric)}
    default = "" if known.default_value is None else quantity(known.default_value, known.metric)
    return Known(**fields, text=quantity(known.value, known.metric), default_text=default, gain=json_value(known.gain))


def _chosen(summary: Summary) -> TrialRecord | None:
    """Return the best trial; None for a trade-off of which no weights have chosen a point."""
    return summary.best if summary.front is None or summary.preference is not None else None


def _front_points(summary: Summary) -> list[FrontPoint]:
    """Return the points of a trade-off's front, the best by the first metric first; empty for other studies."""
    return [] if summary.front is None else [_point_model(summary, point) for point in summary.front.points]


def preferred_point(summary: Summary) -> FrontPoint:
    """Return the point of a trade-off's front that its weights choose."""
    assert summary.preference is not None
    return _point_model(summary, summary.preference.point)


def _point_model(summary: Summary, point: ParetoPoint) -> FrontPoint:
    assert summary.front is not None
    pairs = [*zip(summary.front.metrics, point.values, strict=True)]
    return FrontPoint(
        trial=point.trial,
        configuration=json_value(dict(summary.standings.trials[point.trial].configuration)),
        values=json_value({metric.name: value for metric, value in pairs}),
        texts={metric.name: quantity(value, metric) for metric, value in pairs},
    )


def _notes_of(study: ReadableStudy) -> dict[str, Any]:
    """Return when the first and the newest run of a study began, its user, and its labels."""
    runs = [run for run in study.runs() if run.started]
    first, last = (ends(runs, key=lambda run: run.started, default=None) for ends in (min, max))
    return {
        "started": first.started[:19] if first is not None else "",
        "newest": last.started[:19] if last is not None else "",
        "by": first.session.get("user", "") if first is not None else "",
        **labels_of(study).to_dict(),
    }


def trouble_of(summary: Summary) -> str:
    """Return a sentence that every trial failed, with the first failure; empty if a trial has worked."""
    count, first = summary.standings.nothing_worked, first_error(summary)
    if not count or first is None:
        return ""
    return f"every trial failed, {count} of {count}; trial {first.trial}: {first.message}"


def first_error(summary: Summary) -> FirstError | None:
    """Return the first failure; None without one."""
    failed = next((trial for trial in summary.trials if trial.state is State.FAILED), None)
    return None if failed is None else FirstError(trial=failed.number, message=with_tilde(failed.message))


def _detail_of(study: ReadableStudy, summary: Summary) -> dict[str, Any]:
    """Return the details of a stored study, beyond its brief and its next step."""
    values = summary.to_dict()
    standings = summary.standings
    return {
        "incumbent": trial_model(summary, _chosen(summary)),
        "front_points": _front_points(summary),
        "default": trial_model(summary, standings.baseline),
        "simplified": json_value(values["simplified"]),
        "verdict_detail": json_value(values["verdict"]),
        "doubts": summary.doubts,
        "ledger": json_value(values["ledger"]),
        "workload": json_value(values["facts"]),
        "noise": noise_sentence(standings),
        "disturbance": disturbance_sentence(summary.taken) if any(run.is_disturbed for run in summary.taken) else "",
        "first_error": first_error(summary),
        "metrics": _metric_rows(study.runs(), summary),
        **_watched(study, summary),
        "pictures": names_on_page(summary),
    }


def _metric_rows(runs: Sequence[Run], summary: Summary) -> list[MetricRow]:
    """Return every metric of the best and the default; empty for a trade-off, whose front has them, and for one metric.

    They are medians of the fresh runs behind the verdict, or of tuning without one.
    """
    definition, best, default = summary.definition, summary.best, summary.standings.baseline
    limits = {limit.metric.name: limit for limit in summary.standings.limits.limits}
    metrics = {metric.name: metric for metric in definition.metrics} | {n: one.metric for n, one in limits.items()}
    if summary.front is not None or len(metrics) == 1 or best is None:
        return []
    series = summary.present_verdict.series if summary.present_verdict is not None and summary.fresh_pairs else TUNING
    made = [run for run in runs if run.series == series and run.outcome.complete]

    def text(trial: TrialRecord | None, metric: Metric) -> str:
        of_trial = (metrics_of_run(run.outcome) for run in made if trial is not None and run.trial == trial.number)
        values = [figures[metric.name] for figures in of_trial if metric.name in figures]
        return quantity(median(values), metric) if values else ""

    return [
        MetricRow(
            name=name,
            best=text(best, metric),
            default=text(default, metric),
            limit=str(limits[name]) if name in limits else "",
        )
        for name, metric in metrics.items()
    ]


def _watched(study: ReadableStudy, summary: Summary) -> dict[str, list[str]]:
    """Return the checks of a study's winner, and what has changed since the verdict."""
    if any(run.series.kind is SeriesKind.WATCH for run in study.runs()):
        with suppress(AutotuneError):  # the winner that was checked is no longer the winner
            finding = Watch.of(study, summary.standings.statistic).finding()
            return {"checks": json_value(finding.record()), "alarms": json_value(finding.alarms)}
    return {"checks": [], "alarms": []}


def _fresh(summary: Summary) -> FreshMedians | None:
    """Return the medians of the verdict's fresh runs of the best and the default; None without a verdict."""
    best, default = summary.medians
    if not summary.fresh_pairs or best is None or default is None:
        return None
    return FreshMedians(best=best, default=default, pairs=len(summary.fresh_pairs))


def _texts(summary: Summary, fresh: FreshMedians | None) -> StudyTexts | None:
    """Return the best, the default and the gain as texts that agree with each other; None without a value."""
    if summary.medians == (None, None):
        return None
    best, default = ("" if value is None else quantity(value, summary.standings.metric) for value in summary.medians)
    of = "in tuning" if fresh is None else f"median of {fresh.pairs} fresh runs"
    gain = "" if summary.speed_up is None else summary.speed_up.text()
    if _chosen(summary) is None:
        best = gain = ""
    return StudyTexts(best=best, default=default, gain=gain, of=of)


def metric_model(metric: Metric) -> MetricModel:
    """Return the metric that is optimised."""
    return MetricModel(name=metric.name, unit=metric.unit, direction=metric.direction, quality=metric.is_quality)


def trial_model(summary: Summary, trial: Any) -> Trial | None:  # noqa: ANN401  a record or none
    """Return a complete trial; None for any other."""
    if trial is None or not trial.complete:
        return None
    return Trial(
        trial=trial.number,
        configuration=json_value(dict(trial.configuration)),
        value=without_rounding_error(summary.standings.value(trial)),
        runs=trial.measured(summary.standings.metric.name),
    )


def rows_of(summary: Summary, after: int, limit: int) -> tuple[list[TrialRow], int | None]:
    """Return at most `limit` trials with numbers beyond `after`, and the `after` of the next call; None at the end."""
    later = sorted((trial for trial in summary.trials if trial.number > after), key=lambda trial: trial.number)
    rows = row_models(summary, later[:limit])
    return rows, rows[-1].trial if len(later) > limit else None


def row_models(summary: Summary, trials: Sequence[TrialRecord]) -> list[TrialRow]:
    """Return the rows of trials."""
    columns = trial_columns(summary.standings, summary.definition)
    # Of two columns with the same name the first is the service's: the other is a metric or a parameter.
    shown = {column.name: column for column in reversed(columns) if column.name in TrialRow.model_fields}
    return [
        TrialRow.model_validate(
            row_of(trial, [*shown.values()])
            | {"configuration": json_value(dict(trial.configuration)), "message": with_tilde(trial.message)}
            | _row_texts(summary.standings, trial)
        )
        for trial in trials
    ]


def _row_texts(standings: Standings, trial: TrialRecord) -> dict[str, str]:
    gain = standings.speed_up(trial)
    value = standings.value(trial) if trial.complete else None
    bound = standings.bound_of(trial) if trial.state is State.CAPPED else None
    return {"text": value_or_bound(value, bound, standings.metric), "gain": "" if gain is None else gain.text()}


def value_or_bound(value: float | None, bound: float | None, metric: Metric) -> str:
    """Return a value as text, or the bound that it is worse than; empty without both."""
    if value is not None:
        return quantity(value, metric)
    worse = "<" if metric.direction == "maximize" else ">"
    return "" if bound is None else f"{worse} {quantity(bound, metric)}"
