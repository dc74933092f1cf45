"""Behaviour that every objective must have."""

import contextlib
import math
import pickle
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from launchers import EndReason, Job, JobState, JobStatus, Usage
from launchers.batch_systems.base import make_request
from launchers.site import Site
from objectives.base import Context, Output, RunFailure
from objectives.command import plan as command_plan
from objectives.external import plan as external_plan
from objectives.mpi import openmpi
from objectives.mpi.objective import MpiObjective
from objectives.qe.deck import Deck
from objectives.qe.objective import QeObjective
from objectives.qe.options import shipped_input
from objectives.registry import OBJECTIVES
from objectives.replay.plan import plan as replay_plan
from objectives.training import ddp, dna, script
from objectives.ucx.objective import MERGE_METRICS, UcxObjective

QE_OUTPUT = (Path(__file__).parents[1] / "objectives" / "outputs" / "converged-np2.stdout").read_text()
UCX_OUTPUT = (Path(__file__).parents[1] / "objectives" / "outputs" / "ucx-merge.stdout").read_text()
TRAINING_OUTPUT = "".join(
    f'{{"step": {step}, "val_auc": 0.{step}, "train_auc": 0.4, "val_loss": 1.0, "val_dice": 0.5, "val_iou": 0.5}}\n'
    for step in (1, 2, 3)
)
DDP_OUTPUT = (
    '{"step": 1, "samples_per_s": 900.0}\n{"result": {"samples_per_s": 900.0, "parallel_efficiency": 0.7, '
    '"load_balance": 0.9, "communication_efficiency": 0.8, "data_s": 1.0, "compute_s": 3.0, "communicate_s": 0.5}}\n'
)
MPI_OUTPUT = (
    '{"step": 1, "bytes": 8, "latency_s": 2.5e-07, "repetitions": 20000}\n'
    '{"result": {"collective": "allreduce", "ranks": 2, "sizes": [[8, 2.5e-07]]}}\n'
)
COMMAND_OUTPUT = "step 1\ntime: 1.5\nanswer 42\nok\n"


def _command():
    options = {
        "argv": [sys.executable, "-c", "pass", "{np}"],
        "ranks": "np",
        "success": ["^ok$"],
        "metrics": [{"name": "time_s", "unit": "s", "pattern": r"time: (\S+)"}],
        "answer": {"pattern": r"answer (\S+)", "tolerance": 1e-9},
        "progress": r"step (\S+)",
    }
    return command_plan(options, machine={}, run_job=lambda job: None, folder=Path("/nowhere")).objective


def _qe():
    return QeObjective("pw.x", Deck(shipped_input("tio2").decode()), tolerance_ry=1e-6, cores_per_node=2, nodes=1)


def _replay():
    options = {"table": "ucx-tcp", "metric": "throughput_bytes_per_s", "unit": "B/s", "kind": "rate", "default": {}}
    return replay_plan(options, machine={}, run_job=lambda job: None, folder=Path("/nowhere")).objective


def _external():
    options = {"metrics": [{"name": "time_s", "unit": "s", "kind": "time"}]}
    return external_plan(options, machine={}, run_job=lambda job: None, folder=Path("/nowhere")).objective


def _training(plan, **options):
    probe = '{"torch": "2", "numpy": "2", "gpus": 0, "gpu": ""}'
    with tempfile.TemporaryDirectory() as folder:
        made = plan(
            options, machine={"cores": 2, "cores_per_node": 2}, run_job=lambda job: _output(probe), folder=Path(folder)
        )
    return made.objective


def _output(stdout: str, stderr: str = "", status: JobStatus | None = None) -> Output:
    good = JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(10.0, 2.0, 3))
    return Output(stdout, stderr, status or good, Path("/nowhere"))


# name in the registry -> an objective, a configuration of it, the output of a good run
CASES = {
    "qe": (_qe(), {"np": 2, "npool": 2, "threads": 1}, QE_OUTPUT),
    "command": (_command(), {"np": 2}, COMMAND_OUTPUT),
    "ucx": (UcxObjective(("python", "merge.py"), 2, MERGE_METRICS), {"UCX_TLS": "tcp"}, UCX_OUTPUT),
    "mpi": (
        MpiObjective("collectives", "8", 2.0, 2, openmpi.environment),
        {"collective": "allreduce", "ranks": 2},
        MPI_OUTPUT,
    ),
    "training": (
        _training(script.plan, argv=[sys.executable, "-c", "pass", "{rate}"], metric={"name": "val_auc"}),
        {"rate": 0.1},
        TRAINING_OUTPUT,
    ),
    "dna": (_training(dna.plan, python=sys.executable), {"batch_size": 8, "learning_rate": 0.01}, TRAINING_OUTPUT),
    "ddp": (
        _training(ddp.plan, python=sys.executable),
        {"workers": 2, "threads": 1, "batch_size": 64},
        DDP_OUTPUT,
    ),
    "replay": (_replay(), {}, '{"step": 1, "throughput_bytes_per_s": 2.5e8}\n'),
    "external": (_external(), {"np": 2}, '{"step": 1}\n{"time_s": 2.5}\n'),
}
# A training has no right answer, only better and worse ones; that of recorded and external runs is unknown.
WITHOUT_ANSWER = {"training", "dna", "ddp", "replay", "external"}

every_objective = pytest.mark.parametrize("name", sorted(OBJECTIVES))
fixtures_are_fine = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None
)
statuses = st.builds(
    JobStatus,
    st.just(JobState.ENDED) | st.just(JobState.LOST),
    st.none() | st.sampled_from(EndReason),
    st.none() | st.integers(-64, 255),
    st.just(Usage(1.0, 2.0, 3)),
    st.just("") | st.text(max_size=20),
)


def test_every_objective_is_here():
    assert CASES.keys() == OBJECTIVES.keys()


@every_objective
def test_a_job_follows_from_the_configuration_alone(name, tmp_path):
    objective, configuration, _ = CASES[name]
    jobs = []
    for _ in range(2):
        folder = tmp_path / "trial"
        folder.mkdir()
        job = objective.job(configuration, Context(folder, (0, 1), 10.0))
        jobs.append((job, {entry.name: entry.read_bytes() for entry in folder.iterdir()}))
        for entry in folder.iterdir():
            entry.unlink()
        folder.rmdir()
    assert jobs[0] == jobs[1]
    job = jobs[0][0]
    assert isinstance(job, Job)
    assert job.argv
    assert all(isinstance(word, str) for word in (*job.argv, *job.environment, *job.environment.values()))
    assert (job.folder, job.resources.cpus, job.time_limit_s) == (tmp_path / "trial", (0, 1), 10.0)
    assert job.resources.cores >= (job.mpi.ranks if job.mpi else 1)


@every_objective
def test_a_run_has_as_many_nodes_as_have_its_cores(name, tmp_path):
    objective, configuration, _ = CASES[name]
    job = objective.job(configuration, Context(tmp_path))
    larger = replace(job, resources=replace(job.resources, cores=5 * job.resources.cores))
    for most, expected in ((8, 5), (3, 3)):
        # A node has as many cores as the original job.
        asked = make_request(larger, Site("slurm", nodes=most, cores_per_node=job.resources.cores))
        assert (asked.nodes, asked.cores <= most * job.resources.cores) == (expected, True)


@every_objective
def test_the_declared_metrics_are_those_that_are_measured(name):
    objective, _, text = CASES[name]
    measurement = objective.measure(_output(text))
    assert list(measurement.metrics) == [metric.name for metric in objective.metrics]
    assert all(math.isfinite(value) for value in measurement.metrics.values())
    if name in WITHOUT_ANSWER:
        assert measurement.answer is None
    else:
        assert measurement.answer.tolerance > 0


@every_objective
def test_nothing_is_no_measurement(name):
    with pytest.raises(RunFailure):
        CASES[name][0].measure(_output(""))


@every_objective
@given(stdout=st.text(max_size=200), stderr=st.text(max_size=200), status=statuses)
@fixtures_are_fine
def test_garbage_is_a_failure_with_a_code_and_words(name, stdout, stderr, status):
    with pytest.raises(RunFailure) as caught:
        CASES[name][0].measure(_output(stdout, stderr, status))
    assert caught.value.code
    assert str(caught.value)


@every_objective
@given(chance=st.randoms(use_true_random=False), status=statuses)
@fixtures_are_fine
def test_half_an_output_is_a_measurement_or_a_failure(name, chance: random.Random, status):
    objective, _, text = CASES[name]
    cut = text[: chance.randrange(len(text) + 1)] + text[chance.randrange(len(text) + 1) :]
    with contextlib.suppress(RunFailure):
        measurement = objective.measure(_output(cut, "", status))
        declared = {metric.name for metric in objective.metrics}
        assert objective.metrics[0].name in measurement.metrics
        # A script may leave out what is only recorded.
        assert (
            measurement.metrics.keys() <= declared if name in WITHOUT_ANSWER else measurement.metrics.keys() == declared
        )


@every_objective
@given(lines=st.lists(st.text(max_size=80), max_size=10))
@fixtures_are_fine
def test_progress_reads_anything(name, lines):
    objective, _, text = CASES[name]
    read = objective.progress_reader()
    for line in [*lines, *text.splitlines(), *lines]:
        progress = read(line)
        assert progress is None or isinstance(progress.step, int)


@every_objective
def test_two_runs_do_not_share_a_reader(name):
    objective, _, text = CASES[name]
    lines = text.splitlines()
    first, second = objective.progress_reader(), objective.progress_reader()
    seen = [(first(line), second(line)) for line in lines]
    assert all(one == other for one, other in seen)
    assert any(one for one, _ in seen)


@every_objective
def test_travels_to_another_process(name):
    objective = CASES[name][0]
    assert pickle.loads(pickle.dumps(objective)) == objective
