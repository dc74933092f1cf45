"""The summary of a study, as printed by `best`, `storage list` and at the end of a session."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from autotune.comparison.findings import (
    Ablation,
    InputComparison,
    changes,
    is_about,
    standings_of,
    stored_ablation,
    stored_input_comparisons,
)
from autotune.comparison.input_verdicts import InputVerdict, input_lines, input_verdicts
from autotune.comparison.limit_verdict import NO_LIMITS, LimitVerdict, limit_verdict
from autotune.comparison.point_verdict import PointVerdict, confirmed_points
from autotune.execution.segments import curve_of
from autotune.formatting import configuration_text, join_words, quantity
from autotune.performance.warm_start import WarmStart, stored_warm_start
from autotune.records.limit import breaks
from autotune.records.mix import mixed_inputs
from autotune.records.study import ENDED, REPLAY_NOTICE, Definition, Run, State, TrialRecord
from autotune.results.disturbed_runs import TakenShare, taken_shares
from autotune.results.growth import FrontGrowth
from autotune.results.ledger import Ledger, ledger_of
from autotune.results.noise import noise_sentence
from autotune.results.pareto import ParetoFront, pareto_front, tradeoff_metrics
from autotune.results.preference import Preference
from autotune.results.tradeoff import Tradeoff
from autotune.scheduling.stopping import StoppingForecast, stored_stopping_forecast
from autotune.statistics.ratio_words import change_text
from autotune.statistics.speed_up import SpeedUp
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.readable_study import ReadableStudy
from autotune.studyfile import StudyFile
from autotune.studyfile.stored import study_of
from objectives.base import Metric
from spaces import Configuration


@dataclass(frozen=True)
class Summary:
    """The state of a study.

    Attributes:
        name: Its name.
        definition: Its definition.
        standings: Its trials with their values.
        ledger: Its costs.
        ablation: The stored ablation, also of an earlier winner.
        all_verified: The comparisons on inputs of weight 0, also of earlier winners.
        last_outlook: The last forecast of the gain of more trials.
        warm: The warm start.
        on_limits: The verdict on limits.
        preference: The preferred point of a trade-off's front.
        confirmed: The verdicts on points of a trade-off's front.
        taken: The shares of time that other processes took from runs.
    """

    name: str
    definition: Definition
    standings: Standings
    ledger: Ledger = field(default_factory=Ledger)
    ablation: Ablation | None = None
    all_verified: tuple[InputComparison, ...] = ()
    last_outlook: StoppingForecast | None = None
    warm: WarmStart | None = None
    on_limits: LimitVerdict = NO_LIMITS
    preference: Preference | None = None
    confirmed: tuple[PointVerdict, ...] = ()
    taken: tuple[TakenShare, ...] = ()

    @property
    def outlook(self) -> StoppingForecast | None:
        """The forecast of the gain of more trials; None without one, or if further trials have been made since."""
        forecast = self.last_outlook
        return forecast if forecast is not None and forecast.after == len(self.trials) else None

    @property
    def verified(self) -> tuple[InputComparison, ...]:
        """The comparisons of the winner on inputs of weight 0."""
        verdict = self.present_verdict
        return tuple(
            comparison
            for comparison in self.all_verified
            if verdict is not None and comparison.verdict.winner == verdict.winner
        )

    @property
    def on_inputs(self) -> tuple[InputVerdict, ...]:
        """The verdict on each input that is optimised, if there are several."""
        verdict = self.present_verdict
        return () if verdict is None else input_verdicts(verdict, mixed_inputs(self.definition))

    @property
    def trials(self) -> list[TrialRecord]:
        """All trials, by number."""
        return list(self.standings.trials.values())

    @property
    def verdict(self) -> Verdict | None:
        """The stored verdict, also of an earlier winner."""
        return self.standings.verdict

    @property
    def present_verdict(self) -> Verdict | None:
        """The verdict; None if a better trial has been found since."""
        return self.verdict if self.verdict is not None and is_about(self.verdict, self.standings) else None

    @property
    def best(self) -> TrialRecord | None:
        """The best trial that keeps the limits.

        With a verdict it is the winner, or the default if the winner is slower or fails too often; for a trade-off with
        weights it is the preferred point; for a decision table it is None.
        """
        if self.has_decision_table:
            return None
        if self.preference is not None:
            return self.standings.trials[self.preference.point.trial]
        verdict = self.present_verdict
        if verdict is None:
            return self.standings.incumbent
        worse = verdict.unreliable or verdict.slower(self.standings.metric)
        if worse and not self.on_limits.default_breaks:
            return self.standings.baseline
        return self.standings.trials[verdict.winner]

    @property
    def to_use(self) -> TrialRecord | None:
        """The trial to use: the best, or the default if the verdict finds no significant gain."""
        verdict = self.present_verdict if self.front is None else None
        if verdict is None or not verdict.known or verdict.significant(self.standings.metric):
            return self.best
        return self.best if self.on_limits.default_breaks else self.standings.baseline

    @property
    def nearest(self) -> TrialRecord | None:
        """If no trial keeps the limits, the one that exceeds them least; else None."""
        return None if self.standings.ranking else self.standings.nearest

    @property
    def speed_up(self) -> SpeedUp | None:
        """The speed-up of the best trial; None without a default to compare with."""
        return None if self.best is None else self.standings.speed_up(self.best)

    @property
    def simplified(self) -> Ablation | None:
        """The ablation of the winner, if it found a simpler configuration that is as good; else None."""
        ablation, used = self.ablation, self.to_use
        return (
            ablation
            if ablation is not None and used is not None and ablation.winner == used.number and ablation.is_accepted
            else None
        )

    @property
    def configuration(self) -> Configuration | None:
        """The configuration to use, without the options that an ablation found to do nothing."""
        if self.simplified is not None:
            return self.simplified.simplified
        return self.to_use.configuration if self.to_use else None

    @property
    def finished(self) -> int:
        """The number of settled trials."""
        return sum(trial.settled for trial in self.trials)

    @property
    def tried(self) -> int:
        """The number of trials with runs."""
        return sum(bool(trial.runs) for trial in self.trials)

    @property
    def steps(self) -> tuple[int, int] | None:
        """The steps trained, and those needed to train every trial to its end; None for programs without steps."""
        runs = [trial.runs[-1] for trial in self.trials if trial.runs]
        trained = [(curve_of(run.outcome), run) for run in runs if run.of is not None]
        if not trained:
            return None
        made = sum(curve[-1][0] if curve else 0 for curve, _ in trained)
        whole = sum(run.outcome.details.get(ENDED, run.of or 0) for _, run in trained)
        return made, whole

    @cached_property
    def study(self) -> StudyFile:
        """The study file of its newest session."""
        return study_of(self.definition)

    @property
    def has_decision_table(self) -> bool:
        """Whether the study looks for a decision table; trials of different contexts then do not compete."""
        return self.study.decisions is not None

    @property
    def front(self) -> ParetoFront | None:
        """The front of the trials that keep the limits; None without a trade-off."""
        metrics = tradeoff_metrics(self.definition)
        limits = self.standings.limits
        trials = (trial for trial in self.trials if limits.keeps(trial.number))
        return pareto_front(trials, metrics, limited=bool(limits.limits)) if metrics else None

    @property
    def tradeoff(self) -> Tradeoff | None:
        """The state of the trade-off; None without one."""
        front = self.front
        return None if front is None else Tradeoff(self.name, front, self.standings, self.preference, self.confirmed)

    def verdict_sentence(self) -> str | None:
        """Return the verdict on the present winner in one sentence; None without a verdict."""
        standings, best = self.standings, self.best
        if self.nearest is not None:
            broken = breaks(standings.limits.breaches(self.nearest.number))
            return f"No feasible configuration found; the nearest is trial {self.nearest.number}, which {broken}"
        if best is None or self.tradeoff is not None:
            table = table_sentence(self.name, self.definition) if standings.measured else None
            return table if self.tradeoff is None else self.tradeoff.sentence()
        if standings.baseline is None:
            return "The default configuration failed: there is nothing to compare the winner with."
        if standings.ranking[0].number == standings.baseline.number:
            return self._nothing_better()
        verdict = self.present_verdict
        return self.on_limits.sentence(verdict, standings.metric) if verdict else None

    def _nothing_better(self) -> str:
        if self.tried == 1:
            return "Only the default configuration has been tried yet."
        if self.on_limits.limits:
            return "No configuration that keeps the limits was better than the default."
        return "No configuration was better than the default."

    def best_text(self) -> str:
        """Return the winner, or the front of a trade-off, in words; begins with a notice if it is a replay."""
        text = self._best_text()
        return f"{REPLAY_NOTICE}\n{text}" if self.definition.replay else text

    def _best_text(self) -> str:
        standings, best = self.standings, self.best
        if self.nearest is not None:
            lines = [f"{self.verdict_sentence()}", f"configuration: {configuration_text(self.nearest.configuration)}"]
            return "\n".join([*lines, f"{standings.metric.name}: {self._value(self.nearest)}"])
        if self.tradeoff is not None:
            return "\n".join([self.tradeoff.text(), *self._lines_on_simplification()])
        if best is None:
            return self.verdict_sentence() or "no valid measurement yet"
        metric = standings.metric
        lines = [
            f"trial {best.number}: {metric.name} {self._value(best)}",
            f"configuration: {configuration_text(best.configuration)}",
        ]
        if standings.baseline is not None and standings.baseline.number != best.number:
            different = ", ".join(changes(best.configuration, standings.baseline.configuration))
            broken = f"; it {breaks(self.on_limits.default_breaks)}" if self.on_limits.default_breaks else ""
            default = configuration_text(standings.baseline.configuration)
            lines.append(f"default: {self._value(standings.baseline)}  {default}{broken}")
            lines.append(f"changed: {different}")
        if noise := noise_sentence(standings):
            lines.append(f"noise: {noise}")
        if self.on_limits.limits:
            lines.append(f"limits: {self.limits_text()}")
        sentence = self.verdict_sentence()
        lines.append(f"verdict: {sentence or self.text_without_verdict()}")
        verdict = self.present_verdict
        doubt = verdict.doubt(metric, standings.tuned_default) if verdict else None
        if doubt:
            lines.append(f"doubt: {doubt}")
        lines += input_lines(self.on_inputs)
        lines += [f"on input {one.name}, of weight 0: {one.sentence(metric)}" for one in self.verified]
        if self.outlook is not None:
            lines.append(f"search: {self.outlook.sentence()}")
        return "\n".join([*lines, *self._lines_on_simplification()])

    def _lines_on_simplification(self) -> list[str]:
        said = self.simplified_sentence()
        if said is None:
            return []
        return [f"simplified: {configuration_text(self.configuration or {})}", f"simplified, measured: {said}"]

    def limits_text(self) -> str:
        """Return the limits in words, with the number of trials that keep them."""
        measured, keep = len(self.standings.measured), len(self.standings.ranking)
        return f"{', '.join(map(str, self.on_limits.limits))}; {keep} of {measured} trials with a value keep them"

    @property
    def simplified_speed_up(self) -> SpeedUp | None:
        """The measured speed-up of the simplified configuration; the verdict is on the winner with all its options."""
        return simplified_speed_up(self.simplified)

    def simplified_sentence(self) -> str | None:
        """Return the measurements of the simplified configuration in words; None if it is not the one to use."""
        if self.simplified is None:
            return None
        return simplified_sentence(self.simplified, self.standings.metric, self.definition.metrics)

    def text_without_verdict(self) -> str:
        """Return the words for a winner without a verdict, with the speed-up that it seems to have."""
        speed_up = self.speed_up
        looks = f"; it {speed_up.words(self.standings.metric)}" if speed_up and not speed_up.confirmed else ""
        return f"not confirmed yet{looks}; the same `autotune study` command confirms it"

    def text(self) -> str:
        """Return the whole study in words."""
        definition, growth = self.definition, self.growth
        facts = ", ".join(f"{name}={value}" for name, value in definition.facts.items())
        without = ", ".join(f"{count} {kind}" for kind, count in self.standings.counts.items()) or "none"
        machine = definition.machine
        where = f"{machine['host']}, {machine['cores']} cores of {machine['cpu_model']}"
        return "\n".join(
            [
                f"study {self.name}: {self.finished} trials, without a value: {without}",
                *(() if definition.replay else (f"machine: {where}",)),
                f"workload: {facts or 'no facts'}",
                self.best_text(),
                *(() if self.preference is None or self.front is None else (self.front.text(self.standings),)),
                *(() if growth is None else (f"the front: {growth.sentence()}",)),
                *(() if self.steps is None else (trained_text(self.steps, self.trials),)),
                *([f"warm start: {self.warm.sentence(self.standings)}"] if self.warm is not None else ()),
                self.ledger.text(),
            ]
        )

    @property
    def growth(self) -> FrontGrowth | None:
        """The growth of the front of a trade-off; None without one."""
        front = self.front
        return FrontGrowth.of(front, self.standings) if front is not None and front.points else None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        metric, growth = self.standings.metric, self.growth
        simplified = self.simplified.simplified if self.simplified else None
        return {
            "study": self.name,
            "replay": self.definition.replay,
            "trials": self.finished,
            "failures": dict(self.standings.counts),
            "metric": metric.name,
            "unit": metric.unit,
            "noise": self.standings.noise,
            "drifts": self.standings.effects.drifts,
            "machine": self.definition.machine,
            "facts": self.definition.facts,
            "best": self._trial(self.best),
            "default": self._trial(self.standings.baseline),
            "speed_up": self.speed_up.to_dict() if self.speed_up is not None else None,
            "verdict": verdict_dict(self.present_verdict, metric, self.on_limits, self.standings.tuned_default),
            "limits": list(map(str, self.on_limits.limits)),
            "nearest": self._trial(self.nearest),
            "inputs": {one.name: one.to_dict() for one in self.on_inputs}
            | {one.name: input_dict(one, metric) for one in self.verified},
            "simplified": dict(simplified) if simplified is not None else None,
            "simplified_speed_up": self.simplified_speed_up.to_dict() if self.simplified_speed_up else None,
            "steps": None if self.steps is None else {"trained": self.steps[0], "whole": self.steps[1]},
            "front": None if self.front is None else self.front.to_dict(),
            "point": None if self.tradeoff is None else self.tradeoff.to_dict(),
            "hypervolume": None if growth is None else growth.to_dict(),
            "outlook": self.outlook and self.outlook.to_dict() | {"sentence": self.outlook.sentence()},
            "warm_start": self.warm.to_dict() if self.warm is not None else None,
            "ledger": self.ledger.to_dict(),
        }

    def _value(self, trial: TrialRecord) -> str:
        runs = len(trial.measured(self.standings.metric.name))
        of = f" ({self.standings.statistic} of {runs} runs)" if runs > 1 else " (one run)"
        return f"{quantity(self.standings.value(trial), self.standings.metric)}{of}"

    def _trial(self, trial: TrialRecord | None) -> dict[str, Any] | None:
        if trial is None or trial.state is not State.COMPLETE:
            return None
        on_inputs = {part["name"]: part["argv"] for part in trial.job.get("parts", ())}
        return {
            "trial": trial.number,
            "configuration": dict(trial.configuration),
            "value": self.standings.value(trial),
            "runs": trial.measured(self.standings.metric.name),
            "breaks": list(map(str, self.standings.limits.breaches(trial.number))),
            "command": trial.job.get("argv") or on_inputs or None,
        }


def summarise(store: ReadableStudy) -> Summary:
    """Read the summary of a study from storage."""
    definition = store.definition
    repeats = study_of(definition).repeats
    summary = Summary(
        store.name,
        definition,
        standings_of(store, repeats.statistic),
        ablation=stored_ablation(store),
        all_verified=stored_input_comparisons(store),
        last_outlook=stored_stopping_forecast(store),
        warm=stored_warm_start(store),
    )
    on_limits = limit_verdict(store.runs(), summary.standings)
    summary = replace(summary, on_limits=on_limits)
    # A model of better quality does not make runs cheaper, and a trade-off or a decision table has no winner.
    front = summary.front
    used = summary.to_use
    winner = used.number if used and front is None and not definition.target.is_quality else None
    most = repeats.min_runs if summary.has_decision_table else repeats.max_runs
    ledger = ledger_of(store.runs(), summary.trials, winner, most)
    summary = replace(summary, ledger=ledger, taken=taken_shares(store.runs()))
    return summary if front is None else _with_points(summary, front, store.runs())


def _with_points(summary: Summary, front: ParetoFront, runs: Sequence[Run]) -> Summary:
    study, points = summary.study, [point.trial for point in front.points]
    confirmed = confirmed_points(runs, summary.standings, front.metrics, points, study.verdict.confidence)
    return replace(summary, preference=Preference.of_study(front, study), confirmed=confirmed)


def trained_text(steps: tuple[int, int], trials: Iterable[TrialRecord]) -> str:
    """Return in words how many steps were trained, how many every trial would need, and where trials were stopped."""
    made, whole = steps
    rungs = Counter(trial.runs[-1].steps for trial in trials if trial.state is State.PAUSED)
    left = ", ".join(f"{count} at step {steps}" for steps, count in sorted(rungs.items(), key=str)) or "none"
    share = f"{made / whole:.0%} of " if whole else ""
    return f"trained: {made} steps, {share}the {whole} of training every trial to its end; left early: {left}"


def verdict_dict(
    verdict: Verdict | None, metric: Metric, on_limits: LimitVerdict = NO_LIMITS, tuned: Sequence[float] = ()
) -> dict[str, Any] | None:
    """Return the JSON-able form of a verdict, with its sentence and interval; None without a verdict."""
    if verdict is None:
        return None
    values = verdict.to_dict() | {"sentence": on_limits.sentence(verdict, metric)}
    if on_limits.limits:
        values |= {"limits": on_limits.to_dict()}
    if verdict.known:
        speed, low, high = verdict.interval(metric)
        values |= {
            "speed_up": speed,
            "low": low,
            "high": high,
            "significant": verdict.significant(metric),
            "doubt": verdict.doubt(metric, tuned),
        }
    return values


def input_dict(comparison: InputComparison, metric: Metric) -> dict[str, Any]:
    """Return the JSON-able form of a verdict on an input of weight 0, with the same keys as for optimised inputs."""
    return (verdict_dict(comparison.verdict, metric) or {}) | {
        "share": 0.0,
        "loses": comparison.verdict.slower(metric),
        "sentence": comparison.sentence(metric),
        "facts": dict(comparison.facts),
    }


def table_sentence(name: str, definition: Definition) -> str | None:
    """Return the sentence for a study with a decision table; None for a study that looks for one winner."""
    section = study_of(definition).decisions
    if section is None:
        return None
    return f"No single winner: a decision table over {join_words(section.over)}; `autotune best {name}` prints it."


def simplified_speed_up(ablation: Ablation | None) -> SpeedUp | None:
    """Return the speed-up of a simplified configuration over the default; None if it was not measured."""
    if ablation is None or ablation.over_default is None:
        return None
    ratio, low, high = ablation.over_default
    return SpeedUp(ratio, (low, high))


def simplified_sentence(ablation: Ablation, target: Metric, metrics: Sequence[Metric]) -> str:
    """Return the measurements of a simplified configuration in words; `target` is the optimised metric.

    For a point of a front, the sentence has every metric of the trade-off.
    """
    without = f"trial {ablation.winner} without {', '.join(ablation.dropped)}"
    rounds = f"{ablation.rounds} interleaved rounds"
    if ablation.further:
        readings = ablation.readings(target, metrics)
        said = "; ".join(
            change_text(one.over_default, metric) for metric, one in readings if one.over_default is not None
        )
        return f"{without} is not worse in any metric; against the default {said}, {rounds}"
    speed_up = simplified_speed_up(ablation)
    return (
        f"{without} is as good as with them" if speed_up is None else f"{without} is {speed_up.words(target)}, {rounds}"
    )
