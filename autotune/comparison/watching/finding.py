"""What a watch found, in words and as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from statistics import fmean
from typing import Any

from autotune.comparison.watching.check import Check, changed
from autotune.comparison.watching.judgement import Judgement, Pair, Quantity
from autotune.records.study import Definition
from autotune.statistics.change import Shift
from autotune.statistics.ratio_words import Interval, ends, times
from autotune.statistics.verdict import Verdict
from objectives.base import Metric


@dataclass(frozen=True)
class Change:
    """A quantity that is not what it was: by how much, and in which check that began."""

    quantity: Quantity
    shift: Shift
    check: Check


@dataclass(frozen=True)
class Finding:
    """What a watch says: `checks` are all there are, of which those `measured` are judged against the `reference`.

    That is the verdict's pairs, or those of the check that was `accepted`. `judgement` is None before the first check.
    `at_verdict` are the surroundings of the verdict's runs.
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
        """What has changed by more than chance explains."""
        alarms = self.judgement.alarms if self.judgement is not None else {}
        return [Change(quantity, found, self.measured[found.since - 1]) for quantity, found in alarms.items()]

    @property
    def failed(self) -> bool:
        """Whether the last check gave no pair."""
        return bool(self.checks) and not self.checks[-1].pairs

    @property
    def alarms(self) -> list[str]:
        """The reasons to raise a hand, each a sentence; none if all is as it was."""
        reasons = [self._failure(self.checks[-1])] if self.failed else []
        return [*reasons, *self.sentences]

    @property
    def sentences(self) -> list[str]:
        """A sentence for each of the changes."""
        return [self._sentence(change) for change in self.changes]

    @property
    def surroundings(self) -> list[str]:
        """What the last check ran with or on that is otherwise than at the verdict."""
        return changed(self.at_verdict, self.checks[-1].surroundings, self.definition) if self.checks else []

    def lines(self) -> list[str]:
        """Return all of it, a line each."""
        if not self.checks:
            return [f"no check of trial {self.verdict.winner} yet"]
        last, reasons = self.checks[-1], self.alarms
        said = [f"check {last.number}, {last.day}: {self._ratio(last)}"] if last.pairs else []
        said.append(f"in the verdict: {self.verdict.comparison(self.metric)}")
        if self.accepted:
            said.append(f"what check {self.accepted} found was accepted, and later checks are compared with that")
        said += [f"ALARM: {reason}" for reason in reasons] or ["nothing has changed beyond the noise"]
        said += [f"changed since the verdict: {entry}" for entry in self.surroundings]
        if self.changes:
            said.append(
                f"to tune anew: autotune study with another --name; to compare with what is now: "
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
        # The ends count in the way that the word says: below 0 is the other way.
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
