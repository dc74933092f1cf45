"""Serves a model to requests at random times: the study `inference`; `load.py` makes the requests.

    python3 serving.py --model conv --engine onnxruntime --batch 8 --wait-ms 2 --instances 2 --within-ms 50

First it finds the highest load at which 99 % of the requests are answered within `--within-ms`. Then it runs three
windows of `--seconds` at four fifths of that load, each with other random times. It reports the window with the median
99th percentile of latency: that percentile, the median latency, and the requests answered a second; also how well all
answers agree with the model in 32 bits, one request at a time (100 %: they are the same). A request that is unanswered
after twice the window is dropped, and its latency is the time that it waited. `--rate` sets the load instead.
"""

import argparse
import importlib
import importlib.util
import sys
from typing import Any

import load

PACKAGES = {
    "onnxruntime": ("numpy", "onnx", "onnxruntime"),
    "openvino": ("numpy", "onnx", "onnxruntime", "openvino"),
    "torch": ("numpy", "onnx", "onnxruntime", "torch"),
    "torch-compile": ("numpy", "onnx", "onnxruntime", "torch"),
}


def serve(asked: argparse.Namespace) -> None:
    """Make the model and its engines, and measure them."""
    served = import_models(asked.engine)
    content, inputs = served.model(asked.model), served.inputs(asked.model)
    references = served.reference(content, inputs)
    if asked.precision == "int8":
        content = served.quantised(content)
    instances = [load.Instance(run) for run in served.engines(content, asked)]
    model = load.Model(instances, inputs, asked.batch, asked.wait_ms / 1000.0)
    load.measure(load.Service([model], asked.within_ms / 1000.0), references, asked)


def import_models(engine: str) -> Any:  # noqa: ANN401  a module
    """Import the module of models and engines, whose packages this Python may lack."""
    missing = [name for name in PACKAGES[engine] if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(
            f"error: {sys.executable} has no {', '.join(missing)}: './run study inference' installs what is needed, "
            f"and so does {sys.executable} -m pip install {' '.join(missing)}"
        )
    return importlib.import_module("served")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    load.add_load_options(parser)
    parser.add_argument("--model", choices=["conv", "attention", "dense"], default="conv")
    parser.add_argument("--engine", choices=list(PACKAGES), default="onnxruntime")
    parser.add_argument("--batch", type=int, default=1, help="requests that are computed together, at most")
    parser.add_argument("--wait-ms", type=float, default=0.0, help="how long the first of a batch waits for more")
    parser.add_argument("--instances", type=int, default=1, help="engines that compute side by side")
    parser.add_argument("--intra", type=int, default=1, help="threads of one operation")
    parser.add_argument("--inter", type=int, default=1, help="operations at once (ONNX Runtime)")
    parser.add_argument("--spinning", type=int, default=1, help="1: threads without work stay busy (ONNX Runtime)")
    parser.add_argument("--arena", type=int, default=1, help="1: memory is kept for the next run (ONNX Runtime)")
    parser.add_argument("--graph", choices=["disable", "basic", "extended", "all"], default="all")
    parser.add_argument("--precision", choices=["float32", "int8"], default="float32")
    return parser.parse_args()


if __name__ == "__main__":
    serve(arguments())
