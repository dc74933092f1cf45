"""The learning rate: scaling with the batch, and gradual warm-up.

Linear scaling and the warm-up: Goyal et al. 2017, arXiv:1706.02677, sections 2.1 and 2.2. By the square root:
Krizhevsky 2014, arXiv:1404.5997, section 5.
"""

import math

SCALINGS = ("linear", "square-root", "constant")


def scale_of(scaling: str, times: float) -> float:
    """Return how many times the base rate a batch gets that is so many `times` as large as the reference."""
    return {"linear": times, "square-root": math.sqrt(times), "constant": 1.0}[scaling]


def times_larger(batch: int, ranks: int, samples: int) -> float:
    """Return how many times as large as one rank's batch that of all ranks is, where there are so many samples."""
    # No batch has more than there is: ranks that together see no more than one does learn at its rate.
    return min(batch * ranks, samples) / min(batch, samples)


def learning_rate(step: int, *, base: float, scale: float, warm_up_steps: int) -> float:
    """Return the rate of a step (the first is 0).

    `base` is the rate of the reference batch, and `scale` how many times that the rate is to be. The rate starts at
    `base`, and is `base * scale` from step `warm_up_steps` on.
    """
    share = 1.0 if step >= warm_up_steps else step / warm_up_steps
    return base * (1.0 - share + scale * share)
