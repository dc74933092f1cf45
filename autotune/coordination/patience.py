"""Patience: how much time a session loses to others before it gives up, by what it takes on a quiet machine."""

from dataclasses import dataclass, field
from statistics import median

from autotune.coordination.neighbours import NEVER_QUIET
from autotune.display.console import duration
from autotune.errors import CannotRunHereError
from autotune.studyfile import StudyFile

# A short study may wait for a minute, too.
_LEAST_S = 60.0


def expected_runs(study: StudyFile) -> int:
    """Return how many runs a study needs where nobody disturbs them: each trial one, and a short verdict."""
    verdict = study.verdict
    return study.budget.most + verdict.rounds * (verdict.candidates + 1) + 2 * verdict.pairs


@dataclass
class Patience:
    """What a session may lose to others: `times` what its `runs` take on a quiet machine, less these, or a minute.

    `lost_s` is what others took from runs, what runs took that do not count, and what was waited.
    """

    runs: int
    times: float
    lost_s: float = field(default=0.0, init=False)
    _quiet_s: list[float] = field(default_factory=list, init=False)

    def ran(self, elapsed_s: float, taken: float) -> None:
        """Take note of how long a run took, and of the share of it that others took."""
        self._quiet_s.append(quiet(elapsed_s, taken))

    def lose(self, seconds: float) -> None:
        """Take note of time that was lost."""
        self.lost_s += seconds

    @property
    def left_s(self) -> float:
        """How much may still be lost."""
        whole_s = self.runs * median(self._quiet_s) if self._quiet_s else 0.0
        return max((self.times - 1.0) * whole_s, _LEAST_S) - self.lost_s

    def check(self) -> None:
        """Refuse to go on when it is over.

        Raises:
            CannotRunHereError: too much was lost.
        """
        if self.left_s > 0.0:
            return
        msg = (
            f"this machine was never quiet: others have cost this session {duration(self.lost_s)}, and the study "
            f"would take more than {self.times:g} times as long as on a quiet machine"
        )
        raise CannotRunHereError(f"{msg}\n{NEVER_QUIET}, then use the same command again")


def quiet(elapsed_s: float, taken: float) -> float:
    """Return how long a run would have taken if others had not taken a share of its time; ranks may have lost more."""
    return elapsed_s * (1.0 - taken)
