import json
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from autotune.execution.task import check_answer
from launchers import EndReason, JobState, JobStatus, Usage
from objectives.base import PARTS, REMARK, Context, InvalidResult, OutOfMemory, Output, PlanError, RunFailure
from objectives.training import ddp, dna
from spaces import Space

TORCH = {"torch": "2.13.0", "numpy": "2.4.6", "gpus": 0, "gpu": ""}
MACHINE = {"cores": 4, "cores_per_node": 4}


def output(stdout="", stderr="", exit_code=0):
    return Output(stdout, stderr, JobStatus(JobState.ENDED, EndReason.EXITED, exit_code, Usage(7.0)), Path("/nowhere"))


def answering(**changes):
    return lambda job: output(json.dumps({**TORCH, **changes}) + "\n")


def planned(module, folder, run_job=None, **options):
    given = {"python": sys.executable, **options}
    return module.plan(given, machine=MACHINE, run_job=run_job or answering(), folder=folder)


def space_of(plan):
    return Space(plan.parameters, plan.constraints, {**MACHINE, **plan.facts})


def job_of(plan, folder, **changes):
    configuration = {**space_of(plan).default(), **changes}
    return plan.objective.job(configuration, Context(folder, steps=3, checkpoint=folder / "kept", seed=2))


def test_the_dna_command_has_what_is_tuned_and_what_is_fixed(tmp_path):
    plan = planned(dna, tmp_path, windows=64, memory_limit_bytes=10**9)
    job = job_of(plan, tmp_path, batch_size=16)
    assert job.argv[1:4] == ("-P", "-m", "dna")
    assert {"--windows=64", "--memory-limit-bytes=1000000000", "--batch-size=16", "--precision=float32"} <= set(
        job.argv
    )
    assert not [word for word in job.argv if word.startswith("--batch-norm")]
    assert job.environment["PYTHONPATH"].endswith("studies/programs/training")
    assert job.environment["AUTOTUNE_STEPS"] == "3"
    assert plan.works_in_steps
    assert plan.facts["parameters"] == 475_969


def test_more_of_dna_is_tuned_when_asked_for(tmp_path):
    names = {p.name for p in planned(dna, tmp_path, tune_precision=True, tune_momentum=True).parameters}
    assert names == {"batch_size", "learning_rate", "precision", "batch_norm_momentum"}


def test_ranks_of_dna_are_tuned_when_asked_for_and_have_cores_or_gpus_of_their_own(tmp_path):
    asked = {"tune_ranks": True, "tune_rate_scaling": True, "threads": 2}
    plan = planned(dna, tmp_path, **asked)
    space = space_of(plan)
    values = {parameter.name: parameter.values for parameter in space.parameters}
    assert values["ranks"] == (1, 2)
    assert space.default()["ranks"] == 1
    assert all(one["ranks"] > 1 for one in space.sample(np.random.default_rng(0), 200) if one.get("rate_scaling"))
    job = job_of(plan, tmp_path, ranks=2, rate_scaling="square-root")
    assert {"--ranks=2", "--rate-scaling=square-root"} <= set(job.argv)
    assert (job.resources.cores, job.resources.gpus, job.environment["OMP_NUM_THREADS"]) == (4, 0, "2")
    on_gpus = planned(dna, tmp_path, answering(gpus=3), **asked)
    assert job_of(on_gpus, tmp_path, ranks=3).resources.gpus == 3
    assert not [word for word in job_of(planned(dna, tmp_path), tmp_path).argv if word.startswith("--ra")]


def test_a_time_to_a_target_cannot_be_stopped_at_a_step(tmp_path):
    plan = planned(dna, tmp_path, target=0.8)
    assert not plan.works_in_steps
    assert plan.objective.metrics[0].name == "time_to_target_s"


@pytest.mark.parametrize(
    ("module", "options", "words"),
    [
        (dna, {"data": "/no/such/folder"}, "is not a folder"),
        (dna, {"batch_sizes": []}, "batch_sizes"),
        (dna, {"tune_ranks": True, "threads": 3}, r"only 1 fit here.*options\.tune_ranks"),
        (dna, {"tune_ranks": True, "max_ranks": 5}, r"only 4 fit here.*options\.max_ranks"),
        (dna, {"tune_rate_scaling": True}, "add tune_ranks = true"),
        (ddp, {"model": "resnet"}, "options.model"),
        (ddp, {"max_workers": 9}, "oversubscribe"),
        (ddp, {"bach_size": 64}, "did you mean 'batch_size'"),
        (ddp, {"tune_hooks": True}, r"add tune_batch = false, or give a target_loss.*options\.tune_hooks"),
        (ddp, {"tune_rate_scaling": True}, "give a target_loss as well"),
        (ddp, {"tune_optimizer": True}, "tune_optimizer changes what is learnt from a sample"),
        (ddp, {"tune_float16": True}, r"add tune_batch = false.*options\.tune_float16"),
        (ddp, {"tune_rate_scaling": True, "target_loss": 0.3, "tune_batch": False}, "and tune_batch = true"),
    ],
)
def test_wrong_options_are_said_with_their_place(tmp_path, module, options, words):
    with pytest.raises(PlanError, match=words):
        planned(module, tmp_path, **options)


@pytest.mark.parametrize("module", [dna, ddp])
def test_no_torch_is_said_with_what_to_do(tmp_path, module):
    with pytest.raises(PlanError, match=r"no working PyTorch.*pip install torch"):
        planned(module, tmp_path, run_job=lambda job: output("", "no module", 1))


def test_every_ddp_configuration_has_equal_shares_and_a_core_for_each_thread(tmp_path):
    space = space_of(planned(ddp, tmp_path))
    for one in space.sample(np.random.default_rng(0), 200):
        assert one["batch_size"] % one["workers"] == 0
        assert one["workers"] * one["threads"] <= 4


def test_a_ddp_run_keeps_checkpoints_where_how_often_is_tuned(tmp_path):
    job = job_of(planned(ddp, tmp_path, tune_checkpoints=True), tmp_path, checkpoint_every=10)
    assert job.environment["AUTOTUNE_CHECKPOINT"] == str(tmp_path / "checkpoint")
    assert "--checkpoint-every=10" in job.argv
    assert "AUTOTUNE_CHECKPOINT" not in job_of(planned(ddp, tmp_path), tmp_path).environment


def test_each_part_that_a_normalisation_over_batches_sees_has_two_samples(tmp_path):
    space = space_of(planned(ddp, tmp_path, model="resnet50", tune_micro_batches=True))
    for one in space.sample(np.random.default_rng(0), 300):
        assert one["batch_size"] // one["workers"] >= 2 * one.get("micro_batches", 1)


def test_workers_are_not_some_on_gpus_and_some_on_cpus(tmp_path):
    with pytest.raises(PlanError, match="4 workers need a GPU each, and 1 are here"):
        planned(ddp, tmp_path, answering(gpus=1), max_workers=4)


def test_a_ddp_run_stays_on_one_node_of_several(tmp_path):
    cluster = {"cores": 8, "nodes": 2, "cores_per_node": 4}
    plan = ddp.plan({"python": sys.executable}, machine=cluster, run_job=answering(), folder=tmp_path)
    space = Space(plan.parameters, plan.constraints, {**cluster, **plan.facts})
    taken = [c["workers"] * c["threads"] for c in space.sample(np.random.default_rng(1), 200)]
    assert max(taken) == 4


def test_every_ddp_configuration_trains_as_many_samples_between_reports(tmp_path):
    plan = planned(ddp, tmp_path)
    batches = next(one for one in plan.parameters if one.name == "batch_size").values
    assert {96, 192, 384} <= set(batches)  # for three, six and twelve workers
    for batch in batches:
        words = job_of(plan, tmp_path, batch_size=batch).argv
        every = next(int(word.partition("=")[2]) for word in words if word.startswith("--report-every"))
        assert every * batch == 1536


def test_the_ddp_job_holds_its_cores(tmp_path):
    plan = planned(ddp, tmp_path)
    job = job_of(plan, tmp_path, workers=2, threads=2)
    assert job.resources.cores == 4
    cores = plan.objective.cores
    assert job_of(plan, tmp_path, workers=1, threads=1, loader_workers=2).resources.cores == min(3, cores)
    assert job_of(plan, tmp_path, workers=cores, threads=1, loader_workers=2).resources.cores == cores
    assert job.environment["OMP_NUM_THREADS"] == "2"
    assert "--seed=3" in job.argv


RESULT = {
    "samples_per_s": 900.0,
    "loss": 0.3,
    "time_to_target_s": None,
    "parallel_efficiency": 0.75,
    "load_balance": 0.98,
    "communication_efficiency": 0.77,
    "data_s": 0.2,
    "compute_s": 4.6,
    "communicate_s": 0.2,
    "batch_size": 64,
    "seed": 1,
}


def test_a_ddp_result_is_read(tmp_path):
    objective = planned(ddp, tmp_path).objective
    measured = objective.measure(output('{"step": 1}\n' + json.dumps({"result": RESULT}) + "\n"))
    assert measured.metrics["samples_per_s"] == 900.0
    assert measured.metrics["parallel_efficiency"] == 0.75
    assert measured.metrics["elapsed_s"] == 7.0


def measured(tmp_path, changes, **options):
    objective = planned(ddp, tmp_path, **options).objective
    return objective.measure(output(json.dumps({"result": RESULT | changes}) + "\n"))


def test_the_phases_of_a_ddp_run_are_metrics_and_parts(tmp_path):
    found = measured(tmp_path, {})
    assert [found.metrics[name] for name in ("data_s", "compute_s", "communicate_s")] == [0.2, 4.6, 0.2]
    assert found.details[PARTS] == {"data": 0.2, "compute": 4.6, "communicate": 0.2}
    assert REMARK not in found.details


@pytest.mark.parametrize(
    ("gpus", "seconds", "words"),
    [
        (0, (2.49, 2.01, 0.5), "the workers do not compute for 60% of the time: data 50%, communication 10%"),
        (2, (2.49, 2.01, 0.5), "the GPUs idle for 60% of the time: data 50%, communication 10%"),
        (0, (0.14, 0.68, 0.18), "the workers do not compute for 35% of the time: data 15%, communication 20%"),
    ],
)
def test_a_ddp_run_that_computes_too_little_says_where_its_time_went(tmp_path, gpus, seconds, words):
    phases = dict(zip(("data_s", "compute_s", "communicate_s"), seconds, strict=True))
    objective = planned(ddp, tmp_path, answering(gpus=gpus)).objective
    found = objective.measure(output(json.dumps({"result": RESULT | phases}) + "\n"))
    assert found.details[REMARK] == words


def test_powersgd_whose_memory_one_overflow_would_spoil_goes_with_other_arithmetic(tmp_path):
    space = space_of(planned(ddp, tmp_path, tune_hooks=True, tune_float16=True, tune_batch=False))
    sample = space.sample(np.random.default_rng(0), 400)
    found = {(str(one.get("hook")).partition("-")[0], one.get("precision")) for one in sample}
    assert ("fp16", "float16") in found
    assert ("powersgd", "float16") not in found
    assert ("powersgd", None) in found


def test_the_gap_of_a_validated_ddp_run_is_a_metric(tmp_path):
    found = measured(tmp_path, {"validation_loss": 0.5, "validate_s": 0.7}, validation_samples=64)
    assert found.metrics["gap"] == pytest.approx(0.2)
    assert found.metrics["validate_s"] == found.details[PARTS]["validate"] == 0.7
    assert found.details[REMARK] == "overfits: validation_loss 0.5, but that of the training 0.3"
    with pytest.raises(InvalidResult, match="has no validate_s, validation_loss"):
        measured(tmp_path, {}, validation_samples=64)


def test_hooks_are_tuned_when_asked_for_and_their_loss_is_compared_after_the_same_batches(tmp_path):
    asked = {"tune_hooks": True, "tune_batch": False}
    space = space_of(planned(ddp, tmp_path, **asked))
    [hook] = [parameter for parameter in space.parameters if parameter.name == "hook"]
    assert hook.values == ("fp16", "powersgd-1", "powersgd-4")
    hooked = [one for one in space.sample(np.random.default_rng(0), 300) if one.get("hook")]
    assert all(one["workers"] > 1 for one in hooked)
    assert {one.get("bucket_mib") for one in hooked if one["hook"] != "fp16"} == {"100"}
    assert len({one.get("bucket_mib") for one in hooked}) > 1
    job = job_of(planned(ddp, tmp_path, **asked), tmp_path, hook="powersgd-4")
    assert "--hook=powersgd-4" in job.argv
    reference = measured(tmp_path, {}, **asked).answer
    for changes, allowed in (
        ({"loss": 0.32}, True),
        ({"loss": 0.4}, False),
        ({"loss": 0.4, "seed": 7}, True),  # other data: not to be compared
        ({"loss": 0.4, "batch_size": 512}, True),
    ):
        with nullcontext() if allowed else pytest.raises(InvalidResult, match=r"the loss of seed 1 .* differ by 0.33"):
            check_answer(measured(tmp_path, changes, **asked), reference)
    assert measured(tmp_path, {}).answer is None


def test_what_takes_less_memory_is_tuned_when_asked_for(tmp_path):
    asked = {"tune_micro_batches": True, "tune_activations": True}
    for module, on_gpus in ((dna, ("recompute", "host")), (ddp, ("recompute", "host"))):
        values = {one.name: one.values for one in planned(module, tmp_path, **asked).parameters}
        assert (values["micro_batches"], values["activations"]) == ((2, 4, 8), ("recompute",))
        there = {one.name: one.values for one in planned(module, tmp_path, answering(gpus=4), **asked).parameters}
        assert there["activations"] == on_gpus
        job = job_of(planned(module, tmp_path, **asked), tmp_path, micro_batches=4, activations="recompute")
        assert {"--micro-batches=4", "--activations=recompute"} <= set(job.argv)
    assert "activations" not in {one.name for one in planned(ddp, tmp_path, model="gru", **asked).parameters}
    found = space_of(planned(ddp, tmp_path, **asked)).sample(np.random.default_rng(0), 300)
    assert not [one for one in found if one.get("micro_batches") and one.get("static_graph")]
    assert not [one for one in found if one.get("activations") and one.get("compile")]
    assert measured(tmp_path, {}, **asked).answer is not None


def test_float16_lars_and_pinned_memory_are_tuned_when_asked_for(tmp_path):
    asked = {"tune_float16": True, "tune_optimizer": True, "tune_pinned_memory": True, "target_loss": 0.3}
    values = {one.name: one.values for one in planned(ddp, tmp_path, **asked).parameters}
    assert "float16" in values["precision"]
    assert values["optimizer"] == ("lars",)
    assert "pin_memory" not in values
    on_gpus = planned(ddp, tmp_path, answering(gpus=4), **asked)
    assert "pin_memory" in {one.name for one in on_gpus.parameters}
    job = job_of(on_gpus, tmp_path, precision="float16", optimizer="lars", pin_memory=True)
    assert {"--precision=float16", "--optimizer=lars", "--pin-memory=1"} <= set(job.argv)


GIB = 2**30


@pytest.mark.parametrize(
    ("options", "changes", "factor"),
    [
        ({}, {"micro_batches": 4}, 0.25),
        ({}, {"batch_size": 128}, 0.5),
        ({"precision": "bfloat16"}, {}, 0.5),
        ({}, {"batch_size": 1000}, 1.0),  # all windows
        ({}, {"activations": "host"}, 0.0),
    ],
)
def test_the_memory_of_dna_is_weights_and_the_activations_of_what_is_learnt_at_once(tmp_path, options, changes, factor):
    card = answering(gpus=2, gpu="V100", gpu_bytes=32 * GIB)
    configuration = {"batch_size": 256, "learning_rate": 1e-3}
    need = planned(dna, tmp_path, card, length=10_240).memory
    assert (need.room_bytes, need.place, need.peak) == (32 * GIB, "card", "gpu_peak_memory_bytes")
    fixed = 4 * 474_017 * 4  # weights, gradients and two moments, in float32
    whole = need.bytes_of(configuration) - fixed
    changed = planned(dna, tmp_path, card, length=10_240, **options).memory.bytes_of({**configuration, **changes})
    assert changed - fixed == pytest.approx(factor * whole)


def test_a_default_that_does_not_fit_is_said_before_it_runs(tmp_path):
    for gib, said in ((2, ["the default configuration needs 1.39 GiB at least, and a card has 1 GiB"]), (4, [])):
        card = answering(gpus=1, gpu_bytes=gib * GIB // 2)
        warnings = planned(dna, tmp_path, card, length=10_240, batch_sizes=[64]).warnings
        assert [text.partition(":")[0] for text in warnings] == said


def test_the_memory_of_workers_is_that_of_their_node(tmp_path):
    machine = {**MACHINE, "memory_bytes": 8 * GIB}
    given = {"python": sys.executable}
    plan = ddp.plan(given | {"model": "resnet50"}, machine=machine, run_job=answering(), folder=tmp_path)
    need, one = plan.memory, {"workers": 1, "batch_size": 64}
    assert (need.room_bytes, need.place) == (8 * GIB, "node")
    # Two have all weights twice, and each its gradients in buckets as well; and half of the samples each.
    weights = 4 * ddp.FOOTPRINTS["resnet50"].parameters
    assert need.bytes_of(one | {"workers": 2}) - need.bytes_of(one) == pytest.approx((2 * 4 - 3) * weights)
    assert planned(ddp, tmp_path).memory is None  # the memory of the node is unknown
    limited = dna.plan(given | {"memory_limit_bytes": GIB}, machine=machine, run_job=answering(), folder=tmp_path)
    assert (limited.memory.room_bytes, limited.memory.peak) == (GIB, "")
    kind = limited.memory.kind
    assert kind(one) == kind(one | {"batch_size": 8}) != kind(one | {"precision": "bfloat16"})


def test_batches_are_made_ahead_by_loader_processes_only(tmp_path):
    plan = planned(ddp, tmp_path, tune_prefetch=True)
    seen = space_of(plan).sample(np.random.default_rng(0), 200)
    assert any(one.get("prefetch") for one in seen)
    assert all(one.get("loader_workers") for one in seen if one.get("prefetch"))
    assert "--prefetch=8" in job_of(plan, tmp_path, loader_workers=1, prefetch=8).argv


def test_a_training_to_a_loss_needs_no_other_check_of_its_hooks(tmp_path):
    asked = {"tune_hooks": True, "target_loss": 0.3, "tune_rate_scaling": True}
    plan = planned(ddp, tmp_path, answering(gpus=2), **asked)
    values = {parameter.name: parameter.values for parameter in plan.parameters}
    assert "bf16" in values["hook"]
    assert values["rate_scaling"] == ("square-root", "constant")
    found = plan.objective.measure(output(json.dumps({"result": RESULT | {"time_to_target_s": 3.0}}) + "\n"))
    assert found.answer is None


@pytest.mark.parametrize(
    ("ended", "failure", "code"),
    [
        (output("", "out of memory: 512\n", 12), OutOfMemory, "out-of-memory"),
        (output("", "diverged: the loss is nan\n", 3), InvalidResult, "diverged"),
        (output('{"step": 1}\n'), InvalidResult, "no-result"),
        (output('{"result": [1]}\n'), InvalidResult, "no-result"),
        (output('{"result": {"samples_per_s": null}}\n'), InvalidResult, "no-result"),
    ],
)
def test_a_ddp_failure_is_told_apart(tmp_path, ended, failure, code):
    with pytest.raises(RunFailure) as caught:
        planned(ddp, tmp_path).objective.measure(ended)
    assert (type(caught.value), caught.value.code) == (failure, code)


def test_a_target_loss_that_is_not_reached_is_no_result(tmp_path):
    objective = planned(ddp, tmp_path, target_loss=0.1).objective
    assert objective.metrics[0].name == "time_to_target_s"
    with pytest.raises(InvalidResult, match="time_to_target_s"):
        objective.measure(output(json.dumps({"result": RESULT}) + "\n"))
