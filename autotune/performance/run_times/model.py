"""The model of run times: the time of a configuration where it has not run, and how certain it is.

Two members are blended: a sum of costs with unknown rates, where the program has such terms, and a log-linear model;
each with boosted trees on its residuals. To choose between models, and to calibrate the width of intervals, rows are
hidden that are as new to the other rows as the predicted setting is to all rows.

A bound counts where the model, fitted without bounds, predicts a value on its wrong side: as the mean of the predicted
values beyond it (Hutter, Hoos & Leyton-Brown, 2011). Failures are left out: they say nothing about times.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotune.performance.regression.boosting import ROUNDS
from autotune.performance.regression.design_matrix import DesignMatrix
from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.table import Places, Reader, Table, repeated, telling
from autotune.performance.run_times.blend import Blend, Width, blended, filled, own_width, ratio_width
from autotune.performance.run_times.context import Context
from autotune.performance.run_times.ensemble_member import EnsembleMember, Kind, kinds
from autotune.performance.run_times.extrapolation import doubts, doubts_of, is_like_nothing
from autotune.performance.run_times.novelty import INSTALLATION, by_setting, installation, novelty
from autotune.performance.run_times.sample import LeftOut, TrainingSample, left_out
from autotune.records.measurement import Measured, Setting
from autotune.search.gaussian_process import above_bound
from objectives.shapes.shape import Shape
from spaces.expressions.quantities import Columns

_LEAST = 6
# No more rows than these are hidden: more would take long and tell no more.
_HIDDEN_FROM = 1_000
_BLOCK = 16_384
_GROUP = "group"
_PLURALS = {"nodes": "numbers of nodes"}
# Nine tenths of a normal distribution lie within this number of standard deviations.
_DEVIATIONS = 1.6449


@dataclass(frozen=True)
class Estimate:
    """Logarithms of values, (n,), and half the widths, (n,), of intervals that hold them in nine cases of ten."""

    mean: FloatArray
    half: FloatArray


@dataclass(frozen=True)
class RunTimes:
    """The expected times of a program in one setting.

    `doubts` say in which respect the setting lies outside of the measurements, `abstains` that it lies too far outside
    to predict a time, `grounds` what the model was fitted on.
    """

    setting: Setting
    reader: Reader
    names: frozenset[str]
    group: str
    known: Columns
    members: tuple[EnsembleMember, ...]
    blend: Blend
    width: Width
    ratio_width: Width | None
    doubts: tuple[str, ...]
    abstains: bool
    grounds: str

    @classmethod
    def fitted(
        cls, measured: Sequence[Measured], rules: Sequence[str], setting: Setting, shape: Shape | None = None
    ) -> "RunTimes | None":
        """Fit to the measurements of the setting's program by its metric, for a space with `rules` and a `shape`.

        None where there are fewer than six values.
        """
        rows = [row for row in measured if _is_of(row, setting)]
        values = [row for row in rows if row.value is not None]
        if len(values) < _LEAST:
            return None
        # A sum of times is no rate.
        summed = shape if setting.metric.direction == "minimize" else None
        return _Fit.of(values, Reader(setting.program, tuple(rules), summed), setting).model(
            [row for row in rows if row.value is None]
        )

    @property
    def varied(self) -> frozenset[str]:
        """The parameters that were measured with several values; "unset" is none: a table may not have the column."""
        stated = {name: {str(value) for value in column.tolist()} for name, column in self.known.items()}
        return frozenset(name for name, values in stated.items() if len(values - {"None", "nan"}) > 1)

    def estimate(self, cases: DesignMatrix) -> Estimate:
        """Return the logarithms of the metric that are expected at cases of the setting, (n,)."""
        said = self._said(cases)
        return Estimate(said @ self.blend.weights, self.width.half(said.std(axis=1)))

    def ratio(self, cases: DesignMatrix, reference: DesignMatrix) -> Estimate:
        """Return the logarithms, (n,), of the value at each case over that of the reference, one case of the setting.

        An error that all cases of the setting share cancels, so the intervals are narrower than those of both values.
        """
        said = self._said(cases) - self._said(reference)
        apart = said.std(axis=1)
        width = self.ratio_width
        # Without pairs to calibrate by, the errors of the two count as independent.
        half = width.half(apart) if width is not None else np.sqrt(2.0) * self.width.half(apart)
        mean = said @ self.blend.weights
        return Estimate(mean, np.where(said.any(axis=1), half, 0.0))

    def doubts_of(self, cases: DesignMatrix) -> tuple[str, ...]:
        """Return sentences on parameters of cases that lie outside of the measurements."""
        return doubts_of(self.known, cases)

    def explain(self, case: DesignMatrix, reference: DesignMatrix) -> list[tuple[str, float]]:
        """Return what each feature adds to the logarithm of the ratio of two cases, the largest first.

        They add up to it. The parts of trees are SHAP values, those of sums of costs are logarithmic means.
        """
        pair = self._read(case).joined(self._read(reference))
        effects: dict[str, float] = {}
        for member, (_, rounds), weight in zip(self.members, self.blend.picks, self.blend.weights, strict=True):
            for name, part in member.difference(pair, ROUNDS[rounds]).items() if weight else ():
                effects[name] = effects.get(name, 0.0) + float(weight) * part
        return sorted(((name, part) for name, part in effects.items() if part), key=lambda item: -abs(item[1]))

    def _said(self, cases: DesignMatrix) -> FloatArray:
        """Return what each member expects, (n, k)."""
        table = self._read(cases)
        blocks = [_members_say(self.members, self.blend, table.at(block)) for block in _blocks(len(table))]
        return np.concatenate(blocks) if blocks else np.zeros((0, len(self.members)))

    def _read(self, cases: DesignMatrix) -> Table:
        count = len(cases)
        names = {
            "machine": repeated([self.setting.machine], count),
            "workload": repeated([self.setting.workload], count),
        }
        table = self.reader.read(cases, names).only(self.names)
        return table.with_word(_GROUP, repeated([self.group], count)) if self.group else table


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
        cases = DesignMatrix.measured(rows)
        whole = _read(reader, rows, cases)
        words = _context_words(whole, cases)
        combination = tuple(_word_of(setting, name) for name in words)
        context = Context.of(whole, words)
        unseen = context.unseen(combination)
        instead = _in_words(context.names, context.nearest(combination)) if unseen else ""
        names = telling(whole, frozenset(cases.machine) - {"nodes"} - set(cases.configuration))
        if _are_told_apart(rows):
            names -= {"workload"}
        # All words of the context stay in the table: the nearest are those that share most.
        sample = TrainingSample(
            table=whole.only(names | set(words)),
            y=np.log([row.value or np.nan for row in rows]),
            weights=np.array([row.runs / (row.runs + 1.0) for row in rows]),
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
        """Return the model; `others` are rows without values; bounds among them are used."""
        rng = np.random.default_rng(0)
        part = self._part(rng)
        hidden = left_out(part, self.kinds, rng)
        blend = blended(part, self.kinds, hidden)
        width = self._width(part, hidden, blend, rng)
        keys = np.array(by_setting([row.setting for row in self.rows], lambda setting: str(setting.key)), dtype=object)
        within = ratio_width(part, hidden, blend, keys[self._places(np.random.default_rng(0))], rng)
        chosen = tuple(self.kinds[kind] for kind, _ in blend.picks)
        members = [
            member for member in self.sample.members(chosen, self.sample.weighted, blend.rounds) if member is not None
        ]
        label = self.sample.novelty.label if _GROUP in self.sample.table.words else ""
        model = RunTimes(
            setting=self.setting,
            reader=self.reader,
            names=self.names,
            group=label,
            known=self.cases.configuration,
            members=tuple(members),
            blend=blend,
            width=width,
            ratio_width=within,
            doubts=doubts(self.rows, self.setting, self.unseen, self.instead),
            abstains=is_like_nothing(self.rows, self.setting),
            grounds=self._grounds(chosen, blend),
        )
        return self._with_bounds(model, [row for row in others if row.bound is not None], chosen)

    def _with_bounds(self, model: RunTimes, bounds: list[Measured], chosen: tuple[Kind, ...]) -> RunTimes:
        bounds = [row for row in bounds if (row.bound or 0.0) > 0.0]
        if not bounds:
            return model
        table = _read(self.reader, bounds, DesignMatrix.measured(bounds)).only(self.names)
        if model.group:
            table = table.with_word(_GROUP, np.array(["" for _ in bounds], dtype=object))
        said = _members_say(model.members, model.blend, table)
        mean, half = said @ model.blend.weights, model.width.half(said.std(axis=1))
        limit = np.log([row.bound or np.nan for row in bounds])
        sign = 1.0 if self.setting.metric.direction == "minimize" else -1.0
        wrong = np.flatnonzero(sign * mean < sign * limit)
        if len(wrong) == 0:
            return model
        beyond, _ = above_bound(sign * mean[wrong], half[wrong] / _DEVIATIONS, sign * limit[wrong])
        runs = np.array([row.runs for row in bounds], dtype=float)[wrong]
        sample = replace(
            self.sample,
            table=self.sample.table.joined(table.at(wrong)),
            y=np.append(self.sample.y, sign * beyond),
            weights=np.append(self.sample.weighted, runs / (runs + 1.0)),
        )
        members = [
            member for member in sample.members(chosen, sample.weights, model.blend.rounds) if member is not None
        ]
        more = f"; {len(wrong)} of {len(bounds)} bounds were above what it predicted without them, and count"
        return replace(model, members=tuple(members), grounds=model.grounds + more)

    def _width(self, part: TrainingSample, hidden: LeftOut, blend: Blend, rng: np.random.Generator) -> Width:
        if part.is_known_a_little and (hidden.fold < 0).any():
            return own_width(part, self.kinds, hidden, blend, rng)
        judged = hidden.judged
        said = blend.picked(hidden.said[judged])
        return Width.of(np.abs(said @ blend.weights - part.y[judged]), said.std(axis=1))

    def _places(self, rng: np.random.Generator) -> Places:
        """Return the rows to hide some of: all, or the setting's own and as many others as are allowed."""
        n = len(self.rows)
        if n <= _HIDDEN_FROM:
            return np.arange(n)
        own = np.flatnonzero(self.sample.novelty.own)[: _HIDDEN_FROM // 2]
        others = rng.permutation(np.setdiff1d(np.arange(n), own))[: _HIDDEN_FROM - len(own)]
        return np.union1d(own, others)

    def _part(self, rng: np.random.Generator) -> TrainingSample:
        places = self._places(rng)
        return self.sample if len(places) == len(self.rows) else self.sample.at(places)

    def _grounds(self, chosen: tuple[Kind, ...], blend: Blend) -> str:
        machines = len({row.setting.machine for row in self.rows})
        distinct = {id(row.setting): row.setting for row in self.rows}.values()
        builds = len({installation(setting) for setting in distinct})
        parts = ", ".join(
            f"{kind.family} {weight:.0%} with {ROUNDS[rounds]} trees"
            for kind, (_, rounds), weight in zip(chosen, blend.picks, blend.weights, strict=True)
            if weight
        )
        by = self.sample.novelty.by
        judged = f"judged by hiding whole {_PLURALS.get(by, f'{by}s')}"
        return (
            f"fitted on {len(self.rows)} measurements of {self.setting.program} on {machines} machine"
            f"{'s' * (machines != 1)}, {builds} build{'s' * (builds != 1)}; {parts}; {judged}"
        )


def _is_of(row: Measured, setting: Setting) -> bool:
    known = row.setting
    is_same = known.program == setting.program and known.metric.compares_with(setting.metric)
    return is_same and not row.failed and (row.value is None or row.value > 0.0)


def _read(reader: Reader, rows: Sequence[Measured], cases: DesignMatrix) -> Table:
    names = {
        "machine": repeated([row.setting.machine for row in rows]),
        "workload": repeated([row.setting.workload for row in rows]),
    }
    return reader.read(cases, names)


def _context_words(table: Table, cases: DesignMatrix) -> tuple[str, ...]:
    names = {"machine", *cases.machine, *(INSTALLATION & set(cases.workload))} - set(cases.configuration)
    return tuple(name for name in table.words if name in names)


def _are_told_apart(rows: Sequence[Measured]) -> bool:
    """Return whether the facts of workloads say all that their names do."""
    workloads = {row.setting.workload: tuple(sorted(row.setting.workload_facts.items())) for row in rows}
    return len(set(workloads.values())) == len(workloads)


def _word_of(setting: Setting, name: str) -> object:
    facts = {"machine": setting.machine, **setting.machine_facts, **setting.workload_facts}
    value = facts.get(name)
    return None if value is None else str(value)


def _in_words(names: tuple[str, ...], nearest: tuple[tuple[object, ...], ...]) -> str:
    shown = [name for name in names if name == "machine" or name in INSTALLATION]
    texts = [
        " ".join(str(combination[names.index(name)]) for name in shown if combination[names.index(name)])
        for combination in nearest
    ]
    return " or ".join(dict.fromkeys(texts))


def _members_say(members: Sequence[EnsembleMember], blend: Blend, table: Table) -> FloatArray:
    columns = [
        member.predict(table, (ROUNDS[rounds],))[:, 0] for member, (_, rounds) in zip(members, blend.picks, strict=True)
    ]
    return filled(np.column_stack(columns))


def _blocks(count: int) -> Iterator[Places]:
    for start in range(0, count, _BLOCK):
        yield np.arange(start, min(start + _BLOCK, count))
