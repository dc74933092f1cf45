"""The best known configuration of all studies of a program on a machine."""

import json
from dataclasses import replace

import pytest

from autotune.comparison.limit_verdict import LimitVerdict
from autotune.records.limit import Breach, Limit
from autotune.records.study import REPORTER, Run
from autotune.results.known_configurations import known_configuration, known_configurations
from autotune.results.summary import summarise
from autotune.storage.readable_study import VERDICT
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind
from objectives.registry import REPLAY
from tests.autotune.results.test_summary import verdict_on
from tests.support.command_line import invoke
from tests.support.fakes import SECONDS, definition, failed, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()
DEFAULT, OTHER, THIRD = SPACE.default(), *[one for one in SPACE.configurations() if one != SPACE.default()][:2]


def study(
    url,
    name,
    *pairs,
    default=DEFAULT,
    default_s=2.0,
    winner=OTHER,
    seconds=1.0,
    started="2026-01-01T10:00:00",
    **changes,
):
    """Store a study whose winner took `seconds`, with a verdict of `pairs` if there are any."""
    store = StudyStore.create(url, name, definition(SPACE, **changes))
    add_trial(store, SPACE, default, took(default_s))
    add_trial(store, SPACE, winner, took(seconds))
    session = {"host": "node7", "user": "ada"}
    store.add_runs([Run(winner, 1, outcome=took(seconds), started=started, session=session)])
    if pairs:
        store.set_attribute(VERDICT, verdict_on(1, *pairs).to_dict())
    return store


def test_the_confirmed_configuration_with_its_interval_and_who_measured_it(sqlite):
    store = study(sqlite, "paper", *[(2.0, 1.0)] * 3, *[(2.2, 1.0)] * 3)
    (known,) = known_configurations([store])
    assert (known.program, known.configuration, known.value) == ("paper", OTHER, 1.0)
    assert known.confirmed
    assert known.speed_up == pytest.approx(2.1, abs=0.1)
    assert known.interval[0] <= known.speed_up <= known.interval[1]
    assert known.sentence.endswith(") over 2.1 s"), "the median of the fresh pairs, whose ratio it is"
    assert (known.when, known.by, known.runs, known.trials) == ("2026-01-01T10:00:00", "ada@node7", 2, 0)


@pytest.mark.parametrize(("reporter", "by"), [("bob", "bob"), ("", "ada")])
def test_what_another_program_measured_was_measured_by_who_reported_it(sqlite, reporter, by):
    store = study(sqlite, "paper", objective="external")
    outcome = replace(took(1.0), details={REPORTER: reporter})
    session = {"host": "node7", "user": "ada"}
    store.add_runs([Run(OTHER, 1, outcome=outcome, started="2026-01-02T10:00:00", session=session)])
    assert known_configurations([store])[0].by == by


def test_of_several_studies_the_confirmed_one_counts_though_another_looks_faster(sqlite):
    looks = study(sqlite, "looks", winner=THIRD, seconds=0.1)
    sure = study(sqlite, "sure", *[(2.0, 1.0)] * 6)
    better = study(sqlite, "better", *[(3.0, 0.5)] * 6, seconds=0.5)
    (known,) = known_configurations([looks, sure])
    assert (known.study, known.studies, known.configuration) == ("sure", ("looks", "sure"), OTHER)
    assert known_configurations([looks, sure, better])[0].study == "better"
    (unsure,) = known_configurations([looks])
    assert not unsure.confirmed
    assert unsure.sentence == "looks 20x over 2 s, not confirmed"


def test_a_winner_that_became_the_default_gives_way_to_what_beats_it(sqlite):
    first = study(sqlite, "first", *[(10.0, 5.0)] * 6, default_s=10.0, seconds=5.0)
    second = study(sqlite, "second", *[(5.0, 4.0)] * 6, default=OTHER, default_s=5.0, winner=THIRD, seconds=4.0)
    (known,) = known_configurations([first, second])
    assert (known.study, known.configuration, known.value) == ("second", THIRD, pytest.approx(4.0))
    assert (known.default, known.default_value) == (OTHER, pytest.approx(5.0))
    assert known.sentence == "1.250x (1.250 to 1.250) over 5 s"
    looks = [study(sqlite, "a", default_s=10.0, seconds=5.0), study(sqlite, "b", default_s=5.0, seconds=4.0)]
    assert known_configurations(looks)[0].study == "b"


def test_values_that_do_not_compare_have_rows_of_their_own_the_newest_first(sqlite):
    minutes = replace(SECONDS, unit="min")
    stores = [
        study(sqlite, "old", identity={"program": "1"}, seconds=0.1, started="2025-12-01T10:00:00"),
        study(sqlite, "new"),
        study(sqlite, "minutes", metrics=(minutes,), seconds=0.1, started="2025-11-01T10:00:00"),
    ]
    assert [row.study for row in known_configurations(stores)] == ["new", "old", "minutes"]


def test_an_insignificant_verdict_is_not_called_confirmed(sqlite):
    (known,) = known_configurations([study(sqlite, "paper", *[(1.0, 1.1)] * 3, *[(1.2, 1.0)] * 3)])
    assert not known.confirmed
    assert known.sentence.endswith("not sure to beat the default")


def test_the_default_is_known_if_nothing_beat_it(sqlite):
    (known,) = known_configurations([study(sqlite, "paper", seconds=4.0)])
    assert (known.configuration, known.speed_up, known.sentence) == (DEFAULT, None, "nothing beat the default")


def test_the_reason_is_given_if_the_winner_has_no_speed_up(sqlite):
    store = study(sqlite, "paper", *[(2.0, 1.0)] * 6)
    found = summarise(store)
    limit = Limit(SECONDS, -1.0, 1.5)
    broken = replace(found, on_limits=LimitVerdict((limit,), 6, 6, (Breach(limit, 2.0),)))
    known = known_configuration(store, broken)
    assert (known.confirmed, known.speed_up, known.interval) == (False, None, None)
    assert known.sentence == "not comparable: the default breaks -1 s <= wall_s <= 1.5 s: 2 s"
    lost = StudyStore.create(sqlite, "lost", definition(SPACE))
    add_trial(lost, SPACE, DEFAULT, failed(FailureKind.APPLICATION_ERROR))
    add_trial(lost, SPACE, OTHER, took(1.0))
    assert known_configuration(lost, summarise(lost)).sentence == "the default failed"


@pytest.mark.slow
def test_each_machine_and_each_workload_has_a_row(sqlite):
    elsewhere = {"host": "there", "cores": 64, "cpu_model": "vellum"}
    stores = [
        study(sqlite, "one"),
        study(sqlite, "two", machine=elsewhere),
        study(sqlite, "three", facts={"kpoints": 9}),
    ]
    rows = known_configurations(stores)
    assert {row.studies for row in rows} == {("one",), ("two",), ("three",)}
    assert len({row.machine for row in rows}) == 2


def test_a_replay_is_not_known_to_work(sqlite):
    empty = StudyStore.create(sqlite, "empty", definition(SPACE))
    assert known_configurations([empty, study(sqlite, "replay", objective=REPLAY)]) == []


def test_the_command(sqlite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    StudyStore.create(sqlite, "empty", definition(SPACE))
    assert "nothing is known yet" in invoke("studies", "--known").stdout
    study(sqlite, "paper", *[(2.0, 1.0)] * 3, *[(2.2, 1.0)] * 3)
    told = invoke("studies", "--known").stdout
    for word in ("paper", "ada@node7", "2026-01-01", "x ("):
        assert word in told
    (row,) = json.loads(invoke("studies", "--known", "--json").stdout)
    assert (row["confirmed"], row["configuration"]) == (True, OTHER)
