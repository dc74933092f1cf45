"""Warm start: a study's first trials are the configurations that a model of other machines predicts to be best here.

They replace trials that would only spread over the space, so a wrong model costs nothing; and they are tried only where
the model expects them to beat the default by more than its uncertainty. Predictions never
count as measurements: the search does not know them until they have run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotune.formatting import shown
from autotune.records.measurement import Measured, Setting
from autotune.records.stored import Stored
from autotune.statistics.ratio_words import times
from autotune.statistics.standings import Standings
from autotune.storage.readable import WARM_START, ReadableStudy
from objectives.base import Metric
from objectives.shapes.shape import Shape
from spaces import Configuration, Space

if TYPE_CHECKING:
    from autotune.display.console import Display
    from autotune.performance.model import Fields
    from autotune.performance.regression.prediction import Prediction
    from autotune.storage.study_store import StudyStore

PROPOSALS = 5
"""The number of predicted configurations to try, unless the first ones disappoint."""


@dataclass(frozen=True)
class WarmStart(Stored):
    """The configurations that a study tries after its default; `why` gives the reason if there are none.

    `speed_up` is the expected speed-up of the first of the `proposals`, with its interval.
    """

    proposals: tuple[Configuration, ...] = ()
    speed_up: tuple[float, float, float] | None = None
    why: str = ""

    def sentence(self, standings: Standings) -> str:
        """Return the prediction and its result as a sentence."""
        if not self.proposals or self.speed_up is None:
            return f"none: {self.why}"
        value, low, high = self.speed_up
        text = f"{times(value, standings.metric)} the default was predicted ({low:.2f} to {high:.2f})"
        tried = [trial for trial in standings.trials.values() if trial.configuration in self.proposals]
        measured = {trial.number: gain for trial in tried if (gain := standings.speed_up(trial)) is not None}
        if not measured:
            return f"{text}; none of the predicted configurations was measured"
        first = next((measured.get(trial.number) for trial in tried if trial.configuration == self.proposals[0]), None)
        reached = f"the first {first.text()}" if first is not None else "the first gave no value"
        best = max(measured.values(), key=lambda gain: gain.ratio)
        return f"{text}; {reached}, the best of {len(measured)} {best.text()}"


def stored_warm_start(store: ReadableStudy) -> WarmStart | None:
    """Return the stored warm start of a study; None if the model was not asked yet."""
    stored = store.attribute(WARM_START)
    return None if stored is None else WarmStart.from_dict(stored)


def warm_start(  # noqa: PLR0913, PLR0917  what is predicted, and what from
    store: "StudyStore",
    space: Space,
    setting: Setting,
    known: Sequence[Measured],
    display: "Display",
    shape: Shape | None = None,
) -> WarmStart:
    """Ask the model once, when a study is new; store its answer with the study, and display it.

    `known` are the program's measurements by other studies and elsewhere, `shape` is that of its run times.
    """
    start = stored_warm_start(store)
    if start is None:
        has_begun = WarmStart(why="the study had trials before") if store.trials() else None
        start = has_begun or _predicted(space, setting, known, shape)
        store.set_attribute(WARM_START, start.to_dict())
        for line in _lines(start, setting.metric):
            display.line(line)
    return start


def guide(space: Space, setting: Setting, known: Sequence[Measured]) -> "Fields | None":
    """Return the efficiencies of the same space elsewhere, to guide the search; None if it was not measured."""
    if not known:
        return None
    from autotune.performance.model import Fields  # noqa: PLC0415  XGBoost takes a second to import
    from autotune.performance.transfer.sources import sources  # noqa: PLC0415

    elsewhere = sources(space, setting, known)
    return Fields(tuple(elsewhere)) if elsewhere else None


def _predicted(space: Space, setting: Setting, known: Sequence[Measured], shape: Shape | None) -> WarmStart:
    if not known:
        return WarmStart(why=f"nothing was measured of {setting.program} before")
    from autotune.performance.model import PerformanceModel  # noqa: PLC0415  XGBoost takes a second to import

    rules = tuple(constraint.rule for constraint in space.constraints)
    return _judged(PerformanceModel(tuple(known), rules, shape).best(space, setting, PROPOSALS))


def _judged(prediction: "Prediction") -> WarmStart:
    first = prediction.proposals[0].speed_up if prediction.proposals else None
    if first is None or not prediction.promising:
        expected = [f"{first} times as good is expected"] if first is not None else []
        why = "; ".join([*expected, *prediction.doubts[:1]]) or "too little was measured"
        return WarmStart(why=f"no prediction beats the default by more than its uncertainty: {why}")
    proposals = tuple(proposal.configuration for proposal in prediction.proposals)
    return WarmStart(proposals, (first.value, first.low, first.high))


def _lines(start: WarmStart, metric: Metric) -> list[str]:
    if start.speed_up is None:
        return [f"warm start: {start.why}"]
    value, low, high = start.speed_up
    text = f"warm start: {times(value, metric)} the default is predicted ({low:.2f} to {high:.2f}); tried first:"
    return [text, *(f"  {shown(configuration)}" for configuration in start.proposals)]
