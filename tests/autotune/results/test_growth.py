from dataclasses import replace

import pytest

from autotune.pictures.tradeoff import front_growth
from autotune.records.outcome import Outcome
from autotune.records.study import Run, TrialRecord
from autotune.results.summary import summary_of
from autotune.statistics.standings import Standings
from launchers import Usage
from objectives.base import FailureKind, Metric
from tests.support.fakes import SECONDS, definition, failed, small_space

RATE = Metric("rate", "1/s", "maximize")


def grown(*outcomes, metrics=(SECONDS, RATE), core_s=2.0):
    usage = Usage(elapsed_s=core_s)
    trials = [
        TrialRecord(number, {"np": number + 1}, (Run({}, number, outcome=replace(one, usage=usage)),), settled=True)
        for number, one in enumerate(outcomes)
    ]
    study = {"tradeoff": {"metric": [metric.name for metric in metrics[1:]]}}
    known = replace(definition(small_space(), metrics=metrics), study=study)
    return summary_of("paper", known, Standings.of(trials, SECONDS))


def measured(seconds, rate):
    return Outcome(metrics={"wall_s": seconds, "rate": rate})


def test_a_front_grows_to_its_whole_and_what_is_worse_adds_nothing():
    # Its ends are (1, 10) and (3, 20): (0, 1) and (1, 0) of the front, with the reference point (1.1, 1.1).
    ends = measured(1.0, 10.0), measured(3.0, 20.0)
    found = grown(measured(9.0, 9.0), ends[0], failed(FailureKind.INVALID_RESULT), measured(2.0, 10.0), ends[1])
    growth = found.growth
    whole = 1.1 * 0.1 + 0.1 * 1.0
    assert growth.shares == pytest.approx((0.0, 1.1 * 0.1 / whole, 1.1 * 0.1 / whole, 1.1 * 0.1 / whole, 1.0))
    assert growth.trials == (0, 1, 2, 3, 4)
    assert "the front: 90% of its hypervolume was there after 5 of 5 trials" in found.text()
    assert found.to_dict()["hypervolume"]["growth"][-1]["share"] == 1.0


def test_a_front_of_one_point_is_whole_from_there_on():
    assert grown(measured(9.0, 1.0), measured(1.0, 10.0), measured(2.0, 9.0)).growth.shares == (0.0, 1.0, 1.0)


def test_the_growth_is_drawn_over_trials_and_over_core_seconds():
    found = grown(measured(3.0, 10.0), measured(3.0, 30.0), measured(1.0, 10.0))
    chart = front_growth(found)
    assert [panel.x.text for panel in chart.panels] == ["trial", "tuning [core-s]"]
    assert [row[0] for row in chart.table.rows] == [0, 1, 2]
    assert front_growth(grown(failed(FailureKind.INVALID_RESULT))) is None


def test_runs_that_cost_nothing_here_have_no_budget_of_core_seconds():
    found = grown(measured(3.0, 10.0), measured(1.0, 30.0), core_s=0.0)
    assert [panel.x.text for panel in front_growth(found).panels] == ["trial"]
    assert "core-seconds" not in found.growth.sentence()
