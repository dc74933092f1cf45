"""Checkpoints: network, optimizer, random numbers, progress, and the identity of the training."""

import io
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .progress import Progress
from .refusal import RefusedError

FORMAT = 1

Identity = Mapping[str, str | int | float]


def snapshot(network: Any, optimizer: Any, progress: Progress, identity: Identity) -> bytes:
    """Return the content of a checkpoint file."""
    random = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        random["cuda"] = torch.cuda.get_rng_state()
    parts = {
        "format": FORMAT,
        "identity": dict(identity),
        "progress": progress.as_plain(),
        "network": network.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": random,
    }
    buffer = io.BytesIO()
    torch.save(parts, buffer)
    return buffer.getvalue()


def restore(path: Path, network: Any, optimizer: Any, identity: Identity) -> Progress:
    """Restore a training from a checkpoint, and return its progress.

    Raises:
        RefusedError: the file is damaged, or from a training with other settings.
    """
    if not zipfile.is_zipfile(path):  # torch would read other files in an older format, with all kinds of errors
        raise RefusedError(
            f"the checkpoint {path} cannot be read: it is no whole file of torch; delete it to start again"
        )
    try:
        # Only tensors and plain values: a checkpoint cannot run anything.
        parts = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RefusedError(f"the checkpoint {path} cannot be read: {reason}; delete it to start again") from error
    if not isinstance(parts, dict) or parts.get("format") != FORMAT:
        raise RefusedError(f"{path} is no checkpoint of this program; delete it, or give another AUTOTUNE_CHECKPOINT")
    others = _differences(parts["identity"], identity)
    if others:
        raise RefusedError(
            f"the checkpoint {path} is of other settings: {'; '.join(others)}; "
            "give those, or another AUTOTUNE_CHECKPOINT"
        )
    network.load_state_dict(parts["network"])
    optimizer.load_state_dict(parts["optimizer"])
    torch.set_rng_state(parts["random"]["cpu"])
    if "cuda" in parts["random"] and torch.cuda.is_available():
        torch.cuda.set_rng_state(parts["random"]["cuda"])
    return Progress(**parts["progress"])


def _differences(there: Identity, here: Identity) -> list[str]:
    return [
        f"{name} {there.get(name)} there, {here.get(name)} here"
        for name in sorted({*there, *here})
        if there.get(name) != here.get(name)
    ]
