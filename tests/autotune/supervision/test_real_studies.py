"""Real studies under a supervisor: each is quick, and nothing of it is lost or made twice whoever is killed."""

import json

import pytest

from tests.autotune.supervision.services import server, until
from tests.support.quick_study import quick_sections
from tests.support.warm import autotune

STUDY = r"""
objective = "command"
[options]
argv = ["sh", "-c", "sleep 0.2; echo took {x}"]
metrics = [{ name = "took_s", unit = "s", pattern = 'took (\S+)' }]
""" + quick_sections(trials=4, high=400)
# The default is the best: nothing is compared in the end.

# Each start of a study takes seconds, on a busy machine a minute.
pytestmark = [pytest.mark.slow, pytest.mark.cores(1), pytest.mark.timeout(1800)]


@pytest.fixture
def service(real_service):
    return real_service


def runs(service, name="mine"):
    told = autotune(service.cwd, "trials", name, "--runs", "--json", AUTOTUNE_STORAGE=service.url)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def intact(service, trials, name="mine"):
    """Check the number of ended trials, and that no run was recorded twice."""
    found = runs(service, name)
    assert {run["trial"] for run in found} == set(range(trials))
    assert len({(run["started"], run["trial"]) for run in found}) == len(found)
    assert all(run["outcome"]["failure"] is None for run in found)
    # The default configuration runs in each session.
    others = [run["trial"] for run in found if run["trial"]]
    assert len(others) == len(set(others))


def has_begun(service, name="mine"):
    """Whether the study of now has finished something."""
    status = service.note("status.json", name)
    return status.get("pid") == service.pid(name=name) and (status.get("finished") or 0) > 0


@pytest.mark.full
def test_submit_pause_resume_stop_resume_finish_forget(service):
    with service.open() as supervisor:
        supervisor.submit(service.order(does=STUDY, trials=300))
        service.ticks_while(supervisor, lambda: not has_begun(service))
        assert supervisor.status("mine")["budget"] == 300
        supervisor.pause("mine")
        service.ticks_until(supervisor, "paused")
        assert "autotune: paused: every finished run is stored" in supervisor.log("mine")
        done = {run["trial"] for run in runs(service)}
        supervisor.resume("mine")
        service.ticks_while(supervisor, lambda: not has_begun(service))
        supervisor.stop("mine")
        service.ticks_until(supervisor, "stopped")
        assert "stopped: finished runs are stored" in supervisor.log("mine")
        done |= {run["trial"] for run in runs(service)}
        supervisor.submit(service.order(does=STUDY, trials=len(done) + 2))
        service.ticks_until(supervisor, "finished", "failed")
        assert supervisor.state("mine").state == "finished", supervisor.log("mine")
        supervisor.forget("mine")
        assert supervisor.states() == {}
    intact(service, len(done) + 2)


@pytest.mark.full
@pytest.mark.parametrize("killed", ["server", "warden", "child"])
def test_whoever_is_killed_the_study_is_finished_and_nothing_is_made_twice(service, killed):
    trials = 8
    with server(service, "real") as (process, ask):
        ask("submit", service.order(does=STUDY, trials=trials).model_dump_json())

        def begun():
            ask("tick")
            return has_begun(service)

        until(begun, lambda: service.note("status.json"))
        process.kill()
        process.wait()
    pid = service.pid()
    if killed != "server":
        service.kill(killed)
    with service.open() as supervisor:
        supervisor.tick()
        if killed != "child":
            assert service.pid() in {pid, None}, "another one was started beside it"
        service.ticks_until(supervisor, "finished", "failed")
        assert supervisor.state("mine").state == "finished", supervisor.log("mine")
    intact(service, trials)


@pytest.mark.full
def test_the_second_of_two_studies_waits_for_the_cores_of_the_first(service):
    with service.open() as supervisor:
        supervisor.submit(service.order("first", does=STUDY, trials=300))
        service.ticks_while(supervisor, lambda: not has_begun(service, "first"))
        supervisor.submit(service.order("second", does=STUDY, trials=2))
        service.ticks_until(supervisor, "waiting", "finished", name="second")
        found = supervisor.state("second")
        assert found.state == "waiting"
        assert "is in use by process" in found.message
        supervisor.stop("first")
        service.ticks_until(supervisor, "finished", "failed", name="second")
        assert supervisor.state("second").state == "finished", supervisor.log("second")
        service.ticks_until(supervisor, "stopped", name="first")
    intact(service, 2, "second")
