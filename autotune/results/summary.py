"""The summary of a study, as printed by `best`, `storage list` and at the end of a session."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from statistics import median
from typing import Any, ClassVar, Self

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
from autotune.comparison.pairs import Pairs
from autotune.comparison.point_verdict import PointVerdict, confirmed_points
from autotune.errors import AutotuneError, NothingWorkedError
from autotune.execution.segments import curve_of
from autotune.formatting import configuration_text, count_failures, join_words, quantity, without_rounding_error
from autotune.performance.warm_start import WarmStart, stored_warm_start
from autotune.records.limit import breaks
from autotune.records.study import ENDED, REPLAY_NOTICE, Run, State, TrialRecord
from autotune.results.disturbed_runs import TakenShare, taken_doubt, taken_shares
from autotune.results.growth import FrontGrowth
from autotune.results.ledger import Ledger, ledger_of
from autotune.results.noise import noise_sentence
from autotune.results.pareto import ParetoFront, front_of, tradeoff_metrics
from autotune.results.preference import Preference, parse_weights
from autotune.results.time_doubt import bound_doubt, time_doubt
from autotune.scheduling.stopping import StoppingForecast, stored_stopping_forecast
from autotune.statistics.ratio_words import change_text
from autotune.statistics.speed_up import SpeedUp
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.damage import content_errors
from autotune.storage.readable_study import ReadableStudy
from autotune.studyfile import StudyFile, VerdictSection
from autotune.studyfile.definition import Definition
from objectives.base import Metric
from spaces import Configuration


@dataclass(frozen=True)
class Summary:
    """The state of a study, which looks for one winner; subclasses look for a front or a decision table.

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
        taken: The shares of time that other processes took from runs.
        taken_doubt: The doubt that other processes slowed the runs behind the result; None without one.
        front: The front of a trade-off; None for other studies.
        preference: The point of the front that the weights choose.
        confirmed: The verdicts on points of the front.
    """

    has_decision_table: ClassVar[bool] = False
    """Whether the study looks for a decision table; trials of different contexts then do not compete."""

    name: str
    definition: Definition
    standings: Standings
    ledger: Ledger = field(default_factory=Ledger)
    ablation: Ablation | None = None
    all_verified: tuple[InputComparison, ...] = ()
    last_outlook: StoppingForecast | None = None
    warm: WarmStart | None = None
    on_limits: LimitVerdict = NO_LIMITS
    taken: tuple[TakenShare, ...] = ()
    taken_doubt: str | None = None
    front: ParetoFront | None = None
    preference: Preference | None = None
    confirmed: tuple[PointVerdict, ...] = ()

    @property
    def time_doubt(self) -> str | None:
        """The doubt that the target metric is the time of the runs; None without one."""
        return None if self.definition.replay else time_doubt(self.trials, self.standings.metric)

    @property
    def doubts(self) -> list[str]:
        """The reasons why the verdict or the values may mislead."""
        verdict, standings = self.present_verdict, self.standings
        of_verdict = [] if verdict is None else verdict.doubts(standings.metric, self.name, standings.tuned_default)
        doubts = (self.time_doubt, self.taken_doubt, bound_doubt([standings.baseline, self.best]))
        return [*of_verdict, *(doubt for doubt in doubts if doubt)]

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
        return () if verdict is None else input_verdicts(verdict, self.definition.mixed_inputs)

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
    def fresh_pairs(self) -> Pairs:
        """The values of the default and the winner in the pairs of fresh runs behind the verdict; empty without one."""
        return () if self.present_verdict is None else self.present_verdict.pairs

    @property
    def medians(self) -> tuple[float | None, float | None]:
        """The values of the best and the default: of the fresh pairs behind the verdict, or of tuning without one."""
        best, default, standings = self.best, self.standings.baseline, self.standings
        if self.fresh_pairs:
            of_default, of_winner = (median(values) for values in zip(*self.fresh_pairs, strict=True))
            # The best is the default if the winner was slower.
            return of_default if best is default else of_winner, of_default

        def tuned(trial: TrialRecord | None) -> float | None:
            return without_rounding_error(standings.value(trial)) if trial is not None and trial.complete else None

        return tuned(best), tuned(default)

    @property
    def best(self) -> TrialRecord | None:
        """The best trial that keeps the limits.

        With a verdict it is the winner, or the default if the winner is slower or fails too often.
        """
        verdict = self.present_verdict
        if verdict is None:
            return self.standings.incumbent
        worse = verdict.unreliable or verdict.slower(self.standings.metric)
        if worse and not self.on_limits.default_breaks:
            return self.standings.baseline
        return self.standings.trials[verdict.winner]

    @property
    def winner(self) -> TrialRecord | None:
        """The best trial; None if the study looks for no single winner."""
        return self.best

    @property
    def to_use(self) -> TrialRecord | None:
        """The trial to use: the best, or the default if the verdict finds no significant gain."""
        verdict = self.present_verdict
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
        return self.definition.study_file

    def weighted(self, weights: str) -> Self:  # noqa: ARG002  a trade-off uses them
        """Return the summary with the point of the front that these weights choose.

        Raises:
            AutotuneError: The study has no trade-off, or the weights have errors.
        """
        msg = f"study {self.name!r} has no [tradeoff], so it has one winner for any weights: leave --weights out"
        raise AutotuneError(msg)

    def verdict_sentence(self) -> str | None:
        """Return the verdict in one sentence; None without a verdict."""
        if self.nearest is None:
            return self._verdict_sentence()
        broken = breaks(self.standings.limits.breaches(self.nearest.number))
        return f"No feasible configuration found; the nearest is trial {self.nearest.number}, which {broken}"

    def _verdict_sentence(self) -> str | None:
        standings = self.standings
        if self.best is None:
            return None
        if standings.baseline is None:
            why = standings.missing_baseline
            return f"The default configuration {why}: there is nothing to compare the winner with."
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
        lines = [REPLAY_NOTICE] if self.definition.replay else []
        if self.nearest is not None:
            lines += [f"{self.verdict_sentence()}", f"configuration: {configuration_text(self.nearest.configuration)}"]
            lines += [f"{self.standings.metric.name}: {self.value_text(self.nearest)}"]
        else:
            lines += [*self._best_lines(), *self._lines_on_simplification()]
        return "\n".join(lines)

    def _best_lines(self) -> list[str]:
        standings, best = self.standings, self.best
        if best is None:
            return [self.verdict_sentence() or "no valid measurement yet", *(f"doubt: {one}" for one in self.doubts)]
        metric = standings.metric
        lines = [
            f"configuration: {configuration_text(best.configuration)}",
            f"{metric.name}: {self.value_text(best)}, trial {best.number}",
        ]
        if standings.baseline is not None and standings.baseline.number != best.number:
            different = ", ".join(changes(best.configuration, standings.baseline.configuration))
            broken = f"; it {breaks(self.on_limits.default_breaks)}" if self.on_limits.default_breaks else ""
            default = configuration_text(standings.baseline.configuration)
            lines.append(f"default: {default}  {self.value_text(standings.baseline)}{broken}")
            lines.append(f"changed: {different}")
        if noise := noise_sentence(standings):
            lines.append(f"noise: {noise}")
        if self.on_limits.limits:
            lines.append(f"limits: {self.limits_text()}")
        sentence = self.verdict_sentence()
        lines.append(f"verdict: {sentence or self.text_without_verdict()}")
        lines += [f"doubt: {one}" for one in self.doubts]
        lines += input_lines(self.on_inputs)
        lines += [f"on input {one.name}, of weight 0: {one.sentence(metric)}" for one in self.verified]
        if self.outlook is not None:
            lines.append(f"search: {self.outlook.sentence()}")
        return lines

    def _lines_on_simplification(self) -> list[str]:
        said = self.simplified_sentence()
        if said is None:
            return []
        return [f"simplified: {configuration_text(self.configuration or {})}", f"simplified, measured: {said}"]

    def limits_text(self) -> str:
        """Return the limits in words, with the number of trials that keep them."""
        measured, keep = len(self.standings.measured), len(self.standings.ranking)
        return f"{', '.join(map(str, self.on_limits.limits))}; {keep} of {measured} trials with a value keep them"

    def simplified_sentence(self) -> str | None:
        """Return the measurements of the simplified configuration in words; None if it is not the one to use.

        For a point of a front, the sentence has every metric of the trade-off.
        """
        ablation, target = self.simplified, self.standings.metric
        if ablation is None:
            return None
        without = f"trial {ablation.winner} without {', '.join(ablation.dropped)}"
        rounds = f"{ablation.rounds} interleaved rounds"
        if ablation.further:
            readings = ablation.readings(target, self.definition.metrics)
            said = "; ".join(
                change_text(one.over_default, metric) for metric, one in readings if one.over_default is not None
            )
            return f"{without} is not worse in any metric; against the default {said}, {rounds}"
        speed_up = ablation.simplified_speed_up
        return f"{without} is {'as good as with them' if speed_up is None else f'{speed_up.words(target)}, {rounds}'}"

    def text_without_verdict(self) -> str:
        """Return the words for a winner without a verdict, with the speed-up that it seems to have."""
        speed_up = self.speed_up
        looks = f"; it {speed_up.words(self.standings.metric)}" if speed_up and not speed_up.confirmed else ""
        return f"not confirmed yet{looks}; the same `autotune study` command confirms it"

    def next_step(self, resumes: str) -> str:
        """Return what to do next with a study that does not run, in one sentence; `resumes` says what resumes it."""
        best, default, verdict = self.best, self.standings.baseline, self.present_verdict
        if self.standings.nothing_worked:
            return f"Mend what the first error says; then {resumes} goes on."
        if best is None:
            return "Relax a limit, or make more trials." if self.nearest else f"Start measuring: {resumes} goes on."
        if default is None:
            mend = "Mend the default configuration: without its value there is nothing to compare with."
            return f"Train the default to its end: {resumes} goes on." if self.standings.is_default_paused else mend
        if best is default or self.to_use is default:
            return "Keep the default, or look further: more trials, or more values of the parameters that matter."
        if self.definition.replay:
            return "This was a replay of recorded runs: tune the program itself on the machine that you use."
        use = f"Use it: `autotune best {self.name} --script sh` writes its job script."
        confirm = f"Confirm it before you use it: {resumes} compares it with the default in fresh runs."
        return use if verdict is not None and verdict.known else confirm

    def text(self) -> str:
        """Return the whole study in words."""
        definition = self.definition
        facts = ", ".join(f"{name}={value}" for name, value in definition.facts.items())
        without = ", ".join(count_failures(self.standings.counts))
        trials = f"{self.finished} trial{'' if self.finished == 1 else 's'}"
        machine = definition.machine
        where = f"{machine['host']}, {machine['cores']} cores of {machine['cpu_model']}"
        return "\n".join(
            [
                f"study {self.name}: {trials}" + (f", without a value: {without}" if without else ""),
                *(() if definition.replay else (f"machine: {where}",)),
                *([f"workload: {facts}"] if facts else []),
                self.best_text(),
                *self._further_lines(),
                *(() if self.steps is None else (trained_text(self.steps, self.trials),)),
                *([f"warm start: {self.warm.sentence(self.standings)}"] if self.warm is not None else ()),
                self.ledger.text(),
            ]
        )

    def _further_lines(self) -> list[str]:
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        metric = self.standings.metric
        simplified = self.simplified
        simpler = simplified.simplified_speed_up if simplified is not None else None
        return {
            "study": self.name,
            "replay": self.definition.replay,
            "trials": self.finished,
            "failures": dict(self.standings.counts),
            "metric": metric.name,
            "unit": metric.unit,
            "noise": self.standings.noise,
            "drifts": self.standings.effects.drifts,
            "time_doubt": self.time_doubt,
            "taken_doubt": self.taken_doubt,
            "machine": self.definition.machine,
            "facts": self.definition.facts,
            "best": self._trial(self.best),
            "default": self._trial(self.standings.baseline),
            "speed_up": self.speed_up.to_dict() if self.speed_up is not None else None,
            "verdict": verdict_dict(
                self.present_verdict, metric, self.name, self.on_limits, self.standings.tuned_default
            ),
            "limits": list(map(str, self.on_limits.limits)),
            "nearest": self._trial(self.nearest),
            "inputs": {one.name: one.to_dict() for one in self.on_inputs}
            | {one.name: input_dict(one, metric, self.name) for one in self.verified},
            "simplified": dict(simplified.simplified or {}) if simplified is not None else None,
            "simplified_speed_up": simpler.to_dict() if simpler is not None else None,
            "steps": None if self.steps is None else {"trained": self.steps[0], "whole": self.steps[1]},
            "front": None,
            "point": None,
            "hypervolume": None,
            "outlook": self.outlook and self.outlook.to_dict() | {"sentence": self.outlook.sentence()},
            "warm_start": self.warm.to_dict() if self.warm is not None else None,
            "ledger": self.ledger.to_dict(),
        }

    def value_text(self, trial: TrialRecord) -> str:
        """Return the value of a complete trial with the number of its runs."""
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
            "value": without_rounding_error(self.standings.value(trial)),
            "runs": trial.measured(self.standings.metric.name),
            "breaks": list(map(str, self.standings.limits.breaches(trial.number))),
            "command": trial.job.get("argv") or on_inputs or None,
        }


@dataclass(frozen=True)
class FrontSummary(Summary):
    """The state of a study that looks for a trade-off: its front, and the point that weights choose."""

    front: ParetoFront = field(kw_only=True)

    @property
    def best(self) -> TrialRecord | None:
        """The preferred point; without weights, the best trial by the first metric."""
        if self.preference is None:
            return self.standings.incumbent
        return self.standings.trials[self.preference.point.trial]

    @property
    def winner(self) -> TrialRecord | None:
        """Return None."""
        return None

    @property
    def to_use(self) -> TrialRecord | None:
        """The preferred point; None without weights."""
        return None if self.preference is None else self.best

    @property
    def growth(self) -> FrontGrowth | None:
        """The growth of the front; None while it is empty."""
        return FrontGrowth.of(self.front, self.standings) if self.front.points else None

    @property
    def point_verdict(self) -> PointVerdict | None:
        """The verdict on the preferred point; None without a verdict or a preferred point."""
        preferred = self.preference.point.trial if self.preference is not None else None
        return next((verdict for verdict in self.confirmed if verdict.trial == preferred), None)

    @property
    def speed_up(self) -> SpeedUp | None:
        """The speed-up of the preferred point by the first metric, by its verdict if there is one."""
        verdict = self.point_verdict
        if verdict is None or not verdict.known or not verdict.metrics[0].has_ratio:
            return super().speed_up
        ratio, low, high = verdict.metrics[0].interval(verdict.confidence)
        return SpeedUp(ratio, (low, high))

    @property
    def fresh_pairs(self) -> Pairs:
        """The values of the default and the preferred point in their pairs of fresh runs, by the first metric."""
        return () if self.point_verdict is None else self.point_verdict.metrics[0].pairs

    def is_judged(self, settings: VerdictSection) -> bool:
        """Whether the preferred point needs no more pairs; also true without a preferred point."""
        if self.point_verdict is not None:
            return not self.point_verdict.missing(settings)
        return self.preference is None or self._verdict_sentence() is not None

    def weighted(self, weights: str) -> Self:
        """Return the summary with the point of the front that these weights choose.

        Raises:
            AutotuneError: The weights have errors.
            NothingWorkedError: The front has no points.
        """
        stated = parse_weights(weights, self.front)
        if not self.front.points:
            msg = f"no trial of study {self.name!r} has a value of each of {self.front.names}"
            raise NothingWorkedError(msg)
        return replace(self, preference=Preference.of(self.front, stated))

    def _verdict_sentence(self) -> str | None:
        preference, baseline = self.preference, self.standings.baseline
        if preference is None:
            return None
        if baseline is None:
            return "The default configuration failed: there is nothing to compare a point of the front with."
        if preference.point.trial == baseline.number:
            return f"For {preference.weights_text} the default is the point of the front: there is nothing to change."
        verdict = self.point_verdict
        return None if verdict is None else f"For {preference.weights_text}, {verdict.sentence()}"

    def _best_lines(self) -> list[str]:
        known = self.front if self.preference is None else self.preference
        return [known.text(self.standings), *self._point_lines(), *(f"doubt: {one}" for one in self.doubts)]

    def _point_lines(self) -> list[str]:
        if self.preference is not None:
            confirms = self._confirms(self._stated)
            return [f"verdict: {self._verdict_sentence() or f'not confirmed yet; {confirms} confirms it'}"]
        if self.confirmed:
            return [f"confirmed: {verdict.sentence()}" for verdict in self.confirmed]
        if not self.front.points:
            return []
        return [f"verdict: none, since no weights say which point matters; {self._confirms(self.front.equal_weights)}"]

    def _confirms(self, weights: str) -> str:
        return f"`autotune confirm {self.name} --weights {weights}`"

    def next_step(self, resumes: str) -> str:
        """Return what to do next: choose weights, confirm the point that they choose, or use it."""
        if not self.front.points:
            return super().next_step(resumes)
        if self.preference is None:
            return f"Choose one by weights: {self._confirms(self.front.equal_weights)} compares it with the default."
        if self._verdict_sentence() is None:
            return f"Confirm it before you use it: {self._confirms(self._stated)} compares it with the default."
        return f"Use it: `autotune best {self.name} --weights {self._stated} --script sh` writes its job script."

    @property
    def _stated(self) -> str:
        """The weights as an option states them."""
        weights = self.preference.to_dict() if self.preference is not None else {}
        return ",".join(f"{name}={weight:.3g}" for name, weight in weights.items())

    def _further_lines(self) -> list[str]:
        lines = [] if self.preference is None else [self.front.text(self.standings)]
        return lines if self.growth is None else [*lines, f"the front: {self.growth.sentence()}"]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return super().to_dict() | {
            "front": self.front.to_dict(),
            "point": {
                "weights": None if self.preference is None else self.preference.to_dict(),
                "trial": None if self.preference is None else self.preference.point.trial,
                "sentence": self._verdict_sentence(),
                "confirmed": [verdict.to_dict() for verdict in self.confirmed],
            },
            "hypervolume": None if self.growth is None else self.growth.to_dict(),
        }


@dataclass(frozen=True)
class TableSummary(Summary):
    """The state of a study that looks for a decision table, so no trial is the best."""

    has_decision_table = True

    @property
    def best(self) -> TrialRecord | None:
        """Return None."""
        return None

    def _verdict_sentence(self) -> str | None:
        if not self.standings.measured or self.study.decisions is None:
            return None
        over = join_words(self.study.decisions.over)
        return f"No single winner: a decision table over {over}; `autotune best {self.name}` prints it."

    def next_step(self, resumes: str) -> str:
        """Return what to do next: use the table."""
        if not self.standings.measured:
            return super().next_step(resumes)
        unsure = "a setting without pairs of runs was not compared with the default"
        return f"Use the table, which `autotune best {self.name}` prints, too; {unsure}."


def summarise(store: ReadableStudy) -> Summary:
    """Read the summary of a study from storage.

    Raises:
        StorageError: The study is damaged, or the storage cannot be read.
    """
    with content_errors(f"study {store.name!r}"):
        return _summarise(store)


def _summarise(store: ReadableStudy) -> Summary:
    definition, runs = store.definition, store.runs()
    repeats = definition.study_file.repeats
    standings = standings_of(store, repeats.statistic)
    summary = replace(
        summary_of(store.name, definition, standings, runs),
        ablation=stored_ablation(store),
        all_verified=stored_input_comparisons(store),
        last_outlook=stored_stopping_forecast(store),
        warm=stored_warm_start(store),
        on_limits=limit_verdict(runs, standings),
        taken=taken_shares(runs) if definition.target.is_pace else (),
    )
    verdict = summary.present_verdict
    doubt = taken_doubt(runs, definition.target, verdict.series if verdict is not None and verdict.pairs else None)
    summary = replace(summary, taken_doubt=doubt)
    # A model of better quality does not make runs cheaper.
    used = summary.to_use if summary.winner is not None and not definition.target.is_quality else None
    most = repeats.min_runs if summary.has_decision_table else repeats.max_runs
    return replace(summary, ledger=ledger_of(runs, summary.trials, used.number if used else None, most))


def summary_of(name: str, definition: Definition, standings: Standings, runs: Sequence[Run] = ()) -> Summary:
    """Return the summary of trials by what their study looks for; `runs` has the fresh runs of points of a front."""
    study, metrics = definition.study_file, tradeoff_metrics(definition)
    kind: Callable[..., Summary] = Summary if study.decisions is None else TableSummary
    if metrics:
        front = front_of(standings, metrics)
        points = [point.trial for point in front.points]
        confirmed = confirmed_points(runs, standings, metrics, points, study.verdict.confidence)
        kind = partial(FrontSummary, front=front, preference=Preference.of_study(front, study), confirmed=confirmed)
    return kind(name, definition, standings)


def trained_text(steps: tuple[int, int], trials: Iterable[TrialRecord]) -> str:
    """Return in words how many steps were trained, how many every trial would need, and where trials were stopped."""
    made, whole = steps
    rungs = Counter(trial.runs[-1].steps for trial in trials if trial.state is State.PAUSED)
    left = ", ".join(f"{count} at step {steps}" for steps, count in sorted(rungs.items(), key=str)) or "none"
    share = f"{made / whole:.0%} of " if whole else ""
    return f"trained: {made} steps, {share}the {whole} of training every trial to its end; left early: {left}"


def verdict_dict(
    verdict: Verdict | None,
    metric: Metric,
    study: str,
    on_limits: LimitVerdict = NO_LIMITS,
    tuned: Sequence[float] = (),
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
            "doubt": "; ".join(verdict.doubts(metric, study, tuned)) or None,
        }
    return values


def input_dict(comparison: InputComparison, metric: Metric, study: str) -> dict[str, Any]:
    """Return the JSON-able form of a verdict on an input of weight 0, with the same keys as for optimised inputs."""
    return (verdict_dict(comparison.verdict, metric, study) or {}) | {
        "share": 0.0,
        "loses": comparison.verdict.slower(metric),
        "sentence": comparison.sentence(metric),
        "facts": dict(comparison.facts),
    }
