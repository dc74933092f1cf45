"""Data-parallel training: our own program on PyTorch's DistributedDataParallel, and its space.

What is tuned is what the Horovod studies of competition teams tuned: processes, global batch (the learning rate grows
in proportion, Goyal et al. 2017), size of the gradient buckets (the counterpart of Horovod's fusion buffer), loader
processes, precision, layout.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from launchers import Job, Resources
from objectives.base import (
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
from objectives.jsonline import json_object
from objectives.mentions.templates import filled_in
from objectives.options import read_options
from objectives.training import torch
from objectives.training.ending import check, last_line
from objectives.training.progress import reader
from spaces import Choice, Configuration, Constraint, Flag, Integer, Parameter
from spaces.parameters.problem import Problem

SPEED = Metric("samples_per_s", "1/s", "maximize", "rate")
TIME_TO_TARGET = Metric("time_to_target_s", "s")
EFFICIENCIES = (
    Metric("parallel_efficiency", "", "maximize"),
    Metric("load_balance", "", "maximize"),
    Metric("communication_efficiency", "", "maximize"),
)
ELAPSED = Metric("elapsed_s", "s", kind="time")
# Between two reports every configuration trains as many samples, so that their paces can be compared.
_SAMPLES_PER_REPORT = 1024
_BATCHES = (32, 64, 128, 256, 512)
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
)


class DdpOptions(BaseModel):
    """The `[options]` of a study of data-parallel training.

    Args:
        model: what is trained: `small-cnn`, `resnet50`, `lstm` or `gru`, on generated data.
        size: edge of a patch in pixels, or length of a sequence.
        reports: a run trains that many times 1024 samples, the first of which do not count.
        tune_batch: also tune the global batch; it changes how much is learnt from a sample, see `target_loss`.
        batch_size: the global batch otherwise, and the default one.
        target_loss: optimise the time until the training loss is there, instead of samples a second.
        max_workers: processes at most; as many as cores, or as GPUs where there are some.
        oversubscribe: allow more processes and threads than cores.
        tune_checkpoints: also tune how often a checkpoint is written.
        python: the interpreter that has PyTorch.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: Literal["small-cnn", "resnet50", "lstm", "gru"] = "small-cnn"
    size: int = Field(default=32, ge=8)
    reports: int = Field(default=5, ge=2)
    tune_batch: bool = True
    batch_size: Literal[32, 64, 128, 256, 512] = 64
    target_loss: float | None = Field(default=None, gt=0)
    max_workers: int | None = Field(default=None, ge=1)
    oversubscribe: bool = False
    tune_checkpoints: bool = False
    python: str | None = None


@dataclass(frozen=True)
class DdpObjective:
    """Runs our program; `argv` is its command line without what is tuned."""

    argv: tuple[str, ...]
    metrics: tuple[Metric, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    gpus: bool = False

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the program with the configuration's options."""
        words = [filled_in(word, configuration) for word in _TEMPLATES]
        batch = int(configuration["batch_size"])
        processes, threads = int(configuration["workers"]), int(configuration["threads"])
        asked = (f"--report-every={max(1, _SAMPLES_PER_REPORT // batch)}", f"--seed={1 + context.seed}")
        return Job(
            argv=(*self.argv, *asked, *(word for word in words if word is not None)),
            folder=context.folder,
            environment={**self.environment, "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"},
            resources=Resources(processes * threads, gpus=processes if self.gpus else 0, cpus=context.cpus),
            time_limit_s=context.time_limit_s,
        )

    def progress_reader(self) -> ProgressReader:
        """Return a reader of the reports."""
        return reader("json")

    def measure(self, output: Output) -> Measurement:
        """Check that the training ended well; read its result.

        Raises:
            RunFailure: it did not, or its loss is no number.
        """
        check(output)
        result = _result(output.stdout)
        missing = [metric.name for metric in self.metrics if result.get(metric.name) is None and metric != ELAPSED]
        if missing:
            msg = f"the result tells no {', '.join(missing)}: {last_line(output) or 'nothing was printed'}"
            raise InvalidResult(msg, code="no-result")
        metrics = {metric.name: float(result[metric.name]) for metric in self.metrics if metric != ELAPSED}
        return Measurement(metrics | {ELAPSED.name: output.status.usage.elapsed_s}, details=result)


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Find PyTorch and suggest the space.

    Raises:
        PlanError: the options have errors, or there is no PyTorch here.
    """
    checked = read_options(DdpOptions, options, "ddp")
    python = torch.find(checked.python, run_job, folder.resolve())
    # All workers of a run are processes of one host.
    cores = int(machine["cores_per_node"])
    most = checked.max_workers or python.gpus or cores
    if not python.gpus and most > cores and not checked.oversubscribe:
        msg = f"{most} workers on {cores} cores need oversubscribe = true"
        raise PlanError(Problem(msg, "options.max_workers"))
    fixed = [f"--model={checked.model}", f"--size={checked.size}", f"--reports={checked.reports}"]
    if checked.target_loss is not None:
        fixed.append(f"--target-loss={checked.target_loss}")
    first = SPEED if checked.target_loss is None else TIME_TO_TARGET
    others = () if checked.target_loss is None else (SPEED,)
    compiler = shutil.which("c++") or shutil.which("g++")
    bf16 = bool(python.gpus) or _has_bf16()
    left_out = [] if compiler else ["compile: there is no C++ compiler"]
    left_out += [] if bf16 else ["precision: this processor has no bfloat16 arithmetic"]
    rules = [Constraint("equal shares", "batch_size % workers == 0", "every worker has as many samples of a batch")]
    if not checked.oversubscribe:
        rules.append(Constraint("cores", "workers * threads <= cores_per_node", "each thread has a core of its own"))
    return Plan(
        objective=DdpObjective(
            (python.path, "-P", "-m", "ddp", *fixed),
            (first, *others, *EFFICIENCIES, ELAPSED),
            {"PYTHONPATH": str(torch.PROGRAMS)},
            bool(python.gpus),
        ),
        parameters=_parameters(checked, most, cores, compiles=compiler is not None, bf16=bf16),
        constraints=tuple(rules),
        facts={
            "gpus": python.gpus,
            "model": checked.model,
            "size": checked.size,
            "samples": checked.reports * _SAMPLES_PER_REPORT,
        },
        identity={**python.identity, "program": torch.digest("ddp"), "options": " ".join(fixed)},
        notes=(
            f"PyTorch {python.torch} at {python.path}, {python.gpus or 'no'} GPUs; generated data",
            *(f"left out: {text}" for text in left_out),
        ),
    )


def _parameters(checked: DdpOptions, most: int, cores: int, *, compiles: bool, bf16: bool) -> tuple[Parameter, ...]:
    batches = _BATCHES if checked.tune_batch else (checked.batch_size,)
    images = checked.model in {"small-cnn", "resnet50"}
    threads = cores * 2 if checked.oversubscribe else cores
    optional: list[Parameter | None] = [
        Choice("bucket_mib", ("0.05", "1", "5", "100"), optional=True, help="gradients that are reduced together"),
        Integer("loader_workers", (1, 2), optional=True, help="processes of each worker that make batches"),
        Choice("precision", ("bfloat16",), optional=True, help="of the arithmetic") if bf16 else None,
        Flag("channels_last", optional=True, help="layout of images in memory") if images else None,
        Flag("compile", optional=True, help="torch.compile") if compiles else None,
        Flag("gradient_as_bucket_view", optional=True, help="gradients lie in the buckets: no copy"),
        Flag("static_graph", optional=True, help="the network is the same in every step"),
        Integer("checkpoint_every", (10, 50, 200), optional=True, help="optimiser steps between checkpoints")
        if checked.tune_checkpoints
        else None,
    ]
    return (
        Integer("workers", tuple(range(1, most + 1)), default=min(2, most), help="processes"),
        Integer("threads", tuple(range(1, threads + 1)), default=1, help="of each worker"),
        Integer("batch_size", batches, default=checked.batch_size, help="of all workers together"),
        *(parameter for parameter in optional if parameter is not None),
    )


def _has_bf16() -> bool:
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags or " bf16" in flags


def _result(text: str) -> dict[str, Any]:
    told = [found["result"] for line in text.splitlines() if "result" in (found := json_object(line))]
    return told[-1] if told and isinstance(told[-1], dict) else {}
