"""The studies that others ask for configurations: what becomes of them when the storage is away, or asked for twice."""

import threading

import pytest

from autotune.asktell import AskTell, RunReport
from autotune.errors import StorageError
from autotune.service.asktell_studies import AskTellStudies
from autotune.service.problems import ProblemError
from autotune.supervision import Order, StateName
from tests.autotune.service.serving import OUTSIDE


@pytest.fixture
def order(tmp_path):
    file = tmp_path / "outside.toml"
    file.write_text(OUTSIDE)
    return Order(study="outside", file=file, name="mine")


@pytest.fixture
def opened(tmp_path, sqlite):
    found = AskTellStudies(tmp_path, sqlite)
    yield found
    found.close()


def state(opened):
    return opened.states()["mine"].state


def test_a_paused_study_is_opened_anew_by_another_order(opened, order):
    opened.submit(order)
    lease = opened.session("mine", asks=True).ask(wait_s=60.0).lease
    opened.pause("mine", "")
    opened.submit(order.model_copy(update={"trials": 20}))
    assert state(opened) is StateName.OPEN
    assert opened.session("mine", asks=False).tell(lease, RunReport(value=1.0)).trial == 0


def test_when_the_storage_is_back_the_study_is(opened, order, monkeypatch):
    opened.submit(order)
    session = opened.session("mine", asks=True)
    lease = session.ask(wait_s=60.0).lease
    monkeypatch.setattr(type(session), "ended", property(lambda self: StorageError("the disk is full")))
    assert state(opened) is StateName.FAILED
    opened.tick()
    assert state(opened) is StateName.FAILED
    with pytest.raises(ProblemError, match="the disk is full") as refused:
        opened.session("mine", asks=False)
    # Who has a result comes again.
    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "5"})
    monkeypatch.undo()
    opened._known["mine"].again_at = 0.0
    opened.tick()
    assert state(opened) is StateName.OPEN
    assert opened.session("mine", asks=False).tell(lease, RunReport(value=1.0)).trial == 0


def test_who_comes_before_a_restarted_service_has_opened_the_study_comes_again(tmp_path, sqlite, opened, order):
    opened.submit(order)
    lease = opened.session("mine", asks=True).ask(wait_s=60.0).lease
    opened.close()
    again = AskTellStudies(tmp_path, sqlite)
    with pytest.raises(ProblemError, match="being opened") as refused:
        again.session("mine", asks=False)
    assert refused.value.status == 503
    again.tick()
    assert again.session("mine", asks=False).tell(lease, RunReport(value=1.0)).trial == 0
    again.stop("mine", "")
    with pytest.raises(ProblemError, match="stopped") as refused:
        again.session("mine", asks=False)
    assert refused.value.status == 409
    again.close()


def test_nobody_waits_for_a_study_that_is_stored_as_something_else(tmp_path, sqlite, opened, order):
    opened.submit(order)
    opened.close()
    order.file.write_text(OUTSIDE.replace("high = 40", "high = 41"))
    again = AskTellStudies(tmp_path, sqlite)
    again.tick()
    with pytest.raises(ProblemError, match="is about something else") as refused:
        again.session("mine", asks=False)
    assert (refused.value.status, refused.value.headers) == (409, {})
    again.close()


def test_while_a_study_is_being_opened_the_others_go_on(opened, order, monkeypatch):
    opened.submit(order)
    opening, may_open, really_open = threading.Event(), threading.Event(), AskTell.open

    def slow(*given, **options):
        opening.set()
        assert may_open.wait(60)
        return really_open(*given, **options)

    monkeypatch.setattr(AskTell, "open", slow)
    thread = threading.Thread(target=opened.submit, args=[order.model_copy(update={"name": "second"})])
    thread.start()
    try:
        assert opening.wait(60)
        # Were these to wait, this test would: the storage answers when it is over.
        lease = opened.session("mine", asks=True).ask(wait_s=60.0).lease
        assert opened.session("mine", asks=False).tell(lease, RunReport(value=1.0)).trial == 0
        opened.tick()
        opened.pause("mine", "")
        assert opened.status("mine")
        assert set(opened.states()) == {"mine"}
    finally:
        may_open.set()
        thread.join()
    assert set(opened.states()) == {"mine", "second"}
