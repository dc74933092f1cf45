"""Hints: configurations from outside the search. Measurements decide how many of them are tried.

The first hint is tried right after the default. A hint that improves on the best value earns trust for another; a hint
that does not costs this trust, and an improvement by the search itself cancels it. Without trust, another hint is tried
once the study is so long that failed hints take less than a twentieth of its trials. At most every second trial is a
hint, so that hints can be compared with the search's own trials. If they were better, the search itself looks for
similar configurations (`hint_prior`), and they are not tried one by one. So a user who knows the program leads the
search, and useless hints hardly slow it.
"""

import secrets
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from autotune.records.hint import Hint
from autotune.storage.readable_study import HINT
from autotune.storage.study_store import StudyStore
from spaces import Configuration

PATIENCE = 20
"""The number of trials for each hint that does not pay."""

# An improvement counts only above this share of the values' standard deviation, since many small steps would delay the
# search.
_PAYS = 0.1
# The most trust that hints can accumulate, so that old successes do not pay for many failures.
_MOST_TRUST = 2.0


def hints_of(store: StudyStore) -> list[Hint]:
    """Return the hints of a study, oldest first."""
    with store.as_optuna() as study:
        attributes = store.patiently(lambda: study.user_attrs)
    return [Hint.from_dict(attributes[name]) for name in sorted(attributes) if name.startswith(HINT)]


def give_hint(store: StudyStore, configuration: Configuration, by: str, why: str = "") -> Hint:
    """Store and return a hint; the configuration must be valid."""
    hint = Hint(dict(configuration), by, datetime.now(UTC).isoformat(), why)
    store.set_attribute(f"{HINT}{hint.given} {secrets.token_hex(4)}", hint.to_dict())
    return hint


def may_try(hinted: NDArray[np.bool_], costs: NDArray[np.float64], trials: int) -> bool:
    """Return whether another hint may be tried.

    Args:
        hinted: Whether a trial was a hint, (n,), in the order of the trials, the default first.
        costs: Their values to minimise, (n,); +inf for a trial that failed, breaks a limit, or has not ended.
        trials: The number of all trials.
    """
    places = [int(place) for place in np.flatnonzero(hinted) if place > 0]
    if 2 * len(places) > trials - 1:
        return False
    earned = failed = 0.0
    for place in range(1, len(costs)):
        before = costs[:place][np.isfinite(costs[:place])]
        improves = costs[place] < min(before, default=np.inf) - _PAYS * (before.std() if len(before) else 0.0)
        if not hinted[place]:
            # The search does better without hints, so they lose the trust that they had earned.
            earned = 0.0 if improves else earned
        elif improves:
            earned = min(_MOST_TRUST, earned + 1.0)
        elif earned >= 1.0:
            earned -= 1.0
        else:
            failed += 1.0
    return earned + trials / PATIENCE >= failed
