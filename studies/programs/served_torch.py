"""Runs an ONNX model with PyTorch, for the study `inference`.

The model becomes a module that calls a function of PyTorch for each operation of the graph, like one written by hand
(torch.fx). It supports the operations of the study's models; any other one is an error that names it.
"""

# ruff: noqa: ANN401  torch has no types here

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional

Run = Callable[[np.ndarray], np.ndarray]


def convolved(x: Any, weight: Any, *, kernel_shape: Sequence[int], strides: Sequence[int], pads: Sequence[int]) -> Any:
    """Return a convolution with the same padding on both sides."""
    return functional.conv2d(x, weight, stride=strides, padding=pads[: len(kernel_shape)])


def flattened(x: Any) -> Any:
    """Return `x` with all dimensions but the first merged."""
    return torch.flatten(x, 1)


def mean_of(x: Any, *, axes: Sequence[int], keepdims: int) -> Any:
    """Return the mean over dimensions."""
    return torch.mean(x, dim=axes, keepdim=bool(keepdims))


def normalised(x: Any, scale: Any, shift: Any, *, axis: int = -1) -> Any:
    """Return `x`, normalised over the dimensions from `axis` on."""
    return functional.layer_norm(x, x.shape[axis:], scale, shift)


def permuted(x: Any, *, perm: Sequence[int]) -> Any:
    """Return `x` with its dimensions in another order."""
    return torch.permute(x, perm)


def pooled(x: Any) -> Any:
    """Return the mean of each channel of an image, with all dimensions."""
    return torch.mean(x, dim=(2, 3), keepdim=True)


def reshaped(x: Any, shape: Sequence[int]) -> Any:
    """Return `x` in another shape, in which 0 keeps a dimension."""
    return x.reshape([x.shape[at] if size == 0 else size for at, size in enumerate(shape)])


def softmax(x: Any, *, axis: int) -> Any:
    """Return the softmax over a dimension."""
    return torch.softmax(x, dim=axis)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "Add": torch.add,
    "Conv": convolved,
    "Flatten": flattened,
    "GlobalAveragePool": pooled,
    "LayerNormalization": normalised,
    "MatMul": torch.matmul,
    "Mul": torch.mul,
    "ReduceMean": mean_of,
    "Relu": torch.relu,
    "Reshape": reshaped,
    "Softmax": softmax,
    "Transpose": permuted,
}


def module(content: bytes) -> Any:
    """Return a model as a module, with its weights."""
    model = onnx.load_from_string(content).graph
    weights, graph = torch.nn.Module(), torch.fx.Graph()
    made: dict[str, Any] = {"x": graph.placeholder("x")}
    for constant in model.initializer:
        value = numpy_helper.to_array(constant)
        if value.dtype.kind == "i":
            made[constant.name] = value.tolist()
        else:
            weights.register_buffer(constant.name, torch.from_numpy(value.copy()))
            made[constant.name] = graph.get_attr(constant.name)
    for node in model.node:
        if node.op_type not in OPERATIONS:
            sys.exit(f"error: served_torch.py has no operation {node.op_type}: add it, or take another engine")
        attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        inputs = tuple(made[name] for name in node.input)
        made[node.output[0]] = graph.call_function(OPERATIONS[node.op_type], inputs, attributes)
    graph.output(made[model.output[0].name])
    return torch.fx.GraphModule(weights, graph)


def engine(content: bytes, threads: int, *, compiled: bool) -> Run:
    """Return a function that runs a model with `threads` threads per caller; it may be called from several threads."""
    torch.set_num_threads(threads)
    called = module(content)

    def run(batch: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            result: np.ndarray = called(torch.from_numpy(batch)).numpy()
            return result

    if compiled:
        called = torch.compile(called)
        sizes = onnx.load_from_string(content).graph.input[0].type.tensor_type.shape.dim[1:]
        try:
            run(np.zeros([1, *(size.dim_value for size in sizes)], dtype=np.float32))
        except Exception as error:  # noqa: BLE001  any error of the compiler, reported in one line
            message = " ".join(str(error).split("\n\n", maxsplit=1)[0].split())
            sys.exit(f"error: torch.compile needs a C++ compiler and Python's headers (g++, python3-dev): {message}")
    return run
