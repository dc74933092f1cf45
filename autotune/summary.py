"""A study in a few words: what `show`, `best` and `list` print, and what ends a session."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.display import shown
from autotune.records import Definition, TrialRecord, baseline, incumbent, speed_up
from autotune.search.store import StudyStore
from autotune.verdict import Verdict


@dataclass(frozen=True)
class Summary:
    """How a study stands."""

    name: str
    definition: Definition
    trials: list[TrialRecord]
    verdict: Verdict | None = None

    @property
    def best(self) -> TrialRecord | None:
        """The best complete trial."""
        return incumbent(self.trials, self.definition.target)

    @property
    def finished(self) -> int:
        """How many trials have ended."""
        return sum(trial.outcome is not None for trial in self.trials)

    @property
    def failures(self) -> Mapping[str, int]:
        """How many trials failed, by kind."""
        return Counter(
            trial.outcome.failure.value
            for trial in self.trials
            if trial.outcome is not None and trial.outcome.failure is not None
        )

    def verdict_sentence(self) -> str | None:
        """The verdict on the present winner in one sentence; None while there is none."""
        best = self.best
        if best is None:
            return None
        default = baseline(self.trials)
        if default is None:
            return "The default configuration failed: there is nothing to compare the winner with."
        if best.number == default.number:
            return "No configuration was faster than the default."
        if self.verdict is None or self.verdict.winner != best.number:
            return None
        return self.verdict.sentence(self.definition.target)

    def best_text(self) -> str:
        """Describe the winner."""
        metric, best = self.definition.target, self.best
        if best is None:
            return "no valid measurement yet"
        lines = [
            f"trial {best.number}: {metric.name} {best.value(metric):g} {metric.unit}",
            f"configuration: {shown(best.configuration)}",
        ]
        default = baseline(self.trials)
        if default is not None:
            gain = speed_up(best.value(metric), default.value(metric), metric)
            lines.append(
                f"default: {default.value(metric):g} {metric.unit}  {shown(default.configuration)}; "
                f"single runs compared: {gain:.2f}x"
            )
        sentence = self.verdict_sentence()
        lines.append(f"verdict: {sentence or 'not confirmed yet; the same `autotune study` command does that'}")
        return "\n".join(lines)

    def text(self) -> str:
        """Describe the whole study."""
        definition = self.definition
        facts = ", ".join(f"{name}={value}" for name, value in definition.facts.items())
        failed = ", ".join(f"{count} {kind}" for kind, count in self.failures.items()) or "none"
        machine = definition.machine
        return "\n".join(
            [
                f"study {self.name}: {self.finished} trials, failed: {failed}",
                f"machine: {machine['host']}, {machine['cores']} cores of {machine['cpu_model']}",
                f"workload: {facts}",
                self.best_text(),
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        metric, best, default = self.definition.target, self.best, baseline(self.trials)
        return {
            "study": self.name,
            "trials": self.finished,
            "failures": dict(self.failures),
            "metric": metric.name,
            "unit": metric.unit,
            "machine": self.definition.machine,
            "facts": self.definition.facts,
            "best": self._trial(best),
            "default": self._trial(default),
            "verdict": self._verdict(),
        }

    def _trial(self, trial: TrialRecord | None) -> dict[str, Any] | None:
        if trial is None or trial.outcome is None:
            return None
        return {
            "trial": trial.number,
            "configuration": dict(trial.configuration),
            "metrics": dict(trial.outcome.metrics),
            "command": (trial.job or {}).get("argv"),
        }

    def _verdict(self) -> dict[str, Any] | None:
        best, metric = self.best, self.definition.target
        if self.verdict is None or best is None or self.verdict.winner != best.number:
            return None
        found = self.verdict.to_dict() | {"sentence": self.verdict.sentence(metric)}
        if self.verdict.known:
            speed, low, high = self.verdict.interval(metric)
            found |= {
                "speed_up": speed,
                "low": low,
                "high": high,
                "significant": self.verdict.significant(metric),
            }
        return found


def summarise(store: StudyStore) -> Summary:
    """Read a summary from storage."""
    verdict = Verdict.from_dict(store.verdict) if store.verdict else None
    return Summary(store.name, store.definition, store.trials(), verdict)
