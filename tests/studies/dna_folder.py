"""A folder of windows and labels, as the training program `dna` reads them."""

from pathlib import Path
from typing import Any

import numpy as np


def write_folder(folder: Path, **changed: Any) -> None:
    """Write four windows and three for validation; `changed` replaces arrays, or removes them with None."""
    arrays = {
        "train_x": np.random.default_rng(1).random((4, 64, 5)),
        "train_y": np.ones((4, 64, 1), dtype=bool),
        "validation_x": np.zeros((3, 64, 5), dtype=np.float32),
        "validation_y": np.tile(np.array([[0], [1]], dtype=np.uint8), (3, 32, 1)),
        **changed,
    }
    for name, array in arrays.items():
        if array is not None:
            np.save(folder / f"{name}.npy", array)
