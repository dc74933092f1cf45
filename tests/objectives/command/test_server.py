"""A command that is the load of a server: from the options to a measurement, and whose fault a failure is."""

import json
import math
import os
import re
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from autotune.batch.job_script import JobScript, job_script
from autotune.execution.task import Task, describe_job, job_from_description, run_task
from launchers import STDOUT, EndReason, JobState, JobStatus, Usage
from launchers import server as driver
from launchers.highest_load import LOADS
from launchers.local import LocalLauncher
from launchers.mpi import MpiFlavour
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.server import SERVER_FILE, SERVER_LOG, STEPS_LOG
from objectives.base import AT_END, Context, FailureKind, InfrastructureError, Output, PlanError
from objectives.command import plan
from tests.launchers.jobs import wait_for
from tests.support.processes import left_in

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SUPPORT = ROOT / "tests/support"
PYTHON = [sys.executable, "-I", "-S"]
SERVER = [*PYTHON, str(SUPPORT / "tiny_server.py"), "{port}", "{mode}", "{capacity}"]
LOAD = [*PYTHON, str(SUPPORT / "tiny_load.py"), "{port}"]
P99 = {"name": "p99_ms", "unit": "ms", "pattern": r"^p99 (\S+) ms"}
ASKED = {"name": "asked", "pattern": r"^asked (\d+)"}
HIGHEST = {"name": "rate", "unit": "1/s", "from": 1, "to": 64, "keep": {"p99_ms": 20}}


def options(*load, metrics=(P99, ASKED), files=(), prepare=(), progress=None, **server):
    more = {"progress": progress} if progress else {}
    own = {"argv": SERVER, **server}
    return {
        "argv": [*LOAD, *(load or ("5",))],
        "metrics": list(metrics),
        "files": list(files),
        "prepare": list(prepare),
        "server": own,
        **more,
    }


def planned(*load, **server):
    return plan(options(*load, **server), machine={}, run_job=lambda job: None, folder=Path("/nowhere"))


def outcome_of(folder, *load, mode="serves", capacity=10, limit_s=None, **server):
    objective = planned(*load, **server).objective
    job = objective.job({"mode": mode, "capacity": capacity}, Context(folder, time_limit_s=limit_s))
    outcome = run_task(Task(0, job, objective), LocalLauncher())
    assert left_in(folder) == []
    return outcome


def paths_of(**changed):
    with pytest.raises(PlanError) as caught:
        planned(**changed)
    found = {problem.path: problem.message for problem in caught.value.problems}
    assert len(found) == len(caught.value.problems), "a mistake is one problem"
    return found


def test_a_load_is_measured_while_its_server_runs(tmp_path):
    ask = [*LOAD, "1"]
    outcome = outcome_of(tmp_path, warm_up=[ask, ask], reset=[ask])
    assert outcome.metrics == {"p99_ms": 5.0, "asked": 4.0}, outcome.message
    assert re.fullmatch(r"serving on \d+\n", (tmp_path / SERVER_LOG).read_text())
    assert (tmp_path / STDOUT).read_text().startswith("rate 5\n")
    assert (tmp_path / STEPS_LOG).read_text().count("asked") == 3, "the output of other commands is not the load's"
    assert outcome.details["started_s"] > 0
    assert (tmp_path / SERVER_FILE).stat().st_mode & 0o077 == 0, "it may have secrets"
    port = int((tmp_path / SERVER_LOG).read_text().split()[-1])
    assert not driver._answers(port)


@pytest.mark.parametrize(
    "ready", [{"port": True}, {"url": "http://127.0.0.1:{port}/health?full=1"}, {"line": r"^serving on \d+$"}]
)
def test_a_server_shows_in_several_ways_that_it_is_ready(tmp_path, ready):
    assert outcome_of(tmp_path, ready=ready).metrics["p99_ms"] == 5.0


def test_the_time_of_a_run_is_that_of_its_load(tmp_path):
    slow = [*PYTHON, "-c", "import time; time.sleep(0.6)"]
    outcome = outcome_of(tmp_path, metrics=[], warm_up=[slow])
    assert outcome.metrics["elapsed_s"] < outcome.usage.elapsed_s - 0.5


def test_times_of_a_load_bound_no_run_since_the_server_starts_first():
    time_metric = {"name": "time_s", "unit": "s", "pattern": "(.)", "kind": "time"}
    assert planned(metrics=[time_metric]).objective.metrics[0].kind == "other"


@pytest.mark.parametrize(
    ("mode", "server", "code", "words"),
    [
        ("dies", {}, "server-died", "the server ended with exit code 1 before it was ready: cannot open the model"),
        ("memory", {}, "out-of-memory", "the server ended with exit code 1 before it was ready: ran out of memory"),
        ("never", {"ready_within_s": 0.5}, "server-not-ready", r"was not ready within 0.5 s .*port\): loading"),
        ("stuck", {"failure": ["^FATAL: .*"]}, "server-failure", "^the server failed: FATAL: no card$"),
        ("dies-asked", {}, "server-died", "ended with exit code 3 during the load: double free or corruption"),
        ("serves", {"failure": ["^serving"]}, "server-failure", "the server failed: serving on"),
        ("serves", {"argv": ["./no-such", "{port}"], "prepare": [["true"]]}, "server-died", "no-such: No such file"),
        (
            "serves",
            {"warm_up": [["sh", "-c", "echo no table; exit 4"]]},
            "warm-up",
            "sh ended with exit code 4: no table",
        ),
        ("serves", {"reset": [["sh", "-c", "echo no table; exit 4"]]}, "reset", "sh ended with exit code 4: no table"),
    ],
)
def test_a_server_that_fails_is_to_blame_and_its_log_says_why(tmp_path, mode, server, code, words):
    outcome = outcome_of(tmp_path, mode=mode, **server)
    assert outcome.code == code, outcome.message
    kind = FailureKind.OUT_OF_MEMORY if mode == "memory" else FailureKind.APPLICATION_ERROR
    assert outcome.failure is kind
    assert re.search(words, outcome.message), outcome.message


@pytest.mark.parametrize(
    ("load", "code", "words"),
    [
        (["5", "fails"], "exit-code", "^ended with exit code 1: too many open files"),
        (["x"], "exit-code", "could not convert string to float"),
    ],
)
def test_a_load_that_fails_is_to_blame_itself(tmp_path, load, code, words):
    outcome = outcome_of(tmp_path, *load)
    assert outcome.code == code
    assert re.search(words, outcome.message), outcome.message


def test_whoever_is_killed_from_outside_the_run_may_be_repeated(tmp_path):
    for name, load, mode in (("load", ["5", "killed"], "serves"), ("server", ["5"], "killed")):
        (tmp_path / name).mkdir()
        outcome = outcome_of(tmp_path / name, *load, mode=mode)
        assert (outcome.failure, outcome.code) == (FailureKind.INFRASTRUCTURE_ERROR, "killed"), outcome.message


def test_the_time_limit_says_that_the_server_was_not_ready(tmp_path):
    outcome = outcome_of(tmp_path, mode="never", limit_s=0.7)
    assert outcome.failure is FailureKind.TIMED_OUT
    assert re.search(r"time limit after .* before the server was ready: loading", outcome.message)
    (tmp_path / "load").mkdir()
    outcome = outcome_of(tmp_path / "load", "5", "waits", limit_s=1.5)
    assert outcome.failure is FailureKind.TIMED_OUT
    assert "server" not in outcome.message
    (tmp_path / "search").mkdir()
    outcome = outcome_of(tmp_path / "search", "{rate}", "waits", limit_s=1.5, highest=HIGHEST)
    assert re.search(r"^was stopped at its time limit after \S+ s, during load 1 of its search$", outcome.message)


def test_what_a_load_leaves_does_not_run_beside_the_next_one(tmp_path):
    script = "kill -0 $(cat left) && echo p99 100 ms || echo p99 1 ms; setsid sleep 1000 & echo $! >left"
    wanted = options(metrics=[P99], highest=HIGHEST) | {"argv": ["sh", "-c", script, "{rate}"]}
    objective = plan(wanted, machine={}, run_job=lambda job: None, folder=tmp_path).objective
    job = objective.job({"mode": "serves", "capacity": 1}, Context(tmp_path))
    outcome = run_task(Task(0, job, objective), LocalLauncher())
    assert [load["metrics"]["p99_ms"] for load in outcome.details["loads"]] == [1.0] * len(outcome.details["loads"])
    assert outcome.metrics["rate"] == 64
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("mode", ["stubborn", "leaves", "daemon", "daemon-of-two-forks"])
def test_nothing_of_a_server_is_left_however_it_behaves(tmp_path, mode):
    began = time.monotonic()
    outcome = outcome_of(tmp_path, mode=mode, stop_within_s=0.3)
    assert outcome.metrics["p99_ms"] == 5.0, outcome.message
    assert time.monotonic() - began < 60
    if mode == "leaves":
        wait_for(lambda: not Path(f"/proc/{(tmp_path / 'left').read_text()}").exists())


def test_a_long_log_neither_delays_a_run_nor_hides_why_it_failed(tmp_path):
    outcome = outcome_of(tmp_path, mode="loud", ready={"line": "^serving"})
    assert outcome.metrics["p99_ms"] == 5.0, outcome.message


def test_a_log_without_end_ends_the_run(tmp_path):
    objective = planned().objective
    job = objective.job({"mode": "loud", "capacity": 1}, Context(tmp_path))
    outcome = run_task(Task(0, job, objective), LocalLauncher(output_limit_bytes=2**24))
    assert outcome.code == "output-limit"
    assert outcome.message == "the server printed more than 16 MiB, the limit of every run"


def test_a_load_of_a_search_without_end_ends_the_run(tmp_path):
    load = ["sh", "-c", "yes {rate}"]
    objective = plan(
        options(highest=HIGHEST) | {"argv": load}, machine={}, run_job=lambda job: None, folder=tmp_path
    ).objective
    job = objective.job({"mode": "serves", "capacity": 1}, Context(tmp_path))
    outcome = run_task(Task(0, job, objective), LocalLauncher(output_limit_bytes=2**22))
    assert (outcome.code, outcome.message) == (
        "output-limit",
        "a load printed more than 4 MiB, the limit of every run",
    )
    assert left_in(tmp_path) == []


def test_a_port_that_another_program_takes_in_between_is_nobodys_fault(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        code = f"from launchers import server; server._Run._take_port = lambda run: {number}; server.main(['true'])"
        objective = planned().objective
        job = objective.job({"mode": "serves", "capacity": 1}, Context(tmp_path))
        spec = asdict(job.server) | {"judge": [], "output_limit_bytes": 2**20}
        (tmp_path / SERVER_FILE).write_text(json.dumps(spec))
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
    assert left_in(tmp_path) == []
    status = JobStatus(JobState.ENDED, EndReason.EXITED, 1)
    with pytest.raises(InfrastructureError, match=f"another program took port {number}"):
        objective.measure(Output("", "", status, tmp_path, job))


def test_a_page_of_another_program_is_no_sign_that_a_server_is_ready(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        number = other.getsockname()[1]
    argv = [*PYTHON, str(SUPPORT / "tiny_server.py"), str(number)]
    with subprocess.Popen([*argv, "serves"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        ready = {"url": f"http://127.0.0.1:{number}/"}
        outcome = outcome_of(tmp_path, argv=[*argv, "never"], ready=ready, ready_within_s=0.5)
        process.kill()
    assert (outcome.failure, outcome.code) == (FailureKind.INFRASTRUCTURE_ERROR, "port-taken"), outcome.message
    assert outcome.message == f"another program took port {number} before the server did"


def test_a_server_that_a_script_has_started_gets_its_signal_to_stop(tmp_path):
    (tmp_path / "server.sh").write_text('trap "touch ended; exit" TERM; echo serving; sleep 1000 & wait\n')
    wanted = options(argv=["sh", "-c", "sh server.sh; true"], ready={"line": "^serving"}, metrics=[])
    objective = plan(wanted | {"argv": ["true"]}, machine={}, run_job=lambda job: None, folder=tmp_path).objective
    outcome = run_task(Task(0, objective.job({}, Context(tmp_path)), objective), LocalLauncher())
    assert outcome.complete, outcome.message
    assert (tmp_path / "ended").exists()
    assert left_in(tmp_path) == []


def test_the_shared_memory_of_a_load_that_dies_with_its_server_is_removed(tmp_path):
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        outcome = outcome_of(tmp_path / str(number), "5", "leaves-memory", mode="killed")
        assert outcome.code == "killed", outcome.message
    assert list(Path("/dev/shm").glob("autotune-tiny-*")) == []


def test_the_port_reaches_files_variables_and_other_commands_and_nothing_else(tmp_path):
    config = {"name": "conf/a.conf", "text": "listen {port};\n{{ mode {mode} }}\n"}
    other = {"name": "b.conf", "text": "port @port@ of ${port}\n", "delimiters": ["@", "@"]}
    untouched = {"name": "c.conf", "text": "{port}\n", "delimiters": []}
    show = ["sh", "-c", "cat conf/a.conf b.conf c.conf; echo $ADDRESS$MODE$0; env | grep -c MODE= || true", "{{port}}"]
    outcome = outcome_of(
        tmp_path,
        files=[config, other, untouched],
        warm_up=[show],
        environment={"ADDRESS": "x:{port}", "MODE": "{mode}"},
    )
    assert outcome.complete, outcome.message
    port = (tmp_path / SERVER_LOG).read_text().split()[-1]
    said = (tmp_path / STEPS_LOG).read_text()
    files = f"listen {port};\n{{ mode serves }}\nport {port} of ${{port}}\n{{port}}\n"
    assert said == f"{files}{{port}}\n0\n", "its variables are its own"


@pytest.mark.parametrize(("capacity", "highest"), [(10, 20), (3, 6), (0.5, 1), (1000, 64)])
def test_the_highest_load_that_keeps_its_limits_is_found(tmp_path, capacity, highest):
    outcome = outcome_of(tmp_path, "{rate}", capacity=capacity, highest=HIGHEST)
    assert outcome.complete, outcome.message
    assert list(outcome.metrics) == ["rate", "p99_ms", "asked"]
    loads = outcome.details["loads"]
    assert len(loads) <= LOADS
    assert all((load["breaks"] is None) == (load["rate"] <= highest) for load in loads)
    assert 0.8 * highest <= outcome.metrics["rate"] <= highest
    kept = min((load for load in loads if load["breaks"] is None), key=lambda load: highest - load["rate"])
    assert outcome.metrics["p99_ms"] == pytest.approx(10 * kept["rate"] / capacity)
    assert (outcome.remark == AT_END) == (highest == 64), "the highest of all loads is only a lower bound"
    output = (tmp_path / STDOUT).read_text()
    assert output.startswith(f"rate {kept['rate']:g}\n"), "the output is that of the load that is reported"
    assert (tmp_path / f"load-{len(loads)}.stdout").read_text().startswith(f"rate {loads[-1]['rate']}\n")


def test_a_configuration_that_keeps_the_limits_at_no_load_is_invalid(tmp_path):
    outcome = outcome_of(tmp_path, "{rate}", capacity=0.1, highest=HIGHEST)
    assert (outcome.failure, outcome.code) == (FailureKind.INVALID_RESULT, "no-load-kept")
    assert outcome.message == "p99_ms is 100 ms, more than 20, at rate = 1, the lowest load"


def test_a_load_that_fails_in_a_search_breaks_the_limits_but_one_that_is_killed_ends_the_run(tmp_path):
    outcome = outcome_of(tmp_path, "{rate}", "fails", highest={**HIGHEST, "to": 4})
    assert outcome.metrics["rate"] == 1, outcome.message
    assert "too many open files" in outcome.details["loads"][0]["breaks"]
    (tmp_path / "killed").mkdir()
    outcome = outcome_of(tmp_path / "killed", "{rate}", "killed", highest=HIGHEST)
    assert (outcome.failure, outcome.code) == (FailureKind.INFRASTRUCTURE_ERROR, "killed")


def test_a_load_that_breaks_the_limits_once_by_chance_is_not_too_high(tmp_path):
    outcome = outcome_of(tmp_path, "{rate}", "stumbles", highest=HIGHEST)
    loads = outcome.details["loads"]
    assert (loads[0]["rate"], loads[0]["breaks"] is None) == (8, False), outcome.message
    assert outcome.metrics["rate"] > 8


def test_a_search_keeps_the_files_of_its_loads_apart(tmp_path):
    write = "open('out.json', 'w').write('{{\"p99\": ' + sys.argv[1] + '}}')"
    load = [*PYTHON, "-c", f"import sys; {write}", "{rate}"]
    metric = {"name": "p99_ms", "json": "p99", "file": "out.json"}
    objective = plan(
        {**options(metrics=[metric], highest=HIGHEST), "argv": load},
        machine={},
        run_job=lambda job: None,
        folder=tmp_path,
    ).objective
    job = objective.job({"mode": "serves", "capacity": 1}, Context(tmp_path))
    outcome = run_task(Task(0, job, objective), LocalLauncher())
    assert outcome.metrics["p99_ms"] <= 20, outcome.message
    assert len(list(tmp_path.glob("load-*.out.json"))) == len(outcome.details["loads"]) - 1


def test_pairs_of_a_verdict_do_not_all_run_the_same_loads():
    objective = planned("{rate}", highest={**HIGHEST, "from": 1.0, "to": 64.0}).objective
    jobs = [objective.job({"mode": "serves", "capacity": 1}, Context(Path(), seed=seed)) for seed in range(40)]
    shifts = [job.server.search.shift for job in jobs]
    assert shifts[0] == 0, "tuning runs the same ones"
    assert len(set(shifts)) == 40
    assert -0.5 <= min(shifts) < -0.4 < 0.4 < max(shifts) <= 0.5


def test_a_search_begins_near_what_an_earlier_run_of_the_study_found(tmp_path):
    objective = planned("{rate}", highest=HIGHEST).objective
    for known, first in (({}, {8}), ({"p99_ms": 2.0, "rate": 40.0}, set(range(33, 42)))):
        folder = tmp_path / str(len(known))
        folder.mkdir()
        job = objective.job({"mode": "serves", "capacity": 18}, Context(folder, known=known))
        outcome = run_task(Task(0, job, objective), LocalLauncher())
        assert outcome.details["loads"][0]["rate"] in first, outcome.message
        assert 0.8 * 36 <= outcome.metrics["rate"] <= 40


def test_the_names_that_only_a_run_knows_are_no_parameters():
    found = planned("{rate}", highest=HIGHEST, files=[{"name": "f", "text": "{port} {rate} {x}"}])
    assert {mention.text for mention in found.mentions} == {"mode", "capacity", "x"}
    assert found.run_values == ("seed", "port", "rate")
    assert found.identity["server"].endswith("tiny_server.py {port} {mode} {capacity}")
    assert found.identity["highest"] == "rate from 1 to 64 with p99_ms 20.0"
    other = planned("{rate}", highest={**HIGHEST, "keep": {"p99_ms": 30}})
    assert other.identity != found.identity


@pytest.mark.parametrize(
    ("changed", "path", "words"),
    [
        ({"argv": []}, "options.server.argv", "at least 1"),
        ({"argv": [sys.executable]}, "options.server.argv", "{port} is in none of its argv, environment and files"),
        ({"argv": ["no-such-server", "{port}"]}, "options.server.argv.0", "'no-such-server' was not found"),
        ({"warm_up": [["no-such-client"]]}, "options.server.warm_up.0.0", "was not found"),
        ({"reset": [[]]}, "options.server.reset.0", "at least the name of a program"),
        ({"ready": {"port": True, "line": "x"}}, "options.server.ready", "exactly one of them"),
        ({"ready": {"url": "127.0.0.1:{port}"}}, "options.server.ready.url", "begins with http://"),
        ({"ready": {"url": "http://:{port}/"}}, "options.server.ready.url", "begins with http://"),
        ({"ready": {"url": "http://127.0.0.1:{port}:/"}}, "options.server.ready.url", "begins with http://"),
        ({"ready": {"line": "("}}, "options.server.ready.line", "is not a regular expression"),
        ({"ready": {"lines": "x"}}, "options.server.ready.lines", "unknown key 'lines'"),
        ({"ready_within_s": 0}, "options.server.ready_within_s", "more than 0"),
        ({"failure": ["("]}, "options.server.failure.0", "is not a regular expression"),
        ({"stop": "TERM"}, "options.server.stop", "is not the name of a signal"),
        ({"argv": ["{", "{port}"]}, "options.server.argv.0", "stands alone"),
        ({"prepare": [["echo", "{port}"]]}, "options.prepare.0.1", "known only after prepare"),
        ({"highest": {**HIGHEST, "to": 1}}, "options.server.highest.to", "above its begin"),
        ({"highest": {**HIGHEST, "from": 0}}, "options.server.highest.from", "must be more than 0, got 0"),
        ({"highest": {**HIGHEST, "to": "64"}}, "options.server.highest.to", "must be a number, got '64': leave out"),
        ({"metrics": [{"name": "p99_ms", "json": 5}]}, "options.metrics.0.json", "must be a text or a list, got 5"),
        ({"metrics": [{"name": "p99_ms", "json": ["a", {}]}]}, "options.metrics.0.json.1", "a text or a whole number"),
        ({"progress": {"pattern": "x", "fil": "a"}}, "options.progress.fil", "unknown key"),
        ({"highest": {**HIGHEST, "keep": {}}}, "options.server.highest.keep", "at least 1"),
        ({"highest": {**HIGHEST, "keep": {"p9": 1}}}, "options.server.highest.keep.p9", "they are p99_ms, asked"),
        ({"highest": {**HIGHEST, "name": "asked"}}, "options.server.highest.name", "is a metric already"),
        ({"highest": HIGHEST}, "options.server.highest.name", "no word of the load mentions {rate}"),
        ({"highest": HIGHEST, "argv": [*SERVER, "{rate}"]}, f"options.server.argv.{len(SERVER)}", "starts once"),
        ({"highest": HIGHEST, "progress": "(x)"}, "options.progress", "leave out progress"),
        ({"highest": {**HIGHEST, "name": "seed"}}, "options.server.highest.name", "neither port nor seed"),
        ({"highest": {**HIGHEST, "to": math.inf}}, "options.server.highest.to", "a finite number, got inf"),
        (
            {"highest": HIGHEST, "metrics": [{**P99, "file": "server.log"}]},
            "options.metrics.0.file",
            "share 'server.log'",
        ),
        ({"files": [{"name": "server.log", "text": "x"}]}, "options.files.0.name", "give another name"),
    ],
)
def test_mistakes_name_their_place(changed, path, words):
    found = paths_of(**changed)
    assert words in found.get(path, ""), found


def test_a_wrong_value_of_a_server_hides_no_other_mistake():
    search = {**HIGHEST, "to": "x"}
    found = paths_of(stop="TERM", highest=search, failure=["("], ready_within=5, metrics=[{"name": "p99_ms"}])
    assert set(found) == {
        *(f"options.server.{key}" for key in ("stop", "highest.to", "failure.0", "ready_within")),
        "options.metrics.0.pattern",
    }


def test_a_load_gets_the_seed_of_its_run_and_a_count_is_not_the_port(tmp_path):
    found = plan(options("{seed}") | {"threads": "port"}, machine={}, run_job=lambda job: None, folder=tmp_path)
    job = found.objective.job({"mode": "serves", "capacity": 1}, Context(tmp_path, seed=7))
    assert job.argv[-1] == job.environment["AUTOTUNE_SEED"] == "7"
    assert "port" in {mention.text for mention in found.mentions}, "so the study file is refused"


def test_the_winners_script_starts_the_server_in_the_foreground(tmp_path):
    files = [{"name": "a.conf", "text": "listen {port};\n"}]
    objective = planned(
        "{rate}", highest=HIGHEST, files=files, environment={"MODEL": "m {mode}"}, warm_up=[["true", "x y"]]
    ).objective
    job = objective.job({"mode": "serves", "capacity": 7}, Context(tmp_path))
    stored = json.loads(json.dumps(describe_job(job)))
    again = job_from_description(stored)
    assert again.server == job.server
    script = job_script("sh", JobScript("autotune-web", {}, stored, Usage(), MpiFlavour(OPEN_MPI, "mpirun")))
    lines = script.splitlines()
    assert 'port="${PORT:-8080}"' in lines
    assert 'sed -i "s/{run:port}/$port/g" a.conf' in lines
    assert "export MODEL='m serves'" in lines
    assert lines[-3] == "# its warm-up: true 'x y'"
    assert lines[-1] == f'exec {" ".join(SERVER[:-3])} "$port" serves 7'


def test_secrets_of_a_server_are_not_stored(tmp_path):
    argv = [*SERVER, "--api-key", "sk-0123456789"]
    objective = planned(argv=argv, environment={"HF_TOKEN": "hf_0123456789"}).objective
    job = objective.job({"mode": "serves", "capacity": 7}, Context(tmp_path))
    assert "0123456789" not in json.dumps(describe_job(job))
    assert "0123456789" not in LocalLauncher().preview(job)
    assert "0123456789" not in json.dumps(planned(argv=argv, environment={"HF_TOKEN": "hf_0123456789"}).identity)


def test_two_runs_at_once_have_ports_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda count: b"\0" * (count - 1) + bytes([numbers.pop(0)]))
    numbers = [7, 7, 9]
    first, second = (driver._Run({}, []) for _ in range(2))
    assert [run._take_port() - 10_240 for run in (first, second)] == [7, 9]
    for run in (first, second):
        run._claim.close()
