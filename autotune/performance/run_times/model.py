"""The model of run times: predicts the time of a configuration that has not run, with its uncertainty.

It blends up to three members: a sum of costs with unknown rates, if the program has such terms, and a log-linear model,
each with boosted trees on its residuals; and a random forest. To choose between models and to calibrate the width of
intervals, it hides rows that are as new to the other rows as the predicted setting is to all rows.

A bound is used if the model, fitted without bounds, predicts a value on its wrong side; it then counts as the mean of
the predicted values beyond it (Hutter, Hoos & Leyton-Brown, 2011). Failures are left out: they say nothing about times.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotune.performance.regression.cost_model import CostModel
from autotune.performance.regression.prediction import CONFIDENCE, Estimate, deviations_within
from autotune.performance.regression.table import DesignMatrix, Places, Reader, Table, informative_columns, repeat_words
from autotune.performance.run_times.blend import (
    CALIBRATED,
    Blend,
    HiddenErrors,
    Predicted,
    Width,
    eligible_kinds,
    fit_blend,
    own_width,
    promised_share,
    ratio_width,
)
from autotune.performance.run_times.context import Context, in_words, word_of
from autotune.performance.run_times.ensemble_member import EnsembleMember, Kind, kinds
from autotune.performance.run_times.novelty import by_setting, doubts, doubts_of, installation, is_like_nothing, novelty
from autotune.performance.run_times.sample import HiddenPredictions, TrainingSample, predict_hidden
from autotune.records.measurement import INSTALLATION, Measured, Setting, hardware
from autotune.statistics.gaussian_process import above_bound
from objectives.shapes.shape import Shape
from spaces.expressions.quantities import Columns, FloatArray, column_of

_LEAST = 6
# Hide at most this many rows: more take long and do not improve the calibration.
_HIDDEN_FROM = 1_000
_BLOCK = 16_384
_GROUP = "group"
_FAMILIES = {"cost model": "a cost model", "log-linear": "a log-linear model", "forest": "a random forest"}
# The groups that were hidden to estimate a model's errors, in words for users.
_UNSEEN = {
    "machine": "machines",
    "installation": "builds",
    "workload": "workloads",
    "nodes": "numbers of nodes",
    "setting": "machines or workloads",
}
_SLOW, _UNKNOWN_WORK = 1.5, 2.0  # with so uncertain a level, costs do not tell times
_DEVIATIONS = 1.6449  # 90 % of a normal distribution lie within this number of standard deviations


@dataclass(frozen=True)
class RunTimes:
    """The expected times of a program in one setting.

    Its main attributes: `doubts` are sentences on how the setting lies outside the measurements; with `abstains` it
    lies too far outside to predict a time; `grounds` says what the model was fitted on; intervals contain a `share` of
    values.
    """

    setting: Setting
    reader: Reader
    names: frozenset[str]
    group: str
    known: Columns
    reads: frozenset[str]
    members: tuple[EnsembleMember | None, ...]
    blend: Blend
    width: Width
    ratio_width: Width | None
    doubts: tuple[str, ...]
    abstains: bool
    grounds: str
    share: float = CONFIDENCE

    @classmethod
    def fit(
        cls, measured: Sequence[Measured], rules: Sequence[str], setting: Setting, shape: Shape | None = None
    ) -> "RunTimes | None":
        """Fit to the measurements of the setting's program by its metric, for a space with `rules` and a `shape`.

        The result is None with fewer than six values, unless the program's costs are known.
        """
        setting, *known = _by_hardware([setting, *(row.setting for row in measured)])
        rows = [replace(row, setting=one) for row, one in zip(measured, known, strict=True) if _is_of(row, setting)]
        values = [row for row in rows if row.value is not None]
        reader = Reader(setting.program, tuple(rules), shape)
        if len(values) < _LEAST:
            return cls._of_costs(values, reader, setting)
        return _Fit.of(values, reader, setting).model([row for row in rows if row.value is None])

    @classmethod
    def _of_costs(cls, values: Sequence[Measured], reader: Reader, setting: Setting) -> "RunTimes | None":
        """Return the model from the program's costs alone, with rates adjusted to a few values."""
        asked = _table_of_setting(reader, setting)
        if asked.costs is None:
            return None
        cases = DesignMatrix.from_measurements(values)
        table = _read(reader, values, cases) if values else asked.at(np.zeros(0, dtype=np.intp))
        y, weights = np.log([row.value or np.nan for row in values]), _weights(values)
        kind, context, names = kinds(asked, products=False)[0], Context((), ()), frozenset(asked.columns)
        count = f"{len(values)} of its values {'is' if len(values) == 1 else 'are'} known"
        doubt = f"only {count}" if values else "nothing of the program was measured"
        return cls(
            setting=setting,
            reader=reader,
            names=names,
            group="",
            known=cases.configuration,
            reads=asked.costs.reads,
            members=(EnsembleMember.fit(kind, table, y, weights, context, names, 0),),
            blend=Blend(((0, 0),), np.ones(1), knows_costs=True),
            width=CALIBRATED,
            ratio_width=CALIBRATED,
            doubts=(f"{doubt}: predicted from what is known of its costs",),
            abstains=False,
            grounds=f"a cost model of {setting.program}{f'; {count}' if values else ''}",
        )

    @property
    def varied(self) -> frozenset[str]:
        """The parameters that a cost model depends on, and those that were measured with several values.

        "Unset" does not count as a value: a table may lack the column.
        """
        stated = {name: {str(value) for value in column.tolist()} for name, column in self.known.items()}
        return self.reads | {name for name, values in stated.items() if len(values - {"None", "nan"}) > 1}

    def estimate(self, cases: DesignMatrix) -> Estimate:
        """Return the expected logarithms of the metric for cases of the setting, (n,)."""
        return self._estimates(cases, lambda prediction: Estimate(prediction.mean, self.width.half(prediction.apart)))

    def off(self, cases: DesignMatrix) -> FloatArray | None:
        """Return directions in which the logarithms of cases, (n,), may err together, (k, n), in standard deviations.

        The result is None without a cost model in the blend, which alone knows the common errors of configurations.
        """
        if not self.blend.share_of_costs:
            return None
        draws = Predicted.of(self.members, self.blend, self._read(cases)).draws
        scaled: FloatArray = draws * (self.width.factor / deviations_within(self.share) / np.sqrt(len(draws)))
        return scaled

    def ratio(self, cases: DesignMatrix, reference: DesignMatrix) -> Estimate:
        """Return the logarithms, (n,), of the ratio of each case to the reference, one case of the setting.

        Errors that all cases of the setting share cancel, so the intervals are narrower than those of the values.
        """
        other = Predicted.of(self.members, self.blend, self._read(reference))

        def estimate(prediction: Predicted) -> Estimate:
            both = prediction.beyond(other)
            width = self.ratio_width
            # Without pairs to calibrate by, treat the two errors as independent.
            half = width.half(both.apart) if width is not None else np.sqrt(2.0) * self.width.half(both.apart)
            return Estimate(both.mean, np.where(both.predictions.any(axis=1), half, 0.0))

        return self._estimates(cases, estimate)

    def doubts_of(self, cases: DesignMatrix) -> tuple[str, ...]:
        """Return sentences on parameters of cases that lie outside the measurements."""
        return doubts_of(self.known, cases)

    def _estimates(self, cases: DesignMatrix, of: Callable[[Predicted], Estimate]) -> Estimate:
        table = self._read(cases)
        parts = [of(Predicted.of(self.members, self.blend, table.at(block))) for block in _blocks(len(table))]
        return Estimate.join(parts, self.share)

    def _read(self, cases: DesignMatrix) -> Table:
        count = len(cases)
        table = _table(self.reader, [self.setting] * count, cases).only(self.names)
        return table.with_word(_GROUP, repeat_words([self.group], count)) if self.group else table


@dataclass(frozen=True)
class _Fit:
    """A fit in progress: the rows with values, and the training sample made of them."""

    rows: list[Measured]
    cases: DesignMatrix
    reader: Reader
    setting: Setting
    sample: TrainingSample
    names: frozenset[str]
    kinds: tuple[Kind, ...]
    unseen: tuple[str, ...]
    instead: str

    @classmethod
    def of(cls, rows: list[Measured], reader: Reader, setting: Setting) -> "_Fit":
        cases = DesignMatrix.from_measurements(rows)
        whole = _read(reader, rows, cases)
        if _table_of_setting(reader, setting).costs is None:
            whole = replace(whole, costs=None)
        words = _context_words(whole, cases)
        combination = tuple(word_of(setting, name) for name in words)
        context = Context.of(whole, words)
        unseen = context.unseen(combination)
        instead = in_words(context.names, context.nearest(combination)) if unseen else ""
        names = informative_columns(whole, frozenset(cases.machine) - {"nodes"} - set(cases.configuration))
        if _facts_distinguish_workloads(rows):
            names -= {"workload"}
        # Leave all words of the context in the table: they decide which known contexts are nearest.
        sample = TrainingSample(
            table=whole.only(names | set(words)),
            y=np.log([row.value or np.nan for row in rows]),
            weights=_weights(rows),
            novelty=novelty([row.setting for row in rows], setting),
            names=names,
            context=words,
            numbers=tuple(column for name, column in cases.named.items() if name in whole.numbers and name in names),
            kinds_of_work=tuple(
                column for name, column in cases.workload.items() if column.dtype == object and name not in words
            ),
        )
        if sample.is_known_a_little and sample.novelty.respect in {"machine", "installation"}:
            table = sample.table.with_word(_GROUP, sample.novelty.labels)
            sample = replace(sample, table=table, names=names | {_GROUP})
        return cls(rows, cases, reader, setting, sample, names | set(words), kinds(whole, not unseen), unseen, instead)

    def model(self, others: Sequence[Measured]) -> RunTimes:
        """Fit the model; of the rows without a value, `others`, it uses those that have a bound."""
        rng = np.random.default_rng(0)
        part = self._part(rng)
        able = eligible_kinds(part, self.kinds)
        hidden = predict_hidden(part, able, rng)
        blend = fit_blend(part, able, hidden)
        hidden = hidden.without_gaps_of(blend.picks)
        width = self._width(part, hidden, blend, rng)
        within = ratio_width(part, hidden, blend, rng)
        chosen = tuple(able[kind] for kind, _ in blend.picks)
        members = self.sample.members(chosen, self.sample.weighted, blend.rounds)
        label = self.sample.novelty.label if _GROUP in self.sample.table.words else ""
        model = RunTimes(
            setting=self.setting,
            reader=self.reader,
            names=self.names,
            group=label,
            known=self.cases.configuration,
            reads=self.sample.table.costs.reads if self.sample.table.costs is not None else frozenset(),
            members=tuple(members),
            blend=blend,
            width=width,
            ratio_width=within,
            doubts=(*doubts(self.rows, self.setting, self.unseen, self.instead), *self._slowness(members)),
            abstains=is_like_nothing(self.rows, self.setting),
            grounds=self._grounds(chosen, blend, hidden),
            share=self.share,
        )
        return self._with_bounds(model, [row for row in others if row.bound is not None], chosen)

    def _slowness(self, members: Sequence[EnsembleMember | None]) -> Iterator[str]:
        """Yield a sentence if the setting's build looks much slower than others of its machine, by its own values."""
        costs, table = self.sample.table.costs, self.sample.table
        base = members[0].base if members and members[0] is not None else None
        build = _table_of_setting(self.reader, self.setting).groups["build"][0]
        own = np.flatnonzero(table.groups["build"] == build)
        if not isinstance(base, CostModel) or costs is None or costs.level >= _UNKNOWN_WORK or not len(own):
            return
        slow = base.slowness(table.at(own))
        if slow > _SLOW:
            yield (
                f"this build looks {slow:.1f} times slower than usual ones: look at its BLAS, and at how its MPI sends "
                "messages between nodes"
            )

    def _with_bounds(self, model: RunTimes, bounds: list[Measured], chosen: tuple[Kind, ...]) -> RunTimes:
        bounds = [row for row in bounds if (row.bound or 0.0) > 0.0]
        if not bounds:
            return model
        table = _read(self.reader, bounds, DesignMatrix.from_measurements(bounds)).only(self.names)
        if model.group:
            table = table.with_word(_GROUP, np.array(["" for _ in bounds], dtype=object))
        prediction = Predicted.of(model.members, model.blend, table)
        mean, half = prediction.mean, model.width.half(prediction.apart)
        limit = np.log([row.bound or np.nan for row in bounds])
        sign = 1.0 if self.setting.metric.direction == "minimize" else -1.0
        wrong = np.flatnonzero(sign * mean < sign * limit)
        if len(wrong) == 0:
            return model
        beyond, _ = above_bound(sign * mean[wrong], half[wrong] / _DEVIATIONS, sign * limit[wrong])
        runs = np.array([row.runs for row in bounds], dtype=float)[wrong]
        sample = replace(
            self.sample,
            table=self.sample.table.join(table.at(wrong)),
            y=np.append(self.sample.y, sign * beyond),
            weights=np.append(self.sample.weighted, runs / (runs + 1.0)),
        )
        members = sample.members(chosen, sample.weights, model.blend.rounds)
        more = f"; {len(wrong)} of {len(bounds)} bounds were above what it predicted without them, and count"
        return replace(model, members=tuple(members), grounds=model.grounds + more)

    def _width(self, part: TrainingSample, hidden: HiddenPredictions, blend: Blend, rng: np.random.Generator) -> Width:
        if part.is_known_a_little and hidden.judged.any() and (hidden.fold < 0).any():
            return own_width(part, self.kinds, hidden, blend, rng)
        if blend.knows_costs and not hidden.as_asked:
            return CALIBRATED
        seen = HiddenErrors.of(part, hidden, blend)
        return Width.of(np.abs(seen.off), seen.predicted.apart, seen.labels)

    @property
    def share(self) -> float:
        """The share of values that intervals contain; a setting with enough rows is judged by its own values."""
        return CONFIDENCE if self.sample.is_known_a_little else promised_share(self.sample.novelty.others)

    def _places(self, rng: np.random.Generator) -> Places:
        """Return the rows from which to hide: all, or the setting's own and as many others as the limit allows."""
        n = len(self.rows)
        if n <= _HIDDEN_FROM:
            return np.arange(n)
        own = np.flatnonzero(self.sample.novelty.own)[: _HIDDEN_FROM // 2]
        others = rng.permutation(np.setdiff1d(np.arange(n), own))[: _HIDDEN_FROM - len(own)]
        return np.union1d(own, others)

    def _part(self, rng: np.random.Generator) -> TrainingSample:
        places = self._places(rng)
        return self.sample if len(places) == len(self.rows) else self.sample.at(places)

    def _grounds(self, chosen: tuple[Kind, ...], blend: Blend, hidden: HiddenPredictions) -> str:
        machines = len({row.setting.machine for row in self.rows})
        distinct = {id(row.setting): row.setting for row in self.rows}.values()
        builds = len({installation(setting) for setting in distinct})
        members = [
            (_FAMILIES[kind.family] + (" with trees that correct it" if rounds and kind.boosted else ""), weight)
            for kind, (_, rounds), weight in zip(chosen, blend.picks, blend.weights, strict=True)
            if weight
        ]
        parts = " and ".join(name if len(members) == 1 else f"{name} ({weight:.0%})" for name, weight in members)
        tested = "measurements" if hidden.single else _UNSEEN[self.sample.novelty.by]
        judged = f"tested on {tested} left out of the fit" if hidden.judged.any() else "too little is known to test it"
        words = _UNSEEN[self.sample.novelty.respect or "setting"]
        promise = f"; other {words} known: {self.sample.novelty.others}, so an interval is to hold {self.share:.0%}"
        return (
            f"fitted on {len(self.rows)} measurements of {self.setting.program} on {machines} machine"
            f"{'s' * (machines != 1)}, {builds} build{'s' * (builds != 1)}: {parts}, {judged}"
            f"{promise * (self.share < CONFIDENCE)}"
        )


def _by_hardware(settings: Sequence[Setting]) -> list[Setting]:
    """Return settings, (n,), with machines named without their installation: builds share a machine's rates."""
    return by_setting(settings, lambda one: replace(one, machine=hardware(one.machine, one.machine_facts)))


def _is_of(row: Measured, setting: Setting) -> bool:
    known = row.setting
    is_same = known.program == setting.program and known.metric.compares_with(setting.metric)
    return is_same and not row.failed and (row.value is None or row.value > 0.0)


def _read(reader: Reader, rows: Sequence[Measured], cases: DesignMatrix) -> Table:
    timers = dict.fromkeys(name for row in rows for name in row.parts)
    table = _table(reader, [row.setting for row in rows], cases)
    seconds = {name: np.array([row.parts.get(name, np.nan) for row in rows], dtype=float) for name in timers}
    return replace(table, timers=seconds)


def _table(reader: Reader, settings: Sequence[Setting], cases: DesignMatrix) -> Table:
    """Return the table of cases in `settings`, (n,)."""
    groups = {
        "machine": column_of(by_setting(settings, lambda setting: setting.machine)),
        "installation": column_of(by_setting(settings, lambda setting: str(installation(setting) or setting.machine))),
        "build": column_of(by_setting(settings, lambda setting: f"{setting.machine} {installation(setting)}")),
        "workload": column_of(by_setting(settings, lambda setting: setting.workload)),
    }
    names = {name: groups[name] for name in ("machine", "workload")}
    return replace(reader.read(cases, names), groups=groups)


def _table_of_setting(reader: Reader, setting: Setting) -> Table:
    """Return the setting as a case without a configuration; it has costs if its facts suffice to compute them."""
    table = _table(reader, [setting], DesignMatrix.from_measurements([Measured(setting, {})]))
    if table.costs is None or table.costs.inverse != (setting.metric.direction == "maximize"):
        return replace(table, costs=None)
    # The costs of a program are in seconds, or in work per second; a shape has no unit.
    is_known = reader.shape is not None or setting.metric.unit.rpartition("/")[2] == "s"
    return table if is_known else replace(table, costs=None)


def _weights(rows: Sequence[Measured]) -> FloatArray:
    """Return the weights of rows, (n,): one half for a single run, nearly 1 for many."""
    return np.array([row.runs / (row.runs + 1.0) for row in rows], dtype=float)


def _context_words(table: Table, cases: DesignMatrix) -> tuple[str, ...]:
    names = {"machine", *cases.machine, *(INSTALLATION & set(cases.workload))} - set(cases.configuration)
    return tuple(name for name in table.words if name in names)


def _facts_distinguish_workloads(rows: Sequence[Measured]) -> bool:
    """Return whether the facts of workloads distinguish them as well as their names do."""
    workloads = {row.setting.workload: tuple(sorted(row.setting.workload_facts.items())) for row in rows}
    return len(set(workloads.values())) == len(workloads)


def _blocks(count: int) -> Iterator[Places]:
    for start in range(0, count, _BLOCK):
        yield np.arange(start, min(start + _BLOCK, count))
