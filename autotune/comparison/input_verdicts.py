"""The verdict on each input of a mix, from the same pairs of runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from autotune.statistics.ratio_words import Interval
from autotune.statistics.verdict import Verdict, known_interval
from autotune.studyfile.definition import MixedInput


@dataclass(frozen=True)
class InputVerdict:
    """How many times better the winner is than the default on one input.

    Attributes:
        name: The name of the input.
        share: Its share of the weights.
        interval: The ratio and the ends of its interval, for this input alone.
    """

    name: str
    share: float
    interval: Interval

    @property
    def loses(self) -> bool:
        """Whether the winner is worse than the default on this input, beyond the noise."""
        return self.interval[2] < 1.0

    def to_dict(self) -> dict[str, float | bool]:
        """Return the JSON-able form."""
        middle, low, high = self.interval
        return {"share": self.share, "speed_up": middle, "low": low, "high": high, "loses": self.loses}

    def __str__(self) -> str:
        """Return the words, such as `small 1.503 (1.452 to 1.551)`."""
        middle, low, high = self.interval
        return f"{self.name} {middle:.3f} ({low:.3f} to {high:.3f})"


def input_verdicts(verdict: Verdict, inputs: Sequence[MixedInput]) -> tuple[InputVerdict, ...]:
    """Return the verdict on each input that has enough pairs; empty for a study of one input."""
    known = (
        (one, known_interval(verdict.inputs.get(one.name, ()), one.target, verdict.confidence, verdict.unknown))
        for one in inputs
    )
    return tuple(InputVerdict(one.name, one.share, interval) for one, interval in known if interval is not None)


def input_lines(verdicts: Sequence[InputVerdict]) -> list[str]:
    """Return a line with the speed-up on each input, and a warning if the winner loses on some."""
    if not verdicts:
        return []
    worse = ", ".join(one.name for one in verdicts if one.loses)
    warning = [f"warning: the winner loses on {worse}: there the default is better"] if worse else []
    return [f"on each input: {', '.join(map(str, verdicts))}", *warning]
