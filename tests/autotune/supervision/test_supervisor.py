"""The supervisor with studies that are only played: wishes, deaths, servers that are killed, numbers used again."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.errors import BusyError, StorageError
from autotune.supervision import (
    DesiredState,
    NameTakenError,
    NotAllowedError,
    StudySupervisor,
    Task,
    UnknownStudyError,
    shim,
    spawn,
)
from autotune.supervision.reconcile import GIVEN_UP_AFTER, ExitClass
from tests.autotune.supervision.services import server, until

DEATHS = GIVEN_UP_AFTER[ExitClass.DIED]


@pytest.fixture
def supervisor(service):
    with service.open() as found:
        yield found


def started(service, supervisor, name="mine", **more):
    """Order a study and wait until it takes signals; return its order."""
    order = supervisor.submit(service.order(name, **more)).order
    ready(service, name)
    return order


def ready(service, name="mine"):
    until(lambda: is_ready(service, name))


def is_ready(service, name="mine"):
    """Whether the study's process has said that it takes signals."""
    return service.pid(name=name) and service.note("status.json", name).get("pid") == service.pid(name=name)


def test_a_study_goes_through_its_whole_life(service, supervisor):
    order = service.order(trials=12, timeout_s=5400.0, workers=2, seed=3)
    assert supervisor.submit(order).state == "running"
    ready(service)
    words = (
        f"--name mine --trials 12 --timeout 5400.000000s --workers 2 --seed 3 --status {service.folder}/studies/mine"
    )
    assert f" {words}/status.json --wait on {service.url} in {service.cwd}" in service.starts()[0]
    with service.still():
        assert supervisor.pause("mine", "me").state == "pausing"
    service.ticks_until(supervisor, "paused")
    assert supervisor.state("mine").order.by == "me"
    assert supervisor.resume("mine").state == "running"
    ready(service)
    with service.still():
        assert supervisor.stop("mine").state == "stopping"
    service.ticks_until(supervisor, "stopped")
    assert service.note(shim.END)["code"] == 130
    supervisor.resume("mine")
    service.tell("exit 0")
    service.ticks_until(supervisor, "finished")
    assert supervisor.tick() == []
    assert len(service.starts()) == 3
    supervisor.forget("mine")
    assert supervisor.states() == {}
    assert list((service.folder / "studies").iterdir()) == []


@pytest.mark.parametrize(
    ("left", "state"), [(DesiredState.PAUSE, "paused"), (DesiredState.STOP, "stopped"), (None, "finished")]
)
def test_after_a_comparison_the_tuning_stands_as_before_it(service, supervisor, left, state):
    order = started(service, supervisor, trials=5)
    supervisor.pause("mine")
    service.ticks_until(supervisor, "paused")
    supervisor.submit(order.comparing(Task.CONFIRM, "ada", left))
    service.tell("exit 0")
    service.ticks_until(supervisor, state)
    assert supervisor.state("mine").message == ""
    if left is None:
        return
    service.tell("run")
    found = supervisor.resume("mine", "eve")
    assert (found.state, found.order.task, found.order.trials, found.order.left) == ("running", Task.TUNE, 5, None)


def test_a_comparison_that_was_paused_is_gone_on_with(service, supervisor):
    order = started(service, supervisor)
    supervisor.stop("mine")
    service.ticks_until(supervisor, "stopped")
    supervisor.submit(order.comparing(Task.ABLATE, "ada", DesiredState.STOP))
    service.ticks_while(supervisor, lambda: service.pid() is None)
    supervisor.pause("mine")
    service.ticks_until(supervisor, "paused")
    assert supervisor.resume("mine").order.task is Task.ABLATE


def test_what_a_state_does_not_allow_is_refused_and_says_what_would(service, supervisor):
    started(service, supervisor)
    for refuse, allowed in ((supervisor.resume, "failed or paused or stopped"), (supervisor.forget, "finished")):
        with pytest.raises(NotAllowedError, match=rf"'mine' is running: \w+ needs one that is .*{allowed}") as caught:
            refuse("mine")
        assert caught.value.state == "running"
    service.tell("exit 0")
    service.ticks_until(supervisor, "finished")
    for refuse in (supervisor.pause, supervisor.stop, supervisor.resume):
        with pytest.raises(NotAllowedError):
            refuse("mine")


@pytest.mark.parametrize("name", ["other", "..", "../mine", "", "a/b", "mine\n", ".mine", "/etc", "x" * 300])
def test_names_that_nobody_ordered_are_unknown_whatever_they_look_like(service, supervisor, name):
    started(service, supervisor)
    for ask in (supervisor.state, supervisor.pause, supervisor.forget, supervisor.log, supervisor.status):
        with pytest.raises(UnknownStudyError):
            ask(name)


def test_the_same_order_again_changes_nothing_and_another_one_has_to_wait(service, supervisor):
    started(service, supervisor, trials=5)
    pid = service.pid()
    assert supervisor.submit(service.order(trials=5)).state == "running"
    with pytest.raises(NotAllowedError):
        supervisor.submit(service.order(trials=6))
    with pytest.raises(NameTakenError, match="taken by a study of 'mine'"):
        supervisor.submit(service.order(trials=5).model_copy(update={"study": "others"}))
    assert service.pid() == pid
    service.tell("exit 0")
    service.ticks_until(supervisor, "finished")
    assert supervisor.submit(service.order(trials=6)).state == "running"
    ready(service)
    assert "--trials 6" in service.starts()[-1]


@pytest.mark.parametrize(
    ("code", "state", "said"),
    [
        (2, "failed", "its study file or an option is wrong"),
        (3, "failed", "cannot run on this machine"),
        (4, "failed", "no configuration has worked"),
        (6, "failed", "another process holds"),
        (7, "stopped", "its time is over"),
        (8, "paused", "another user paused it"),
    ],
)
def test_a_study_that_ended_by_itself_is_not_started_again(service, supervisor, code, state, said):
    supervisor.submit(service.order(does=f"exit {code}"))
    service.ticks_until(supervisor, state)
    found = supervisor.state("mine")
    assert said in found.message
    assert (found.state == "failed") == ("on sqlite:" in found.message), "the last lines of its log"
    assert supervisor.tick() == []
    assert len(service.starts()) == 1
    service.tell("run")
    assert supervisor.resume("mine").state == "running"


@pytest.mark.slow
@pytest.mark.parametrize(("does", "said"), [("die 9", "killed by SIGKILL"), ("exit 1", "crashed (exit code 1)")])
def test_one_that_dies_again_and_again_is_given_up_with_its_last_words(service, supervisor, does, said):
    supervisor.submit(service.order(does=does))
    service.ticks_until(supervisor, "failed")
    found = supervisor.state("mine")
    assert f"{said}, {DEATHS} times in a row without a finished trial\nstudy " in found.message
    assert supervisor.tick() == []
    assert len(service.starts()) == DEATHS
    # After a fix, the study may die five times again.
    supervisor.resume("mine")
    service.ticks_until(supervisor, "failed")
    assert len(service.starts()) == 2 * DEATHS


@pytest.mark.slow
def test_one_whose_storage_is_away_is_started_until_it_is_back(service, supervisor):
    supervisor.submit(service.order(does="exit 5"))
    service.ticks_while(supervisor, lambda: len(service.starts()) <= DEATHS)
    found = supervisor.state("mine")
    assert found.state in {"waiting", "running"}
    service.tell("run")
    # The one that runs now may still be one that ends at once: a later one is ready, and stays.
    service.ticks_while(supervisor, lambda: not (is_ready(service) and supervisor.state("mine").state == "running"))


@pytest.mark.slow
def test_deaths_after_a_finished_trial_are_not_counted_together(service, supervisor):
    supervisor.submit(service.order(does="advance die 9"))
    service.ticks_while(supervisor, lambda: len(service.starts()) <= 2 * DEATHS)
    service.tell("die 9")
    service.ticks_until(supervisor, "failed")


def test_one_that_is_killed_is_started_again_but_not_against_a_wish(service, supervisor):
    started(service, supervisor)
    service.kill()
    service.ticks_while(supervisor, lambda: len(service.starts()) < 2)
    ready(service)
    service.tell("deaf")
    until(lambda: service.note("status.json").get("phase") == "deaf")
    supervisor.stop("mine")
    service.kill()
    service.ticks_until(supervisor, "stopped")
    assert len(service.starts()) == 2


def test_one_that_does_not_let_go_is_killed_in_the_end(service, supervisor):
    started(service, supervisor, does="deaf")
    until(lambda: service.note("status.json").get("phase") == "deaf")
    supervisor.stop("mine")
    supervisor.tick()
    assert supervisor.state("mine").state == "stopping"
    order = json.loads((service.folder / "studies/mine/order.json").read_text())
    order["wished"]["since_boot_s"] -= 600.0
    (service.folder / "studies/mine/order.json").write_text(json.dumps(order))
    service.ticks_until(supervisor, "stopped")
    assert service.note(shim.END)["signal"] == signal.SIGKILL


def test_who_waits_says_for_whom(service, supervisor):
    supervisor.submit(service.order(does="wait core 0 is in use by another one"))
    service.ticks_until(supervisor, "waiting")
    assert supervisor.state("mine").message == "core 0 is in use by another one"
    with service.still():
        assert supervisor.pause("mine").state == "pausing"
    service.ticks_until(supervisor, "paused")


def test_a_study_outlives_its_server_and_the_next_one_picks_it_up(service):
    with server(service) as (process, ask):
        ask("submit", service.order().model_dump_json())
        ready(service)
        process.kill()
        process.wait()
    pid = service.pid()
    with service.open() as supervisor:
        assert supervisor.tick() == []
        assert supervisor.state("mine").state == "running"
        assert service.pid() == pid
        supervisor.pause("mine")
        service.ticks_until(supervisor, "paused")
    assert len(service.starts()) == 1


def test_a_study_that_ended_while_nobody_looked_is_found_so(service):
    with server(service) as (process, ask):
        ask("submit", service.order().model_dump_json())
        ready(service)
        process.kill()
        process.wait()
    service.tell("exit 4")
    until(lambda: service.pid("warden") is None)
    with service.open() as supervisor:
        supervisor.tick()
        assert supervisor.state("mine").state == "failed"


@pytest.mark.parametrize("wish", DesiredState)
def test_a_wish_that_was_stored_and_no_more_is_carried_out_by_the_next_server(service, monkeypatch, wish):
    with service.open() as supervisor:
        started(service, supervisor)
        if wish is DesiredState.RUN:
            supervisor.stop("mine")
            service.ticks_until(supervisor, "stopped")
        with monkeypatch.context() as context:
            # As if it was killed just after it had stored the wish.
            context.setattr(StudySupervisor, "_reconcile", lambda *_: [])
            {
                DesiredState.RUN: supervisor.resume,
                DesiredState.PAUSE: supervisor.pause,
                DesiredState.STOP: supervisor.stop,
            }[wish]("mine")
    assert len(service.starts()) == 1
    with service.open() as supervisor:
        expected = {DesiredState.RUN: "running", DesiredState.PAUSE: "paused", DesiredState.STOP: "stopped"}[wish]
        service.ticks_until(supervisor, expected)
        service.ticks_while(supervisor, lambda: len(service.starts()) < 1 + (wish is DesiredState.RUN))


def test_the_study_of_a_warden_that_was_killed_is_unharmed_and_obeys(service, supervisor):
    started(service, supervisor)
    pid = service.pid()
    service.kill("warden")
    assert supervisor.tick() == []
    assert supervisor.state("mine").state == "running"
    assert service.pid() == pid
    supervisor.pause("mine")
    service.ticks_until(supervisor, "paused")
    assert "left with 8" in supervisor.log("mine")
    supervisor.resume("mine")
    ready(service)
    service.kill("warden")
    supervisor.stop("mine")
    service.ticks_until(supervisor, "stopped")


def test_the_end_of_a_study_without_a_warden_is_found_out_by_starting_it_again(service, supervisor):
    started(service, supervisor)
    service.kill("warden")
    service.tell("exit 0")
    service.ticks_until(supervisor, "finished")
    assert len(service.starts()) == 2


@pytest.mark.parametrize("other", ["number", "boot"])
def test_a_process_that_has_the_number_of_a_study_is_left_alone(service, supervisor, other):
    started(service, supervisor)
    service.kill("warden")
    service.kill("child")
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as innocent:
        fake = shim.identity(innocent.pid)
        fake |= {"started": fake["started"] - 1} if other == "number" else {"boot": "before"}
        path = service.folder / "studies/mine" / shim.PROCESS
        path.write_text(json.dumps({**service.note(), "warden": fake, "child": fake}))
        supervisor.stop("mine")
        service.ticks_until(supervisor, "stopped")
        supervisor.forget("mine")
        assert innocent.poll() is None
        innocent.kill()


def test_a_second_server_is_refused_in_one_line_that_names_the_first(service, supervisor):
    with pytest.raises(BusyError, match=rf"is held by process {os.getpid()} on .*--folder") as caught:
        service.open()
    assert "\n" not in str(caught.value)
    supervisor.close()
    supervisor.close()
    service.open().close()


def test_what_an_earlier_server_left_of_a_forgotten_study_is_removed(service, supervisor):
    supervisor.close()
    left = service.folder / "studies" / ".mine.0123abcd.discarded"
    left.mkdir(parents=True)
    (left / "log").touch()
    service.open().close()
    assert not left.exists()


def test_a_folder_that_cannot_be_used_is_said(service, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="--folder"):
        StudySupervisor(tmp_path / "file", service.url)


def test_only_its_user_may_look_into_the_folder(service, supervisor):
    started(service, supervisor)
    study = service.folder / "studies/mine"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (service.folder, study.parent, study)} == {0o700}
    assert stat.S_IMODE((study / "order.json").stat().st_mode) == 0o600


def test_the_address_of_the_storage_is_on_no_command_line(service, supervisor):
    started(service, supervisor)
    for of in ("warden", "child"):
        assert service.url.encode() not in Path(f"/proc/{service.pid(of)}/cmdline").read_bytes()


def test_what_cannot_be_started_now_is_tried_again(service, supervisor, monkeypatch):
    with monkeypatch.context() as context:
        context.setattr(spawn.shim, "__file__", "/no/such/shim.py")
        found = supervisor.submit(service.order())
        assert found.state == "waiting"
        assert "cannot be started" in found.message
    service.ticks_until(supervisor, "running")
    ready(service)


def test_the_log_is_told_from_its_end(service, supervisor):
    started(service, supervisor)
    folder = service.folder / "studies/mine"
    (folder / shim.OLDER_LOG).write_text("first\nsecond\n")
    (folder / shim.LOG).write_bytes(b"third\n\xff\n")
    assert supervisor.log("mine") == "first\nsecond\nthird\n\ufffd\n"
    assert supervisor.log("mine", 3) == "second\nthird\n\ufffd\n"
    assert supervisor.log("mine", 1) == "\ufffd\n"
    assert supervisor.log("mine", 0) == ""


def test_a_folder_that_somebody_removed_is_survived(service, supervisor):
    shutil.rmtree(service.folder)
    assert supervisor.tick() == []
    assert supervisor.states() == {}
    with pytest.raises(StorageError, match="cannot store the order"):
        supervisor.submit(service.order())
