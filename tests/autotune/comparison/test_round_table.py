"""The runs of a comparison: pairs are compared without what others took from them."""

from dataclasses import replace

import numpy as np
import pytest

from autotune.comparison.round_table import RoundTable, Side
from autotune.records.outcome import Outcome
from autotune.records.series import Series
from autotune.records.study import Run
from autotune.statistics.verdict import ratio_interval
from objectives.base import Metric
from tests.support.fakes import SECONDS

SIDES = (Side("default", {"np": 8}, 0), Side("trial 1", {"np": 4}, 1))


def table(rows, metric=SECONDS):
    """Return the table of rounds with (value, share that others took) of each side."""
    runs = {
        (number, side): Run(
            SIDES[side].configuration,
            side,
            Series.verdict(1),
            number,
            outcome=Outcome({metric.name: value}, conditions={"taken_share": taken}),
        )
        for number, row in enumerate(rows)
        for side, (value, taken) in enumerate(row)
    }
    return RoundTable(SIDES, runs, metric)


def rows(effect, most, rng, ratio=2.0, sign=1):
    """Return eight rounds in which others take up to `most` of the time, which costs values the power `effect`."""
    taken = rng.uniform(0.0, most, (8, 2))
    values = np.array([ratio, 1.0]) * np.exp(0.01 * rng.standard_normal((8, 2))) * (1.0 - taken) ** (-effect * sign)
    return [list(zip(row, shares, strict=True)) for row, shares in zip(values.tolist(), taken.tolist(), strict=True)]


@pytest.mark.parametrize("effect", [0.0, 1.0, 1.6])
@pytest.mark.parametrize(
    ("metric", "sign"), [(SECONDS, 1), (Metric("rate", "GB/s", direction="maximize", kind="rate"), -1)]
)
def test_pairs_that_others_disturb_give_the_ratio_of_a_quiet_machine(metric, sign, effect):
    made = table(rows(effect, 0.6, np.random.default_rng(1), sign=sign), metric)
    ratio, low, high = ratio_interval(made.pairs(0, 1), metric, 0.95)
    true = 2.0**sign
    assert low * 0.98 < true < high * 1.02
    assert high / low < 1.12
    assert ratio == pytest.approx(true, rel=0.03)
    assert made.values(0)[0] != made.undisturbed(0)[0] or effect == 0.0


def test_pairs_of_a_quiet_machine_are_as_measured():
    made = table(rows(1.0, 0.04, np.random.default_rng(2)))
    assert made.pairs(0, 1) == [(made.values(0)[number], made.values(1)[number]) for number in range(8)]


def test_load_does_not_change_the_quality_of_a_result():
    given = rows(0.0, 0.6, np.random.default_rng(3))
    made = table(given, Metric("loss", ""))
    assert made.pairs(0, 1) == [(first[0], second[0]) for first, second in given]


def test_a_run_of_which_nobody_knows_what_others_took_counts_as_measured():
    made = table(rows(1.0, 0.6, np.random.default_rng(4)))
    unknown = replace(made.runs[0, 0], outcome=Outcome({SECONDS.name: 5.0}))
    assert replace(made, runs={**made.runs, (0, 0): unknown}).pairs(0, 1)[0][0] == pytest.approx(5.0)


def wide(made, cores):
    """Return the table with runs that hold `cores` of each side."""
    runs = {place: replace(run, job={"resources": {"cores": cores[place[1]]}}) for place, run in made.runs.items()}
    return replace(made, runs=runs)


def steady(shares, effects, ratio=2.0):
    """Return rounds in which others take a nearly steady share from each side, which costs the power `effects`."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(8):
        taken = [share + 0.01 * rng.standard_normal() for share in shares]
        costs = [
            value * np.exp(0.02 * rng.standard_normal()) * (1.0 - share) ** -effect
            for value, share, effect in zip((ratio, 1.0), taken, effects, strict=True)
        ]
        found.append(list(zip(costs, taken, strict=True)))
    return found


def test_the_interval_includes_that_runs_with_more_cores_suffer_more():
    made = table(steady((0.35, 0.65), (1.0, 2.0)))
    _, low, high = wide(made, (1, 2)).ratio(0, 1, 0.95)
    assert low < 2.0 < high
    assert high / low > 2.0


def test_alike_sides_that_suffer_alike_have_a_narrow_interval():
    made = wide(table(steady((0.6, 0.6), (1.0, 1.0))), (1, 1))
    _, low, high = made.ratio(0, 1, 0.95)
    assert low < 2.0 < high < 1.1 * low


def test_on_a_quiet_machine_nothing_is_unknown():
    assert wide(table(rows(1.0, 0.04, np.random.default_rng(2))), (1, 2)).unknown(0, 1) == 0.0
