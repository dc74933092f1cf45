"""The performance model: from all measurements of a program to the best configurations of a setting.

If the same space was measured on other machines, their measurements show how near to the best a configuration comes
(`transfer`). Otherwise run times are predicted from facts (`run_times`), also from measurements of other spaces.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, isnan, log
from statistics import median

import numpy as np

from autotune.formatting import join_words, quantity
from autotune.performance.expected_times import ExpectedTimes
from autotune.performance.installation import (
    agree,
    is_same_hardware,
    machine_numbers,
    with_installation_apart,
)
from autotune.performance.measured_here import MeasuredHere, is_here, value_of
from autotune.performance.recognition import unify_names
from autotune.performance.regression.prediction import WIDEST, Estimate, Interval, Prediction, Proposal
from autotune.performance.regression.table import DesignMatrix, Places
from autotune.performance.run_times.model import RunTimes
from autotune.performance.transfer.model import Transfer, transfer
from autotune.performance.transfer.sources import Source, sources
from autotune.performance.validity import Validity
from autotune.records.limit import Limits
from autotune.records.measurement import Measured, Setting, installation_of
from autotune.statistics.ratio_words import times as ratio_words
from objectives import registry
from objectives.base import Metric
from objectives.shapes.shape import Shape
from spaces import Space, Value
from spaces.expressions.quantities import FloatArray
from spaces.valid_set.valid_set import Indices

# Up to this size all valid configurations are candidates; of a larger space, a sample and the measured ones.
_LISTED = 200_000
_SAMPLED = 20_000
# With the same space measured on fewer machines, efficiencies predict no better than run times.
_TRANSFERRED = 3
_REASONS = 5
# 90 % of a normal distribution lie within this number of standard deviations.
_DEVIATIONS = 1.6449

Gains = Sequence[Interval | None]


@dataclass(frozen=True)
class PerformanceModel:
    """A model of one program.

    Attributes:
        measured: The program's measurements.
        rules: The rules of its space; the model uses the numbers that they compute.
        shape: The shape of its run times, if known.
        limits: Configurations that broke a limit in a setting are not proposed there.
    """

    measured: tuple[Measured, ...]
    rules: tuple[str, ...] = ()
    shape: Shape | None = None
    limits: Limits = ()

    def best(self, space: Space, setting: Setting, top: int) -> Prediction:
        """Return the `top` configurations that should be best in a setting; no proposals if the model cannot predict.

        If there are too few measurements of the setting's metric, another metric of the same unit replaces it, and the
        prediction is not promising.
        """
        setting = with_installation_apart(setting)
        model = replace(self, measured=tuple(unify_names(self.measured, setting)))
        return model._best_or_substitute(space, setting, top)

    def _best_or_substitute(self, space: Space, setting: Setting, top: int) -> Prediction:
        prediction = self._best(space, setting, top)
        for other in self._instead_of(setting.metric) if not prediction.proposals else ():
            substitute = self._best(space, replace(setting, metric=other), top)
            if substitute.proposals:
                doubt = f"little was measured by {setting.metric.name}: judged by {other.name}"
                return replace(substitute, promising=False, doubts=(doubt, *substitute.doubts))
        return prediction

    def _instead_of(self, metric: Metric) -> list[Metric]:
        """Return the other metrics of the same unit and direction, the most often measured first."""
        counts = Counter(measurement.setting.metric for measurement in self.measured if measurement.value is not None)
        alike = (metric.unit, metric.direction)
        return [
            other for other, _ in counts.most_common() if other != metric and (other.unit, other.direction) == alike
        ]

    def _notes_on_other_scales(self, metric: Metric) -> list[str]:
        """Return a sentence on each metric of the same name but another scale, whose measurements are left out."""
        others = Counter(
            measurement.setting.metric
            for measurement in self.measured
            if measurement.setting.metric.name == metric.name
        )
        return [
            f"left out: {count} measurements of {other.name} in {other.unit or 'no unit'}, to {other.direction}"
            for other, count in others.items()
            if not other.compares_with(metric)
        ]

    def _best(self, space: Space, setting: Setting, top: int) -> Prediction:
        elsewhere = _sources(space, setting, self.measured)
        validity = Validity.of(space, setting, self.measured, self.limits)
        here = MeasuredHere.of(space, setting, self.measured, self.limits)
        rows = _candidates(space, [here.rows, *(source.rows for source in elsewhere)], validity)
        related, remarks = _values_of_related_metrics(self.measured, setting)
        times = RunTimes.fit([*self.measured, *related], self.rules, setting, self.shape)
        known = tuple(dict.fromkeys(source.setting.place for source in elsewhere))
        grounds: tuple[str, ...] = ()
        if elsewhere:
            count = len(set(machine_numbers([source.setting for source in elsewhere])))
            machines = "1 machine" if count == 1 else f"{count} machines"
            grounds = (f"the same space was measured on {machines}: {', '.join(known)}",)
        grounds += (remark,) if (remark := here.remark) else ()
        grounds += (times.grounds, *remarks) if times is not None else ()
        doubts = (*(times.doubts if times is not None else ()), *self._notes_on_other_scales(setting.metric))
        if self.limits and validity.fails(rows[:1])[0]:
            doubts += ("the default failed or breaks a limit here: speed-ups over it do not compare equals",)
        grounds += (validity.remark,) if validity.remark else ()
        known_times = times if times is not None and not times.abstains else None
        view = _View(space, setting, rows, known_times, validity, here, _sometimes_unset(self.measured))
        numbers = _numbers(elsewhere, setting)
        if len(set(numbers)) >= _TRANSFERRED or (elsewhere and view.times is None):
            narrowed = replace(view, rows=rows[view.differs_in(_parameters_that_vary(space, elsewhere))])
            result = transfer(space, setting, elsewhere, narrowed.rows, top, validity.chances(narrowed.rows), numbers)
            return narrowed.predict_by_transfer(result, grounds, doubts)
        if view.times is None:
            return view.predict_best_measured(top, grounds, doubts)
        return view.predict_by_times(view.times, top, grounds, doubts)


@dataclass(frozen=True)
class Fields:
    """Knowledge that guides a search: efficiencies of configurations from each source, and expected times."""

    found: tuple[Source, ...] = ()
    expected: ExpectedTimes | None = None

    @classmethod
    def of(cls, model: PerformanceModel, space: Space, setting: Setting) -> "Fields | None":
        """Return the fields that a model's measurements and costs give in a setting; None if they give none."""
        setting = with_installation_apart(setting)
        measured = unify_names(model.measured, setting)
        elsewhere = _sources(space, setting, measured)
        expected = None
        if len(set(_numbers(elsewhere, setting))) < _TRANSFERRED:
            related, _ = _values_of_related_metrics(measured, setting)
            times = RunTimes.fit([*measured, *related], model.rules, setting, model.shape)
            if times is not None and not times.abstains:
                expected = ExpectedTimes(space, setting, times, Validity.of(space, setting, measured))
        return cls(tuple(elsewhere), expected) if elsewhere or expected is not None else None

    def fields(self, rows: Indices) -> FloatArray:
        """Return the logarithmic distances, (n, m), of value indexes (n, p) from the best in each of m fields."""
        columns = [-source.at(rows) for source in self.found]
        return np.column_stack(columns if self.expected is None else [*columns, self.expected.at(rows)])


@dataclass(frozen=True)
class _View:
    """The candidates of a setting and the knowledge about them.

    Attributes:
        space: The space of the candidates.
        setting: The setting to predict.
        rows: Value indexes (n, p) of the candidates, the default first.
        times: The model of their times, if it does not abstain.
        validity: Which of them work.
        here: The measurements in the setting itself.
        optional: Parameters that were measured both with a value and unset.
    """

    space: Space
    setting: Setting
    rows: Indices
    times: RunTimes | None
    validity: Validity
    here: MeasuredHere
    optional: frozenset[str]

    def predict_by_transfer(self, result: Transfer, grounds: tuple[str, ...], doubts: tuple[str, ...]) -> Prediction:
        """Return the prediction from measurements of the same space on other machines."""
        if result.proposals[:1] == (0,):
            doubts += (f"the default comes first: the best other beats it with a chance of {result.chance:.0%}",)
        predicted = [result.speed_up(index) for index in result.proposals]
        indices, gains = self._with_caution(np.array(result.proposals, dtype=np.intp), predicted)
        doubts += self.validity.doubts(self.rows[indices])
        proposals = self._proposals(indices, gains)
        first = proposals[0].speed_up if proposals else None
        promising = self._is_sure(indices, gains)
        if first is not None and first.low <= 1.0:
            doubts += (
                f"the first proposal may be slower than the default: {first.low:.2g} times as good at the least",
            )
        elif first is not None and not promising:
            doubts += ("the first proposal only looks better than the default, measured here: no verdict says so",)
        if len(result.gains) > 1 and first is not None:
            won = int((result.gains > 0.0).sum())
            text = (
                f"predicted without its own data, the first proposal beat the default on {won} of {len(result.gains)}"
            )
            grounds += (text,)
        if result.is_floored:
            doubts += (
                "the default was ten times slower than the best somewhere, or failed: the speed-ups are at least so",
            )
        return self._prediction(proposals, grounds, doubts, promising=promising)

    def predict_by_times(
        self, times: RunTimes, top: int, grounds: tuple[str, ...], doubts: tuple[str, ...]
    ) -> Prediction:
        """Return the prediction from predicted times alone."""
        is_known = np.array([row is not None for row in self.here.at(self.rows)])
        # The candidates already exclude failed configurations, except for the default.
        comparable = np.flatnonzero(self._is_comparable(times) | is_known)
        comparable = comparable[~self.validity.fails(self.rows[comparable])]
        if len(comparable) == 0:
            doubts += ("no configuration is left that differs from the default only in what was varied",)
            return self._prediction((), grounds, doubts)
        costs = self._costs(times, comparable) - np.log(self.validity.chances(self.rows[comparable]))
        # Do not propose configurations that the model knows nothing about.
        comparable, costs = comparable[~np.isnan(costs)], costs[~np.isnan(costs)]
        if len(comparable) == 0:
            doubts += ("nothing is known of the times of these configurations",)
            return self._prediction((), grounds, doubts)
        indices = comparable[np.argsort(costs, kind="stable")[:top]]
        sign = -1.0 if self.setting.metric.direction == "maximize" else 1.0
        default_case, cases = self._cases(np.array([0])), self._cases(indices)
        ratio = times.ratio(cases, default_case)
        *off, default_off = self._off(times, np.append(indices, 0))
        gains: Gains = [
            Interval(exp(-sign * middle), exp(-sign * middle - wide), exp(-sign * middle + wide), ratio.share)
            for middle, wide in zip((ratio.mean + off - default_off).tolist(), ratio.half.tolist(), strict=True)
        ]
        indices, gains = self._with_caution(indices, gains)
        proposals = self._proposals(indices, gains)
        doubts += times.doubts_of(self._cases(indices[~is_known[indices]])) + self.validity.doubts(self.rows[indices])
        promising = self._is_sure(indices, gains) and not doubts
        reasons = self._reasons(times, int(indices[0]), sign)
        grounds += (*self._without_measurements(times, int(indices[0]), sign), *self._unpredicted(times))
        return self._prediction(proposals, grounds, doubts, promising=promising, reasons=reasons)

    def _without_measurements(self, times: RunTimes, first: int, sign: float) -> Iterator[str]:
        """Yield a sentence on what the costs alone say of the candidate `first`, which shows what was learnt."""
        bare = times.without_measurements
        if bare is None or not first or self.here.at(self.rows[[first]])[0] is not None:
            return
        case, default = self._cases(np.array([first])), self._cases(np.array([0]))
        gain, metric = exp(-sign * float(bare.ratio(case, default).mean[0])), self.setting.metric
        if isnan(gain):
            return
        value = bare.estimate(case)
        middle, half = float(value.mean[0]), float(value.half[0])
        known = Interval(exp(middle), exp(middle - half), exp(middle + half)).says_something
        took = f", {quantity(exp(middle), metric)}" if known else ""
        yield f"without measurements, the first would be expected to be {ratio_words(gain, metric)} the default{took}"

    def _unpredicted(self, times: RunTimes) -> Iterator[str]:
        """Yield a sentence on the parameters that costs do not depend on, if times are predicted from these alone."""
        names = [one.name for one in self.space.parameters if one.name not in self._predicted(times)]
        if times.rests_on_costs and names:
            measured = "" if self.here.best is None else ", or some that were measured here"
            yield f"not predicted: the effect of {join_words(names)}; proposals have the default's values{measured}"

    def _reasons(self, times: RunTimes, first: int, sign: float) -> tuple[tuple[str, float], ...]:
        """Return how many times better the candidate `first` is than with one of its options as in the default.

        The options are those in which they differ, the most important first.
        """
        changed = np.flatnonzero(self.rows[first] != self.rows[0])
        if not len(changed):
            return ()
        reset = np.repeat(self.rows[first][None, :], len(changed), axis=0)
        reset[np.arange(len(changed)), changed] = self.rows[0][changed]
        cases = DesignMatrix.candidates(self.space, reset, self.setting)
        parts = sign * times.ratio(cases, self._cases(np.array([first]))).mean
        names = [self.space.parameters[column].name for column in changed]
        known = [
            (name, exp(part))
            for name, part in zip(names, parts.tolist(), strict=True)
            if part and not isnan(part) and name in self._predicted(times)
        ]
        return tuple(sorted(known, key=lambda reason: -abs(log(reason[1]))))[:_REASONS]

    def predict_best_measured(self, top: int, grounds: tuple[str, ...], doubts: tuple[str, ...]) -> Prediction:
        """Return the best configurations measured in the setting, if no model predicts the others."""
        measured, fails = self.here.at(self.rows), self.validity.fails(self.rows)
        costs = {
            place: self.here.cost(row)
            for place, row in enumerate(measured)
            if row is not None and row.value is not None and not fails[place]
        }
        best = sorted(costs, key=lambda place: costs[place])[:top]
        if not best:
            why = "too little was measured of it by this metric to say anything"
            return self._prediction((), grounds, doubts or (why,))
        doubts += ("too little was measured to predict others: these are the measured ones",)
        indices, gains = self._with_caution(np.array(best), [None] * len(best))
        return self._prediction(self._proposals(indices, gains), grounds, doubts)

    def _with_caution(self, indices: Places, gains: Gains) -> tuple[Places, Gains]:
        """Return candidates with their predicted gains, after the default if a verdict found no sure gain over it.

        A first candidate that surely beats the default stays first nevertheless.
        """
        if not self.here.keeps_default or not len(indices) or self._is_sure(indices, gains):
            return indices, gains
        others = [(index, gain) for index, gain in zip(indices.tolist(), gains, strict=True) if index != 0]
        kept = [(0, None), *others][: len(indices)]
        return np.array([index for index, _ in kept], dtype=np.intp), [gain for _, gain in kept]

    def _is_sure(self, indices: Places, gains: Gains) -> bool:
        """Return whether the first candidate surely beats the default; if it was measured, only a verdict counts."""
        if not len(indices):
            return False
        (measured,) = self.here.at(self.rows[indices[:1]])
        if self.here.gain(measured) is not None:
            return self.here.is_confirmed(measured)
        return gains[0] is not None and gains[0].low > 1.0

    def _costs(self, times: RunTimes, indices: Places) -> FloatArray:
        """Return the logarithms of the cost of candidates at `indices`, (n,).

        A measured candidate has its measured cost, another its expected cost. Outside the range of measurements a model
        is less accurate than it estimates, so the worse end of its interval counts there.
        """
        estimate = self._estimate(times, indices)
        costs = (-1.0 if self.setting.metric.direction == "maximize" else 1.0) * estimate.mean
        if self.here.best is not None:
            expected = (estimate.half / _DEVIATIONS) ** 2 / 2.0
            costs += np.where(self.here.inside(self.rows[indices]), expected, estimate.half)
        for place, measured in enumerate(self.here.at(self.rows[indices])):
            if measured is not None:
                known = self.here.cost(measured)
                costs[place] = known if measured.value is not None else max(known, costs[place])
        return costs

    def _estimate(self, times: RunTimes, indices: Places) -> Estimate:
        """Return the predicted logarithms of the values of candidates, (n,), shifted to fit the setting's measurements.

        The shift cancels errors that all configurations share; the error of the ratio to the best measured one remains.
        """
        estimate = times.estimate(self._cases(indices))
        if self.here.best is None:
            return estimate
        best = DesignMatrix.candidates(self.space, self.here.rows[self.here.best][None, :], self.setting)
        half = times.ratio(self._cases(indices), best).half
        return Estimate(estimate.mean + self._off(times, indices), half, times.share)

    def _off(self, times: RunTimes, indices: Places) -> FloatArray:
        """Return how far the values measured here lie above the predicted ones, (n,), as medians of logarithms.

        For a candidate at `indices`, it is the median over measured configurations with the same values of the
        parameters whose effect `times` does not predict, or else over all measured ones.
        """
        found = np.zeros(len(indices))
        if self.here.best is None:
            return found
        cases = DesignMatrix.candidates(self.space, self.here.rows, self.setting)
        off = np.log([row.value or np.nan for row in self.here.measured]) - times.estimate(cases).mean
        found += np.nanmedian(off)
        rests = self._rests(times, np.concatenate([self.rows[indices], self.here.rows]))
        asked, measured = rests[: len(indices)], rests[len(indices) :]
        for rest in set(measured[~np.isnan(off)].tolist()):
            found[asked == rest] = np.nanmedian(off[measured == rest])
        return found

    def _rests(self, times: RunTimes, rows: Indices) -> Places:
        """Return a label of each row, (n,): equal where all parameters are whose effect `times` does not predict."""
        read = self._predicted(times)
        columns = [place for place, parameter in enumerate(self.space.parameters) if parameter.name not in read]
        if not columns:
            return np.zeros(len(rows), dtype=np.intp)
        labels: Places = np.unique(rows[:, columns], axis=0, return_inverse=True)[1].reshape(-1)
        return labels

    def _predicted(self, times: RunTimes) -> frozenset[str]:
        """Return the parameters whose effect `times` predicts, "unset" included."""
        return times.varied if times.rests_on_costs else times.varied | self.optional

    def _is_comparable(self, times: RunTimes) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Return which candidates, (n,), differ only in what `times` predicts from the default or one measured here."""
        valued = [row.value is not None for row in self.here.measured]
        rests = self._rests(times, np.concatenate([self.rows, self.here.rows[valued]]))
        mask: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.isin(
            rests[: len(self.rows)], [rests[0], *rests[len(self.rows) :]]
        )
        return mask

    def differs_in(self, varied: frozenset[str]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Return which rows, (n,), differ from the default only in `varied` parameters."""
        others = [column for column, parameter in enumerate(self.space.parameters) if parameter.name not in varied]
        mask: np.ndarray[tuple[int], np.dtype[np.bool_]] = (self.rows[:, others] == self.rows[0, others]).all(axis=1)
        return mask

    @property
    def _facts(self) -> dict[str, Value]:
        return {**self.setting.machine_facts, **self.setting.workload_facts}

    def _cases(self, indices: Places) -> DesignMatrix:
        return DesignMatrix.candidates(self.space, self.rows[indices], self.setting)

    def _prediction(
        self,
        proposals: tuple[Proposal, ...],
        grounds: tuple[str, ...],
        doubts: tuple[str, ...],
        *,
        promising: bool = False,
        reasons: tuple[tuple[str, float], ...] = (),
    ) -> Prediction:
        (default,) = self._proposals(np.array([0]), [None])
        return Prediction(
            setting=self.setting,
            default=self.space.default(),
            default_value=default.value,
            proposals=proposals,
            promising=promising,
            grounds=grounds,
            doubts=doubts,
            reasons=reasons,
            default_runs=default.measured_runs,
            layout=registry.layout(self.setting.program, proposals[0].configuration, self._facts) if proposals else (),
            widest=WIDEST if self.times is None else self.times.widest,
        )

    def _proposals(self, indices: Places, gains: Gains) -> tuple[Proposal, ...]:
        """Return proposals for the candidates at `indices`, (n,); measured gains replace the predicted `gains`."""
        proposals = []
        rows = self.rows[indices]
        for configuration, predicted, gain, index, measured in zip(
            self.space.decode(rows), self._values(indices), gains, indices.tolist(), self.here.at(rows), strict=True
        ):
            value = value_of(measured)
            proposals.append(
                Proposal(
                    configuration=configuration,
                    value=predicted if value is None else value,
                    speed_up=None if index == 0 else self.here.gain(measured) or gain,
                    measured_runs=measured.runs if measured is not None and value is not None else 0,
                    by_verdict=(judged := self.here.verdict_on(measured)) is not None and judged.said is not None,
                )
            )
        return tuple(proposals)

    def _values(self, indices: Places) -> list[Interval | None]:
        if self.times is None:
            return [None] * len(indices)
        estimate = self._estimate(self.times, indices)
        return [
            None if isnan(middle) else Interval(exp(middle), exp(middle - wide), exp(middle + wide), estimate.share)
            for middle, wide in zip(estimate.mean.tolist(), estimate.half.tolist(), strict=True)
        ]


def _values_of_related_metrics(measured: Sequence[Measured], setting: Setting) -> tuple[list[Measured], list[str]]:
    """Return values of other metrics in the very setting as values of its metric, and a sentence on each metric.

    Another metric of the same unit and direction counts, such as CPU seconds for seconds, times the median ratio of the
    two where both are known; without a ratio it is left out.
    """
    of = setting.metric
    by_metric: dict[Metric, dict[Hashable, Measured]] = defaultdict(dict)
    for row in measured:
        one = row.setting
        if one.program == setting.program and (one.metric.unit, one.metric.direction) == (of.unit, of.direction):
            what = frozenset(installation_of(one).items()), frozenset(row.configuration.items())
            by_metric[one.metric][one.place, one.workload, what] = row
    own = {key: row.value or 0.0 for key, row in by_metric.pop(of, {}).items()}
    found, remarks = [], []
    for metric, rows in by_metric.items():
        valued = {key: row for key, row in rows.items() if (row.value or 0.0) > 0.0}
        ratios = [own[key] / row.value for key, row in valued.items() if own.get(key) and row.value]
        more = [row for key, row in valued.items() if key not in own and is_here(row, replace(setting, metric=metric))]
        if ratios and more:
            ratio = median(ratios)
            found += [replace(row, setting=setting, value=ratio * (row.value or 0.0), runs=1, parts={}) for row in more]
            remarks.append(f"{len(more)} values of {metric.name} here count, times {ratio:.3g}, as {of.name}")
    return found, remarks


def _sources(space: Space, setting: Setting, measured: Sequence[Measured]) -> list[Source]:
    """Return the sources for a transfer; those of another installation only if too few machines have the setting's."""
    elsewhere = sources(space, setting, measured)
    own = installation_of(setting)
    alike = [source for source in elsewhere if agree(installation_of(source.setting), own)]
    return alike if len(set(_numbers(alike, setting))) >= _TRANSFERRED else list(elsewhere)


def _numbers(elsewhere: Sequence[Source], setting: Setting) -> tuple[int, ...]:
    """Return a number for each source; sources with the same number are left out together to test the transfer.

    If the setting's machine is new, all sources of a machine share a number, because its other workloads would reveal
    what it is like. If the machine was measured, only the build or the workload is new, and sources are left out
    singly.
    """
    settings = [source.setting for source in elsewhere]
    if any(is_same_hardware(one, setting) for one in settings):
        return tuple(range(len(settings)))
    return machine_numbers(settings)


def _parameters_that_vary(space: Space, elsewhere: Sequence[Source]) -> frozenset[str]:
    """Return the parameters that were measured with several values."""
    rows = np.concatenate([source.rows for source in elsewhere])
    several = (rows != rows[0]).any(axis=0)
    return frozenset(parameter.name for parameter, varied in zip(space.parameters, several, strict=True) if varied)


def _sometimes_unset(measured: Sequence[Measured]) -> frozenset[str]:
    """Return the parameters that some measurements of a source set and others leave unset."""
    totals = Counter((row.setting.key, row.setting.source) for row in measured)
    stated = Counter((row.setting.key, row.setting.source, name) for row in measured for name in row.configuration)
    return frozenset(name for (key, source, name), count in stated.items() if count < totals[key, source])


def _candidates(space: Space, measured: Sequence[Indices], validity: Validity) -> Indices:
    """Return the candidates, (n, p), the default first, with `measured` ones, and without any other that failed."""
    default = space.indices([space.default()])
    if space.listable and space.size.value <= _LISTED:
        rows = space.all_indices()
    else:
        drawn = space.sample_indices(np.random.default_rng(0), _SAMPLED)
        rows = np.unique(np.concatenate([drawn, *measured]), axis=0)
    others: Indices = rows[(rows != default).any(axis=1) & ~validity.fails(rows)]
    return np.ascontiguousarray(np.concatenate([default, others]))
