"""Preview the first proposals of a study, without a storage."""

from dataclasses import dataclass

import optuna

from autotune.search.base import SpaceExhaustedError
from autotune.search.registry import sampler_of
from autotune.search.suggest import ask
from autotune.studyfile import SamplerSection
from spaces import Configuration, Space


@dataclass(frozen=True)
class Preview:
    """The first proposals of a study.

    Attributes:
        proposals: The configurations.
        whole: Whether the study will have no others.
    """

    proposals: tuple[Configuration, ...]
    whole: bool


def preview(space: Space, settings: SamplerSection, trials: int) -> Preview:
    """Return the proposals of a study with `trials` trials that do not depend on measurements.

    Raises:
        StudyFileError: the sampler is not available, or not for this space.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = sampler_of(space, settings)
    study = optuna.create_study(sampler=sampler)
    count = trials if sampler.startup_trials is None else min(trials, sampler.startup_trials + 1)
    proposals: list[Configuration] = []
    for _ in range(count):
        try:
            proposals.append(dict(ask(study, space).params))
        except SpaceExhaustedError:
            return Preview(tuple(proposals), whole=True)
    return Preview(tuple(proposals), whole=count == trials)
