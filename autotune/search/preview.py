"""What a study would try first, without a storage."""

import optuna

from autotune.search.sampler import SpaceExhaustedError, ValidSetSampler
from autotune.search.store import ask
from autotune.studyfile import SamplerSection
from spaces import Configuration, Space


def preview(space: Space, settings: SamplerSection, count: int) -> list[Configuration]:
    """Return the first `count` proposals, as far as they do not depend on measurements."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = ValidSetSampler(space, seed=settings.seed, startup=settings.startup)
    study = optuna.create_study(sampler=sampler)
    proposals: list[Configuration] = []
    for _ in range(count):
        try:
            proposals.append(dict(ask(study, space).params))
        except SpaceExhaustedError:
            break
    return proposals
