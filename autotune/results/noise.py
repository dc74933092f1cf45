"""The noise of a study: how much runs of one configuration differ, and how far the machine drifted."""

from math import expm1

from autotune.statistics.standings import Standings


def noise_sentence(standings: Standings) -> str:
    """Return the noise and the drift in words; empty before any configuration has run twice."""
    if all(len(trial.runs) < 2 for trial in standings.trials.values()):
        return ""
    span = drift_span(standings)
    drifted = f"; the machine drifted by {span:.0%} during the study; comparisons are within periods of time"
    effects = standings.effects
    apart = f"; nodes differ by {expm1(effects.between_nodes):.1%}" if effects.spread.nodes_differ else ""
    return f"runs of the same configuration differ by {standings.noise:.1%}{apart}{drifted if span else ''}"


def drift_span(standings: Standings) -> float:
    """Return the drift of the machine between its best and its worst block, as a share; 0 without drift."""
    offsets = standings.effects.offsets.values()
    return expm1(max(offsets) - min(offsets)) if standings.effects.drifts and offsets else 0.0
