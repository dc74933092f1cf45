"""How far the trials of a program that works in steps were trained, in words."""

from collections import Counter
from collections.abc import Iterable

from autotune.records.study import State, TrialRecord


def trained_text(steps: tuple[int, int], trials: Iterable[TrialRecord]) -> str:
    """Say how many steps were made of those of training every trial to its end, and where trials were left."""
    made, whole = steps
    rungs = Counter(trial.runs[-1].steps for trial in trials if trial.state is State.PAUSED)
    left = ", ".join(f"{count} at step {steps}" for steps, count in sorted(rungs.items(), key=str)) or "none"
    share = f"{made / whole:.0%} of " if whole else ""
    return f"trained: {made} steps, {share}the {whole} of training every trial to its end; left early: {left}"
