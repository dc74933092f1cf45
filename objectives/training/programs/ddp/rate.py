"""The learning rate: linear scaling with gradual warm-up.

Goyal et al. 2017, arXiv:1706.02677, sections 2.1 and 2.2.
"""


def learning_rate(step: int, *, base: float, scale: float, warm_up_steps: int) -> float:
    """Return the rate of a step (the first is 0).

    `base` is the rate of the reference batch and `scale` how many times as large the batch is. The rate starts at
    `base`, and is `base * scale` from step `warm_up_steps` on.
    """
    share = 1.0 if step >= warm_up_steps else step / warm_up_steps
    return base * (1.0 - share + scale * share)
