"""The finding of a watch, in words and as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from statistics import fmean
from typing import Any

from autotune.comparison.watching.check import Check, differences_between
from autotune.comparison.watching.judgement import Judgement, Pair, Quantity
from autotune.statistics.change import Shift
from autotune.statistics.ratio_words import Interval, ends, times
from autotune.statistics.verdict import Verdict
from autotune.studyfile.definition import Definition
from objectives.base import Metric


@dataclass(frozen=True)
class Change:
    """A quantity that has shifted: by how much, and in which check that began."""

    quantity: Quantity
    shift: Shift
    check: Check


@dataclass(frozen=True)
class Finding:
    """The finding of a watch.

    Attributes:
        study: The name of the study.
        verdict: The verdict under watch.
        metric: The metric.
        reference: The pairs to compare with: the verdict's, or those of the accepted check.
        checks: All checks.
        measured: The checks that are compared with the reference.
        judgement: What has shifted; None before the first check.
        at_verdict: The surroundings of the verdict's runs.
        definition: The definition of the study.
        accepted: The number of the check that the user accepted as the new reference; 0 for none.
    """

    study: str
    verdict: Verdict
    metric: Metric
    reference: tuple[Pair, ...]
    checks: tuple[Check, ...]
    measured: tuple[Check, ...]
    judgement: Judgement | None
    at_verdict: Mapping[str, str]
    definition: Definition
    accepted: int = 0

    @property
    def changes(self) -> list[Change]:
        """The quantities that have shifted by more than chance explains."""
        alarms = self.judgement.alarms if self.judgement is not None else {}
        return [Change(quantity, found, self.measured[found.since - 1]) for quantity, found in alarms.items()]

    @property
    def failed(self) -> bool:
        """Whether the last check gave no pair."""
        return bool(self.checks) and not self.checks[-1].pairs

    @property
    def alarms(self) -> list[str]:
        """The reasons for an alarm, each a sentence; empty if nothing has changed."""
        reasons = [self._failure(self.checks[-1])] if self.failed else []
        return [*reasons, *self.sentences]

    @property
    def sentences(self) -> list[str]:
        """A sentence for each of the changes."""
        return [self._sentence(change) for change in self.changes]

    @property
    def surroundings(self) -> list[str]:
        """The surroundings of the last check that differ from those of the verdict."""
        return (
            differences_between(self.at_verdict, self.checks[-1].surroundings, self.definition) if self.checks else []
        )

    def lines(self) -> list[str]:
        """Return the whole finding as lines."""
        if not self.checks:
            return [f"no check of trial {self.verdict.winner} yet"]
        last, reasons = self.checks[-1], self.alarms
        said = [f"check {last.number}, {last.day}: {self._ratio(last)}"] if last.pairs else []
        said.append(f"in the verdict: {self.verdict.comparison(self.metric)}")
        if self.accepted:
            said.append(f"check {self.accepted} was accepted: later checks are compared with it")
        said += [f"ALARM: {reason}" for reason in reasons] or ["nothing has changed beyond the noise"]
        said += [f"changed since the verdict: {entry}" for entry in self.surroundings]
        if self.changes:
            said.append(
                f"to tune again, from this winner on: autotune study with another --name; to accept the change: "
                f"autotune watch {self.study} --accept"
            )
        return said

    def record(self) -> list[str]:
        """Return a line for each check."""
        return [
            f"check {check.number}, {check.day}: {self._ratio(check) if check.pairs else self._failure(check)}"
            for check in self.checks
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "study": self.study,
            "winner": self.verdict.winner,
            "alarms": self.alarms,
            "changes": [
                {
                    "quantity": change.quantity.value,
                    "ratio": exp(change.shift.size),
                    "low": exp(change.shift.low),
                    "high": exp(change.shift.high),
                    "since": change.check.number,
                }
                for change in self.changes
            ],
            "evidence": {
                quantity.value: found.evidence
                for quantity, found in (self.judgement.shifts if self.judgement is not None else {}).items()
            },
            "changed_since_verdict": self.surroundings,
            "accepted": self.accepted,
            "checks": [
                {
                    "number": check.number,
                    "started": check.started,
                    "pairs": [list(pair) for pair in check.pairs],
                    "ratio": self._speed_up(check.pairs) if check.pairs else None,
                    "failures": list(check.failures),
                    "surroundings": dict(check.surroundings),
                }
                for check in self.checks
            ],
        }

    def _sentence(self, change: Change) -> str:
        since = f"since check {change.check.number} ({change.check.day})"
        if change.quantity is not Quantity.GAIN:
            who = "the default" if change.quantity is Quantity.DEFAULT else f"the winner (trial {self.verdict.winner})"
            return f"{who} became {self._worse(change.shift)}, {since}"
        middle, low, high = change.shift.after
        now: Interval = (exp(middle), exp(low), exp(high))
        words = f"{times(now[0], self.metric, '.3f')} the default (95% interval {ends(now, self.metric)})"
        judged = "no longer wins" if now[1] <= 1.0 else "wins by less" if change.shift.size < 0 else "wins by more"
        return f"the winner (trial {self.verdict.winner}) {judged}: {words}, {since}"

    def _worse(self, found: Shift) -> str:
        words = ("worse", "better") if self.metric.is_quality else ("slower", "faster")
        # The word gives the direction, so an end with the other sign is negative.
        way = -100.0 if found.size < 0 else 100.0
        percent, *ends = (way * (exp(one) - 1.0) for one in (found.size, found.low, found.high))
        return f"{percent:.1f}% {words[found.size < 0]} ({min(ends):.1f} to {max(ends):.1f})"

    def _ratio(self, check: Check) -> str:
        plural = "s" * (len(check.pairs) != 1)
        ratio = times(self._speed_up(check.pairs), self.metric, ".3f")
        failures = f", {len(check.failures)} failed" if check.failures else ""
        return f"trial {self.verdict.winner} {ratio} the default ({len(check.pairs)} pair{plural}{failures})"

    def _failure(self, check: Check) -> str:
        return "; ".join(dict.fromkeys(check.failures)) or f"check {check.number} has no whole pair yet"

    def _speed_up(self, pairs: tuple[Pair, ...]) -> float:
        return exp(fmean(Quantity.GAIN.values(pairs, self.metric)))
