"""The options of a run."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arguments import add_memory_options, whole
from rate import SCALINGS

PATCH_MODELS = ("small-cnn", "resnet50")
SEQUENCE_MODELS = ("lstm", "gru")
POWER_SGD = {"powersgd-1": 1, "powersgd-4": 4}  # the ranks of the matrices sent instead of a gradient
PRECISIONS = ("float32", "bfloat16", "float16")
HOOKS = ("none", "fp16", "bf16", *POWER_SGD)
DEFAULT_BUCKET_MIB = 25.0  # torch's; only with its default the first bucket has 1 MiB
BASE_RATES = {"sgd": 0.02, "lars": 2.0}
_RATES = ", ".join(f"{rate:g} of {name}" for name, rate in BASE_RATES.items())
_BUCKET = "gradients that are reduced together; torch's default begins with 1 MiB, any other value does not"


@dataclass(frozen=True)
class Settings:
    """The command line, checked."""

    model: str
    classes: int
    channels: int
    size: int
    samples: int
    seed: int
    workers: int
    threads: int
    loader_workers: int
    prefetch: int
    batch_size: int
    optimizer: str
    learning_rate: float | None
    reference_batch: int
    rate_scaling: str
    warm_up_steps: int
    hook: str
    bucket_mib: float
    gradient_as_bucket_view: bool
    static_graph: bool
    precision: str
    channels_last: bool
    pin_memory: bool
    compile: bool
    reports: int
    report_every: int
    warm_up_reports: int
    target_loss: float | None
    validation_samples: int
    checkpoint_every: int
    micro_batches: int
    activations: str
    patience_s: float

    @property
    def base_rate(self) -> float:
        """The learning rate for the reference batch."""
        return BASE_RATES[self.optimizer] if self.learning_rate is None else self.learning_rate

    @property
    def local_batch(self) -> int:
        """The number of samples of a batch per worker."""
        return self.batch_size // self.workers


def settings_of(arguments: Sequence[str]) -> Settings:
    """Read the command line.

    Raises:
        SystemExit: with code 2 and a message on standard error; the options are wrong.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    for flag in ("gradient_as_bucket_view", "static_graph", "channels_last", "pin_memory", "compile"):
        setattr(given, flag, bool(getattr(given, flag)))
    settings = Settings(**vars(given))
    if settings.batch_size % settings.workers:
        parser.error(
            f"--batch-size {settings.batch_size} cannot be shared evenly by --workers {settings.workers}: "
            f"choose a multiple of {settings.workers}"
        )
    if settings.samples < settings.batch_size:
        parser.error(
            f"--samples {settings.samples} are fewer than one batch of --batch-size {settings.batch_size}: "
            "ask for more samples, or for a smaller batch"
        )
    if settings.channels_last and settings.model not in PATCH_MODELS:
        parser.error(f"--channels-last 1 is for images ({', '.join(PATCH_MODELS)}), not for {settings.model}")
    if settings.activations == "recompute" and settings.model not in PATCH_MODELS:
        parser.error(f"--activations recompute is for {', '.join(PATCH_MODELS)}: {settings.model} is one part")
    if settings.activations == "recompute" and settings.compile:
        parser.error("--activations recompute goes with --compile 0 only: a compiled network decides by itself")
    if settings.micro_batches > 1 and settings.static_graph:
        parser.error("--micro-batches goes with --static-graph 0 only: gradients are not sent in every pass")
    return settings


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ddp",
        description="data-parallel training with torch's DistributedDataParallel",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    what = parser.add_argument_group("model and data")
    what.add_argument("--model", choices=(*PATCH_MODELS, *SEQUENCE_MODELS), default="small-cnn")
    what.add_argument("--classes", type=whole(2), default=19)
    what.add_argument("--channels", type=whole(1), default=12, help="bands of a patch, features of a sequence")
    what.add_argument("--size", type=whole(8), default=32, help="edge of a patch in pixels, length of a sequence")
    what.add_argument("--samples", type=whole(1), default=4096, help="number of training samples")
    what.add_argument("--seed", type=whole(0), default=1)
    how = parser.add_argument_group("training")
    how.add_argument("--workers", type=whole(1), default=2, help="processes")
    how.add_argument("--threads", type=whole(1), default=1, help="threads per worker")
    how.add_argument("--loader-workers", type=whole(0), default=0, help="processes per worker that make batches")
    how.add_argument("--prefetch", type=whole(1), default=2, help="batches that each loader process makes ahead")
    how.add_argument("--batch-size", type=whole(1), default=64, help="samples per step, of all workers together")
    how.add_argument(
        "--optimizer", choices=tuple(BASE_RATES), default="sgd", help="with momentum; lars: rates by layer"
    )
    how.add_argument("--learning-rate", type=_number(0.0), help=f"for a batch of --reference-batch; unset: {_RATES}")
    how.add_argument("--reference-batch", type=whole(1), default=32, help="batch from which the rate grows")
    how.add_argument("--rate-scaling", choices=SCALINGS, default="linear", help="how the rate grows with the batch")
    how.add_argument("--warm-up-steps", type=whole(0), default=10, help="steps until the full rate")
    how.add_argument("--hook", choices=HOOKS, default="none", help="compression of gradients before they are sent")
    how.add_argument("--bucket-mib", type=_number(0.0), default=DEFAULT_BUCKET_MIB, help=_BUCKET)
    how.add_argument("--gradient-as-bucket-view", type=int, choices=(0, 1), default=0)
    how.add_argument("--static-graph", type=int, choices=(0, 1), default=0)
    how.add_argument("--precision", choices=PRECISIONS, default="float32", help="float16: with loss scaling")
    how.add_argument("--channels-last", type=int, choices=(0, 1), default=0)
    how.add_argument("--pin-memory", type=int, choices=(0, 1), default=0, help="pin the memory of batches for a GPU")
    how.add_argument("--compile", type=int, choices=(0, 1), default=0, help="with torch.compile; needs a C++ compiler")
    add_memory_options(parser)
    end = parser.add_argument_group("end")
    end.add_argument("--reports", type=whole(1), default=10, help="reports until the end, without AUTOTUNE_STEPS")
    end.add_argument("--report-every", type=whole(1), default=5, help="optimiser steps per report")
    end.add_argument("--warm-up-reports", type=whole(0), default=1, help="first reports, not part of the result")
    end.add_argument("--target-loss", type=_number(0.0), default=None, help="stop when the mean loss reaches this")
    end.add_argument("--validation-samples", type=whole(0), default=0, help="samples for a validation at the end")
    end.add_argument("--checkpoint-every", type=whole(0), default=0, help="optimiser steps; 0: only at the end")
    end.add_argument("--patience-s", type=_number(0.0), default=300.0, help="longest silence of a worker")
    return parser


def _number(above: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not above < number < float("inf"):
            raise argparse.ArgumentTypeError(f"{text!r} is no number above {above:g}")
        return number

    return read
