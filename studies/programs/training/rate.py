"""The learning rate: scaling with the batch, and gradual warm-up.

Linear scaling and the warm-up: Goyal et al. 2017, arXiv:1706.02677, sections 2.1 and 2.2. By the square root:
Krizhevsky 2014, arXiv:1404.5997, section 5.
"""

import math

SCALINGS = ("linear", "square-root", "constant")


def scale_of(scaling: str, times: float) -> float:
    """Return the factor of the base rate for a batch that is `times` as large as the reference."""
    return {"linear": times, "square-root": math.sqrt(times), "constant": 1.0}[scaling]


def times_larger(batch: int, ranks: int, samples: int) -> float:
    """Return the ratio of the batch of all ranks to that of one rank, with at most all samples in a batch."""
    # A batch has no more than all samples. If one rank already has them all, more ranks do not make it larger.
    return min(batch * ranks, samples) / min(batch, samples)


def learning_rate(step: int, *, base: float, scale: float, warm_up_steps: int) -> float:
    """Return the rate of a step (the first is 0).

    `base` is the rate of the reference batch. The rate grows linearly from `base` to `base * scale` at step
    `warm_up_steps`, and stays.
    """
    share = 1.0 if step >= warm_up_steps else step / warm_up_steps
    return base * (1.0 - share + scale * share)
