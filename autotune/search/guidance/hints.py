"""Hints: configurations from outside the search. What is measured decides how many of them are tried.

The first hint is tried right after the default. Each one that improves on the best value pays for another; each that
does not costs the trust that a paying one has earned, and so does what the search finds by itself. Without trust, hints
are tried again when the study has grown enough that another that fails takes less than a twentieth of its trials. Hints
are at most every second trial, so that they are compared with what the search finds by itself. Where they were better
than that, the search looks where configurations are like them (`hint_prior`), and they are not tried one by one. So who
knows the program leads the search, and who knows nothing hardly slows it.
"""

import secrets
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from autotune.records.hint import Hint
from autotune.storage.readable import HINT
from autotune.storage.study_store import StudyStore
from spaces import Configuration

PATIENCE = 20
"""One hint that does not pay may be tried for this number of trials."""

# Who improves on the best value by less than this share of the values' standard deviation has not improved it: many
# small steps would hold the search up.
_PAYS = 0.1
# What paying hints earn is kept up to that: a past that was good pays for no more.
_MOST_TRUST = 2.0


def hints_of(store: StudyStore) -> list[Hint]:
    """Return the hints that a study was given, the first given first."""
    with store.as_optuna() as study:
        attributes = store.patiently(lambda: study.user_attrs)
    return [Hint.from_dict(attributes[name]) for name in sorted(attributes) if name.startswith(HINT)]


def give_hint(store: StudyStore, configuration: Configuration, by: str, why: str = "") -> Hint:
    """Store a hint, which must be a valid configuration."""
    hint = Hint(dict(configuration), by, datetime.now(UTC).isoformat(), why)
    store.set_attribute(f"{HINT}{hint.given} {secrets.token_hex(4)}", hint.to_dict())
    return hint


def may_try(hinted: NDArray[np.bool_], costs: NDArray[np.float64], trials: int) -> bool:
    """Whether another hint may be tried, after `trials` trials.

    `hinted`, (n,), tells which trials were hints, in their order, the default first, and `costs`, (n,), are their
    values to minimise: +inf for a failed one, one that breaks a limit, and one that has not ended.
    """
    places = [int(place) for place in np.flatnonzero(hinted) if place > 0]
    if 2 * len(places) > trials - 1:
        return False
    earned = failed = 0.0
    for place in range(1, len(costs)):
        before = costs[:place][np.isfinite(costs[:place])]
        improves = costs[place] < min(before, default=np.inf) - _PAYS * (before.std() if len(before) else 0.0)
        if not hinted[place]:
            # The search does better without them: what they had earned is lost.
            earned = 0.0 if improves else earned
        elif improves:
            earned = min(_MOST_TRUST, earned + 1.0)
        elif earned >= 1.0:
            earned -= 1.0
        else:
            failed += 1.0
    return earned + trials / PATIENCE >= failed
