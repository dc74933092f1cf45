import json
from pathlib import Path

import pytest

from launchers import EndReason, JobState, JobStatus, Usage
from objectives.base import ApplicationError, Context, InvalidResult, Output, PlanError, RunFailure, TimedOut
from objectives.ucx.objective import MERGE_METRICS, UcxObjective, perftest_metrics, unused_variables
from objectives.ucx.options import UcxOptions
from objectives.ucx.plan import plan
from studies.programs.ucx import pair

MERGED = (Path(__file__).parents[1] / "outputs" / "ucx-merge.stdout").read_text()
MEASURED = '{"result": {"value": 2.0, "medians": {"8": 1.0, "64": 4.0}, "iterations": {"8": [1.0], "64": [4.0]}}}\n'
COLUMNS = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
INVALID = (
    "[1.5] [vm:1 :0]  parser.c:1059 UCX  ERROR Invalid value for RNDV_SCHEME: 'foo'. Expected: [auto|am]\n"
    "[1.5] [vm:1 :0]  perftest_run.c:334  UCX  ERROR Failed to run test: Invalid parameter\n"
)
ABSENT = (
    "[1.5] [vm:1 :0]  ucp_context.c:1276 UCX  ERROR no usable transports/devices (asked rc on all devices)\n"
    "[1.5] [vm:1 :0]  perftest_run.c:334  UCX  ERROR Failed to run test: No such device\n"
)
merge = UcxObjective(("python", "merge.py"), 2, MERGE_METRICS)


def output(stdout="", stderr="", exit_code=0):
    status = JobStatus(JobState.ENDED, EndReason.EXITED, exit_code, Usage(2.5))
    return Output(stdout, stderr, status, Path("/nowhere"))


def test_variables_become_the_environment_and_nothing_else_does(tmp_path):
    configuration = {"UCX_TLS": "tcp", "UCXPY_PROGRESS_MODE": "polling", "other": 1}
    job = merge.job(configuration, Context(tmp_path, (0, 1), 9.0))
    assert job.environment == {
        "UCX_WARN_UNUSED_ENV_VARS": "y",
        "PYTHONUNBUFFERED": "1",
        "UCX_TLS": "tcp",
        "UCXPY_PROGRESS_MODE": "polling",
    }


def test_a_merge_is_read():
    measured = merge.measure(output(MERGED))
    result = json.loads(MERGED.splitlines()[-1])["result"]
    assert measured.metrics["throughput_bytes_per_s"] == result["throughput_bytes_per_s"]
    assert measured.metrics["elapsed_s"] == 2.5
    assert measured.answer.value == result["checksum"]


def test_a_perftest_is_read():
    measured = UcxObjective(("p",), 2, perftest_metrics("tag_lat")).measure(output(MEASURED))
    assert measured.metrics == {"latency_s": 2.0, "elapsed_s": 2.5}


@pytest.mark.parametrize(
    ("text", "exit_code", "failure", "code"),
    [
        (INVALID, 1, ApplicationError, "ucx.invalid-value"),
        (INVALID + MERGED, 0, ApplicationError, "ucx.invalid-value"),
        (ABSENT, 1, ApplicationError, "ucx.no-transport"),
        ("gave up: the client did not end within 4 s\n", 1, TimedOut, "ucx.hang"),
        ("wrong table: 3 rows instead of 4, checksums [1]\n", 1, InvalidResult, "ucx.wrong-answer"),
        ("worker 1 has ended early\n", 1, ApplicationError, "ucx.exit-code"),
        ("", 0, InvalidResult, "ucx.no-result"),
        ('{"result": {"throughput_bytes_per_s": NaN}}\n', 0, InvalidResult, "ucx.bad-result"),
    ],
)
def test_failures_are_told_apart(text, exit_code, failure, code):
    with pytest.raises(RunFailure) as caught:
        merge.measure(output(text, "", exit_code))
    assert (type(caught.value), caught.value.code) == (failure, code)


@pytest.mark.parametrize(
    "text",
    [
        "UCX  WARN  unused env variables: UCX_FOO,UCX_BAR (set UCX_WARN_UNUSED_ENV_VARS=n to suppress this warning)",
        "UCX  WARN  unused environment variables: UCX_FOO (maybe: UCX_TLS?); UCX_BAR\n(set ...=n to suppress)",
    ],
)
def test_unused_variables_are_those_that_ucx_complains_of(text):
    assert unused_variables(text) == ("UCX_BAR", "UCX_FOO")


def test_a_line_of_ucx_perftest_is_read_in_bytes_and_seconds():
    columns = pair.parse(COLUMNS + "1000,6.573,6.921,6.921,9030.42,9030.42,144487,144487\n")
    assert pair.figure("tag_bw", 65536, columns) == pytest.approx(9030.42 * 2**20, rel=1e-4)
    assert pair.figure("tag_lat", 65536, columns) == pytest.approx(6.573e-6)
    with pytest.raises(pair.PairError, match="no figures"):
        pair.parse(COLUMNS)


def test_options_have_all_errors_at_once():
    with pytest.raises(PlanError) as caught:
        UcxOptions.read({"benchmrk": "merge", "workers": 1})
    assert "did you mean 'benchmark'?" in str(caught.value)
    assert "options.workers" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"benchmark": "perftest", "server": ["ssh", "node2"]}, "needs both"),
        ({"benchmark": "perftest", "server_address": "node2"}, "needs both"),
        ({"benchmark": "merge", "server": ["ssh", "node2"], "server_address": "node2"}, "only ucx_perftest"),
        ({"message_bytes": [0]}, "from 1 to"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, words):
    with pytest.raises(PlanError, match=words):
        UcxOptions.read(options)


def test_a_server_on_another_host_gets_the_variables_and_a_time_limit(monkeypatch):
    monkeypatch.setenv("UCX_TLS", "tcp")
    argv = pair.on_host(["ssh", "node2"], ["ucx_perftest", "-p", "7"], 60)
    assert argv[:3] == ["ssh", "node2", "env"]
    assert "UCX_TLS=tcp" in argv
    assert argv[-6:] == ["timeout", "--kill-after=5", "60", "ucx_perftest", "-p", "7"]
    assert pair.on_host([], ["ucx_perftest"], 60) == ["ucx_perftest"]


def test_the_messages_of_a_merge_are_a_counter_and_a_share_of_the_table():
    assert UcxOptions.read({}).spans_bytes("merge") == ((1, 8), (360_000, 440_000))
    assert UcxOptions.read({"message_bytes": [8, 64]}).spans_bytes("perftest") == ((8, 8), (64, 64))


def test_a_run_keeps_the_protocols_that_it_used():
    run = (Path(__file__).parents[1] / "outputs" / "ucx-protocols-tcp.stdout").read_text()
    tuned = UcxObjective(("python", "merge.py"), 2, MERGE_METRICS, {"UCX_PROTO_INFO": "y"}, ((400_000, 400_000),))
    details = tuned.measure(output(run)).details
    assert len(details["protocols"]) == 3
    assert all("fragmented copy-in copy-out on tcp/lo" in line for line in details["protocols"])


def test_nothing_there_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    failing = lambda job: output(exit_code=1)  # noqa: E731
    with pytest.raises(PlanError, match=r"ucxx-cu12.*apt-get install ucx-utils"):
        plan({}, machine={}, run_job=failing, folder=tmp_path)
