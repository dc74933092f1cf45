import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import AutotuneError, ExitCode, NothingWorkedError
from autotune.records.outcome import Outcome
from autotune.results.pareto import ParetoFront, ParetoPoint
from autotune.results.preference import Preference, parse_weights
from autotune.results.summary import summary_of
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from objectives.base import Metric
from tests.support.command_line import invoke
from tests.support.fakes import SECONDS, definition, small_space, study_file
from tests.support.stored import add_trial

MEMORY, RATE = Metric("memory", "B"), Metric("rate", "1/s", "maximize")
METRICS = (SECONDS, MEMORY, RATE)
# A concave front: no weighted sum has its minimum at the middle point.
HOLLOW = ParetoFront((SECONDS, MEMORY), tuple(map(ParetoPoint, (4, 7, 9), ((1.0, 9e9), (6.0, 6e9), (9.0, 1e9)))))


def chosen(front, weights):
    return Preference.of(front, parse_weights(weights, front))


@pytest.mark.parametrize(("weights", "trial"), [("wall_s=1", 4), ("memory=3", 9), ("wall_s=1,memory=1", 7)])
def test_weights_choose_ends_and_hollows_whatever_the_units(weights, trial):
    assert chosen(HOLLOW, weights).point.trial == trial


def test_weights_are_shares():
    front = ParetoFront(METRICS, ())
    assert parse_weights("rate=3, wall_s=1", front) == (0.25, 0.0, 0.75)


def test_a_metric_that_is_maximised_is_better_when_greater():
    front = ParetoFront((SECONDS, RATE), (ParetoPoint(0, (1.0, 5.0)), ParetoPoint(1, (2.0, 9.0))))
    assert chosen(front, "rate=1").point.trial == 1


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=8))
def test_of_equals_without_weight_the_others_decide(rows):
    points = tuple(ParetoPoint(number, (1.0, *map(float, row))) for number, row in enumerate(rows))
    point = chosen(ParetoFront(METRICS, points), "wall_s=1").point
    assert not any(a <= point.values[1] and b >= point.values[2] and (a, b) != point.values[1:] for a, b in rows)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ("memry=1", "did you mean 'memory'.*it has wall_s, memory"),
        ("memory=-1", "the weight of memory must be a number of at least 0, got '-1'"),
        ("memory=nan", "got 'nan'"),
        ("memory=much", "got 'much'"),
        ("memory", "write --weights wall_s=1,memory=1"),
        ("memory=1,memory=2", "states memory twice"),
        ("memory=0", "all weights are 0"),
    ],
)
def test_wrong_weights_are_errors(weights, words):
    with pytest.raises(AutotuneError, match=words) as told:
        chosen(HOLLOW, weights)
    assert told.value.exit_code is ExitCode.USAGE


def test_there_is_nothing_to_choose_without_a_trade_off_or_without_points():
    known, nothing = definition(small_space(), metrics=METRICS), Standings({}, METRICS[0])
    with pytest.raises(AutotuneError, match="leave --weights out"):
        summary_of("paper", known, nothing).weighted("memory=1")
    traded = replace(known, study={"tradeoff": {"metric": ["memory", "rate"]}})
    with pytest.raises(NothingWorkedError, match="a value of each of wall_s, memory and rate"):
        summary_of("paper", traded, nothing).weighted("memory=1")


def test_best_gives_the_point_and_a_script_asks_for_weights(tmp_path):
    space, study = small_space(), study_file(tradeoff={"metric": ["memory", "rate"]})
    known = definition(space, metrics=METRICS, study=study.model_dump(mode="json"))
    address = f"sqlite:///{tmp_path / 'autotune.db'}"
    store = StudyStore.create(address, "paper", known)
    places = [(8, 8.0, 9.0, 1.0), (4, 2.0, 8.0, 2.0), (2, 3.0, 3.0, 3.0), (1, 9.0, 2.0, 4.0)]
    for ranks, seconds, size, rate in places:
        outcome = Outcome(metrics={"wall_s": seconds, "memory": size, "rate": rate})
        add_trial(store, space, {"np": ranks}, outcome, worth=Observation(value=seconds))

    def best(*words):
        return invoke("best", "paper", "--storage", address, *words)

    text = best("--weights", "wall_s=1,memory=1").stdout
    assert "trial 2: wall_s 3 s, memory 3 B, rate 3 1/s" in text
    assert "default: np=8  wall_s 8 s, memory 9 B, rate 1 1/s" in text
    told = json.loads(best("--json", "--weights", "rate=1").stdout)
    assert (told["best"]["trial"], told["weights"]) == (3, {"wall_s": 0.0, "memory": 0.0, "rate": 1.0})
    assert [point["trial"] for point in told["front"]] == [1, 2, 3]
    refused = best("--script", "sh")
    assert isinstance(refused.exception, AutotuneError)
    assert "--weights wall_s=1,memory=1,rate=1" in str(refused.exception)
