"""Intervals for many comparisons at once, when only those that look better will be acted on.

Of a hundred cells without any difference, a few look better by chance. Benjamini and Hochberg ("Controlling the false
discovery rate", 1995) say how many of the best to believe, and the intervals of the believed ones are widened so that
their expected share that misses the truth is at most one minus the confidence (Benjamini & Yekutieli, "False discovery
rate-adjusted multiple confidence intervals for selected parameters", 2005). Cells of one run depend on each other
positively, which both allow.
"""

from collections.abc import Sequence

from autotune.statistics import signed_rank


def intervals(samples: Sequence[Sequence[float]], confidence: float) -> list[tuple[float, float, float] | None]:
    """Return the pseudomedian of each sample of differences and the ends of its interval.

    A sample counts as better than 0 if its lower end is above 0. A sample too small for this confidence has None.
    """
    believed = len(samples)
    while True:
        level = 1.0 - (1.0 - confidence) * max(believed, 1) / max(len(samples), 1)
        found = [
            signed_rank.interval(sample, level) if len(sample) >= signed_rank.least_pairs(level) else None
            for sample in samples
        ]
        better = sum(each is not None and each[1] > 0.0 for each in found)
        if better >= believed or believed <= 1:
            return found
        believed = max(better, 1)
