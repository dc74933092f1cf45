"""The geometric mean of ratios that were measured apart, with an interval that follows from theirs.

The logarithm of the mean is the mean of their logarithms. Its variance is the sum of theirs (the delta method), and how
much each varies is taken from the ends of its own interval, below and above apart: the method of variance estimates
recovery (Zou & Donner, Statistics in Medicine 27, 2008; Zou, Huang & Zhang, Computational Statistics & Data Analysis
53, 2009). So nothing is assumed about the noise beyond what the intervals assume, and a mean of one ratio has its
interval. Each interval is wide where few runs tell its noise; together they tell it better, which the method does not
use: the interval is rather too wide.
"""

from collections.abc import Sequence
from math import exp, log, sqrt

from autotune.statistics.ratio_words import Interval


def geometric_mean(ratios: Sequence[Interval]) -> Interval:
    """Return the geometric mean of ratios above 0, and the ends of its interval.

    The ratios must have been measured independently, and their intervals be of one confidence, which is the mean's.

    Raises:
        ValueError: there are no ratios.
    """
    if not ratios:
        msg = "no ratio, no mean"
        raise ValueError(msg)
    share = 1.0 / len(ratios)
    middle = below = above = 0.0
    for ratio, low, high in ratios:
        middle += share * log(ratio)
        below += (share * log(ratio / low)) ** 2
        above += (share * log(high / ratio)) ** 2
    return exp(middle), exp(middle - sqrt(below)), exp(middle + sqrt(above))
