"""Choose and sort the trials of a study by their state, parameters and figures."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Self

from autotune.errors import AutotuneError
from autotune.formatting import UNSET, value_text
from autotune.records.study import TrialRecord
from autotune.results.summary import Summary
from autotune.results.trial_columns import state_of, trial_columns
from spaces.parameters.errors import did_you_mean

_TERM = re.compile(r"\s*(?P<name>[^<>=!]+?)\s*(?P<sign><=|>=|!=|==|=|<|>)\s*(?P<value>[^<>=!]+?)\s*")
_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": le,
    ">=": ge,
    "!=": ne,
    "==": eq,
    "=": eq,
    "<": lt,
    ">": gt,
}


@dataclass(frozen=True)
class Term:
    """A comparison that trials must satisfy: `np >= 8`, `blas = unset`."""

    name: str
    sign: str
    value: str

    def matches(self, found: Any) -> bool:  # noqa: ANN401  whatever a parameter holds
        """Whether a value satisfies the comparison; None satisfies only `= unset`, and `!=` with any other value."""
        compare = _SIGNS[self.sign]
        if found is None or self.value == UNSET:
            return self.sign in {"=", "==", "!="} and compare(UNSET if found is None else found, self.value)
        if isinstance(found, int | float) and not isinstance(found, bool):
            try:
                return compare(found, float(self.value))
            except ValueError:
                return self.sign == "!="
        asked = self.value.strip("'\"").lower()
        if isinstance(found, bool):
            # The page writes true and false, the command line yes and no.
            asked = {"true": "yes", "false": "no"}.get(asked, asked)
        return compare(value_text(found).lower(), asked)


@dataclass(frozen=True)
class TrialChoice:
    """A choice of trials.

    Attributes:
        state: The state of the trials; empty for all.
        terms: The comparisons that they must satisfy.
        sort: The parameter or figure to sort by.
        down: Whether to sort in descending order.
    """

    state: str = ""
    terms: tuple[Term, ...] = ()
    sort: str = "trial"
    down: bool = False

    @classmethod
    def of(cls, where: str, state: str = "", sort: str = "trial", *, down: bool = False) -> Self:
        """Return the choice by comparisons with commas between them.

        Raises:
            AutotuneError: A term is not a comparison.
        """
        return cls(state, tuple(_term(text) for text in where.split(",") if text.strip()), sort, down)

    def trials(self, summary: Summary) -> list[TrialRecord]:
        """Return the chosen trials; those without a value to sort by come last.

        Raises:
            AutotuneError: The study does not have a parameter or figure that a term names.
        """
        columns = trial_columns(summary.standings, summary.definition)
        figures = {column.name: column.of for column in columns if column.sortable}
        names = [term.name for term in self.terms]
        for field, name in (*(("where", name) for name in names), ("sort", self.sort)):
            if name not in figures:
                known = ", ".join(figures)
                close = did_you_mean(name, figures)
                msg = f"{field}: {name!r} is neither a parameter nor a figure{close}; known: {known}"
                raise AutotuneError(msg)
        wanted = [
            trial
            for trial in sorted(summary.trials, key=lambda trial: trial.number)
            if (not self.state or state_of(trial) == self.state)
            and all(term.matches(figures[term.name](trial)) for term in self.terms)
        ]
        if self.sort == "trial":
            return wanted[::-1] if self.down else wanted
        return _sort(wanted, figures[self.sort], down=self.down)


def _term(text: str) -> Term:
    found = _TERM.fullmatch(text)
    if found is None:
        msg = (
            f"where: {text.strip()!r} is not a comparison: write a name, one of {' '.join(_SIGNS)}, and a value, "
            "as in np >= 8"
        )
        raise AutotuneError(msg)
    return Term(**found.groupdict())


def _sort(trials: Sequence[TrialRecord], figure: Callable[[TrialRecord], Any], *, down: bool) -> list[TrialRecord]:
    known = [(found, trial) for trial in trials if (found := figure(trial)) is not None]
    # The values of a parameter may have different types.
    known.sort(key=lambda pair: _key(pair[0]), reverse=down)
    there = {trial.number for _, trial in known}
    return [trial for _, trial in known] + [trial for trial in trials if trial.number not in there]


def _key(found: object) -> tuple[bool, Any]:
    number = isinstance(found, int | float)
    return not number, found if number else str(found)
