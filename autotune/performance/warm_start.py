"""Warm start: a study's first trials are what a model of other machines predicts to be best here.

They take the place of trials that would only spread over the space, so that nothing is lost when the model is wrong;
and they are tried only where the model expects them to beat the default by more than its uncertainty. Predictions are
never passed off as measurements: the search knows nothing of them until they have run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotune.display.console import Display
from autotune.formatting import shown
from autotune.records.measurement import Measured, Setting
from autotune.records.stored import Stored
from autotune.statistics.standings import Standings
from autotune.storage.study_store import WARM_START, StudyStore
from spaces import Configuration, Space

if TYPE_CHECKING:
    from autotune.performance.model import Fields
    from autotune.performance.regression.prediction import Prediction

PROPOSALS = 5
"""So many configurations of a prediction are tried, unless the first ones disappoint."""


@dataclass(frozen=True)
class WarmStart(Stored):
    """What a study starts with after its default: nothing where `why` says so.

    `speed_up` is what the first of the `proposals` was expected to reach, with its interval.
    """

    proposals: tuple[Configuration, ...] = ()
    speed_up: tuple[float, float, float] | None = None
    why: str = ""

    def sentence(self, standings: Standings) -> str:
        """Say what was predicted, and what came of it."""
        if not self.proposals or self.speed_up is None:
            return f"none: {self.why}"
        value, low, high = self.speed_up
        text = f"{value:.2f} times the default's speed was predicted ({low:.2f} to {high:.2f})"
        tried = [trial for trial in standings.trials.values() if trial.configuration in self.proposals]
        gains = [gain for trial in tried if (gain := standings.gain(trial)) is not None]
        if not gains:
            return f"{text}; none of the predicted configurations was measured"
        first = next((standings.gain(trial) for trial in tried if trial.configuration == self.proposals[0]), None)
        told = f"the first measured {first:.2f}" if first is not None else "the first gave no value"
        return f"{text}; {told}, the best of {len(gains)} {max(gains):.2f}"


def stored_warm_start(store: StudyStore) -> WarmStart | None:
    """Return what a study started with; None where that was not asked yet."""
    stored = store.attribute(WARM_START)
    return None if stored is None else WarmStart.from_dict(stored)


def warm_start(
    store: StudyStore, space: Space, setting: Setting, known: Sequence[Measured], display: Display
) -> WarmStart:
    """Ask the model once, when a study is new; keep its answer with the study, and say it.

    `known` is what other studies measured of the program, and what was measured elsewhere.
    """
    found = stored_warm_start(store)
    if found is None:
        found = WarmStart(why="the study had trials before") if store.trials() else _asked(space, setting, known)
        store.set_attribute(WARM_START, found.to_dict())
        for line in _lines(found):
            display.line(line)
    return found


def guide(space: Space, setting: Setting, known: Sequence[Measured]) -> "Fields | None":
    """Return what the same space gave elsewhere, to guide the search; None where it was not measured."""
    if not known:
        return None
    from autotune.performance.model import Fields  # noqa: PLC0415  XGBoost takes a second to import
    from autotune.performance.transfer.sources import sources  # noqa: PLC0415

    found = sources(space, setting, known)
    return Fields(tuple(found)) if found else None


def _asked(space: Space, setting: Setting, known: Sequence[Measured]) -> WarmStart:
    if not known:
        return WarmStart(why=f"nothing was measured of {setting.program} before")
    from autotune.performance.model import PerformanceModel  # noqa: PLC0415  XGBoost takes a second to import

    rules = tuple(constraint.rule for constraint in space.constraints)
    return _judged(PerformanceModel(tuple(known), rules).best(space, setting, PROPOSALS))


def _judged(found: "Prediction") -> WarmStart:
    first = found.proposals[0].speed_up if found.proposals else None
    if first is None or not found.promising:
        told = [f"{first} times its speed is expected"] if first is not None else []
        why = "; ".join([*told, *found.doubts[:1]]) or "too little was measured"
        return WarmStart(why=f"no prediction beats the default by more than its uncertainty: {why}")
    proposals = tuple(proposal.configuration for proposal in found.proposals)
    return WarmStart(proposals, (first.value, first.low, first.high))


def _lines(found: WarmStart) -> list[str]:
    if found.speed_up is None:
        return [f"warm start: {found.why}"]
    value, low, high = found.speed_up
    text = f"warm start: {value:.2f} times the default's speed is predicted ({low:.2f} to {high:.2f}); tried first:"
    return [text, *(f"  {shown(one)}" for one in found.proposals)]
