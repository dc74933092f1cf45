import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import StorageError
from autotune.records.measurement import Measured, Setting
from autotune.storage.measurement_store import Added, MeasurementStore, SourceRow
from autotune.storage.study_store import StudyStore, study_names
from objectives.base import Metric
from tests.support.fakes import definition, small_space

WALL = Metric("wall_s", "s", kind="time")
SETTING = Setting("qe", "gadi", "CeO2", WALL, {"cores": 48, "nodes": 1}, {"atoms": 24, "input": "CeO2.in"}, "a page")
OTHER = replace(SETTING, program="ucx", source="another page")
THREE = [
    Measured(SETTING, {"np": 4, "blas": "fast", "beta": 0.5, "open": True}, 3.25, runs=5),
    Measured(SETTING, {"np": 8}, bound=9.0),
    Measured(OTHER, {}, failure="out of memory"),
]


def test_what_was_imported_is_read_back_and_the_same_again_adds_nothing(address):
    library = MeasurementStore.create(address)
    assert library.add(THREE) == Added(new=3)
    assert MeasurementStore.create(address).add(THREE) == Added(same=3)
    read = MeasurementStore.read(address)
    assert read.measurements() == THREE
    assert read.measurements("ucx") == THREE[2:]
    assert read.sources() == [SourceRow("a page", "qe", 2), SourceRow("another page", "ucx", 1)]


def test_more_repeats_of_a_configuration_replace_what_was_known_of_it(address):
    library = MeasurementStore.create(address)
    library.add(THREE)
    better = replace(THREE[0], value=3.5, runs=9)
    assert library.add([better, THREE[1]]) == Added(changed=1, same=1)
    assert library.measurements() == [better, *THREE[1:]]


@pytest.mark.parametrize(
    "changes",
    [
        {"machine": "summit"},
        {"machine_facts": {"nodes": 2}},
        {"workload": "TiO2"},
        {"workload_facts": {"framework": "quick"}},
        {"metric": Metric("cpu_s", "s")},
    ],
)
def test_another_setting_is_another_measurement(address, changes):
    library = MeasurementStore.create(address)
    library.add(THREE)
    assert library.add([replace(THREE[0], setting=replace(SETTING, **changes))]) == Added(new=1)


def test_the_same_runs_under_another_path_count_once(address):
    library = MeasurementStore.create(address)
    library.add(THREE)
    moved = [replace(one, setting=replace(one.setting, source="/elsewhere")) for one in THREE]
    assert library.add(moved) == Added(same=3, sources=("a page", "another page"))
    assert library.measurements() == THREE
    assert library.add([replace(moved[0], value=3.5)]) == Added(new=1)


def test_what_is_learned_of_a_machine_later_is_no_other_measurement(address):
    library = MeasurementStore.create(address)
    library.add(THREE[:1])
    described = replace(SETTING, machine_facts={"cores": 48, "nodes": 1, "ghz": 2.9})
    assert library.add([replace(THREE[0], setting=described)]) == Added(changed=1)


def test_a_source_can_be_taken_back(address):
    library = MeasurementStore.create(address)
    library.add(THREE)
    assert library.remove("a page") == 2
    assert library.remove("a page") == 0
    assert library.measurements() == THREE[2:]


def test_imports_lie_beside_studies_in_either_order(address):
    MeasurementStore.create(address).add(THREE)
    assert study_names(address) == []
    StudyStore.create(address, "paper", definition(small_space()))
    assert study_names(address) == ["paper"]
    assert len(MeasurementStore.read(address).measurements()) == 3


def test_a_storage_of_before_and_another_programs_file_have_no_imports(tmp_path, address):
    StudyStore.create(address, "paper", definition(small_space()))
    old = MeasurementStore.read(address)
    assert (old.measurements(), old.sources(), old.has_studies()) == ([], [], True)
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("create table t (x)")
    other = MeasurementStore.read(f"sqlite:///{foreign}")
    assert (other.measurements(), other.sources(), other.has_studies()) == ([], [], False)


def test_a_storage_that_is_not_there_or_is_none(tmp_path, sqlite):
    with pytest.raises(StorageError, match="no storage at"):
        MeasurementStore.read(sqlite)
    (tmp_path / "text.db").write_text("this is a text, and a long one" * 100, encoding="utf-8")
    with pytest.raises(StorageError, match="not a database"):
        MeasurementStore.read(f"sqlite:///{tmp_path / 'text.db'}").measurements()


def test_a_storage_that_is_read_only_is_read_and_not_written(address):
    MeasurementStore.create(address).add(THREE)
    library = MeasurementStore.read(address)
    assert library.measurements() == THREE
    with pytest.raises(StorageError, match=r"readonly database|read-only transaction"):
        library.add([replace(THREE[0], value=1.0)])
    with pytest.raises(StorageError, match=r"readonly database|read-only transaction"):
        library.remove("a page")
    assert library.measurements() == THREE


KILLED = """
import os, signal, sys
from sqlalchemy import event
from autotune.storage.measurement_store import MeasurementStore
from tests.autotune.storage.test_measurement_store import THREE
library = MeasurementStore.create(sys.argv[1])

@event.listens_for(library._engine, "commit")
def die(connection):
    os.kill(os.getpid(), signal.SIGKILL)

library.add(THREE)
"""


@pytest.mark.slow
def test_an_import_that_was_killed_before_its_end_left_nothing_and_can_be_made_again(address):
    MeasurementStore.create(address)
    ended = subprocess.run([sys.executable, "-c", KILLED, address], check=False, capture_output=True, text=True)
    assert ended.returncode == -9, ended.stderr
    assert MeasurementStore.read(address).measurements() == []
    assert MeasurementStore.create(address).add(THREE) == Added(new=3)


VALUES = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.text(max_size=5))


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.floats(allow_nan=False, allow_infinity=False))
def test_whatever_a_configuration_holds_comes_back(configuration, value):
    one = Measured(SETTING, configuration, value)
    assert Measured.from_dict(one.to_dict()) == one


def test_a_place_is_a_machine_and_how_many_of_its_nodes():
    assert SETTING.key == ("qe", "gadi", "CeO2", "wall_s")
    assert replace(SETTING, machine_facts={"nodes": 25}).key == ("qe", "gadi, 25 nodes", "CeO2", "wall_s")
    assert replace(SETTING, machine_facts={"nodes": "many"}).nodes == 1
