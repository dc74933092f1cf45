"""Stopping: when a study stops by itself, `trials = "auto"`.

It stops when what the next trials would gain, at most and with some probability, is less than what matters, at two
looks in a row. What matters is the least gain that the study file asks for, or what the noise lets one tell from
nothing, whichever is more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from autotune.records.expected_gain import AHEAD, ExpectedGain
from autotune.records.stored import Stored
from autotune.statistics.standings import Standings
from autotune.storage.readable import OUTLOOK, ReadableStudy
from autotune.studyfile import StudyFile
from spaces.space import Count

if TYPE_CHECKING:
    # They import SciPy and Optuna, and reading a study needs only what was stored.
    from autotune.search.asker import Asker
    from autotune.storage.observation import Observation

_LEAST = 20
# So many trials from look to look: the model changes its mind, and would stop a study at the first dull moment.
_EVERY = 5
# Trials that take no more than that together are as good as free: then a tenth of what matters otherwise does.
_FREE_S = 60.0
_CHEAP = 0.1


@dataclass(frozen=True)
class StoppingForecast(Stored):
    """What was expected of more search when there were `after` trials, and whether that `stopped` the study.

    `matters` is the least relative gain that would have made it go on; `due` are the trials and the gain at the newest
    look that was one of the rule's, not at the end of a session.
    """

    after: int
    prospect: ExpectedGain
    matters: float
    stopped: bool = False
    due: tuple[int, float] | None = None

    def holds(self, standings: Standings, study: StudyFile) -> bool:
        """Whether a study that was stopped would be so again: no trial came since, and no less matters now."""
        there = study.budget.auto and self.stopped and self.after == len(standings.trials)
        return there and self.prospect.gain <= matters(standings, study)

    def calm_after(self, before: "StoppingForecast | None") -> bool:
        """Whether too little was to be gained at this look, and at the rule's one just `before`."""
        if before is None or before.due is None:
            return False
        after, gain = before.due
        return self.after - after == _EVERY and max(gain, self.prospect.gain) <= self.matters

    def sentence(self) -> str:
        """Say it to a person."""
        prospect = self.prospect
        most = f"at most {prospect.gain:.1%}" if prospect.gain >= 0.0005 else "less than 0.1%"
        more = f"{prospect.trials} more" if self.stopped else f"{prospect.trials} more trials"
        likely = f"{more} would make the best {most} better ({prospect.probability:.0%} sure)"
        if not self.stopped:
            return likely
        return f"stopped after {self.after} trials: {likely}; {self.matters:.1%} would matter"


def look_ahead(
    asker: "Asker", seen: Mapping[int, "Observation"], standings: Standings, study: StudyFile, *, due: bool
) -> StoppingForecast | None:
    """Return what more search would gain, and store it; None where nobody knows. `seen` is as for `Asker.ask`.

    Only a look that is `due` may stop a study: how often its sessions end must not matter.
    """
    if study.stopping is not None or not study.has_one_winner:
        return None
    before = stored_stopping_forecast(asker.store)
    there = before is not None and before.stopped and before.after == len(standings.trials)
    if before is not None and there and (not study.budget.auto or before.holds(standings, study)):
        return before
    prospect = asker.prospect(seen, standings.noise)
    if prospect is None:
        return None
    least = matters(standings, study)
    forecast = StoppingForecast(len(standings.trials), prospect, least, due=before.due if before else None)
    if due:
        stopped = study.budget.auto and forecast.calm_after(before)
        forecast = replace(forecast, stopped=stopped, due=(forecast.after, prospect.gain))
    asker.store.set_attribute(OUTLOOK, forecast.to_dict())
    return forecast


def stored_stopping_forecast(store: ReadableStudy) -> StoppingForecast | None:
    """Return the forecast of the last look ahead; None if there was none."""
    stored = store.attribute(OUTLOOK)
    return StoppingForecast.from_dict(stored) if stored else None


def can_tell(trials: int, size: Count) -> bool:
    """Whether the number of trials is enough to look ahead: 20, or half of a small valid set."""
    least = min(_LEAST, (size.value + 1) // 2) if size.exact else _LEAST
    return trials >= least


def is_due(trials: int, size: Count) -> bool:
    """Whether a study that stops by itself looks ahead at this number of trials."""
    return trials % _EVERY == 0 and can_tell(trials, size)


def matters(standings: Standings, study: StudyFile) -> float:
    """Return the least relative gain for which a study goes on."""
    spent = [sum(outcome.usage.elapsed_s for outcome in t.outcomes) for t in standings.trials.values() if t.settled]
    ahead_s = AHEAD * fmean(spent) / study.budget.workers if spent else 0.0
    wanted = study.repeats.min_gain * (_CHEAP if ahead_s < _FREE_S else 1.0)
    return max(wanted, standings.resolution)
