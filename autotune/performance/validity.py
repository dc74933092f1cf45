"""Validity: which configurations failed in a setting, and how likely the others are to work there.

A configuration that failed, gave a wrong result or broke a limit in the setting itself is never proposed again. A
failure on another machine, of another build or of another workload may not recur, so it only casts doubt on its
neighbours.

The chance that a configuration works is the share of the nearest measured configurations that worked, weighted by the
inverse square of the distance. This is stricter than `search.feasibility`: a search runs the configuration and finds
out, but a prediction is used without a trial.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from autotune.formatting import count_failures, join_words
from autotune.performance.regression.in_space import in_space
from autotune.records.limit import Limit, Limits
from autotune.records.measurement import Measured, Setting
from objectives.base import FailureKind
from spaces import Space
from spaces.expressions.quantities import FloatArray
from spaces.valid_set.valid_set import Indices

# Doubts name proposals whose chance to work is lower than this.
_DOUBTED_BELOW = 0.75
_NEAREST = 5
# The chance of a configuration without neighbours, and its weight beside the nearest neighbour.
_EXPECTED, _TRUST = 0.9, 0.25
# Encoded values are between 0 and 1; configurations nearer than this are the same.
_SAME = 1e-6
_OTHER = "failed"
_KINDS = frozenset(kind.value for kind in FailureKind)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Validity:
    """Measurements of whether configurations of a space work.

    Attributes:
        space: The space.
        failed: Value indexes (f, p) of configurations that failed in the setting itself or broke a limit.
        compared: (f, p), the parameters in which another configuration must be equal to have the same effect.
        kinds: How often each kind of failure occurred.
        proven: Value indexes (w, p) of configurations with a value in the setting.
        evidence: Configurations that ran in the setting, and those that ran elsewhere.
        limits: The limits of the study.
    """

    space: Space
    failed: Indices
    compared: Mask
    kinds: Counter[str]
    proven: Indices
    evidence: tuple["_Evidence", ...]
    limits: Limits = ()

    @classmethod
    def of(cls, space: Space, setting: Setting, measured: Sequence[Measured], limits: Limits = ()) -> Self:
        """Collect the failures and successes among the measurements of the setting's program."""
        by_table: dict[tuple[str, ...], list[Measured]] = defaultdict(list)
        for row in measured:
            by_table[*row.setting.key, row.setting.source].append(row)
        known: list[Measured] = []
        parts: list[Indices] = []
        for table in by_table.values():
            every, fits = space.fitting(in_space(space, [row.configuration for row in table]))
            known += [row for row, fit in zip(table, fits, strict=True) if fit]
            parts.append(every[fits])
        rows = np.concatenate(parts) if parts else space.fitting([])[0]
        here = np.array([_is_there(row.setting, setting) for row in known], dtype=bool)
        worked = np.array(
            [
                not row.failed and not (there and broken_limits(limits, row))
                for row, there in zip(known, here, strict=True)
            ],
            dtype=bool,
        )
        failed = np.flatnonzero(here & ~worked)
        names = [parameter.name for parameter in space.parameters]
        compared = [[name not in known[number].idle for name in names] for number in failed]
        return cls(
            space=space,
            failed=rows[failed],
            compared=np.array(compared, dtype=bool).reshape(len(failed), len(names)),
            kinds=Counter({rows[number].tobytes(): _kind(known[number], limits) for number in failed}.values()),
            proven=rows[here & worked],
            evidence=tuple(_Evidence.of(space, rows[part], worked[part]) for part in (here, ~here) if part.any()),
            limits=limits,
        )

    def fails(self, rows: Indices) -> Mask:
        """Return, (n,), which value indexes (n, p) failed in the setting or have the same effect as one that failed."""
        excluded = np.zeros(len(rows), dtype=bool)
        groups: dict[bytes, list[int]] = defaultdict(list)
        for number, compared in enumerate(self.compared):
            groups[compared.tobytes()].append(number)
        for members in groups.values():
            compared = self.compared[members[0]]
            keys = {row.tobytes() for row in np.ascontiguousarray(self.failed[members][:, compared])}
            excluded |= np.array([row.tobytes() in keys for row in np.ascontiguousarray(rows[:, compared])], dtype=bool)
        return excluded

    def chances(self, rows: Indices) -> FloatArray:
        """Return the chances, (n,), that the value indexes (n, p) give a valid result.

        Runs in the setting and runs elsewhere each lower the chance, except for configurations that worked in the
        setting.
        """
        encoded = self.space.encode_indices(rows)
        chances = np.min([np.ones(len(rows)), *(part.chances(encoded) for part in self.evidence)], axis=0)
        proven = {row.tobytes() for row in np.ascontiguousarray(self.proven)}
        works = np.array([row.tobytes() in proven for row in np.ascontiguousarray(rows)], dtype=bool)
        return np.where(works, 1.0, chances)

    def doubts(self, rows: Indices) -> tuple[str, ...]:
        """Return sentences on the proposals, of value indexes (n, p), that may well fail or give a wrong result.

        Proposals with the same chance, as neighbours have, share a sentence.
        """
        by_chance: dict[str, list[str]] = defaultdict(list)
        for number, chance in enumerate(self.chances(rows).tolist(), start=1):
            if chance < _DOUBTED_BELOW:
                by_chance[f"{chance:.0%}"].append(str(number))
        return tuple(
            f"proposal {numbers[0]}: configurations near it {self._wrong}; the chance that it works is {chance}"
            if len(numbers) == 1
            else f"proposals {join_words(numbers)}: configurations near them {self._wrong}; the chance that each works "
            f"is {chance}"
            for chance, numbers in by_chance.items()
        )

    @property
    def remark(self) -> str:
        """Return how many configurations are left out, and why; empty if all remain."""
        count = self.kinds.total()
        if not count:
            return ""
        kinds = ", ".join(count_failures(dict(self.kinds.most_common())))
        configurations = "configuration" if count == 1 else "configurations"
        return f"never proposed: {count} {configurations} that {self._wrong} here ({kinds})"

    @property
    def _wrong(self) -> str:
        return "failed, gave wrong results or broke a limit" if self.limits else "failed or gave wrong results"


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Distinct encoded configurations that ran, (n, d), and the share of settings in which each worked, (n,)."""

    tree: cKDTree
    worked: FloatArray

    @classmethod
    def of(cls, space: Space, rows: Indices, worked: Mask) -> Self:
        """Return the evidence of value indexes (m, p), given which of them `worked`, (m,)."""
        tried, places = np.unique(rows, axis=0, return_inverse=True)
        shares = np.bincount(places.ravel(), worked) / np.bincount(places.ravel())
        return cls(cKDTree(space.encode_indices(tried)), shares)

    def chances(self, encoded: FloatArray) -> FloatArray:
        """Return the chances, (n,), that encoded configurations, (n, d), work."""
        if len(encoded) == 0 or self.worked.min() == 1.0:
            return np.ones(len(encoded))
        nearest = range(1, 1 + min(_NEAREST, len(self.worked)))
        distances, neighbours = self.tree.query(encoded, k=nearest)
        distances = np.maximum(distances, _SAME)
        weights = (distances[:, :1] / distances) ** 2
        worked = (weights * self.worked[neighbours]).sum(axis=1)
        chances: FloatArray = (_TRUST * _EXPECTED + worked) / (_TRUST + weights.sum(axis=1))
        return chances


def _is_there(measured: Setting, setting: Setting) -> bool:
    """Return whether two settings are the same apart from the metric, as far as program and input are known."""
    there = (measured.program, measured.place, measured.workload)
    return there == (setting.program, setting.place, setting.workload) and measured.may_be_identical(setting)


def broken_limits(limits: Limits, measured: Measured) -> list[Limit]:
    """Return the limits that a measured configuration breaks; a limit on an unmeasured metric is not broken."""
    values = {**measured.told, measured.setting.metric.name: measured.value}
    known = ((limit, values.get(limit.metric.name)) for limit in limits)
    return [limit for limit, value in known if value is not None and not limit.allows(value)]


def _kind(measured: Measured, limits: Limits) -> str:
    if not measured.failed:
        return f"beyond {' and '.join(map(str, broken_limits(limits, measured)))}"
    kind = measured.failure.partition(":")[0]
    return kind if kind in _KINDS else _OTHER
