"""How the ranks of a case of pw.x are divided into pools, band groups and task groups, and how many diagonalise."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from objectives.qe.automatic_layout import automatic_ndiag, automatic_pools, automatic_task_groups, chooses_layout
from objectives.shapes.known import Column, Known


@dataclass(frozen=True)
class Division:
    """What each case was told, and what pw.x chooses where it was not told; columns, (n,) each."""

    pools: Column
    groups: Column
    tasks: Column
    ndiag: Column

    @classmethod
    def of(cls, known: Known, bands: Column, planes: Column) -> "Division":
        """Return the division of cases with so many `bands` and `planes`, NaN where they are not known."""
        ranks, kpoints = known.number("np", 1.0), known.number("kpoints")
        choosing = np.array([chooses_layout(version) for version in known.words("pw_version")], dtype=bool)
        pools = _chosen(known.number("npool"), automatic_pools, choosing, ranks, kpoints, planes)
        groups = known.number("nbgrp", 1.0)
        of_group = ranks / pools / groups
        # Before it chooses, pw.x takes the largest square.
        square = np.floor(np.sqrt(ranks / pools)) ** 2
        ndiag = _chosen(known.number("ndiag"), automatic_ndiag, choosing, of_group, bands, otherwise=square)
        ndiag = np.where(np.isnan(known.number("ndiag")) & ~(known.number("scalapack", 0.0) > 0.0), 1.0, ndiag)
        return cls(
            pools=pools,
            groups=groups,
            tasks=_chosen(known.number("ntg"), automatic_task_groups, choosing, of_group, bands, planes),
            ndiag=ndiag,
        )


def _chosen(
    said: Column, rule: Callable[..., int], choosing: np.ndarray, *amounts: Column, otherwise: float | Column = 1.0
) -> Column:
    """Return what was said, what the rule gives where pw.x chooses and all is known, and else the other value."""
    found = np.where(np.isnan(said), otherwise, said)
    asked = np.isnan(said) & choosing & ~np.isnan(np.sum(amounts, axis=0))
    for row in np.flatnonzero(asked):
        found[row] = rule(*(int(amount[row]) for amount in amounts))
    return found
