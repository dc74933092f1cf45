"""The options of the program."""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

import protocol
from arguments import add_memory_options, whole
from rate import SCALINGS

SYNTHETIC = "synthetic"
STRIDE = 32  # the network halves lengths five times, so they must be a multiple of this


@dataclass(frozen=True)
class Settings:
    """The command line; see `--help`. `length`, `windows`: None means the value of the data."""

    batch_size: int
    learning_rate: float
    ranks: int
    rate_scaling: str
    micro_batches: int
    activations: str
    epochs: int
    patience: int
    seed: int
    data: str
    data_seed: int
    length: int | None
    windows: int | None
    validation_windows: int | None
    filters: int
    batch_norm_momentum: float
    precision: str
    auc_thresholds: int
    device: str
    threads: int
    memory_limit_bytes: int | None
    checkpoint_every: int


def from_command_line(arguments: Sequence[str]) -> Settings:
    """Read the options.

    Raises:
        SystemExit: with code 2; an option is unknown, or its value is out of range.
    """
    parser = _parser()
    given = Settings(**vars(parser.parse_args(arguments)))
    if given.data != SYNTHETIC:
        if given.length is not None:
            parser.error("--length belongs to --data synthetic: a folder's windows have the length they have")
        return given
    filled = {"length": 512, "windows": 256, "validation_windows": 128}
    return Settings(
        **{**vars(given), **{name: vars(given)[name] or value for name, value in filled.items()}},
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dna", description="train a U-Net that finds CTCF sites base by base", allow_abbrev=False
    )
    training = parser.add_argument_group("training")
    training.add_argument("--batch-size", type=whole(1), default=100, help="windows per rank; at most all are used")
    training.add_argument("--learning-rate", type=_positive, default=0.001, help="rate of Adam, with one rank")
    training.add_argument("--ranks", type=whole(1), default=1, help="processes, each with its own GPU if any")
    training.add_argument(
        "--rate-scaling", choices=SCALINGS, default="linear", help="how the rate grows with the ranks"
    )
    training.add_argument("--epochs", type=whole(1), default=27, help="most epochs, unless AUTOTUNE_STEPS is set")
    training.add_argument(
        "--patience", type=whole(1), default=5, help="epochs without a smaller validation loss until an early stop"
    )
    training.add_argument(
        "--seed", type=whole(0), default=protocol.seed(1), help="seed of the first weights and the order"
    )
    training.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    network = parser.add_argument_group("network")
    network.add_argument("--filters", type=whole(1), default=15, help="filters of the first level")
    network.add_argument(
        "--batch-norm-momentum",
        type=_share,
        default=0.1,
        help="share of a batch in the moving statistics; Keras' momentum .99 is .01 here",
    )
    data = parser.add_argument_group("data")
    data.add_argument("--data", default=SYNTHETIC, help=f"{SYNTHETIC}, or a folder with train_x.npy and so on")
    data.add_argument("--data-seed", type=whole(0), default=1, help="seed of the synthetic data")
    data.add_argument("--length", type=_length, help="bases of a synthetic window [512]")
    data.add_argument("--windows", type=whole(1), help="for training [synthetic: 256; folder: all]")
    data.add_argument("--validation-windows", type=whole(1), help="[synthetic: 128; folder: all]")
    data.add_argument(
        "--auc-thresholds",
        type=whole(0),
        default=0,
        help="0: val_auc is the exact average precision; 1001: Keras' AUC with 1001 thresholds",
    )
    add_memory_options(parser)
    machine = parser.add_argument_group("machine")
    machine.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    # One by default: more threads than idle cores made epochs three to ten times slower.
    machine.add_argument("--threads", type=whole(1), default=1)
    machine.add_argument(
        "--memory-limit-bytes", type=whole(1), help="limit of this process' data (CPU), or of torch's GPU memory"
    )
    machine.add_argument("--checkpoint-every", type=whole(1), default=1, help="epochs between checkpoints")
    return parser


def _length(text: str) -> int:
    length: int = whole(1)(text)
    if length % STRIDE:
        raise argparse.ArgumentTypeError(f"{length} is no multiple of {STRIDE}: the network halves it five times")
    return length


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _positive(text: str) -> float:
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return number


def _share(text: str) -> float:
    number = _number(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0 and not above 1")
    return number
