"""The checkpoint of a run."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from .messages import Reported
from .options import Settings

_MUST_MATCH = ("model", "classes", "channels", "size", "samples", "seed", "batch_size", "optimizer", "precision")


@dataclass(frozen=True)
class Saved:
    """The state after `step` steps, which took `trained_s`.

    `network`, `optimizer`, `scaler` and `random` are torch's own states; `reported` is the last report.
    """

    step: int
    trained_s: float
    reported: Reported
    network: Any
    optimizer: Any
    scaler: Any
    random: Any


def write(path: Path, saved: Saved, settings: Settings) -> None:
    """Write a state, with the options that a resumed run must also have.

    Raises:
        OSError: the file could not be written. (If torch opened it, that would be a RuntimeError.)
    """
    state = {
        "step": saved.step,
        "trained_s": saved.trained_s,
        "reported": asdict(saved.reported),
        "network": saved.network,
        "optimizer": saved.optimizer,
        "scaler": saved.scaler,
        "random": saved.random,
        "of": {name: getattr(settings, name) for name in _MUST_MATCH},
    }
    with path.open("wb") as file:
        try:
            torch.save(state, file)
        except RuntimeError as error:
            raise OSError(str(error)) from error


def read(path: Path, settings: Settings) -> Saved:
    """Read a state.

    Raises:
        ValueError: the file is no checkpoint, or is from a run with other options.
    """
    hint = "use another folder in AUTOTUNE_CHECKPOINT, or remove the file"
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        of = state.pop("of")
        other = [
            f"{name} {of[name]}, now {getattr(settings, name)}"
            for name in _MUST_MATCH
            if of[name] != getattr(settings, name)
        ]
        saved = Saved(**{**state, "reported": Reported(**state["reported"])})
    except Exception as error:
        raise ValueError(f"the checkpoint {path} cannot be read ({type(error).__name__}): {hint}") from error
    if other:
        raise ValueError(f"the checkpoint {path} is of a run with other options ({'; '.join(other)}): {hint}")
    return saved
