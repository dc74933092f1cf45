"""The benchmarks themselves, at a small size, through the real launcher."""

import shutil

import pytest

from autotune.execution.task import Task, run_job, run_task
from launchers.local import local_launcher
from objectives import registry
from objectives.base import Context, FailureKind, PlanError
from spaces import Space
from tests.support.processes import left_in

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("ucx_perftest"), reason="no ucx_perftest here: apt-get install ucx-utils"),
]


def plan_of(options, folder):
    launcher = local_launcher()
    return registry.plan("ucx", options, machine={}, run_job=lambda job: run_job(job, launcher), folder=folder)


def outcome_of(plan, configuration, folder, limit_s=600.0):
    folder.mkdir()
    job = plan.objective.job(configuration, Context(folder, (), limit_s))
    return run_task(Task(1, job, plan.objective), local_launcher())


@pytest.fixture
def perftest(tmp_path):
    return plan_of({"benchmark": "perftest", "message_bytes": [2**20], "iterations": 1}, tmp_path / "plan")


def test_perftest_measures_the_default(perftest, tmp_path):
    default = Space(perftest.parameters, perftest.constraints, perftest.facts).default()
    outcome = outcome_of(perftest, default, tmp_path / "trial")
    assert outcome.failure is None, outcome.message
    assert outcome.metrics["bandwidth_bytes_per_s"] > 0


def test_a_value_that_ucx_refuses_is_the_configurations_fault(perftest, tmp_path):
    outcome = outcome_of(perftest, {"UCX_RNDV_SCHEME": "foo"}, tmp_path / "trial")
    assert (outcome.failure, outcome.code) == (FailureKind.APPLICATION_ERROR, "ucx.invalid-value")


def test_a_variable_without_effect_is_known(perftest, tmp_path):
    outcome = outcome_of(perftest, {"UCX_TLS": "posix", "UCX_TCP_TX_SEG_SIZE": "16K"}, tmp_path / "trial")
    assert outcome.unused == ("UCX_TCP_TX_SEG_SIZE",)


@pytest.mark.full
def test_a_hang_ends_at_its_limit_with_nothing_left(perftest, tmp_path):
    hanging = {"UCX_TLS": "tcp", "UCX_TCP_SNDBUF": "16K"}
    outcome = outcome_of(perftest, hanging, tmp_path / "trial", limit_s=4.0)
    assert outcome.failure is FailureKind.TIMED_OUT
    assert not left_in(tmp_path / "trial")


@pytest.mark.full
def test_the_merge_gives_the_same_table_with_other_transports(tmp_path):
    try:
        merge = plan_of({"benchmark": "merge", "iterations": 2, "warm_up": 0}, tmp_path / "plan")
    except PlanError as error:
        pytest.skip(f"no Python with ucxx here: {error}")
    outcomes = [
        outcome_of(merge, configuration, tmp_path / f"trial {number}")
        for number, configuration in enumerate([{}, {"UCX_TLS": "tcp", "UCXPY_PROGRESS_MODE": "polling"}])
    ]
    assert [outcome.failure for outcome in outcomes] == [None, None], outcomes[1].message
    assert outcomes[0].answer == outcomes[1].answer
    assert len(outcomes[0].timeline) == 2
