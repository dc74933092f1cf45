"""A study in PostgreSQL as a user runs it: the commands, a kill in the middle, and the error messages."""

import json
import sys
from multiprocessing.pool import ThreadPool

import pytest
import sqlalchemy

from autotune.errors import StorageError
from autotune.records.series import Series, SeriesKind
from autotune.records.study import Run
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore, study_names
from tests.autotune.storage.test_measurement_store import THREE
from tests.support import postgres
from tests.support.awk_study import held_session
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial
from tests.support.warm import autotune

pytestmark = pytest.mark.cores(1)

SPACE = small_space()


def values(folder, url):
    rows = json.loads(autotune(folder, "trials", "mine", "--json", AUTOTUNE_STORAGE=url).stdout)
    return {row["trial"]: (row["x"], row["value"]) for row in rows if row["state"] != "running"}


def tuning(folder, url):
    variables = {"AUTOTUNE_STORAGE": url, "AUTOTUNE_STORAGE_PATIENCE": "1s"}
    return held_session(folder, "--trials", "8", **variables)


def test_a_study_is_killed_resumed_and_read(tmp_path, postgresql):
    # As PostgreSQL's own programs write an address.
    url = postgresql.replace("postgresql+psycopg://", "postgres://")
    with tuning(tmp_path, url) as session:
        session.kill()
    before = values(tmp_path, url)
    assert set(before) >= {0, 1}
    ended = autotune(tmp_path, "study", "./mine.toml", "--trials", "8", "--storage", url)
    assert ended.returncode == 0, ended.stderr
    assert "verdict: " in ended.stdout
    after = values(tmp_path, url)
    assert set(after) == set(range(8))
    assert {number: after[number] for number in before} == before
    runs = json.loads(autotune(tmp_path, "trials", "mine", "--runs", "--json", AUTOTUNE_STORAGE=url).stdout)
    assert len({run["started"] for run in runs}) == len(runs)
    again = autotune(tmp_path, "study", "./mine.toml", "--trials", "8", "--storage", url)
    assert again.returncode == 0, again.stderr
    assert json.loads(autotune(tmp_path, "trials", "mine", "--runs", "--json", AUTOTUNE_STORAGE=url).stdout) == runs
    password = url.partition("autotune:")[2].partition("@")[0]
    for words in (["best", "mine"], ["storage", "list"]):
        read = autotune(tmp_path, *words, AUTOTUNE_STORAGE=url)
        assert read.returncode == 0, read.stderr
        assert "mine" in read.stdout
        assert password not in read.stdout + read.stderr
    assert password not in ended.stdout + ended.stderr
    assert not list(tmp_path.glob("*.db*"))


@pytest.mark.full
@pytest.mark.skipif(postgres.missing() is not None, reason=str(postgres.missing()))
def test_a_server_that_goes_away_in_the_middle_is_named_and_nothing_is_lost(tmp_path):
    with postgres.server() as server:
        with tuning(tmp_path, server.url()) as session:
            server.stop()
            (tmp_path / "hold").unlink()
            said = session.stderr.read()
            assert session.wait() == 5
        assert "cannot be used: " in said
        assert "is the server there?" in said
        assert "the storage has not answered since" in said
        assert "Traceback" not in said
        assert server.password not in said
        server.start()
        before = values(tmp_path, server.url())
        assert set(before) >= {0, 1}
        ended = autotune(tmp_path, "study", "./mine.toml", "--trials", "4", "--storage", server.url())
        assert ended.returncode == 0, ended.stderr
        assert set(values(tmp_path, server.url())) >= {*before, 3}


@pytest.mark.parametrize("use", [lambda url: StudyStore.read(url, "x"), MeasurementStore.create])
def test_without_the_driver_it_is_said_how_to_install_it(monkeypatch, use):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StorageError) as caught:
        use("postgresql+psycopg://me:secret@127.0.0.1:1/x")
    assert f"{sys.executable} -m pip install 'psycopg[binary]'" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"password": "wr%2Fong"}, "password authentication failed"),
        ({"user": "somebody"}, "authentication failed"),
        ({"database": "none"}, 'database "none" does not exist'),
    ],
)
def test_what_is_wrong_with_an_address_is_said_without_its_password(postgresql_server, wrong, said):
    url = postgresql_server.url(**wrong)
    secret = wrong.get("password", postgresql_server.password)
    for use in (
        lambda: StudyStore.create(url, "paper", definition(SPACE)),
        lambda: StudyStore.read(url, "paper"),
        lambda: MeasurementStore.create(url),
        lambda: MeasurementStore.read(url).sources(),
    ):
        with pytest.raises(StorageError, match=said) as caught:
            use()
        assert secret not in str(caught.value)


def test_a_server_that_is_not_there(postgresql_server):
    url = postgresql_server.url().replace(f":{postgresql_server.port}/", ":1/")
    with pytest.raises(StorageError, match="refused"):
        study_names(url)


def test_any_password_is_one(postgresql_server, postgresql):
    postgresql_server.execute("CREATE USER odd PASSWORD 'a{0}%/@:é'")
    database = postgresql.rpartition("/")[2]
    postgresql_server.execute(f"ALTER DATABASE {database} OWNER TO odd")
    url = postgresql_server.url(database, user="odd", password="a{0}%25%2F%40%3A%C3%A9")
    StudyStore.create(url, "paper", definition(SPACE))
    assert study_names(url) == ["paper"]


def test_who_may_only_read_reads_and_is_refused_to_write(postgresql_server, postgresql):
    store = StudyStore.create(postgresql, "paper", definition(SPACE))
    MeasurementStore.create(postgresql).add(THREE)
    database = postgresql.rpartition("/")[2]
    postgresql_server.execute("CREATE USER reader PASSWORD 'r'")
    postgresql_server.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", database)
    url = postgresql_server.url(database, user="reader", password="r")
    assert StudyStore.read(url, "paper").definition == store.definition
    assert MeasurementStore.read(url).measurements() == THREE
    with pytest.raises(StorageError, match="permission denied"):
        StudyStore.create(url, "other", definition(SPACE))


def test_reading_makes_no_tables(postgresql):
    with pytest.raises(StorageError, match="no studies in"):
        study_names(postgresql)
    assert MeasurementStore.read(postgresql).measurements() == []
    assert sqlalchemy.inspect(sqlalchemy.create_engine(postgresql)).get_table_names() == []


def test_many_first_calls_at_once_make_the_tables_once(postgresql):
    def first(number):
        StudyStore.create(postgresql, f"study{number}", definition(SPACE))
        MeasurementStore.create(postgresql)

    with ThreadPool(6) as pool:
        pool.map(first, range(6))
    assert sorted(study_names(postgresql)) == [f"study{number}" for number in range(6)]


def test_numbers_and_texts_come_back_as_they_went(postgresql):
    store = StudyStore.create(postgresql, "paper", definition(SPACE))
    trial = add_trial(store, SPACE, SPACE.default())
    odd = {"a": 0.1 + 0.2, "big": 2**60, "text": "né\0\ud800'\"%s{}", "none": None, "list": [1, [2.5]]}
    odd_series = Series(SeriesKind.VERDICT, ("x" * 150,))
    run = Run(trial.configuration, trial.number, odd_series, outcome=took(1e-300), job=odd)
    store.add_runs([run])
    store.settle_all({trial.number: Observation(value=1e300, runs=1)})
    store.set_attribute("odd", odd)
    read = StudyStore.read(postgresql, "paper")
    assert read.runs() == [run]
    assert read.attribute("odd") == odd
