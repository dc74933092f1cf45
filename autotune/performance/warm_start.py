"""Warm start: begin a study with the configurations that the model predicts to be best here.

They replace trials that would only spread over the space, so a wrong model costs little. If the same space was measured
on other machines, they run only if they should beat the default by more than the uncertainty. If run times can be
predicted, from costs or measurements, the best configuration runs first, and the search follows the expected times for
as long as the study's own runs agree with them. After an upgrade of the program, the winner of the earlier study runs
first, and its values guide the search in the same way. Predictions never count as measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log, log1p
from statistics import NormalDist
from typing import TYPE_CHECKING

from autotune.formatting import configuration_text
from autotune.records.measurement import Measured, Setting
from autotune.records.stored import Stored
from autotune.statistics.ratio_words import times
from autotune.statistics.standings import Standings
from autotune.storage.readable_study import WARM_START, ReadableStudy
from autotune.studyfile.limits import limits_of
from objectives import registry
from objectives.base import Metric
from objectives.shapes.shape import Shape
from spaces import Configuration, Space

if TYPE_CHECKING:
    from autotune.display.console import Display
    from autotune.performance.earlier_study import EarlierStudy
    from autotune.performance.model import Fields
    from autotune.performance.regression.prediction import Prediction
    from autotune.storage.study_store import StudyStore

PROPOSALS = 5
"""The number of predicted configurations to run; fewer if the first ones disappoint."""

_OTHER_INPUT = " (another input)"

# How often a winner that is still the best may be called worse.
_ERROR_RATE = 0.05


@dataclass(frozen=True)
class WarmStart(Stored):
    """The configurations that a study runs after its default.

    Attributes:
        proposals: The configurations, the best first.
        speed_up: The expected speed-up of the first one, with its interval.
        why: The reason if there are no proposals.
        followed: Whether the search then follows the expected times.
        earlier: The earlier study that guides the search; the proposals and the speed-up are then its own. Empty
            otherwise.
        confirmed: Whether a verdict confirmed the winner of the earlier study.
        other_input: Whether the earlier study has another input.
    """

    proposals: tuple[Configuration, ...] = ()
    speed_up: tuple[float, float, float] | None = None
    why: str = ""
    followed: bool = False
    earlier: str = ""
    confirmed: bool = False
    other_input: bool = False

    def sentence(self, standings: Standings) -> str:
        """Return the prediction and its result as a sentence."""
        if self.earlier and self.proposals:
            return self._sentence_on_earlier(standings)
        if not self.proposals or self.speed_up is None:
            return f"none: {self.why}"
        value, low, high = self.speed_up
        text = f"{times(value, standings.metric)} the default was predicted ({low:.2f} to {high:.2f})"
        if self.followed:
            incumbent = standings.incumbent
            gain = standings.speed_up(incumbent) if incumbent is not None else None
            return f"{text}, and the search followed it; {f'the best is {gain.text()}' if gain else 'no trial ended'}"
        tried = [trial for trial in standings.trials.values() if trial.configuration in self.proposals]
        measured = {trial.number: gain for trial in tried if (gain := standings.speed_up(trial)) is not None}
        if not measured:
            return f"{text}; none of the predicted configurations was measured"
        first = next((measured.get(trial.number) for trial in tried if trial.configuration == self.proposals[0]), None)
        reached = f"the first {first.text()}" if first is not None else "the first gave no value"
        best = max(measured.values(), key=lambda gain: gain.ratio)
        return f"{text}; {reached}, the best of {len(measured)} {best.text()}"

    def _sentence_on_earlier(self, standings: Standings) -> str:
        text = self._source_text(standings.metric)
        tried = next((one for one in standings.trials.values() if one.configuration == self.proposals[0]), None)
        if tried is None or not tried.complete:
            return f"{text}; here it {'has not run' if tried is None or not tried.runs else 'failed or was stopped'}"
        gain, best = standings.speed_up(tried), standings.incumbent
        if gain is None:
            return f"{text}; here it cannot be compared: the default {standings.missing_baseline}"
        if best is None or not standings.limits.keeps(tried.number):
            return f"{text}, here it {gain.text()}, but breaks a limit"
        from autotune.search.guidance.earlier_values import TOLERANCE, has_kept  # noqa: PLC0415  imports SciPy

        count, lost, tolerance = len(standings.trials), 0.0, TOLERANCE
        if tried.number != best.number:
            its, least = (standings.to_log(standings.undisturbed_value(one)) for one in (tried, best))
            lost = its - least
            # The best of many trials looks better than it is (Bonferroni).
            error = standings.effects.contrast(tried.number, best.number).standard_error
            tolerance += expm1(NormalDist().inv_cdf(1.0 - _ERROR_RATE / count) * error)
        among = f"within {tolerance:.0%} of the best of {count} trials"
        holds = f"still right, {among}"
        if lost > log1p(tolerance):
            holds = f"no longer {among}"
        elif self.speed_up is not None and not has_kept(log(gain.ratio), log(self.speed_up[0])):
            holds = f"{among}, but it gains less"
        return f"{text}, here it {gain.text()}: {holds}"

    def _source_text(self, metric: Metric) -> str:
        source = f"from {self.earlier}{_OTHER_INPUT if self.other_input else ''}"
        if self.speed_up is None:
            return source
        winner = "winner was" if self.confirmed else "best trial looked"
        return f"{source}, whose {winner} {times(self.speed_up[0], metric)} the default"


def stored_warm_start(store: ReadableStudy) -> WarmStart | None:
    """Return the stored warm start of a study; None if it has none yet."""
    stored = store.attribute(WARM_START)
    return None if stored is None else WarmStart.from_dict(stored)


def find_earlier_study(
    store: ReadableStudy, space: Space, setting: Setting, known: Sequence[Measured]
) -> "EarlierStudy | None":
    """Return the earlier study that guides a study: chosen when it begins, and the same one in its later sessions."""
    start = stored_warm_start(store)
    if start is None and store.trials():
        return None
    if start is not None:
        known = [row for row in known if row.setting.source == start.earlier != ""]
    if not known:
        return None
    from autotune.performance.earlier_study import EarlierStudy  # noqa: PLC0415  imports SciPy

    return EarlierStudy.find(
        space, setting, known, limits_of(store.definition.study_file.limits, store.definition.metrics)
    )


def warm_start(  # noqa: PLR0913, PLR0917  what is predicted, and what from
    store: "StudyStore",
    space: Space,
    setting: Setting,
    known: Sequence[Measured],
    display: "Display",
    shape: Shape | None = None,
    fields: "Fields | None" = None,
    earlier: "EarlierStudy | None" = None,
) -> WarmStart:
    """Predict the first trials of a new study; store the prediction with the study, and display it.

    Args:
        store: The study.
        space: Its space.
        setting: The setting where it runs.
        known: The program's measurements by other studies and elsewhere.
        display: Shows the prediction.
        shape: The shape of the program's run times, if known.
        fields: The fields that guide the search, if any.
        earlier: The earlier study of the program on this machine, if any.
    """
    start = stored_warm_start(store)
    if start is None:
        has_begun = WarmStart(why="the study had trials before") if store.trials() else None
        start = (
            has_begun
            or _by_earlier_study(earlier)
            or _by_expected_times(fields)
            or _by_prediction(space, setting, known, shape)
        )
        store.set_attribute(WARM_START, start.to_dict())
        for line in _lines(start, setting.metric):
            display.line(line)
    return start


def guide(space: Space, setting: Setting, known: Sequence[Measured], shape: Shape | None = None) -> "Fields | None":
    """Return the fields that guide a search of the space; None if nothing is known about its configurations."""
    if not known and registry.costs(setting.program) is None:
        return None
    from autotune.performance.model import Fields, PerformanceModel  # noqa: PLC0415  XGBoost takes a second to import

    return Fields.of(PerformanceModel(tuple(known), _rules(space), shape), space, setting)


def _rules(space: Space) -> tuple[str, ...]:
    return tuple(constraint.rule for constraint in space.constraints)


def _by_earlier_study(earlier: "EarlierStudy | None") -> WarmStart | None:
    """Return the warm start from the winner of an earlier study; None without one."""
    if earlier is None:
        return None
    if earlier.winner == earlier.measured.space.default():
        other = _OTHER_INPUT if earlier.has_other_input else ""
        return WarmStart(why=f"nothing was better than the default in {earlier.source}{other}", earlier=earlier.source)
    gain = earlier.gain
    known = None if gain is None else (gain.value, gain.low, gain.high)
    return WarmStart(
        (earlier.winner,),
        known,
        earlier=earlier.source,
        confirmed=earlier.verdict is not None,
        other_input=earlier.has_other_input,
    )


def _by_expected_times(fields: "Fields | None") -> WarmStart | None:
    """Return the warm start by expected run times; None if these are unknown."""
    if fields is None or fields.expected is None:
        return None
    from autotune.search.guidance.prior_candidates import prior_candidates  # noqa: PLC0415  what only shows studies needs no Optuna

    space = fields.expected.space
    best = prior_candidates(space, fields)[:1]
    gain = fields.expected.gain(best)
    if gain.value <= 1.0:
        return WarmStart(why="nothing is expected to be better than the default")
    return WarmStart(tuple(space.decode(best)), (gain.value, gain.low, gain.high), followed=True)


def _by_prediction(space: Space, setting: Setting, known: Sequence[Measured], shape: Shape | None) -> WarmStart:
    if not known:
        return WarmStart(why=f"nothing was measured of {setting.program} before")
    from autotune.performance.model import PerformanceModel  # noqa: PLC0415  XGBoost takes a second to import

    return _judge(PerformanceModel(tuple(known), _rules(space), shape).best(space, setting, PROPOSALS))


def _judge(prediction: "Prediction") -> WarmStart:
    first = prediction.proposals[0].speed_up if prediction.proposals else None
    if first is None or not prediction.promising:
        expected = [f"{first} times as good is expected"] if first is not None else []
        why = "; ".join([*expected, *prediction.doubts[:1]]) or "too little was measured"
        return WarmStart(why=f"no prediction beats the default by more than its uncertainty: {why}")
    proposals = tuple(proposal.configuration for proposal in prediction.proposals)
    return WarmStart(proposals, (first.value, first.low, first.high))


def _lines(start: WarmStart, metric: Metric) -> list[str]:
    if start.earlier and start.proposals:
        first = f"warm start: {start._source_text(metric)}: {configuration_text(start.proposals[0])}"
        return [f"{first}; it runs first, and the search follows the values there where runs here agree"]
    if start.speed_up is None:
        return [f"warm start: {start.why}"]
    value, low, high = start.speed_up
    text = f"warm start: {times(value, metric)} the default is predicted ({low:.2f} to {high:.2f})"
    if start.followed:
        follows = "the search begins with such trials, small ones first, and follows its runs where they differ"
        return [f"{text} for {configuration_text(start.proposals[0])}; {follows}"]
    text += "; tried first:"
    return [text, *(f"  {configuration_text(configuration)}" for configuration in start.proposals)]
