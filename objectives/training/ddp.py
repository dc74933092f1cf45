"""Data-parallel training: our own program on PyTorch's DistributedDataParallel, and its space.

The parameters are those that competition teams tuned in Horovod: processes, global batch (the learning rate grows in
proportion, Goyal et al. 2017), size of the gradient buckets (the counterpart of Horovod's fusion buffer), loader
processes, precision and layout; and, if asked for, what is done to gradients before they are sent.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from launchers import Job, Resources
from launchers.software.transient_errors import is_transient
from objectives.base import (
    CHECKPOINT_VARIABLE,
    PARTS,
    REMARK,
    Answer,
    Context,
    InvalidResult,
    Measurement,
    Metric,
    Output,
    Plan,
    PlanError,
    ProgressReader,
    RunJob,
)
from objectives.json_line import json_object
from objectives.mentions.templates import fill_in
from objectives.options import read_options
from objectives.training import memory, torch
from objectives.training.ending import check_training_end, last_line
from objectives.training.gap import gap, gap_metric, overfit_sentence
from objectives.training.progress import make_reader
from spaces import Choice, Configuration, Constraint, Flag, Integer, Parameter
from spaces.parameters.problem import Problem

DATA, COMPUTE, COMMUNICATE = Metric("data_s", "s"), Metric("compute_s", "s"), Metric("communicate_s", "s")
PHASES = (DATA, COMPUTE, COMMUNICATE)
"""The phases of a step: means over the workers and over the reports that count, by the program's own names."""

VALIDATE = Metric("validate_s", "s")

_WORTH_SAYING = 0.25
_NEAREST = 0.05  # rounded, so that runs of one configuration give the same sentence


def parts_of(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the phases, and the validation if there was one, by names without the unit: `data_s` is `data`."""
    names = [metric.name for metric in (*PHASES, VALIDATE)]
    return {name.removesuffix("_s"): seconds[name] for name in names if name in seconds}


def idle_sentence(seconds: Mapping[str, float], *, gpus: bool) -> str:
    """Return a sentence on the share of the phases' time in which nothing is computed; empty if below a quarter."""
    whole = sum(seconds[metric.name] for metric in PHASES)
    idle = whole - seconds[COMPUTE.name]
    if not whole or idle / whole < _WORTH_SAYING:
        return ""
    data, communication = (_round(seconds[metric.name] / whole) for metric in (DATA, COMMUNICATE))
    who = "GPUs idle" if gpus else "workers do not compute"
    # Print the sum of the rounded shares, so that the numbers add up.
    return f"the {who} for {data + communication:.0%} of the time: data {data:.0%}, communication {communication:.0%}"


def _round(share: float) -> float:
    return _NEAREST * round(share / _NEAREST)


SPEED = Metric("samples_per_s", "1/s", "maximize", "rate")
TIME_TO_TARGET = Metric("time_to_target_s", "s")
EFFICIENCIES = (
    Metric("parallel_efficiency", "", "maximize"),
    Metric("load_balance", "", "maximize"),
    Metric("communication_efficiency", "", "maximize"),
)
LOSS, VALIDATION_LOSS = Metric("loss", ""), Metric("validation_loss", "")
ELAPSED = Metric("elapsed_s", "s", kind="time")
_GAP = gap_metric(VALIDATION_LOSS)
# All configurations train this many samples between two reports, so that their paces can be compared.
_SAMPLES_PER_REPORT = 1536  # a multiple of every batch below
_BATCHES = (32, 48, 64, 96, 128, 192, 256, 384, 512)  # multiples of three suit nodes with three, six or twelve GPUs
_SMALLEST_MAP = 32  # up to this size the last stage of a ResNet sees one pixel, and one sample has no variance
_LOSS_MAY_DIFFER = 0.1  # as a share of the loss with exact gradients, after the same samples
# For a sample of size 32, with the activations that torch's autograd keeps (a test measures them) and momentum.
FOOTPRINTS = {
    "small-cnn": memory.Footprint(1_155_123, 1, 6.9e5, 4.4e5, size=32, dimensions=2),
    "resnet50": memory.Footprint(23_575_187, 1, 1.81e6, 8.7e5, size=32, dimensions=2),
    "lstm": memory.Footprint(207_251, 1, 5.5e5, 5.5e5, size=32, dimensions=1),
    "gru": memory.Footprint(156_051, 1, 2.6e5, 2.6e5, size=32, dimensions=1),
}
_TEMPLATES = (
    "--workers={workers}",
    "--threads={threads}",
    "--batch-size={batch_size}",
    "--bucket-mib={bucket_mib}",
    "--loader-workers={loader_workers}",
    "--precision={precision}",
    "--channels-last={channels_last}",
    "--compile={compile}",
    "--gradient-as-bucket-view={gradient_as_bucket_view}",
    "--static-graph={static_graph}",
    "--checkpoint-every={checkpoint_every}",
    "--hook={hook}",
    "--rate-scaling={rate_scaling}",
    "--prefetch={prefetch}",
    "--optimizer={optimizer}",
    "--pin-memory={pin_memory}",
    *memory.TEMPLATES,
)


class DdpOptions(BaseModel):
    """The `[options]` of a study of data-parallel training.

    Args:
        model: The network: `small-cnn`, `resnet50`, `lstm` or `gru`, on generated data.
        size: The edge of a patch in pixels, or the length of a sequence.
        reports: A run trains this many times 1536 samples; the first report does not count.
        tune_batch: Also tune the global batch; it changes how much is learnt from a sample, see `target_loss`.
        batch_size: The default global batch, and the only one without `tune_batch`.
        target_loss: Optimise the time until the training loss reaches this, instead of samples per second.
        max_workers: The largest number of processes; by default the number of cores, or of GPUs if there are any.
        oversubscribe: Allow more processes and threads than cores.
        tune_checkpoints: Also tune how often a checkpoint is written.
        tune_hooks: Also tune torch's communication hooks, which change gradients before they are sent.
        tune_rate_scaling: Also tune how the learning rate grows with the batch.
        tune_prefetch: Also tune how many batches each loader process makes ahead.
        tune_float16: Also try float16, which has a smaller range than bfloat16 and needs loss scaling.
        tune_optimizer: Also try LARS, which has a learning rate for each layer.
        tune_pinned_memory: Also try to copy batches to GPUs from page-locked memory.
        tune_micro_batches: Also tune into how many parts a worker splits its share of a batch.
        tune_activations: Also try to recompute activations, or to keep them in the host's memory.
        validation_samples: The samples of a validation at the end, for its loss and time.
        python: The interpreter with PyTorch.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: Literal["small-cnn", "resnet50", "lstm", "gru"] = "small-cnn"
    size: int = Field(default=32, ge=8)
    reports: int = Field(default=4, ge=2)
    tune_batch: bool = True
    batch_size: Literal[32, 48, 64, 96, 128, 192, 256, 384, 512] = 64
    target_loss: float | None = Field(default=None, gt=0)
    max_workers: int | None = Field(default=None, ge=1)
    oversubscribe: bool = False
    tune_checkpoints: bool = False
    tune_hooks: bool = False
    tune_rate_scaling: bool = False
    tune_prefetch: bool = False
    tune_float16: bool = False
    tune_optimizer: bool = False
    tune_pinned_memory: bool = False
    tune_micro_batches: bool = False
    tune_activations: bool = False
    validation_samples: int = Field(default=0, ge=0)
    python: str | None = None

    @property
    def changes_gradients(self) -> bool:
        """Whether a tuned parameter could save time by spoiling what is learnt from a sample."""
        return self.tune_hooks or self.tune_float16

    @property
    def checks_loss(self) -> bool:
        """Whether the loss after the same samples is an answer."""
        return self.target_loss is None and (self.changes_gradients or self.tune_micro_batches or self.tune_activations)

    @property
    def has_images(self) -> bool:
        """Whether the model works on images."""
        return self.model in {"small-cnn", "resnet50"}


@dataclass(frozen=True)
class DdpObjective:
    """Runs our training program.

    Args:
        argv: Its command line without what is tuned.
        metrics: Its metrics.
        environment: Its environment variables.
        gpus: Whether each worker gets a GPU.
        checks_loss: Whether the loss is an answer, so that saving time by spoiling the training fails the trial.
        keeps_checkpoints: Whether runs write checkpoints into their folders; no other run resumes from them.
        cores: The cores of a node; loader processes get cores up to this number.
    """

    argv: tuple[str, ...]
    metrics: tuple[Metric, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    gpus: bool = False
    checks_loss: bool = False
    keeps_checkpoints: bool = False
    cores: int = 1

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the program with the configuration's options."""
        words = [fill_in(word, configuration) for word in _TEMPLATES]
        batch, threads = int(configuration["batch_size"]), str(configuration["threads"])
        kept = {CHECKPOINT_VARIABLE: str(context.folder.absolute() / "checkpoint")} if self.keeps_checkpoints else {}
        added = (f"--report-every={max(1, _SAMPLES_PER_REPORT // batch)}", f"--seed={1 + context.seed}")
        return Job(
            argv=(*self.argv, *added, *(word for word in words if word is not None)),
            folder=context.folder,
            environment={**self.environment, **kept, "OMP_NUM_THREADS": threads, "PYTHONUNBUFFERED": "1"},
            resources=self._resources(configuration, context),
            time_limit_s=context.time_limit_s,
        )

    def _resources(self, configuration: Configuration, context: Context) -> Resources:
        processes, threads = int(configuration["workers"]), int(configuration["threads"])
        wanted = processes * (threads + int(configuration.get("loader_workers", 0)))
        cores = max(processes * threads, min(self.cores, wanted))
        return Resources(cores, gpus=processes if self.gpus else 0, cpus=context.cpus)

    def progress_reader(self) -> ProgressReader:
        """Return a reader of the reports."""
        return make_reader("json")

    def measure(self, output: Output) -> Measurement:
        """Check that the training ended normally; read its result.

        Raises:
            RunFailure: It did not, or its loss is not a number.
        """
        check_training_end(output)
        result = _result(output.stdout)
        names = [metric.name for metric in self.metrics if metric not in {ELAPSED, _GAP}]
        names += [LOSS.name] if self.checks_loss or _GAP in self.metrics else []
        missing = [name for name in names if result.get(name) is None]
        if missing:
            msg = f"the result has no {', '.join(missing)}: {last_line(output) or 'nothing was printed'}"
            raise InvalidResult(msg, code="no-result")
        seen = {name: float(result[name]) for name in names} | {ELAPSED.name: output.status.usage.elapsed_s}
        remarks = [idle_sentence(seen, gpus=self.gpus)]
        if _GAP in self.metrics:
            losses = seen[LOSS.name], seen[VALIDATION_LOSS.name]
            seen[_GAP.name] = gap(VALIDATION_LOSS, *losses)
            remarks.append(overfit_sentence(VALIDATION_LOSS, "that of the training", *losses))
        remark = "; ".join(filter(None, remarks))
        return Measurement(
            {metric.name: seen[metric.name] for metric in self.metrics},
            _answer(result) if self.checks_loss else None,
            {**result, PARTS: parts_of(seen), **({REMARK: remark} if remark else {})},
        )


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Find PyTorch and suggest the space.

    Raises:
        PlanError: The options have errors, or there is no PyTorch here.
    """
    checked = read_options(DdpOptions, options, "ddp")
    if errors := list(_errors(checked)):
        raise PlanError(errors)
    python = torch.find_python(checked.python, run_job, folder.resolve())
    # All workers of a run are on one host.
    cores = int(machine["cores_per_node"])
    most = checked.max_workers or python.gpus or cores
    if not python.gpus and most > cores and not checked.oversubscribe:
        msg = f"{most} workers on {cores} cores need oversubscribe = true"
        raise PlanError(Problem(msg, "options.max_workers"))
    if 0 < python.gpus < most:
        msg = f"{most} workers need a GPU each, and {python.gpus} are here: those without one would train on CPUs"
        raise PlanError(Problem(msg, "options.max_workers"))
    fixed = [f"--model={checked.model}", f"--size={checked.size}", f"--reports={checked.reports}"]
    if checked.target_loss is not None:
        fixed.append(f"--target-loss={checked.target_loss}")
    if checked.validation_samples:
        fixed.append(f"--validation-samples={checked.validation_samples}")
    first = SPEED if checked.target_loss is None else TIME_TO_TARGET
    others = () if checked.target_loss is None else (SPEED,)
    validation = (VALIDATE, VALIDATION_LOSS, _GAP) if checked.validation_samples else ()
    compiler = shutil.which("c++") or shutil.which("g++")
    bf16 = bool(python.gpus) or _has_bf16()
    left_out = [] if compiler else ["compile: there is no C++ compiler"]
    left_out += [] if bf16 else ["precision: this processor has no bfloat16 arithmetic"]
    nccl = python.gpus >= most
    left_out += [] if nccl or not checked.tune_hooks else ["hook bf16: torch has it between GPUs only"]
    parameters = (
        *_parameters(checked, most, cores, compiles=compiler is not None, bf16=bf16),
        *_optional_parameters(checked, nccl=nccl),
    )
    of_worker = partial(_bytes_of_worker, FOOTPRINTS[checked.model], checked.size)
    need = memory.memory_need(of_worker, "workers", python, machine, on_gpus=nccl)
    return Plan(
        objective=DdpObjective(
            (python.path, "-P", "-m", "ddp", *fixed),
            (first, *others, *EFFICIENCIES, *PHASES, *validation, ELAPSED),
            {"PYTHONPATH": str(torch.TRAINERS)},
            bool(python.gpus),
            checked.checks_loss,
            checked.tune_checkpoints,
            cores,
        ),
        parameters=parameters,
        constraints=tuple(_rules(checked, nccl=nccl, compiles=compiler is not None)),
        facts={
            "gpus": python.gpus,
            "model": checked.model,
            "size": checked.size,
            "samples": checked.reports * _SAMPLES_PER_REPORT,
        },
        identity={**python.identity, "program": torch.program_digest("ddp"), "options": " ".join(fixed)},
        notes=(
            f"PyTorch {python.torch} at {python.path}, {python.gpus or 'no'} GPUs; generated data",
            *(f"left out: {text}" for text in left_out),
        ),
        memory=need,
        warnings=memory.memory_warnings(need, parameters),
    )


def _bytes_of_worker(network: memory.Footprint, size: int, one: Configuration) -> float:
    workers = int(one["workers"])
    return network.scale_to(size).of_rank(one, int(one["batch_size"]) // workers, sends=workers > 1)


def _rules(checked: DdpOptions, *, nccl: bool, compiles: bool) -> Iterator[Constraint]:
    yield Constraint("equal shares", "batch_size % workers == 0", "every worker has as many samples of a batch")
    if checked.model == "resnet50" and checked.size <= _SMALLEST_MAP:
        parts = "(micro_batches if is_set(micro_batches) else 1)" if checked.tune_micro_batches else "1"
        why = "a normalisation over batches needs two samples in each part"
        yield Constraint("samples of a part", f"batch_size >= 2 * workers * {parts}", why)
    if checked.tune_hooks:
        yield Constraint("gradients to send", "workers > 1 or not is_set(hook)", "one worker sends nothing")
        if not nccl:
            rule = "not is_set(hook) or hook == 'fp16' or (is_set(bucket_mib) and bucket_mib == '100')"
            yield Constraint("one bucket for PowerSGD", rule, "between CPUs several would meet in any order")
    if checked.tune_hooks and checked.tune_float16:
        powersgd = "is_set(hook) and hook in ['powersgd-1', 'powersgd-4']"
        rule = f"not ({powersgd} and is_set(precision) and precision == 'float16')"
        yield Constraint("what PowerSGD remembers", rule, "one overflow of 16 bits would stay in it for ever")
    if checked.tune_prefetch:
        rule = "is_set(loader_workers) or not is_set(prefetch)"
        yield Constraint("batches ahead", rule, "without loader processes nobody makes them")
    if checked.tune_micro_batches:
        rule = "not is_set(micro_batches) or not is_set(static_graph) or not static_graph"
        yield Constraint("gradients of a part", rule, "a static graph sends them in every backward pass")
    if checked.tune_activations and checked.has_images and compiles:
        rule = "not is_set(activations) or activations != 'recompute' or not is_set(compile) or not compile"
        yield Constraint("parts to compute again", rule, "a compiled network decides by itself")
    if not checked.oversubscribe:
        yield Constraint("cores", "workers * threads <= cores_per_node", "each thread has a core of its own")


def _errors(checked: DdpOptions) -> Iterator[Problem]:
    if checked.changes_gradients and checked.tune_batch and checked.target_loss is None:
        name = "tune_hooks" if checked.tune_hooks else "tune_float16"
        msg = (
            f"{name} compares the loss after the same samples and steps with that of exact gradients: "
            "add tune_batch = false, or give a target_loss"
        )
        yield Problem(msg, f"options.{name}")
    if checked.tune_optimizer and checked.target_loss is None:
        msg = "tune_optimizer changes what is learnt from a sample, not the speed: give a target_loss as well"
        yield Problem(msg, "options.tune_optimizer")
    if checked.tune_rate_scaling and not (checked.tune_batch and checked.target_loss is not None):
        msg = "tune_rate_scaling changes what is learnt with larger batches, not the speed: give a target_loss as well"
        msg += "" if checked.tune_batch else ", and tune_batch = true"
        yield Problem(msg, "options.tune_rate_scaling")


def _parameters(checked: DdpOptions, most: int, cores: int, *, compiles: bool, bf16: bool) -> tuple[Parameter, ...]:
    batches = _BATCHES if checked.tune_batch else (checked.batch_size,)
    narrow = (*(("bfloat16",) if bf16 else ()), *(("float16",) if checked.tune_float16 else ()))
    threads = cores * 2 if checked.oversubscribe else cores
    optional: list[Parameter | None] = [
        Choice("bucket_mib", ("0.05", "1", "5", "100"), optional=True, help="gradients that are reduced together"),
        Integer("loader_workers", (1, 2), optional=True, help="processes of each worker that make batches"),
        Choice("precision", narrow, optional=True, help="of the arithmetic") if narrow else None,
        Flag("channels_last", optional=True, help="layout of images in memory") if checked.has_images else None,
        Flag("compile", optional=True, help="torch.compile") if compiles else None,
        Flag("gradient_as_bucket_view", optional=True, help="gradients lie in the buckets: no copy"),
        Flag("static_graph", optional=True, help="the network is the same in every step"),
    ]
    return (
        Integer("workers", tuple(range(1, most + 1)), default=min(2, most), help="processes"),
        Integer("threads", tuple(range(1, threads + 1)), default=1, help="of each worker"),
        Integer("batch_size", batches, default=checked.batch_size, help="of all workers together"),
        *(parameter for parameter in optional if parameter is not None),
    )


def _optional_parameters(checked: DdpOptions, *, nccl: bool) -> Iterator[Parameter]:
    """Yield the parameters that are tuned only if the options ask for them."""
    if checked.tune_checkpoints:
        yield Integer("checkpoint_every", (10, 50, 200), optional=True, help="optimiser steps between checkpoints")
    if checked.tune_hooks:
        hooks = ("fp16", *(("bf16",) if nccl else ()), "powersgd-1", "powersgd-4")
        yield Choice("hook", hooks, optional=True, help="what is done to gradients before they are sent")
    if checked.tune_rate_scaling:
        scalings = ("square-root", "constant")
        yield Choice("rate_scaling", scalings, optional=True, help="of the learning rate with the batch; unset: linear")
    if checked.tune_prefetch:
        yield Integer("prefetch", (1, 4, 8), optional=True, help="batches that a loader process makes ahead; unset: 2")
    if checked.tune_optimizer:
        yield Choice("optimizer", ("lars",), optional=True, help="unset: stochastic gradient descent with momentum")
    if checked.tune_pinned_memory and nccl:
        yield Flag("pin_memory", optional=True, help="of batches: a GPU copies them while it computes")
    yield from memory.parameters(
        micro_batches=checked.tune_micro_batches,
        activations=checked.tune_activations,
        on_gpus=nccl,
        recomputes=checked.has_images,
    )


def _has_bf16() -> bool:
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError as error:
        if is_transient(error):
            raise  # with fewer values it would be a different study
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags or " bf16" in flags


def _answer(result: Mapping[str, Any]) -> Answer:
    """Return the loss as an answer, which is compared only between runs with the same samples in the same steps."""
    name = f"the loss of seed {result.get('seed')} with batches of {result.get('batch_size')}"
    loss = Answer(name, float(result[LOSS.name]), 0.0, relative_tolerance=_LOSS_MAY_DIFFER)
    return Answer(LOSS.name, loss.value, 0.0, relative_tolerance=_LOSS_MAY_DIFFER, parts=(loss,))


def _result(text: str) -> dict[str, Any]:
    results = [found["result"] for line in text.splitlines() if "result" in (found := json_object(line))]
    return results[-1] if results and isinstance(results[-1], dict) else {}
