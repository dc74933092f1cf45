"""The models that the studies `inference` and `ensemble` serve, made here with fixed seeds, and their engines.

Weights are random, since the time of a model does not depend on them. A model is an ONNX graph whose first dimension is
the batch. An engine makes a function of it that maps a batch of inputs to outputs.
"""

import argparse
import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

Run = Callable[[np.ndarray], np.ndarray]

SEED = 7
INPUTS = 32
CLASSES = 64
OPSET = 17
SHAPES = {"conv": (3, 64, 64), "attention": (32, 128), "dense": (512,)}
LEVELS = {
    "disable": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


class Graph:
    """A graph that grows by one operation at a time."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.drawn = np.random.default_rng(SEED)

    def weight(self, *shape: int, inputs: int) -> str:
        """Return a random weight, scaled so that a sum of `inputs` values keeps their size."""
        return self.constant(self.drawn.normal(0.0, (2.0 / inputs) ** 0.5, shape).astype(np.float32))

    def constant(self, value: np.ndarray) -> str:
        """Return a constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401  as ONNX has them
        """Return the result of an operation."""
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, inputs, [name], name=f"{operation}_{name}", **attributes))
        return name

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """Return a matrix times the last dimension."""
        return self.add("MatMul", x, self.weight(inputs, outputs, inputs=inputs))

    def heads(self, x: str, heads: int, width: int, order: list[int]) -> str:
        """Return the last dimension split into heads, in an order of dimensions."""
        shape = self.constant(np.array([0, 0, heads, width // heads], dtype=np.int64))
        return self.add("Transpose", self.add("Reshape", x, shape), perm=order)

    def normalised(self, x: str, width: int) -> str:
        """Return a layer's normalised values."""
        ones, zeros = np.ones(width, dtype=np.float32), np.zeros(width, dtype=np.float32)
        return self.add("LayerNormalization", x, self.constant(ones), self.constant(zeros))


def convolutional(graph: Graph, x: str) -> str:
    """Six convolutions of 3 x 3 over an image of 64 x 64, with shortcuts around those that keep its shape."""
    channels = SHAPES["conv"][0]
    for wide, stride in ((32, 2), (64, 2), (64, 1), (64, 1), (128, 2), (128, 1)):
        weight = graph.weight(wide, channels, 3, 3, inputs=9 * channels)
        made = graph.add("Conv", x, weight, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[stride, stride])
        made = graph.add("Relu", made)
        x = graph.add("Add", x, made) if wide == channels and stride == 1 else made
        channels = wide
    x = graph.add("Flatten", graph.add("GlobalAveragePool", x))
    return graph.linear(x, channels, CLASSES)


def attention(graph: Graph, x: str) -> str:
    """Two layers of a transformer over 32 tokens: attention with four heads, and two matrices with a ReLU between."""
    width, heads = SHAPES["attention"][1], 4
    for _ in range(2):
        at = graph.normalised(x, width)
        query = graph.heads(graph.linear(at, width, width), heads, width, [0, 2, 1, 3])
        key = graph.heads(graph.linear(at, width, width), heads, width, [0, 2, 3, 1])
        value = graph.heads(graph.linear(at, width, width), heads, width, [0, 2, 1, 3])
        scale = graph.constant(np.array((width / heads) ** -0.5 / 4.0, dtype=np.float32))
        weights = graph.add("Softmax", graph.add("Mul", graph.add("MatMul", query, key), scale), axis=-1)
        mixed = graph.add("Transpose", graph.add("MatMul", weights, value), perm=[0, 2, 1, 3])
        mixed = graph.add("Reshape", mixed, graph.constant(np.array([0, 0, width], dtype=np.int64)))
        x = graph.add("Add", x, graph.linear(mixed, width, width))
        inner = graph.add("Relu", graph.linear(graph.normalised(x, width), width, 4 * width))
        x = graph.add("Add", x, graph.linear(inner, 4 * width, width))
    x = graph.add("ReduceMean", graph.normalised(x, width), axes=[1], keepdims=0)
    return graph.linear(x, width, CLASSES)


def dense(graph: Graph, x: str) -> str:
    """Three matrices with a ReLU between them; a batch reads the weights once."""
    for inputs, outputs in ((SHAPES["dense"][0], 1024), (1024, 1024)):
        x = graph.add("Relu", graph.linear(x, inputs, outputs))
    return graph.linear(x, 1024, CLASSES)


MODELS = {"conv": convolutional, "attention": attention, "dense": dense}


def model(name: str) -> bytes:
    """Return a model."""
    graph = Graph()
    MODELS[name](graph, "x")
    graph.nodes[-1].output[0] = "y"
    made = helper.make_graph(
        graph.nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *SHAPES[name]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", CLASSES])],
        graph.constants,
    )
    # An older version of the format, so that older engines can read it.
    proto = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(proto)
    return bytes(proto.SerializeToString())


def quantised(content: bytes) -> bytes:
    """Return a model with matrices and convolutions in 8 bits; the range of inputs is determined in each run."""
    quantization = importlib.import_module("onnxruntime.quantization")
    with tempfile.TemporaryDirectory() as folder:
        wide, narrow = Path(folder, "wide.onnx"), Path(folder, "narrow.onnx")
        wide.write_bytes(content)
        # ONNX Runtime has 8-bit convolutions only for unsigned weights.
        quantization.quantize_dynamic(wide, narrow, weight_type=quantization.QuantType.QUInt8)
        return narrow.read_bytes()


def inputs(name: str) -> np.ndarray:
    """Return the inputs that requests use in turn."""
    return np.random.default_rng(SEED + 1).normal(size=(INPUTS, *SHAPES[name])).astype(np.float32)


def reference(content: bytes, batch: np.ndarray) -> np.ndarray:
    """Return the outputs of a model in 32 bits, one input at a time, without optimisation."""
    plain = argparse.Namespace(intra=1, inter=1, graph="disable", arena=1, spinning=0)
    run = _onnxruntime(content, plain)
    return np.concatenate([run(batch[number : number + 1]) for number in range(len(batch))])


def engines(content: bytes, asked: argparse.Namespace) -> list[Run]:
    """Return the function that runs a model, for each instance."""
    match asked.engine:
        case "onnxruntime":
            return [_onnxruntime(content, asked) for _ in range(asked.instances)]
        case "openvino":
            return [_openvino(content, asked) for _ in range(asked.instances)]
    # One PyTorch module serves all calling threads, and each has its own worker threads.
    torch = importlib.import_module("served_torch")
    run: Run = torch.engine(content, asked.intra, compiled=asked.engine == "torch-compile")
    return [run] * asked.instances


def _onnxruntime(content: bytes, asked: argparse.Namespace) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = asked.intra
    options.inter_op_num_threads = asked.inter
    parallel = asked.inter > 1
    options.execution_mode = getattr(onnxruntime.ExecutionMode, "ORT_PARALLEL" if parallel else "ORT_SEQUENTIAL")
    options.graph_optimization_level = LEVELS[asked.graph]
    options.enable_cpu_mem_arena = bool(asked.arena)
    options.log_severity_level = 3
    for pool in ("intra_op", "inter_op"):
        options.add_session_config_entry(f"session.{pool}.allow_spinning", str(asked.spinning))
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return lambda batch: session.run(None, {"x": batch})[0]


def _openvino(content: bytes, asked: argparse.Namespace) -> Run:
    core = importlib.import_module("openvino").Core()
    # In 32 bits, like the other engine: on some processors the default is 16. Without binding of threads: each model
    # would bind them by itself, several models to the same cores.
    wanted = {
        "INFERENCE_NUM_THREADS": asked.intra,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
        "ENABLE_CPU_PINNING": False,
    }
    request = core.compile_model(core.read_model(content), "CPU", wanted).create_infer_request()
    return lambda batch: request.infer([batch])[0]
