"""The service as its users see it: studies are started, followed, paused, stopped, resumed, deleted; it is killed."""

import http.client
import signal
import threading
import time
from pathlib import Path

import pytest

from autotune.client import Client, ServiceError
from autotune.machines.this_machine import this_machine
from autotune.storage.study_store import StudyStore
from tests.autotune.service.serving import Service, serving
from tests.support.waiting import wait_for
from tests.support.warm import autotune

pytestmark = pytest.mark.cores(1)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture
def client(service):
    with service.client() as found:
        yield found


def refused(call, *arguments, **options):
    with pytest.raises(ServiceError) as caught:
        call(*arguments, **options)
    return caught.value.status, str(caught.value)


@pytest.fixture(scope="module")
def followed(service):
    """Return the news of a study of this name, from its start to its end."""
    seen = []
    with service.client() as client:
        client.start("sleepy", name="followed", seed=1, cores=str(this_machine().cpus[0]))
        for news in client.follow("followed"):
            seen.append(news)
            if news["state"] == "finished":
                break
    return seen


def test_a_study_is_started_followed_and_finished(followed, client):
    seen = followed
    assert [one["trials"] for one in seen] == sorted(one["trials"] for one in seen)
    assert len({one["version"] for one in seen}) > 2
    assert any(one["running"] for one in seen)
    last = seen[-1]
    assert (last["trials"], last["budget"]) == (6, 6)
    assert last["verdict"]
    assert last["incumbent"]["value"] < last["default"]["value"]
    assert last["speed_up"] > 1.0
    assert last["interval"][0] < last["interval"][1]
    assert client.verdict("followed")["pairs"]
    assert client.study("followed") == last | {"message": "", "running": []}
    rows = list(client.trials("followed"))
    assert [row["trial"] for row in rows] == list(range(6))
    assert {row["state"] for row in rows} <= {"complete", "capped"}
    status, detail = refused(client._call, "GET", "/studies/followed/ablation")
    assert (status, detail) == (404, "study 'followed' has no ablation: `autotune ablate followed` makes it")


@pytest.mark.full
def test_a_study_is_paused_resumed_stopped_and_deleted(service, client):
    client.start("sleepy", name="mine", seed=2, trials=30)  # enough that each request comes before the last trial
    while not client.study("mine")["trials"]:
        time.sleep(0.02)
    assert client.pause("mine")["state"] in {"pausing", "paused"}
    assert 0 < service.until("mine", "paused")["trials"] < 30
    assert refused(client.pause, "mine")[0] == 409
    assert client.resume("mine")["state"] == "running"
    status, detail = refused(client.delete, "mine")
    assert status == 409
    assert "delete needs one that is" in detail
    client.stop("mine")
    service.until("mine", "stopped")
    gone = []
    follower = threading.Thread(target=lambda: gone.extend(client.follow("mine")))
    follower.start()
    while not gone:
        time.sleep(0.02)
    client.delete("mine")
    follower.join(60)
    assert not follower.is_alive()
    assert refused(client.study, "mine")[0] == refused(client.delete, "mine")[0] == 404
    assert "mine" not in [study["name"] for study in client.studies()]


def test_a_program_asks_and_tells(service, client):
    client.start("outside", name="asked")
    while client.study("asked")["state"] == "open":
        leased = client.ask("asked", wait_s=1)
        if leased is None:
            continue
        a, b = leased.configuration["a"], leased.configuration["b"]
        assert b % a == 0
        value = 1.0 + 0.1 * abs(a - 20) + 0.01 * b + 1e-4 * (leased.run % 3)
        told = client.tell("asked", leased.lease, value=value)
        assert told["trial"] == leased.trial
        assert client.tell("asked", leased.lease, value=value)["trial"] == leased.trial
        assert refused(client.tell, "asked", leased.lease, value=99.0)[0] == 409
    status, detail = refused(client.ask, "asked")
    assert status == 410
    assert "finished" in detail
    found = client.study("asked")
    assert (found["state"], found["trials"], found["ask_tell"]) == ("finished", 8, True)
    assert found["verdict"]
    assert refused(client.tell, "asked", "nobody's", value=1.0)[0] == 410


def test_an_invalid_report_is_refused_and_the_lease_stays(client):
    client.start("outside", name="told")
    leased = wait_for(lambda: client.ask("told", wait_s=5))
    for value in (-1.0, 1e999):
        status, detail = refused(client._call, "POST", "/studies/told/tell", {"lease": leased.lease, "value": value})
        assert status == 422
        assert detail
    assert client.tell("told", leased.lease, value=2.0)["state"] in {"complete", "running"}


def test_predictions_say_what_they_do_not_know(client):
    status, detail = refused(client.predict, "unmeasured")
    assert status == 422
    assert "no measurements of 'unmeasured'" in detail
    assert refused(client.predict, "outside", "../../etc/passwd")[0] == 404
    assert refused(client.predict, "nonsense")[0] == 404


@pytest.mark.full
def test_killed_in_the_middle_the_studies_go_on_and_are_picked_up(tmp_path):
    with serving(tmp_path) as service:
        client = service.client()
        client.start("sleepy", name="going", seed=3)
        client.start("outside", name="asked")
        leased = wait_for(lambda: client.ask("asked", wait_s=5))
        while not client.study("going")["trials"]:
            time.sleep(0.02)
        service.kill()
        client.close()
        service.start(service.port)
        with service.client() as client:
            assert client.study("going")["state"] in {"running", "finished"}
            # The lease is still the one that was given.
            assert client.tell("asked", leased.lease, value=1.0)["trial"] == 0
            service.until("going", "finished")
            assert client.study("going")["trials"] == 6
        store = StudyStore.read(f"sqlite:///{tmp_path / 'autotune.db'}", "going")
        assert {run.session["pid"] for run in store.runs() if "pid" in run.session} <= {
            store.runs()[0].session.get("pid")
        }


def test_who_follows_or_waits_is_let_go_when_the_service_ends(tmp_path):
    service = Service(tmp_path).start()
    ends, followed = {}, []

    def ask():
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        name, _, value = service.header.partition(": ")
        headers = {"Content-Type": "application/json", name: value}
        connection.request("POST", "/studies/outside/ask", '{"wait_s": 10}', headers)
        with connection.getresponse() as answer:
            ends["ask"] = (answer.status, answer.read())
        connection.close()

    def follow():
        with service.client() as client:
            for study in client.follow("outside"):
                followed.append(study["state"])  # noqa: PERF401  others see each as it comes

    threads = [threading.Thread(target=one) for one in (ask, follow)]
    try:
        with service.client() as client:
            client.start("outside")
            service.until("outside", "open")
            assert client.ask("outside")  # the default: until it is told, others wait
        for thread in threads:
            thread.start()
        while not followed and all(thread.is_alive() for thread in threads):
            time.sleep(0.02)
        time.sleep(1.0)  # the ask is on its way since the first news is
    finally:
        status = service.stop()
    assert status >= 0  # no signal's
    assert not service.token_file.exists()
    for thread in threads:
        thread.join(60)
    assert ends["ask"][0] == 503
    assert b"report runs in flight when it is open again" in ends["ask"][1]
    assert followed[-1] == "open"
    assert "Traceback" not in service.log
    assert "ERROR" not in service.log


def test_a_second_service_on_the_same_folder_is_refused(service):
    other = type(service)(service.folder, options=("--port=0",))
    with pytest.raises(AssertionError, match="autotune-service"):
        other.start()
    assert other.process.wait(60) == 6
    other.process.stdout.close()


def test_a_token_of_somebody_is_taken_away_at_once(tmp_path):
    with serving(tmp_path, options=("--host=0.0.0.0",)) as service:

        def status(shown):
            with Client(service.url, shown) as client:
                try:
                    return client.studies()
                except ServiceError as error:
                    return error.status

        word = autotune(tmp_path, "serve", "token", "ada").stdout.strip()
        assert [status("wrong"), status(word), status(None)] == [401, [], []]
        assert autotune(tmp_path, "serve", "token", "ada", "--remove").returncode == 0
        assert status(word) == 401


def test_the_owner_is_told_the_address_with_the_token_and_no_log_has_it(tmp_path, service):
    token = service.header.rpartition(" ")[2]
    ended = autotune(tmp_path, "serve", "--url", f"--port={service.port}")
    assert ended.stdout == f"{service.url}/#token={token}\n"
    assert autotune(tmp_path, "serve", "--token-file", f"--port={service.port}").stdout == f"{service.token_file}\n"
    assert token not in service.log
    assert token not in Path(f"/proc/{service.process.pid}/cmdline").read_text()


def test_a_service_that_is_terminated_removes_its_token(tmp_path):
    service = Service(tmp_path).start()
    service.process.send_signal(signal.SIGTERM)
    service.process.communicate(timeout=600)
    assert not service.token_file.exists()
    ended = autotune(tmp_path, "serve", "--url", f"--port={service.port}")
    assert ended.returncode == 3
    assert "no service of yours answers at" in ended.stderr


@pytest.mark.full
def test_a_finished_study_is_extended_and_confirmed_anew(service, followed, client):
    before = followed[-1]
    assert client.extend("followed", 2)["budget"] == 8
    after = service.until("followed", "finished")
    assert (before["trials"], after["trials"]) == (6, 8)
    made = after["fresh"]["pairs"]
    assert made == before["fresh"]["pairs"] + 3, "more trials compare again, in the pairs that the study file asks for"
    with pytest.raises(ServiceError, match=f"has {made} pairs of runs already"):
        client.confirm("followed")
    # The pairs that there are count.
    assert client.confirm("followed", pairs=made + 2)["state"] in {"running", "waiting"}
    assert service.until("followed", "finished")["fresh"]["pairs"] == made + 2
    assert client.estimate("sleepy", trials=10)["measured"] >= 3
