"""Summaries of made-up studies, for tests of pictures."""

from dataclasses import replace

from autotune.records.outcome import Outcome
from autotune.records.study import Run, TrialRecord
from autotune.results.ledger import ledger_of
from autotune.results.summary import summary_of
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.study_store import StudyStore
from launchers import Usage
from objectives.base import CURVE, FailureKind, Metric
from spaces import Choice, Flag, Float, Integer, Space
from tests.support.fakes import SECONDS, capped, definition, failed, took
from tests.support.simulated import SimulatedExecutor, simulated_study

HOSTILE = "</svg><script>alert('$x^{')</script> & \"quoted\" $a_b$ | *bold* `code`\x00"
SCORE = Metric("score", "", "maximize")
MIXED = Space(
    [
        Integer.range("np", 1, 16, default=16),
        Choice("blas", ("slow", "fast"), optional=True),
        Float("rate", 1e-4, 1e-1, log=True, default=1e-4),
        Flag("bind", default=False),
        Integer("alone", (7,), default=7),
    ]
)


def configuration(number):
    """Return one of many configurations of `MIXED`."""
    rates = MIXED.parameters[2].values
    found = {"np": 1 + number % 16, "rate": rates[number * 7 % len(rates)], "bind": number % 3 == 0, "alone": 7}
    return found | ({"blas": ("slow", "fast")[number % 2]} if number % 5 else {})


def trial(number, *outcomes, settled=True, **values):
    """Return a trial of `MIXED`, or with the configuration `values`."""
    mine = values or configuration(number)
    runs = tuple(Run(mine, number, outcome=outcome, job={"resources": {"cores": 2}}, block=0) for outcome in outcomes)
    return TrialRecord(number, mine, runs, settled=settled)


def legged(number, curve, of=9, **details):
    """Return a trial that was trained for the steps of its curve."""
    outcome = Outcome(
        metrics={"score": max(curve)}, details={CURVE: [[k, v] for k, v in enumerate(curve, 1)], **details}
    )
    run = Run(configuration(number), number, outcome=replace(outcome, usage=Usage(1.0)), steps=len(curve), of=of)
    return TrialRecord(number, run.configuration, (run,), settled=True)


def summary(*trials, metric=SECONDS, further=(), verdict=None, space=MIXED, **changes):
    """Return the summary of a study of these trials; `further` has more metrics."""
    standings = Standings.of(trials, metric, verdict=verdict)
    about = definition(space, metrics=(metric, *further), **changes)
    found = summary_of("paper", about, standings)
    winner = found.best.number if found.best else None
    return replace(found, ledger=ledger_of([run for one in trials for run in one.runs], trials, winner, 5))


def varied(verdict=None):
    """Return a study with trials of every kind."""
    kinds = [FailureKind.INVALID_RESULT, FailureKind.OUT_OF_MEMORY, FailureKind.APPLICATION_ERROR]
    trials = [trial(0, took(4.0), took(4.1), took(3.9))]
    trials += [trial(number, took(3.0 + number % 7)) for number in range(1, 12)]
    trials += [trial(12, took(2.0), took(2.1)), trial(13, capped(2.5)), trial(14, capped(3.5))]
    trials += [trial(15 + place, failed(kind, HOSTILE)) for place, kind in enumerate(kinds)]
    return summary(*trials, verdict=verdict)


CONFIRMED = Verdict(12, (12,), 2, 0.95, 0.05, tuple((4.0 + 0.01 * k, 2.0) for k in range(8)))


def small_study(trials=14) -> StudyStore:
    """Return a small simulated study: the real runner and the real confirmation."""
    space = Space([Integer.range("np", 1, 8, default=8), Choice("blas", ("slow", "fast"), optional=True)])

    def seconds(of, rng):
        if of["np"] == 7:
            return failed(FailureKind.OUT_OF_MEMORY, "no room left")
        middle = 1.0 + 0.25 * abs(of["np"] - 4) - 0.3 * (of.get("blas") == "fast")
        return middle * float(1.0 + 0.01 * rng.standard_normal())

    return simulated_study(space, SimulatedExecutor(seconds, 0), trials=trials, seed=0, sampler="random")[0]
