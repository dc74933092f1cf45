"""Studies that go on after their end: more trials, fresh comparisons, another one like it, and what it would cost."""

from pathlib import Path

import pytest

from autotune.durations import parse_duration_s
from autotune.errors import AutotuneError
from autotune.records.outcome import Outcome
from autotune.service.models.orders import Comparison, NewStudy
from autotune.service.ordering import free_name, order_like
from autotune.service.problems import ProblemError
from autotune.service.summaries import preferred_point
from autotune.storage.observation import Observation
from autotune.storage.readable_study import VERDICT
from autotune.storage.study_store import StudyStore
from autotune.supervision import DesiredState, Order, StateName, StudyState, Task
from launchers import Usage
from objectives.base import FailureKind, Metric
from spaces import Integer, Space
from tests.autotune.results.test_summary import verdict_on
from tests.autotune.service.test_studies import catalogue, studies  # noqa: F401  fixtures
from tests.support.fakes import SECONDS, definition, failed, small_space, took
from tests.support.stored import add_trial


def new(**fields):
    return NewStudy.model_validate(fields)


def stored(sqlite, name, *outcomes, study="sleepy", trials=6, space=None):
    made_of = {"name": study, "budget": {"trials": trials}}
    space = space or small_space()
    store = StudyStore.create(sqlite, name, definition(space, study=made_of))
    for configuration, outcome in zip(space.configurations(), outcomes, strict=False):
        worth = Observation(value=outcome.metrics["wall_s"]) if outcome.complete else Observation()
        add_trial(store, space, configuration, outcome, worth=worth)


@pytest.fixture
def ordered(studies, monkeypatch):  # noqa: F811
    """What the supervisor was asked to do; nothing is started."""
    orders = []
    monkeypatch.setattr(studies._supervisor, "submit", orders.append)
    return orders


def test_more_trials_come_on_top_of_those_that_there_are(studies, sqlite, ordered):  # noqa: F811
    stored(sqlite, "mine", took(3.0), took(2.0))
    studies.extend("mine", 5, "ada")
    (order,) = ordered
    assert (order.name, order.study, order.trials, order.task, order.by) == ("mine", "sleepy", 7, Task.TUNE, "ada")


def test_more_trials_compare_a_study_that_has_a_verdict_again(studies, sqlite, ordered):  # noqa: F811
    stored(sqlite, "mine", took(3.0), took(2.0))
    StudyStore.read(sqlite, "mine", read_only=False).set_attribute(VERDICT, verdict_on(1, *[(3.0, 2.0)] * 8).to_dict())
    studies.extend("mine", 5, "ada")
    assert [(order.trials, order.pairs) for order in ordered] == [(7, 8 + 3)], "the study file asks for 3"


def test_weights_choose_a_point_of_a_front_and_stay_with_the_study(studies, sqlite, ordered):  # noqa: F811
    made_of = {"name": "sleepy", "tradeoff": {"metric": ["memory"]}}
    space = small_space()
    metrics = (SECONDS, Metric("memory", "B"))
    store = StudyStore.create(sqlite, "both", definition(space, study=made_of, metrics=metrics))
    for configuration, wall_s, memory in zip(space.configurations(), (3.0, 2.0, 1.0), (1e9, 2e9, 4e9), strict=False):
        outcome = Outcome({"wall_s": wall_s, "memory": memory}, usage=Usage(elapsed_s=wall_s))
        add_trial(store, space, configuration, outcome, worth=Observation(value=wall_s))
    with pytest.raises(ProblemError, match="Choose one by weights"):
        studies.compare("both", Task.CONFIRM, "ada")
    assert preferred_point(studies.summary("both").weighted("wall_s=1")).trial == 2
    studies.compare("both", Task.CONFIRM, "ada", Comparison(weights="wall_s=3,memory=1"))
    (order,) = ordered
    assert (order.task, order.weights) == (Task.CONFIRM, {"wall_s": 0.75, "memory": 0.25})
    assert order.tuning("ada", 9).weights == order.weights


def test_a_stored_study_is_compared_and_taken_apart_as_the_catalogue_knows_it(studies, sqlite, ordered):  # noqa: F811
    stored(sqlite, "mine", took(3.0), took(2.0))
    for task in (Task.CONFIRM, Task.ABLATE):
        studies.compare("mine", task, "ada")
    assert [(order.task, order.name) for order in ordered] == [(Task.CONFIRM, "mine"), (Task.ABLATE, "mine")]


@pytest.mark.parametrize(
    ("state", "left"),
    [
        (StateName.PAUSED, DesiredState.PAUSE),
        (StateName.STOPPED, DesiredState.STOP),
        (StateName.FAILED, DesiredState.STOP),
        (StateName.FINISHED, None),
    ],
)
def test_a_comparison_remembers_how_the_tuning_stood(studies, sqlite, ordered, state, left):  # noqa: F811
    stored(sqlite, "mine", took(3.0), took(2.0))
    order = Order(study="sleepy", file=Path("/sleepy.toml"), name="mine")
    studies._supervisor.states = lambda: {"mine": StudyState("mine", state, "", order)}
    studies.compare("mine", Task.CONFIRM, "ada")
    studies._supervisor.states = lambda: {"mine": StudyState("mine", StateName.PAUSED, "", ordered[0])}
    studies.compare("mine", Task.ABLATE, "ada")
    assert [order.left for order in ordered] == [left, left]


@pytest.mark.parametrize(("made", "left"), [(2, DesiredState.STOP), (6, None)])
def test_one_from_a_command_line_is_resumed_after_a_comparison_if_there_is_more_to_do(
    studies,  # noqa: F811
    sqlite,
    ordered,
    made,
    left,
):
    stored(sqlite, "mine", *[took(3.0)] * made)
    studies.compare("mine", Task.CONFIRM, "ada")
    assert [order.left for order in ordered] == [left]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"outcomes": [took(3.0)], "study": "elsewhere"}, "not started from a study in the catalogue"),
        ({"outcomes": [failed(FailureKind.APPLICATION_ERROR)]}, "has no winner yet"),
        ({"outcomes": [took(3.0)], "study": "outside"}, "other programs make its runs"),
    ],
)
def test_what_cannot_be_compared_says_why(studies, sqlite, ordered, given, words):  # noqa: F811
    stored(sqlite, "mine", *given["outcomes"], study=given.get("study", "sleepy"))
    with pytest.raises(ProblemError, match=words):
        studies.compare("mine", Task.CONFIRM, "ada")
    assert ordered == []


def test_another_like_it_has_the_same_options_and_a_free_name(studies, sqlite):  # noqa: F811
    stored(sqlite, "sleepy", took(3.0))
    again = studies.detail("sleepy").again
    assert (again.study, again.name, again.trials) == ("sleepy", "sleepy-2", 6)
    stored(sqlite, "foreign", took(3.0), study="elsewhere")
    assert studies.detail("foreign").again is None


def test_one_that_is_too_large_to_be_asked_for_is_shown_and_starts_no_other(studies, sqlite):  # noqa: F811
    stored(sqlite, "mine", took(3.0), trials=200_000, space=Space([Integer.range("np", 1, 10**6)]))
    detail = studies.detail("mine")
    assert (detail.again, detail.budget) == (None, 200_000)
    assert order_like(Order(study="sleepy", file=Path("/sleepy.toml"), name="mine", trials=200_000), ()) is None


@pytest.mark.parametrize("timeout_s", [90.0, 1.5, 1_080_000.0, 1_234_567.25])
def test_another_like_it_has_the_same_time(timeout_s):
    order = Order(study="sleepy", file=Path("/sleepy.toml"), name="mine", timeout_s=timeout_s)
    assert parse_duration_s(order_like(order, ()).timeout) == timeout_s


def test_a_free_name_is_no_longer_than_a_name_may_be():
    assert free_name("a", {"a", "a-2"}) == "a-3"
    assert len(free_name("x" * 100, {"x" * 98 + "-2"})) == 100


def test_the_cost_is_that_of_trials_of_the_same_study_file(studies, sqlite):  # noqa: F811
    assert studies.estimate(new(study="sleepy")) is None
    stored(sqlite, "mine", took(3.0), took(3.0), took(3.0))
    found = studies.estimate(new(study="sleepy", trials=10))
    assert (found.study, found.trials) == ("mine", 10)
    assert found.elapsed_s.about == pytest.approx(30.0)
    assert studies.estimate(new(study="sleepy", name="mine", trials=10)).trials == 7, "three of them are made"
    assert studies.estimate(new(study="outside")) is None
    with pytest.raises(ProblemError, match="the catalogue has no study 'nonsense'"):
        studies.estimate(new(study="nonsense"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"study": "sleepy", "launcher": "magic"}, "launcher: 'magic' was given; it must be one of local, slurm"),
        ({"study": "sleepy", "cores": "0-99999999"}, "cores: "),
        ({"study": "sleepy", "timeout": "soon"}, "timeout: 'soon' is not a duration"),
        ({"study": "outside", "cores": "0"}, "cores: other programs make the runs of 'outside'"),
    ],
)
def test_where_it_runs_is_checked_before_anything_is_kept(studies, fields, words):  # noqa: F811
    with pytest.raises(AutotuneError, match=words):
        studies.start(new(**fields), "ada")
    assert studies.briefs() == []
