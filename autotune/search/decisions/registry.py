"""The sampler of a study, which looks for a single winner or for a decision table."""

from collections.abc import Callable
from math import prod

from autotune.errors import StudyFileError
from autotune.search.base import Proposer
from autotune.search.decisions.grid import MOST_CONTEXTS
from autotune.search.decisions.weights import Usage
from autotune.search.registry import sampler_of
from autotune.studyfile import OWN_SAMPLER, StudyFile
from spaces import Space
from spaces.parameters.problem import Problem


def sampler_of_study(space: Space, study: StudyFile, waiting: Callable[[], int] = lambda: 0) -> Proposer:
    """Return the sampler of a study for its `space`; `waiting` is as for `sampler_of`.

    Raises:
        StudyFileError: the sampler is unknown, its options are wrong, or it cannot search this space.
        CannotRunHereError: a package that it needs is not installed, or cannot be fetched.
    """
    settings, over = study.sampler, study.contexts
    if settings.name != OWN_SAMPLER or not over:
        return sampler_of(space, settings, waiting)
    count = prod(len(parameter.values) for parameter in space.parameters if parameter.name in over)
    if count > MOST_CONTEXTS:
        msg = f"{' x '.join(over)} has {count} contexts, more than {MOST_CONTEXTS}: give those parameters fewer values"
        raise StudyFileError(Problem(msg, "decisions.over"))
    from autotune.search.decisions.sampler import DecisionSampler  # noqa: PLC0415  few studies make tables

    section = study.decisions
    usage = Usage(()) if section is None else Usage(tuple(section.rows), section.points)
    return DecisionSampler(space, over, seed=settings.seed, startup=settings.startup, usage=usage)
