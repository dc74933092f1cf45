"""The training: epochs of batches, each with a validation, until the last step, an early stop or a request to stop.

Each rank trains on its share of every batch. The first one prints, decides and writes checkpoints; the others continue
until they are killed.
"""

import itertools
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import protocol
import torch
from activations import recompute, store_activations
from microbatches import micro_batches
from rate import scale_of, times_larger

from . import data, metrics, state
from .group import Answers, Group
from .network import Shape, UNet
from .progress import Progress
from .refusal import DivergedError, RefusedError
from .settings import Settings


class Stop(Protocol):
    """Whether the training was asked to stop."""

    asked: bool


@dataclass(frozen=True)
class Learner:
    """The network, its optimiser and device; `model` is the network with gradients averaged over all ranks."""

    network: Any
    model: Any
    optimizer: Any
    device: Any
    settings: Settings
    group: Group

    def logits(self, network: Any, inputs: Any) -> Any:
        """Return the outputs of the network, or of the model, for windows."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16"):
            found = network(inputs.to(self.device))
        return found.float()  # sites are rare, so the loss needs the precision


def prepare(settings: Settings, group: Group) -> Any:
    """Set torch up, and return the device.

    Raises:
        RefusedError: the device is missing, or there are fewer GPUs than ranks.
    """
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise RefusedError("--device cuda: torch finds no GPU here; use auto or cpu")
    on_gpu = settings.device != "cpu" and torch.cuda.is_available()
    if on_gpu and torch.cuda.device_count() < group.ranks:
        found = torch.cuda.device_count()
        raise RefusedError(f"--ranks {group.ranks}: torch finds {found} GPUs here; use fewer, or --device cpu")
    torch.set_num_threads(settings.threads)
    _warm_up()
    torch.set_flush_denormal(True)  # denormal numbers are slow and not needed
    torch.backends.cudnn.deterministic = True  # an interrupted training must give the same result
    if not on_gpu:
        return torch.device("cpu")
    torch.cuda.set_device(group.rank)
    return torch.device("cuda", group.rank)


def _warm_up() -> None:
    # Start the threads, and import what the first optimizer imports (a second). If memory is short, both crash or give
    # misleading errors, so do this before the limit of memory is set.
    torch.ones(1 << 20).exp_()
    nothing = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([nothing])
    optimizer.zero_grad()
    nothing.sum().backward()
    optimizer.step()


def train(settings: Settings, device: Any, group: Group, stop: Stop, checkpoint: protocol.Checkpoint) -> None:
    """Train to the last step, an early stop or a request to stop; resume from the checkpoint if there is one.

    Ranks other than the first never return.

    Raises:
        RefusedError: the data or the checkpoint is wrong.
        DivergedError: a loss is infinite or undefined.
    """
    last = protocol.last_step(settings.epochs)
    splits = data.load(settings)
    identity = _identity(settings, splits)
    learner = _learner(settings, device, group, len(splits.train))
    progress = Progress()
    if checkpoint.exists():
        progress = state.restore(checkpoint.path, learner.network, learner.optimizer, identity)
    if group.rank:
        for epoch in itertools.count(progress.epoch + 1):
            _epoch(learner, splits, epoch, stop)
    if progress.last and (progress.epoch >= last or progress.stale >= settings.patience):
        _report(progress.last)  # nothing is left to train, but the caller needs the figures
    unwritten = None
    while progress.epoch < last and progress.stale < settings.patience:
        began_s = time.perf_counter()
        figures = _epoch(learner, splits, progress.epoch + 1, stop)
        if figures is None:
            break
        progress = progress.after(figures, time.perf_counter() - began_s)
        _report(progress.last)
        # Take it even if it is not written now: in the middle of the next epoch the state is gone.
        unwritten = state.snapshot(learner.network, learner.optimizer, progress, identity)
        if progress.epoch % settings.checkpoint_every == 0:
            _write(checkpoint, unwritten)
            unwritten = None
    if unwritten is not None:
        _write(checkpoint, unwritten)
    _print_end(settings, progress, last)


def _print_end(settings: Settings, progress: Progress, last: int) -> None:
    if progress.best:
        print(json.dumps({"best": dict(progress.best)}), flush=True)
    if progress.stale >= settings.patience:
        print(json.dumps({"stopped": "early", "step": progress.epoch}), flush=True)
    elif progress.epoch < last:
        print(json.dumps({"stopped": "asked", "step": progress.epoch}), flush=True)


def _write(checkpoint: protocol.Checkpoint, content: bytes) -> None:
    # Not torch.save, whose errors for a full disk differ.
    checkpoint.write(lambda path: path.write_bytes(content))


def _report(figures: Mapping[str, float]) -> None:
    protocol.report(int(figures["step"]), **{name: value for name, value in figures.items() if name != "step"})


def _identity(settings: Settings, splits: data.Splits) -> dict[str, str | int | float]:
    return {
        "batch size": settings.batch_size,
        "learning rate": settings.learning_rate,
        "ranks": settings.ranks,
        "rate scaling": settings.rate_scaling,
        "seed": settings.seed,
        "precision": settings.precision,
        "micro-batches": settings.micro_batches,
        "filters": settings.filters,
        "batch norm momentum": settings.batch_norm_momentum,
        "data": splits.identity,
    }


def _learner(settings: Settings, device: Any, group: Group, windows: int) -> Learner:
    torch.manual_seed(settings.seed)
    network = UNet(Shape(filters=settings.filters, momentum=settings.batch_norm_momentum)).to(device)
    if settings.activations == "recompute":
        recompute(network.levels())
    times = times_larger(settings.batch_size, settings.ranks, windows)
    rate = settings.learning_rate * scale_of(settings.rate_scaling, times)
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    return Learner(network, group.model(network, device), optimizer, device, settings, group)


def _epoch(learner: Learner, splits: data.Splits, epoch: int, stop: Stop) -> dict[str, float] | None:
    """Train on all windows once and validate; return None if asked to stop before the end."""
    settings, group = learner.settings, learner.group
    # The order depends on seed and epoch alone, so that an interruption does not change it.
    order = np.random.default_rng([settings.seed, epoch]).permutation(len(splits.train))
    together = settings.batch_size * group.ranks
    # Keep the training outputs of the last windows: as many as there are validation windows, or a batch.
    kept_from = max(0, len(order) - len(splits.validation)) // together * together
    seen = Answers(len(order) - kept_from, splits.train.length)
    learner.network.train()
    total = 0.0
    for begin in range(0, len(order), together):
        if stop.asked:
            return None
        chosen = order[begin : begin + together]
        mine = group.share(len(chosen))
        weight = len(mine) * group.ranks / len(chosen)
        # A rank without a window of a small last batch takes part in its sum with one of weight 0.
        inputs, labels = splits.train.batch(chosen[mine] if len(mine) else chosen[:1])
        loss, logits = _train_batch(learner, inputs, labels, weight, epoch)
        total += len(mine) * loss
        if len(mine) and begin >= kept_from:
            seen.put(begin - kept_from + mine, logits, labels)
    group.average_statistics(learner.network)
    answers = _validate(learner, splits.validation, stop)
    if answers is None:
        return None
    judged, learnt = answers.of_all(group, learner.device), seen.of_all(group, learner.device)
    [train_loss] = group.sum(np.array([total]), learner.device) / len(order)
    if group.rank:
        return None
    found = metrics.figures(*judged, settings.auc_thresholds)
    return {
        **found,
        "val_loss": _require_finite("validation", found["val_loss"], epoch),
        "train_loss": float(train_loss),
        **_train_figures(*learnt, settings.auc_thresholds),
    }


def _train_figures(logits: Any, labels: Any, thresholds: int) -> dict[str, float]:
    """Return `train_auc`, the area on training windows; nothing if none of their bases has label 1."""
    return {"train_auc": metrics.area(logits, labels, thresholds)} if labels.any() else {}


def _train_batch(learner: Learner, inputs: Any, labels: Any, weight: float, epoch: int) -> tuple[float, Any]:
    """Train on one batch with gradients of this weight; return its mean loss, and the logits before the update."""
    settings, model = learner.settings, learner.model
    learner.optimizer.zero_grad(set_to_none=True)
    mean, answers = 0.0, []
    batch = torch.from_numpy(inputs), torch.from_numpy(labels)
    for part, truth, share in micro_batches(model, settings.micro_batches, *batch):
        with store_activations(settings.activations, learner.device):
            logits = learner.logits(model, part)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, truth.to(learner.device))
        (weight * share * loss).backward()
        mean += share * float(loss.detach())
        answers.append(logits.detach())
    learner.optimizer.step()
    return _require_finite("training", mean, epoch), torch.cat(answers)


def _validate(learner: Learner, windows: data.Windows, stop: Stop) -> Answers | None:
    """Return the outputs for this rank's share of the windows."""
    learner.network.eval()
    mine, answers = learner.group.share(len(windows)), Answers(len(windows), windows.length)
    batch_size = learner.settings.batch_size
    with torch.inference_mode():
        for begin in range(0, len(mine), batch_size):
            if stop.asked:
                return None
            places = mine[begin : begin + batch_size]
            inputs, truth = windows.batch(places)
            answers.put(places, learner.logits(learner.network, torch.from_numpy(inputs)), truth)
    return answers


def _require_finite(name: str, loss: float, epoch: int) -> float:
    if not math.isfinite(loss):
        raise DivergedError(f"the {name} loss is {loss} at step {epoch}")
    return loss
