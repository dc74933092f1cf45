"""Automatic stopping: when a study with `trials = "auto"` has searched enough.

It stops when the gain that the next trials could bring is, with high probability, smaller than the gain that matters,
at two checks in a row. The gain that matters is the study file's `min_gain`, or the smallest difference that the noise
lets the study detect, whichever is larger.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from autotune.records.expected_gain import AHEAD, ExpectedGain
from autotune.records.stored import Stored
from autotune.statistics.standings import Standings
from autotune.storage.readable_study import OUTLOOK, ReadableStudy
from autotune.studyfile import StudyFile
from spaces.space import Count

if TYPE_CHECKING:
    # These import SciPy and Optuna, which reading a stored study does not need.
    from autotune.search.asker import Asker
    from autotune.storage.observation import Observation

_LEAST = 20
# Trials from check to check: the model's forecasts vary, and one pessimistic forecast must not stop a study.
_EVERY = 5
# If the next trials take less than this together, a tenth of the usual gain is worth their time.
_FREE_S = 60.0
_CHEAP = 0.1


@dataclass(frozen=True)
class StoppingForecast(Stored):
    """The expected gain of more search, and whether it was too small to continue.

    Args:
        after: The number of trials at this check.
        prospect: The expected gain of the next trials.
        matters: The least relative gain for which the study would have continued.
        stopped: Whether this check stopped the study.
        due: The number of trials and the expected gain at the last regular check; a check at the end of a session is
            not a regular one.
    """

    after: int
    prospect: ExpectedGain
    matters: float
    stopped: bool = False
    due: tuple[int, float] | None = None

    def holds(self, standings: Standings, study: StudyFile) -> bool:
        """Whether a stopped study would stop again: it has no new trial, and no smaller gain matters now."""
        there = study.budget.auto and self.stopped and self.after == len(standings.trials)
        return there and self.prospect.gain <= least_gain(standings, study)

    def is_calm_after(self, before: "StoppingForecast | None") -> bool:
        """Whether the expected gain was too small at this check, and at the regular check just `before`."""
        if before is None or before.due is None:
            return False
        after, gain = before.due
        return self.after - after == _EVERY and max(gain, self.prospect.gain) <= self.matters

    def sentence(self) -> str:
        """Return the forecast as a sentence."""
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
    """Return and store the expected gain of more search; None if the sampler has no forecast.

    Args:
        asker: The sampler.
        seen: The observations, as for `Asker.ask`.
        standings: How the trials compare.
        study: The study file.
        due: Whether this is a regular check. Only these may stop a study, so that the number of its sessions does not
            matter.
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
    least = least_gain(standings, study)
    forecast = StoppingForecast(len(standings.trials), prospect, least, due=before.due if before else None)
    if due:
        stopped = study.budget.auto and forecast.is_calm_after(before)
        forecast = replace(forecast, stopped=stopped, due=(forecast.after, prospect.gain))
    asker.store.set_attribute(OUTLOOK, forecast.to_dict())
    return forecast


def stored_stopping_forecast(store: ReadableStudy) -> StoppingForecast | None:
    """Return the forecast of the last check; None before the first."""
    stored = store.attribute(OUTLOOK)
    return StoppingForecast.from_dict(stored) if stored else None


def can_forecast(trials: int, size: Count) -> bool:
    """Whether there are enough trials for a forecast: 20, or half of a small valid set."""
    least = min(_LEAST, (size.value + 1) // 2) if size.exact else _LEAST
    return trials >= least


def is_due(trials: int, size: Count) -> bool:
    """Whether a regular check is due at this number of trials."""
    return trials % _EVERY == 0 and can_forecast(trials, size)


def least_gain(standings: Standings, study: StudyFile) -> float:
    """Return the least relative gain for which a study continues."""
    spent = [sum(outcome.usage.elapsed_s for outcome in t.outcomes) for t in standings.trials.values() if t.settled]
    ahead_s = AHEAD * fmean(spent) / study.budget.workers if spent else 0.0
    wanted = study.repeats.min_gain * (_CHEAP if ahead_s < _FREE_S else 1.0)
    return max(wanted, standings.resolution)
