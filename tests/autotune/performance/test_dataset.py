from dataclasses import replace
from statistics import median

import pytest

from autotune.errors import StorageError
from autotune.machines.this_machine import this_machine
from autotune.performance.measurements import dataset, machine_names
from autotune.performance.measurements.dataset import measurements, setting_of, study_measurements
from autotune.performance.measurements.machine_names import find_description
from autotune.performance.measurements.shipped import load_shipped_measurements
from autotune.performance.predict import find_target
from autotune.performance.recognition import of_program
from autotune.records.measurement import Measured, Setting
from autotune.records.study import Run, TrialRecord
from autotune.statistics.standings import Standings
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.study_store import StudyStore
from objectives.base import PARTS, FailureKind, Metric
from objectives.registry import REPLAY
from tests.support.fakes import SECONDS, capped, definition, failed, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()


@pytest.fixture
def address(tmp_path):
    return f"sqlite:///{tmp_path / 'autotune.db'}"


@pytest.fixture
def other_address(tmp_path):
    return f"sqlite:///{tmp_path / 'other.db'}"


def record(number, *outcomes, **values):
    runs = [Run({"np": number + 1}, number, outcome=outcome, **values) for outcome in outcomes]
    return TrialRecord.of(number, {"np": number + 1}, runs, settled=True)


def stored(address, name="paper", seconds=2.0, **changes):
    store = StudyStore.create(address, name, definition(SPACE, **changes))
    return add_trial(store, SPACE, SPACE.default(), took(seconds)).configuration


def own(urls, program=None):
    found = [one for one in measurements(urls) if one not in load_shipped_measurements()]
    return [one for one in found if program in (None, one.setting.program)]


def test_a_study_of_another_name_that_runs_the_same_is_the_same_program(address):
    identity = {"command": "./solve", "program": "solve sha256:aa"}
    shared = {"objective": "command", "facts": {}, "identity": identity}
    stored(address, "job", seconds=2.0, **shared)
    stored(address, "other", seconds=3.0, **shared | {"identity": {"command": "./x", "program": "x sha256:bb"}})
    setting = setting_of("work", definition(SPACE, **shared))
    (found,) = of_program(measurements([address]), setting)
    assert (found.value, found.setting.program, found.setting.workload) == (2.0, "work", setting.workload)
    again = setting_of("work", definition(SPACE, **shared | {"identity": {**identity, "command": "./solve 2"}}))
    (found,) = of_program(measurements([address]), again)
    assert found.setting.program == "work"
    assert found.setting.workload != again.workload


def test_every_kind_of_trial():
    trials = [
        record(0, took(3.0), took(2.0), took(2.5)),
        record(1, capped(4.0)),
        record(2, failed(FailureKind.OUT_OF_MEMORY, "it was too large")),
        record(3, failed(FailureKind.INFRASTRUCTURE_ERROR, "the node died")),
        record(4, failed(FailureKind.INFRASTRUCTURE_ERROR), failed(FailureKind.INFRASTRUCTURE_ERROR), took(5.0)),
        record(5),
        record(6, took(1.0), steps=3, of=27),
        record(7, took(1.5), steps=27, of=27),
    ]
    found = {one.configuration["np"] - 1: one for one in study_measurements("x", definition(SPACE), trials)}
    assert found.keys() == {0, 1, 2, 4, 7}
    assert (found[0].value, found[0].runs) == (pytest.approx(median([3.0, 2.0, 2.5])), 3)
    assert (found[1].value, found[1].bound) == (None, pytest.approx(4.0))
    assert found[2].failed
    assert found[2].failure == "out of memory: it was too large"
    assert (found[4].value, found[4].runs) == (pytest.approx(5.0), 1)


def test_what_others_took_on_a_busy_machine_is_no_property_of_the_machine():
    busy = [replace(took(2.0 / (1.0 - share)), conditions={"taken_share": share}) for share in (0.5, 0.6, 0.4)]
    (known,) = study_measurements("x", definition(SPACE), [record(0, *busy)])
    assert known.value == pytest.approx(2.0, rel=0.06)


def test_the_parts_of_a_run_come_with_the_value_of_its_trial():
    runs = [replace(took(seconds), details={PARTS: {"fft": seconds / 2}}) for seconds in (3.0, 2.0, 9.0)]
    known, silent = study_measurements("x", definition(SPACE), [record(0, *runs, took(2.9)), record(1, took(4.0))])
    assert known.parts == {"fft": 1.5}
    assert silent.parts == {}


def test_other_metrics_come_as_medians_with_what_is_measured_of_every_run():
    usages = (replace(took(1.0).usage, peak_memory_bytes=peak) for peak in (2**30, 2**31))
    runs = [replace(took(1.0), metrics={"wall_s": 1.0, "p99_ms": 5.0}, usage=usage) for usage in usages]
    (known,) = study_measurements("x", definition(SPACE), [record(0, *runs)])
    assert (known.told["p99_ms"], known.told["peak_memory_bytes"]) == (5.0, 1.5 * 2**30)
    assert "wall_s" not in known.told


def test_what_had_no_effect_in_a_study_is_known_of_its_measurements():
    silent, wrong = replace(took(2.0), unused=("np",)), failed(FailureKind.INVALID_RESULT)
    found = study_measurements("x", definition(SPACE), [record(0, silent), record(1, silent), record(2, took(1.0))])
    assert {one.idle for one in found} == {()}
    found = study_measurements("x", definition(SPACE), [record(0, silent), record(1, silent), record(2, wrong)])
    assert {one.idle for one in found} == {("np",)}


def test_another_version_of_a_program_has_another_identity():
    one, other = (setting_of("x", definition(SPACE, identity={"version": version})) for version in ("7.0", "7.1"))
    assert one.identity != other.identity


def test_the_values_are_those_of_the_studys_own_standings():
    trials = [
        TrialRecord.of(
            number,
            {"np": number + 1},
            [Run({"np": number + 1}, number, outcome=took(base * drift), block=block) for block, drift in blocks],
            settled=True,
        )
        for number, base, blocks in (
            (0, 2.0, ((0, 1.0), (1, 1.5), (2, 2.0))),
            (1, 3.0, ((0, 1.0), (1, 1.5))),
            (2, 1.0, ((2, 2.0),)),
        )
    ]
    standings = Standings.of(trials, SECONDS)
    found = study_measurements("x", definition(SPACE), trials)
    assert [one.value for one in found] == [standings.value(trial) for trial in trials]


def test_what_a_study_is_about():
    facts = {"kpoints": 4, "cores": 8, "cores_per_node": 8}
    one = setting_of("mine", definition(SPACE, objective="qe", facts=facts, study={"name": "qe"}))
    assert (one.program, one.machine, one.metric) == ("qe", "paper, 8 cores", SECONDS)
    assert one.workload_facts == {"kpoints": 4}
    assert one.machine_facts == {"cores": 8, "cpu_model": "paper"}
    assert one.workload.startswith("qe ")
    assert one.source == "study mine"


@pytest.mark.parametrize(("objective", "program"), [("command", "solver"), ("training", "solver"), ("ucx", "ucx")])
def test_the_program_of_a_generic_objective_is_the_name_of_its_study(objective, program):
    assert setting_of("x", definition(SPACE, objective=objective, study={"name": "solver"})).program == program


def test_a_machine_with_a_description_has_its_name_and_the_facts_of_the_study_go_before(monkeypatch):
    def known(name, nodes=1):
        return ("gadi", {"cores": 48, "ghz": 2.9}) if name == "gadi-cpu-1" else None

    monkeypatch.setattr(machine_names, "find_description", known)
    whole = {"host": "gadi-cpu-1", "cores": 48, "cpu_model": "Xeon"}
    one = setting_of("x", definition(SPACE, machine=whole))
    assert (one.machine, one.machine_facts) == ("gadi", {"cores": 48, "ghz": 2.9})
    part = setting_of("x", definition(SPACE, machine={**whole, "cores": 2}))
    assert part.machine == "gadi, 2 cores"
    measured = setting_of("x", definition(SPACE, machine={**whole, "facts": {"cores": 48, "bandwidth": 1e11}}))
    assert measured.machine_facts == {"cores": 48, "bandwidth": 1e11}


def test_studies_of_the_same_problem_share_a_setting_and_others_do_not(address, other_address):
    problem = {"kpoints": 9, "cores": 2}
    stored(address, "one", facts=problem, identity={"input": "abc"})
    stored(other_address, "two", facts={**problem, "cores": 48}, identity={"input": "xyz"})
    stored(other_address, "three", facts={"kpoints": 8})
    keys = [one.setting.key for one in own([address, other_address, address])]
    assert len(keys) == 3
    assert len(set(keys)) == 2


def test_a_problem_without_facts_is_told_from_others_by_its_identity():
    names = [setting_of("x", definition(SPACE, facts={}, identity={"input": text})).workload for text in "aab"]
    assert names[0] == names[1] != names[2]


def test_a_size_is_a_fact_and_does_not_hide_what_else_tells_problems_apart():
    def of(rows, text, **facts):
        identity = {"input": text, "space.derived.rows": str(rows)}
        return setting_of("x", definition(SPACE, facts={"rows": rows, **facts}, identity=identity))

    assert of(20, "a").workload_facts == {"rows": 20}
    assert len({one.workload for one in (of(20, "a"), of(40, "a"), of(20, "b"), of(20, "a"))}) == 3
    # The objective's facts of the problem identify it better than the digest of its input.
    assert of(20, "a", atoms=8).workload == of(20, "b", atoms=8).workload != of(40, "a", atoms=8).workload


def test_builds_of_a_program_are_machines_of_their_own():
    one, other = (
        setting_of("x", definition(SPACE, facts={"n": 3, "blas": blas}, installation=("blas",)))
        for blas in ("reference", "openblas")
    )
    assert one.workload == other.workload
    assert one.machine != other.machine
    assert one.machine_facts["blas"] == "reference"
    assert one.workload_facts == {"n": 3}


def test_replays_are_left_out_and_programs_are_told_apart(address):
    configuration = stored(address, "one", seconds=2.0)
    stored(address, "told again", objective=REPLAY)
    (found,) = own([address])
    assert found.configuration == configuration
    assert found.value == pytest.approx(2.0)
    assert own([address], "qe") == []
    assert len(own([address], "paper")) == 1


def test_what_was_imported_and_what_ships_is_there_too(address):
    setting = Setting("paper", "nowhere", "CeO2", Metric("wall_s", "s", kind="time"), source="a page")
    one = Measured(setting, {"np": 4}, 3.0)
    MeasurementStore.create(address).add([one])
    assert own([address]) == [one]
    assert set(map(id, measurements([]))) <= set(map(id, load_shipped_measurements()))
    assert any(one.setting.program == "qe" for one in measurements([]))


def test_the_same_runs_in_two_storages_count_once(address, other_address):
    setting = Setting("paper", "nowhere", "CeO2", Metric("wall_s", "s", kind="time"), source="a page")
    moved = replace(setting, source="a copy of the page")
    MeasurementStore.create(address).add([Measured(setting, {"np": 4}, 3.0)])
    MeasurementStore.create(other_address).add([Measured(moved, {"np": 4}, 3.0), Measured(moved, {"np": 4}, 3.1)])
    assert [row.value for row in own([address, other_address])] == [3.0, 3.1]


def test_this_machine_has_one_name_in_studies_imports_and_questions():
    name, facts = machine_names.find_machine_facts("this", 1)
    assert name == find_target("this", 1).machine
    assert facts["cores"] == this_machine().cores


def test_a_machine_that_was_described_after_the_import_has_its_facts(address, monkeypatch):
    setting = Setting("paper", "cluster", "CeO2", SECONDS, {"nodes": 2}, source="a page")
    MeasurementStore.create(address).add([Measured(setting, {"np": 4}, 3.0)])
    monkeypatch.setattr(
        dataset, "find_machine_facts", lambda machine, nodes: (machine, {"nodes": nodes, "cores_per_node": 48})
    )
    (found,) = own([address])
    assert found.setting.machine_facts == {"nodes": 2, "cores_per_node": 48}


def test_a_storage_that_is_not_there(address):
    with pytest.raises(StorageError, match="no storage at"):
        measurements([address])


def test_a_machine_that_nobody_described():
    assert find_description("no such machine, and no such file") is None


def test_a_trial_that_failed_through_the_machine_is_judged_by_its_other_runs():
    trial = record(0, took(3.0), failed(FailureKind.INFRASTRUCTURE_ERROR))
    (found,) = study_measurements("x", definition(SPACE), [trial, replace(record(1, took(1.0)), settled=False)])[:1]
    assert (found.value, found.runs) == (pytest.approx(3.0), 1)


def test_what_a_study_stopped_at_its_limit_on_memory_is_no_failure_elsewhere():
    stopped = replace(failed(FailureKind.OUT_OF_MEMORY, "was stopped"), code="memory-limit")
    known = study_measurements("s", definition(SPACE), [record(0, took(3.0)), record(1, stopped)])
    assert [measurement.failed for measurement in known] == [False]
