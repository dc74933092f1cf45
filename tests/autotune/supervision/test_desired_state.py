"""Orders on disk: read back as they were, and survived when they are broken in whatever way."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from autotune.errors import StorageError
from autotune.supervision import BrokenOrderError, DesiredState, Order, StateName, Task
from autotune.supervision.spawn import Starter, command
from autotune.supervision.study_folder import StudyFolder
from tests.autotune.supervision.services import until

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
orders = st.builds(
    Order,
    study=names,
    file=st.just(Path("/catalogue/mine.toml")),
    name=names,
    trials=st.none() | st.just("auto") | st.integers(1, 10**6),
    timeout_s=st.none() | st.floats(1e-3, 1e7),
    workers=st.none() | st.integers(1, 10**4),
    seed=st.none() | st.integers(0, 2**32),
    cores=st.none() | st.from_regex(r"[0-9]{1,3}(-[0-9]{1,3})?(,[0-9]{1,3})?", fullmatch=True),
    launcher=st.none() | names,
    task=st.sampled_from(Task),
    weights=st.none() | st.dictionaries(st.text(min_size=1), st.floats(0, 1), max_size=3),
    left=st.sampled_from([None, DesiredState.PAUSE, DesiredState.STOP]),
    wish=st.sampled_from(DesiredState),
    by=st.text(),
    serial=st.integers(1, 10**9),
)


@pytest.mark.slow
@given(order=orders)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_stored_is_read_back(tmp_path, order):
    folder = StudyFolder(tmp_path / order.name)
    folder.write_order(order)
    assert folder.order() == order


@given(orders)
def test_no_value_of_an_order_is_taken_for_an_option_or_for_a_shell(order):
    words = command(order, Path("/service/status.json"))
    words = [word for word in words if not word.startswith(("--set=tradeoff.weights={ ", "--weights="))]
    assert words[1:5] == ["-P", "-m", "autotune", order.task.value]
    options = dict(zip(words[6:-1:2], words[7:-1:2], strict=True))
    place = {"--cores", "--status"}
    if order.task is Task.TUNE:
        assert words[5] == "/catalogue/mine.toml"
        assert options["--name"] == order.name
        assert set(options) <= place | {"--name", "--trials", "--timeout", "--workers", "--seed", "--launcher"}
    else:
        assert words[5] == order.name
        assert set(options) <= place
    assert all(name.startswith("--") and not value.startswith("-") for name, value in options.items())


def test_a_password_of_the_storage_is_on_no_command_line(tmp_path, monkeypatch):
    started = {}

    def run(words, **options):
        started.update(options, words=words)
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(subprocess, "run", run)
    url = "postgresql://me:op3n@host/db"
    Starter(url, tmp_path, 1000).start(tmp_path, Order(study="mine", file=tmp_path / "mine.toml", name="mine"), 0)
    assert "op3n" not in f"{started['words']} {started['input']}"
    assert started["env"]["AUTOTUNE_STORAGE"] == url


def test_weights_and_pairs_of_an_order_are_those_of_the_study_also_when_it_tunes_again():
    order = Order.model_validate(GOOD | {"weights": {"wall_s": 0.75, "-rf": 0.25}, "pairs": 16})
    (change,) = [word for word in command(order, Path("status.json")) if "weights" in word]
    assert change == '--set=tradeoff.weights={ "wall_s" = 0.75, "-rf" = 0.25 }'
    assert {"--set=verdict.pairs=16", "--set=verdict.max_pairs=16"} <= {*command(order, Path("status.json"))}
    compares = order.comparing(Task.CONFIRM, "ada", None, weights={"wall_s": 1.0})
    assert "--weights=wall_s=1.0" in command(compares, Path("status.json"))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../mine"},
        {"name": ""},
        {"name": "x" * 101},
        {"name": "mine\n"},
        {"file": "mine.toml"},
        {"trials": 0},
        {"trials": "many"},
        {"timeout_s": 0},
        {"timeout_s": float("inf")},
        {"workers": 0},
        {"seed": -1},
        {"cores": "--help"},
        {"cores": ""},
        {"launcher": "--site"},
        {"task": "watch"},
        {"wish": "fly"},
        {"left": "run"},
        {"weights": {"wall_s": -1}},
        {"since": "2026-11-22T06:00:00"},
        {"command": ["rm"]},
    ],
)
def test_what_is_no_order_is_refused(change):
    good = {"study": "mine", "file": "/catalogue/mine.toml", "name": "mine"}
    Order.model_validate(good)
    with pytest.raises(ValidationError):
        Order.model_validate({**good, **change})


GOOD = {"study": "mine", "file": "/catalogue/mine.toml", "name": "mine"}
BROKEN = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"\0\xff\xfe",
    b'{"study": "mine", "file": "/catalogue/mi',
    json.dumps({**GOOD, "wish": "fly"}).encode(),
    json.dumps({**GOOD, "name": "other"}).encode(),
    json.dumps({**GOOD, "argv": ["rm"]}).encode(),
    b" " * 2**23,
]


@pytest.fixture
def supervisor(service):
    with service.open() as found:
        yield found


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_order_is_said_and_hurts_no_other_study(service, supervisor, content):
    supervisor.submit(service.order("good"))
    folder = service.folder / "studies" / "mine"
    folder.mkdir()
    (folder / "order.json").write_bytes(content)
    supervisor.tick()
    states = supervisor.states()
    assert list(states) == ["good", "mine"]
    assert states["good"].state == "running"
    assert states["mine"].state is StateName.FAILED
    assert states["mine"].order is None
    assert "the order of study 'mine' cannot be read" in states["mine"].message
    assert "delete the study, or order it again" in states["mine"].message
    with pytest.raises(BrokenOrderError):
        supervisor.stop("mine")
    assert service.starts() == []
    supervisor.forget("mine")
    assert list(supervisor.states()) == ["good"]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_an_order_that_is_no_file_is_broken_too(service, supervisor, kind, tmp_path):
    folder = service.folder / "studies" / "mine"
    folder.mkdir()
    order = folder / "order.json"
    if kind == "link":
        (tmp_path / "elsewhere").write_text(json.dumps(GOOD))
        order.symlink_to(tmp_path / "elsewhere")
    elif kind == "fifo":
        os.mkfifo(order)
    else:
        order.mkdir()
    assert "cannot be read" in supervisor.state("mine").message
    supervisor.tick()
    supervisor.forget("mine")


def test_a_broken_order_of_a_study_that_runs_is_replaced_by_a_new_one(service, supervisor):
    supervisor.submit(service.order())
    until(lambda: service.note("status.json").get("pid") == service.pid())
    pid = service.pid()
    (service.folder / "studies/mine/order.json").write_text("{")
    assert supervisor.state("mine").state == "running"
    supervisor.tick()
    assert supervisor.submit(service.order()).state == "running"
    assert service.pid() == pid
    with service.still():
        assert supervisor.stop("mine").state == "stopping"
    service.ticks_until(supervisor, "stopped")


@pytest.mark.parametrize("what", ["process.json", "end.json", "status.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"token": 3}', b"\xff"])
def test_other_files_that_are_broken_are_as_if_they_were_not_there(service, supervisor, what, content):
    supervisor.submit(service.order(does="exit 0"))
    service.ticks_until(supervisor, "finished")
    (service.folder / "studies/mine" / what).write_bytes(content)
    assert supervisor.log("mine")
    if what == "status.json":
        assert supervisor.status("mine") in ({}, {"token": 3})
    # The worst that comes of it is another start, which finds that all is done.
    service.ticks_until(supervisor, "finished")
    assert len(service.starts()) == (1 if what == "status.json" else 2)


def test_what_is_no_study_is_passed_over(service, supervisor, tmp_path):
    studies = service.folder / "studies"
    (studies / "file").write_text("")
    (studies / "empty").mkdir()
    (studies / ".hidden").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/order.json").write_text(json.dumps({**GOOD, "name": "link"}))
    (studies / "link").symlink_to(tmp_path / "outside")
    assert supervisor.tick() == []
    assert supervisor.states() == {}


def test_an_order_that_cannot_be_stored_leaves_the_one_before(service, supervisor, monkeypatch):
    supervisor.submit(service.order())
    before = supervisor.state("mine").order

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space left on device"):
            supervisor.stop("mine")
    assert supervisor.state("mine").order == before
    # The session, which is at work meanwhile, writes one that is called only `.new`.
    assert not list((service.folder / "studies/mine").glob("?*.new"))
