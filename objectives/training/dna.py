"""DNA sequence decoding: our own training of a U-Net at single-base resolution, and its space.

Network and task are those of a student cluster competition, after Leopard (Li & Guan, "Fast decoding cell type-specific
transcription factor binding landscape at single-nucleotide resolution", Genome Research 31, 2021).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from objectives.base import MemoryNeed, Metric, Plan, PlanError, RunJob
from objectives.options import read_options
from objectives.training import memory, torch
from objectives.training.objective import TrainingObjective
from spaces import Choice, Configuration, Constraint, Float, Integer, Parameter
from spaces.parameters.problem import Problem

TRAINED = Metric("train_auc", "", "maximize")
MORE = (Metric("val_loss", "", "minimize"), Metric("val_dice", "", "maximize"), Metric("val_iou", "", "maximize"))
PARAMETERS = 475_969
"""Parameters of the network as Keras counts them: 474,017 trained ones and 1,952 moving statistics."""

_SYNTHETIC = "synthetic"
_WINDOWS, _LENGTH = 256, 512  # the program's defaults for synthetic data
FOOTPRINT = memory.Footprint(474_017, 2, 1.16e6, 6.9e5, size=_LENGTH, dimensions=1)
"""The memory that it needs: trained weights, two moments for each, and a window's activations in torch's autograd, as a
test measures them.
"""


class DnaOptions(BaseModel):
    """The `[options]` of a study of the DNA network.

    Args:
        data: `synthetic`, or a folder with train_x.npy, train_y.npy, validation_x.npy, validation_y.npy.
        windows: The windows of a training: generated, or the first ones in the folder.
        validation_windows: The windows of the validation after each epoch.
        length: The bases of a synthetic window, a multiple of 32.
        batch_sizes: The batch sizes to try.
        patience: The epochs without a smaller loss after which a training ends.
        epochs: The most epochs of a training; the study's `[stopping]` overrides it.
        precision: The precision of the arithmetic; both are tried with `tune_precision`.
        tune_precision: Also tune the precision.
        tune_momentum: Also tune the momentum of the batch normalisation.
        memory_limit_bytes: The memory limit of a training; larger batches fail, and the search learns from it.
        tune_ranks: Also tune how many processes train together, each with its own batch, and with a GPU if there are
            any.
        max_ranks: The most processes; by default the number of GPUs, or of cores divided by `threads`.
        tune_rate_scaling: Also tune how the learning rate grows with the ranks.
        tune_micro_batches: Also tune into how many parts a batch is split.
        tune_activations: Also try to recompute activations, or to keep them in the host's memory.
        threads: The threads of a training, or of each of its ranks.
        device: The device; `auto` uses a GPU if there is one.
        target: Optimise the time until val_auc reaches this.
        budget_s: Stop a training after this many seconds; what it has reached counts.
        python: The interpreter with PyTorch.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    data: str = _SYNTHETIC
    windows: int | None = Field(default=None, ge=1)
    validation_windows: int | None = Field(default=None, ge=1)
    length: int | None = Field(default=None, ge=32)
    batch_sizes: list[int] = Field(default_factory=lambda: [8, 16, 32, 64, 128, 256], min_length=1)
    patience: int = Field(default=5, ge=1)
    epochs: int = Field(default=27, ge=1)
    precision: Literal["float32", "bfloat16"] = "float32"
    tune_precision: bool = False
    tune_momentum: bool = False
    memory_limit_bytes: int | None = Field(default=None, ge=1)
    tune_ranks: bool = False
    max_ranks: int | None = Field(default=None, ge=2)
    tune_rate_scaling: bool = False
    tune_micro_batches: bool = False
    tune_activations: bool = False
    threads: int = Field(default=1, ge=1)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    target: float | None = Field(default=None, gt=0, lt=1)
    budget_s: float | None = Field(default=None, gt=0)
    python: str | None = None


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Find PyTorch and suggest the space.

    Raises:
        PlanError: The options have errors, or there is no PyTorch here.
    """
    checked = read_options(DnaOptions, options, "dna")
    if checked.data != _SYNTHETIC and not Path(checked.data).is_dir():
        msg = f"{checked.data} is not a folder; give one with train_x.npy and so on, or synthetic"
        raise PlanError(Problem(msg, "options.data"))
    python = torch.find_python(checked.python, run_job, folder.resolve())
    gpus = 1 if python.gpus and checked.device != "cpu" else 0
    windows, length = _windows(checked)
    ranks = _most_ranks(checked, python.gpus if gpus else int(machine["cores_per_node"]) // checked.threads)
    fixed = _fixed_arguments(checked)
    parameters = (
        *_parameters(checked),
        *_together(checked, ranks),
        *memory.parameters(
            micro_batches=checked.tune_micro_batches, activations=checked.tune_activations, on_gpus=bool(gpus)
        ),
    )
    need = _need(checked, python, machine, (windows, length), on_gpus=bool(gpus))
    argv = (python.path, "-P", "-m", "dna", *fixed, *_TUNED)
    return Plan(
        objective=TrainingObjective(
            argv,
            Metric("val_auc", "", "maximize"),
            MORE,
            {"PYTHONPATH": str(torch.TRAINERS), "OMP_NUM_THREADS": str(checked.threads)},
            "json",
            checked.threads,
            gpus,
            checked.target,
            checked.budget_s,
            trained=TRAINED,
            ranks="ranks",
        ),
        parameters=parameters,
        constraints=_ALONE if checked.tune_rate_scaling else (),
        facts={
            "parameters": PARAMETERS,
            "threads": checked.threads,
            "gpus": gpus,
            "data": Path(checked.data).name,
            "length": length,
        },
        identity={**python.identity, "program": torch.program_digest("dna"), "options": " ".join(fixed)},
        notes=_notes(checked, python),
        works_in_steps=checked.target is None and checked.budget_s is None,
        memory=need,
        warnings=memory.memory_warnings(need, parameters),
    )


_TUNED = (
    "--batch-size={batch_size}",
    "--learning-rate={learning_rate}",
    "--precision={precision}",
    "--batch-norm-momentum={batch_norm_momentum}",
    "--ranks={ranks}",
    "--rate-scaling={rate_scaling}",
    *memory.TEMPLATES,
)
_ALONE = (Constraint("ranks to scale with", "ranks > 1 or not is_set(rate_scaling)", "one rank has the rate as it is"),)


def _most_ranks(checked: DnaOptions, room: int) -> int:
    """Return the largest number of ranks to try.

    Raises:
        PlanError: There is no room for them, or for a second rank.
    """
    if not checked.tune_ranks:
        for name, given in (("max_ranks", checked.max_ranks), ("tune_rate_scaling", checked.tune_rate_scaling)):
            if given:
                raise PlanError(Problem("a training has one rank: add tune_ranks = true", f"options.{name}"))
        return 1
    if room < (checked.max_ranks or 2):
        wanted = checked.max_ranks or 2
        msg = f"{wanted} ranks need a GPU each, or {checked.threads} core(s) each: only {room} fit here"
        raise PlanError(Problem(msg, "options.max_ranks" if checked.max_ranks else "options.tune_ranks"))
    return checked.max_ranks or room


def _parameters(checked: DnaOptions) -> tuple[Parameter, ...]:
    sizes = sorted(set(checked.batch_sizes))
    precision = Choice("precision", ("float32", "bfloat16"), default=checked.precision, help="of the arithmetic")
    momentum = Float(
        "batch_norm_momentum", 0.01, 0.3, log=True, points=5, optional=True, help="share of a batch in the statistics"
    )
    return (
        Integer(
            "batch_size", tuple(sizes), default=sizes[len(sizes) // 2], help="windows that a rank learns from at once"
        ),
        Float("learning_rate", 1e-4, 1e-1, log=True, points=10, default=1e-3, help="of Adam"),
        *([precision] if checked.tune_precision else []),
        *([momentum] if checked.tune_momentum else []),
    )


def _need(
    checked: DnaOptions,
    python: torch.TorchPython,
    machine: Mapping[str, Any],
    data: tuple[int, int],
    *,
    on_gpus: bool,
) -> MemoryNeed | None:
    windows, length = data
    network = FOOTPRINT.scale_to(length)

    def of_rank(one: Configuration) -> float:
        settings, ranks = {"precision": checked.precision, **one}, int(one.get("ranks", 1))
        return network.of_rank(settings, min(int(one["batch_size"]), -(-windows // ranks)), sends=ranks > 1)

    found = memory.memory_need(of_rank, "ranks", python, machine, on_gpus=on_gpus)
    limit = checked.memory_limit_bytes
    if limit is None:
        return found
    # The limit is on the memory that a process requests. No metric measures that: a peak is the memory touched.
    return MemoryNeed(
        of_rank,
        limit if found is None else min(limit, found.room_bytes),
        "process",
        "",
        kind=memory.excess_kind("ranks"),
    )


def _windows(checked: DnaOptions) -> tuple[int, int]:
    """Return how many windows a training has, and the bases of each; 0 for both if they cannot be read."""
    if checked.data == _SYNTHETIC:
        return checked.windows or _WINDOWS, checked.length or _LENGTH
    try:
        found = np.load(Path(checked.data) / "train_x.npy", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return 0, 0  # the first run reports what is wrong
    return (checked.windows or len(found), int(found.shape[1])) if found.ndim > 1 else (0, 0)


def _together(checked: DnaOptions, ranks: int) -> Iterator[Parameter]:
    if checked.tune_ranks:
        yield Integer("ranks", tuple(range(1, ranks + 1)), default=1, help="processes, each with a batch of its own")
    if checked.tune_rate_scaling:
        scalings = ("square-root", "constant")
        yield Choice("rate_scaling", scalings, optional=True, help="of the learning rate with the ranks; unset: linear")


def _fixed_arguments(checked: DnaOptions) -> Sequence[str]:
    given = {
        "data": checked.data if checked.data == _SYNTHETIC else str(Path(checked.data).absolute()),
        "windows": checked.windows,
        "validation-windows": checked.validation_windows,
        "length": checked.length,
        "patience": checked.patience,
        "epochs": checked.epochs,
        "threads": checked.threads,
        "device": checked.device,
        "precision": None if checked.tune_precision else checked.precision,
        "memory-limit-bytes": checked.memory_limit_bytes,
    }
    return [f"--{name}={value}" for name, value in given.items() if value is not None]


def _notes(checked: DnaOptions, python: torch.TorchPython) -> tuple[str, ...]:
    data = (
        "generated windows: planted CTCF motifs in simulated open chromatin, a fair target for tuning and no biology"
        if checked.data == _SYNTHETIC
        else f"windows of {checked.data}"
    )
    where = python.gpu if python.gpus and checked.device != "cpu" else f"{checked.threads} thread(s)"
    return (
        f"PyTorch {python.torch} at {python.path}, on {where}",
        f"data: {data}",
        f"network: {PARAMETERS:,} parameters",
    )
