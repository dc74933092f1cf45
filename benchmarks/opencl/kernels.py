"""Two OpenCL kernels as Kernel Tuner tunes them: their parameters, restrictions, arguments and right answers."""

from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
NAMES = ("matmul", "convolution")

_N = 256  # the order of the matrices
_W, _H, _F = 512, 512, 5  # the image and the filter


def arguments(name: str) -> dict[str, Any]:
    """Return what `kernel_tuner.tune_kernel` is called with, for one of the kernels."""
    rng = np.random.default_rng(0)
    made = _matmul(rng) if name == "matmul" else _convolution(rng)
    common = {"kernel_name": name, "kernel_source": str(HERE / f"{name}.cl"), "lang": "OpenCL"}
    grid = {axis: [f"block_size_{axis[-1]}", f"tile_size_{axis[-1]}"] for axis in ("grid_div_x", "grid_div_y")}
    return {**common, **grid, **made}


def _matmul(rng: np.random.Generator) -> dict[str, Any]:
    a, b = (rng.random((_N, _N), dtype=np.float32) for _ in range(2))
    return {
        "problem_size": (_N, _N),
        "arguments": [np.zeros((_N, _N), np.float32), a, b],
        "answer": [a @ b, None, None],
        "atol": 1e-2,
        "tune_params": {
            "N": [_N],
            "block_size_x": [4, 8, 16, 32, 64],
            "block_size_y": [1, 2, 4, 8],
            "tile_size_x": [1, 2, 4, 8],
            "tile_size_y": [1, 2, 4, 8],
            "unroll_k": [1, 4],
        },
        "restrictions": [
            "block_size_x * block_size_y >= 8",
            "block_size_x * block_size_y <= 128",
            "block_size_x * tile_size_x <= 128",
            "tile_size_x * tile_size_y <= 16",
        ],
    }


def _convolution(rng: np.random.Generator) -> dict[str, Any]:
    image = rng.random((_H + _F - 1, _W + _F - 1), dtype=np.float32)
    weights = rng.random((_F, _F), dtype=np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(image, (_F, _F))
    return {
        "problem_size": (_W, _H),
        "arguments": [np.zeros((_H, _W), np.float32), image, weights],
        "answer": [np.einsum("ijkl,kl->ij", windows, weights), None, None],
        "atol": 1e-3,
        "tune_params": {
            "W": [_W],
            "F": [_F],
            "block_size_x": [8, 16, 32, 64],
            "block_size_y": [1, 2, 4, 8],
            "tile_size_x": [1, 2, 4],
            "tile_size_y": [1, 2, 4, 8],
            "use_local": [0, 1],
        },
        "restrictions": [
            "block_size_x * block_size_y <= 256",
            "tile_size_x * tile_size_y <= 16",
            "use_local == 0 or (block_size_x * tile_size_x + 4) * (block_size_y * tile_size_y + 4) <= 8192",
        ],
    }
