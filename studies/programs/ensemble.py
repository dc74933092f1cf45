"""Serves an ensemble: each request needs the answers of several models, which share this machine's cores.

    python3 ensemble.py --groups 2 --conv 2 0 --attention 0 1 --dense 0 1 --conv-batch 8

The cores are divided into groups of the same size. The option of a model is its row in an allocation matrix (Pochelu,
Petiton and Conche, arXiv:2208.14049): the number of its instances on each group. An instance, with its `--threads`, is
bound to the cores of its group. All instances of a model share its queue of requests. The answer to a request is the
mean of all models' outputs.

It measures and prints the same figures as `serving.py`.
"""

import argparse
import os
from collections.abc import Sequence
from typing import Any

import load
import serving

MODELS = ("conv", "attention", "dense")


def groups(cores: Sequence[int], number: int) -> list[frozenset[int]]:
    """Return groups of neighbouring cores, all of the same size."""
    size = len(cores) // number
    return [frozenset(cores[size * at : size * (at + 1)]) for at in range(number)]


def find_mistake(asked: argparse.Namespace, cores: int) -> str:
    """Return a message if an allocation is impossible, else an empty text."""
    if not 1 <= asked.groups <= cores:
        return f"--groups {asked.groups}, but there are {cores} cores: a group needs at least one"
    for name in MODELS:
        row = getattr(asked, name)
        if len(row) != asked.groups:
            return f"--{name} {' '.join(map(str, row))}, but there are {asked.groups} groups: give a number for each"
        if sum(row) < 1:
            return f"there is no instance of {name}: every request needs every model"
    return ""


def place_instances(
    served: Any,  # noqa: ANN401  a module
    content: bytes,
    row: Sequence[int],
    where: Sequence[frozenset[int]],
    asked: Any,  # noqa: ANN401  options
) -> list[Any]:
    """Make a model's instances, each bound to its group of cores."""
    own, made = os.sched_getaffinity(0), []
    for cores, instances in zip(where, row, strict=True):
        asked.instances = instances
        # An engine's threads inherit the cores of the thread that makes it.
        os.sched_setaffinity(0, cores)
        made += [load.Instance(run, cores) for run in served.engines(content, asked)]
    os.sched_setaffinity(0, own)
    return made


def serve(asked: argparse.Namespace) -> None:
    """Make the models, place their instances, and measure them together."""
    cores = sorted(os.sched_getaffinity(0))
    if wrong := find_mistake(asked, len(cores)):
        raise SystemExit(f"error: {wrong}")
    served = serving.import_models("onnxruntime")
    models, references = [], []
    for name in MODELS:
        content, inputs, row = served.model(name), served.inputs(name), getattr(asked, name)
        engine = argparse.Namespace(
            engine="onnxruntime",
            intra=asked.threads,
            inter=1,
            spinning=asked.spinning,
            arena=1,
            graph="all",
        )
        instances = place_instances(served, content, row, groups(cores, len(row)), engine)
        models.append(load.Model(instances, inputs, getattr(asked, f"{name}_batch")))
        references.append(served.reference(content, inputs))
    load.measure(load.Service(models, asked.within_ms / 1000.0), sum(references) / len(models), asked)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    load.add_load_options(parser)
    parser.add_argument("--groups", type=int, default=1, help="groups of cores, of the same size")
    for name in MODELS:
        parser.add_argument(f"--{name}", type=int, nargs="+", default=[1], help="instances on each group of cores")
        parser.add_argument(f"--{name}-batch", type=int, default=1, help="requests that are computed together, at most")
    parser.add_argument("--threads", type=int, default=1, help="threads of an instance")
    parser.add_argument("--spinning", type=int, default=1, help="1: threads without work stay busy")
    return parser.parse_args()


if __name__ == "__main__":
    serve(arguments())
