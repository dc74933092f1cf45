"""Speed-up: how many times better a trial is than the default, as a number and in words, for every place that shows it.

The verdict gives a trial's speed-up. Before the verdict, the runs of tuning give an estimate, and the text says
"looks": the best of many noisy runs looks better than it is.
"""

from dataclasses import dataclass

from autotune.statistics.ratio_words import ends, times
from objectives.base import Metric


@dataclass(frozen=True)
class SpeedUp:
    """How many times better a trial is than the default, above 1 for any metric if it is better.

    `interval` has the ends of the verdict's interval; None before the verdict.
    """

    ratio: float
    interval: tuple[float, float] | None = None

    @property
    def confirmed(self) -> bool:
        """Whether the ratio is that of a verdict."""
        return self.interval is not None

    def text(self) -> str:
        """Return the short form: `1.832x (1.657 to 2.025)`, `looks 1.83x`."""
        if self.interval is None:
            return f"looks {self.ratio:.3g}x"
        low, high = self.interval
        return "1x" if self == OF_THE_DEFAULT else f"{self.ratio:.3f}x ({low:.3f} to {high:.3f})"

    def words(self, metric: Metric) -> str:
        """Return the end of a sentence about the trial: `looks 1.83 times as fast as the default`."""
        if self.interval is None:
            return f"looks {times(self.ratio, metric)} the default"
        return f"{times(self.ratio, metric, '.3f')} the default ({ends((self.ratio, *self.interval), metric)})"

    def to_dict(self) -> dict[str, object]:
        """Return the JSON-able form."""
        low, high = self.interval or (None, None)
        return {"ratio": self.ratio, "low": low, "high": high, "confirmed": self.confirmed}


OF_THE_DEFAULT = SpeedUp(1.0, (1.0, 1.0))
"""The default compared with itself."""
