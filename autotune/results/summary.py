"""A study in a few words: what `show`, `best` and `list` print, and what ends a session."""

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from autotune.comparison.by_input import InputVerdict, input_lines, input_verdicts
from autotune.comparison.findings import (
    Ablation,
    WorkloadComparison,
    changes,
    is_about,
    stored_ablation,
    stored_verdict,
    stored_workload_comparisons,
)
from autotune.execution.segments import curve_of
from autotune.formatting import quantity, shown
from autotune.performance.warm_start import WarmStart, stored_warm_start
from autotune.records.mix import mixed_inputs
from autotune.records.series import SeriesKind
from autotune.records.study import ENDED, REPLAY_NOTICE, Definition, Run, State, TrialRecord
from autotune.results.cost import CostAccount, cost_account
from autotune.results.pareto import ParetoPoint, pareto_front, second_metric
from autotune.scheduling.stopping import StoppingForecast, stored_stopping_forecast
from autotune.statistics.speed_up import SpeedUp
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.readable import ReadableStudy
from autotune.studyfile import RepeatsSection
from objectives.base import Metric
from spaces import Configuration


@dataclass(frozen=True)
class Summary:
    """How a study stands."""

    name: str
    definition: Definition
    standings: Standings
    ledger: CostAccount = field(default_factory=CostAccount)
    ablation: Ablation | None = None
    all_carried: tuple[WorkloadComparison, ...] = ()
    last_outlook: StoppingForecast | None = None
    warm: WarmStart | None = None

    @property
    def outlook(self) -> StoppingForecast | None:
        """What more search would gain; None where that is not known, or there were more trials since."""
        forecast = self.last_outlook
        return forecast if forecast is not None and forecast.after == len(self.trials) else None

    @property
    def carried(self) -> tuple[WorkloadComparison, ...]:
        """The comparisons of the winner on other workloads."""
        verdict = self.present_verdict
        return tuple(
            comparison
            for comparison in self.all_carried
            if verdict is not None and comparison.verdict.winner == verdict.winner
        )

    @property
    def on_inputs(self) -> tuple[InputVerdict, ...]:
        """The verdict on each input of a mix."""
        verdict = self.present_verdict
        return () if verdict is None else input_verdicts(verdict, mixed_inputs(self.definition))

    @property
    def trials(self) -> list[TrialRecord]:
        """All trials, by number."""
        return list(self.standings.trials.values())

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that was stored, on whatever winner."""
        return self.standings.verdict

    @property
    def present_verdict(self) -> Verdict | None:
        """The verdict, unless a better trial was found since."""
        return self.verdict if self.verdict is not None and is_about(self.verdict, self.standings) else None

    @property
    def best(self) -> TrialRecord | None:
        """The winner of the verdict, unless it is slower than the default; before there is one, the best trial."""
        verdict = self.present_verdict
        if verdict is None:
            return self.standings.incumbent
        return (
            self.standings.baseline if verdict.slower(self.standings.metric) else self.standings.trials[verdict.winner]
        )

    @property
    def speed_up(self) -> SpeedUp | None:
        """The speed-up of the best trial; None without a default to compare it with."""
        return None if self.best is None else self.standings.speed_up(self.best)

    @property
    def simplified(self) -> Ablation | None:
        """The ablation of the winner, if it found a simpler configuration that is as good."""
        ablation, best = self.ablation, self.best
        return (
            ablation
            if ablation is not None and best is not None and ablation.winner == best.number and ablation.accepted
            else None
        )

    @property
    def configuration(self) -> Configuration | None:
        """The configuration to use: the winner without the options that do nothing."""
        if self.simplified is not None:
            return self.simplified.simplified
        return self.best.configuration if self.best else None

    @property
    def finished(self) -> int:
        """How many trials are settled."""
        return sum(trial.settled for trial in self.trials)

    @property
    def steps(self) -> tuple[int, int] | None:
        """How many steps were trained, and how many it is to train every trial to its end; None for other studies."""
        runs = [trial.runs[-1] for trial in self.trials if trial.runs]
        trained = [(curve_of(run.outcome), run) for run in runs if run.of is not None]
        if not trained:
            return None
        made = sum(curve[-1][0] if curve else 0 for curve, _ in trained)
        whole = sum(run.outcome.details.get(ENDED, run.of or 0) for _, run in trained)
        return made, whole

    @property
    def front(self) -> list[ParetoPoint] | None:
        """The trials of a trade-off that no other beats in both metrics; None for other studies."""
        second = second_metric(self.definition)
        return None if second is None else pareto_front(self.trials, self.standings.metric, second)

    def verdict_sentence(self) -> str | None:
        """The verdict on the present winner in one sentence; None while there is none."""
        standings, best = self.standings, self.best
        if best is None:
            return None
        if standings.baseline is None:
            return "The default configuration failed: there is nothing to compare the winner with."
        if standings.ranking[0].number == standings.baseline.number:
            return "No configuration was better than the default."
        verdict = self.present_verdict
        return verdict.sentence(standings.metric) if verdict else None

    def best_text(self) -> str:
        """Describe the winner, or the front of a trade-off; a replay is never passed off as runs."""
        text = self._best_text()
        return f"{REPLAY_NOTICE}\n{text}" if self.definition.replay else text

    def _best_text(self) -> str:
        standings, best = self.standings, self.best
        if self.front is not None:
            return self._front_text(self.front)
        if best is None:
            return "no valid measurement yet"
        metric = standings.metric
        lines = [
            f"trial {best.number}: {metric.name} {self._value(best)}",
            f"configuration: {shown(best.configuration)}",
        ]
        if standings.baseline is not None and standings.baseline.number != best.number:
            different = ", ".join(changes(best.configuration, standings.baseline.configuration))
            lines.append(f"default: {self._value(standings.baseline)}  {shown(standings.baseline.configuration)}")
            lines.append(f"changed: {different}")
        if any(len(trial.runs) > 1 for trial in self.trials):
            lines.append(f"noise: runs of the same configuration differ by {standings.noise:.1%}{self._drift()}")
        sentence = self.verdict_sentence()
        lines.append(f"verdict: {sentence or self.unconfirmed()}")
        verdict = self.present_verdict
        doubt = verdict.doubt(metric) if verdict else None
        if doubt:
            lines.append(f"doubt: {doubt}")
        lines += input_lines(self.on_inputs)
        if self.outlook is not None:
            lines.append(f"search: {self.outlook.sentence()}")
        lines += [f"on workload {comparison.workload}: {comparison.sentence(metric)}" for comparison in self.carried]
        simplified = self.simplified_sentence()
        if simplified is not None:
            lines += [f"simplified: {shown(self.configuration or {})}", f"simplified, measured: {simplified}"]
        return "\n".join(lines)

    @property
    def simplified_speed_up(self) -> SpeedUp | None:
        """What was measured of the simplified configuration; the verdict is on the winner with all its options."""
        if self.simplified is None or self.simplified.over_default is None:
            return None
        ratio, low, high = self.simplified.over_default
        return SpeedUp(ratio, (low, high))

    def simplified_sentence(self) -> str | None:
        """Say what was measured of the simplified configuration; None if that is not the one to use."""
        ablation = self.simplified
        if ablation is None:
            return None
        without = f"trial {ablation.winner} without {', '.join(ablation.dropped)}"
        speed_up = self.simplified_speed_up
        if speed_up is None:
            return f"{without} is as good as with them"
        return f"{without} is {speed_up.words(self.standings.metric)}, {ablation.rounds} interleaved rounds"

    def unconfirmed(self) -> str:
        """Say that there is no verdict on the present winner yet, and what it looks like."""
        speed_up = self.speed_up
        looks = f"; it {speed_up.words(self.standings.metric)}" if speed_up and not speed_up.confirmed else ""
        return f"not confirmed yet{looks}; the same `autotune study` command confirms it"

    def _front_text(self, points: list[ParetoPoint]) -> str:
        first, second = self.standings.metric, second_metric(self.definition)
        assert second is not None
        if not points:
            return "no valid measurement yet"
        lines = [f"the trade-off between {first.name} and {second.name}: no other trial is better in both"]
        for point in points:
            values = f"{point.first:.4g} {first.unit}, {point.second:.4g} {second.unit}"
            lines.append(f"trial {point.trial}: {values}  {shown(self.standings.trials[point.trial].configuration)}")
        return "\n".join(lines)

    def text(self) -> str:
        """Describe the whole study."""
        definition = self.definition
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
                *self._steps_text(),
                *([f"warm start: {self.warm.sentence(self.standings)}"] if self.warm is not None else ()),
                self.ledger.text(),
            ]
        )

    def _steps_text(self) -> list[str]:
        if self.steps is None:
            return []
        made, whole = self.steps
        rungs = Counter(trial.runs[-1].steps for trial in self.trials if trial.state is State.PAUSED)
        left = ", ".join(f"{count} at step {steps}" for steps, count in sorted(rungs.items(), key=str)) or "none"
        share = f"{made / whole:.0%} of " if whole else ""
        return [f"trained: {made} steps, {share}the {whole} of training every trial to its end; left early: {left}"]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        metric = self.standings.metric
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
            "verdict": _described(self.present_verdict, metric),
            "inputs": {one.name: one.to_dict() for one in self.on_inputs},
            "workloads": {comparison.workload: _carried(comparison, metric) for comparison in self.carried},
            "simplified": dict(simplified) if simplified is not None else None,
            "simplified_speed_up": self.simplified_speed_up.to_dict() if self.simplified_speed_up else None,
            "steps": None if self.steps is None else {"trained": self.steps[0], "whole": self.steps[1]},
            "front": None if self.front is None else [asdict(point) for point in self.front],
            "outlook": _expected(self.outlook),
            "warm_start": self.warm.to_dict() if self.warm is not None else None,
            "ledger": self.ledger.to_dict(),
        }

    def _value(self, trial: TrialRecord) -> str:
        runs = len(trial.measured(self.standings.metric.name))
        of = f" ({self.standings.statistic} of {runs} runs)" if runs > 1 else " (one run)"
        return f"{quantity(self.standings.value(trial), self.standings.metric)}{of}"

    def _drift(self) -> str:
        offsets = self.standings.effects.offsets.values()
        if not self.standings.effects.drifts or not offsets:
            return ""
        span = max(offsets) - min(offsets)
        return f"; the machine drifted by {span:.0%} during the study; comparisons are within blocks of time"

    def _trial(self, trial: TrialRecord | None) -> dict[str, Any] | None:
        if trial is None or trial.state is not State.COMPLETE:
            return None
        on_inputs = {part["name"]: part["argv"] for part in trial.job.get("parts", ())}
        return {
            "trial": trial.number,
            "configuration": dict(trial.configuration),
            "value": self.standings.value(trial),
            "runs": trial.measured(self.standings.metric.name),
            "command": trial.job.get("argv") or on_inputs or None,
        }


def _described(verdict: Verdict | None, metric: Metric) -> dict[str, Any] | None:
    if verdict is None:
        return None
    described = verdict.to_dict() | {"sentence": verdict.sentence(metric)}
    if verdict.known:
        speed, low, high = verdict.interval(metric)
        described |= {
            "speed_up": speed,
            "low": low,
            "high": high,
            "significant": verdict.significant(metric),
            "doubt": verdict.doubt(metric),
        }
    return described


def _expected(outlook: StoppingForecast | None) -> dict[str, Any] | None:
    return None if outlook is None else outlook.to_dict() | {"sentence": outlook.sentence()}


def _carried(comparison: WorkloadComparison, metric: Metric) -> dict[str, Any]:
    described = _described(comparison.verdict, metric) or {}
    return described | {"sentence": comparison.sentence(metric), "facts": dict(comparison.facts)}


def summarise(store: ReadableStudy) -> Summary:
    """Read a summary from storage."""
    definition = store.definition
    repeats = RepeatsSection(**definition.study.get("repeats", {}))
    summary = Summary(
        store.name,
        definition,
        Standings.of(store.trials(), definition.target, repeats.statistic, stored_verdict(store)),
        ablation=stored_ablation(store),
        all_carried=stored_workload_comparisons(store),
        last_outlook=stored_stopping_forecast(store),
        warm=stored_warm_start(store),
    )
    # A model of better quality saves no cost in each run.
    winner = summary.best.number if summary.best and not definition.target.is_quality else None
    return replace(summary, ledger=cost_account(store.runs(), summary.trials, winner, repeats.max_runs))


def run_to_use(store: ReadableStudy, summary: Summary) -> Run | None:
    """Return the newest complete run of the configuration to use, not on other workloads; None without one."""
    wanted, elsewhere = dict(summary.configuration or {}), {SeriesKind.WORKLOAD, SeriesKind.ASIDE}
    runs = [
        run
        for run in store.runs()
        if run.outcome.complete and dict(run.configuration) == wanted and run.series.kind not in elsewhere
    ]
    return runs[-1] if runs and summary.configuration is not None else None
