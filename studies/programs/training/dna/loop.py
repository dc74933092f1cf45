"""The training: epochs of batches, a validation after each, until there is nothing to gain or nobody wants more.

Of several ranks each learns from its share of every batch. The first prints, decides and keeps checkpoints; the others
go on until they are ended.
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
from activations import kept, recompute
from microbatches import micro_batches
from rate import scale_of, times_larger

from . import data, metrics, state
from .group import Answers, Group
from .network import Shape, UNet
from .progress import Progress
from .refusal import DivergedError, RefusedError
from .settings import Settings


class Stop(Protocol):
    """Knows whether the training was asked to stop."""

    asked: bool


@dataclass(frozen=True)
class Learner:
    """What learns, on its device; `model` is the network whose gradients are those of all ranks."""

    network: Any
    model: Any
    optimizer: Any
    device: Any
    settings: Settings
    group: Group

    def logits(self, network: Any, inputs: Any) -> Any:
        """Return the answer of the network, or of the model, to windows."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16"):
            found = network(inputs.to(self.device))
        return found.float()  # the loss of rare sites needs the digits


def prepare(settings: Settings, group: Group) -> Any:
    """Set torch up, and return the device.

    Raises:
        RefusedError: there is no such device, or not one for each rank.
    """
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise RefusedError("--device cuda: torch finds no GPU here; use auto or cpu")
    on_gpu = settings.device != "cpu" and torch.cuda.is_available()
    if on_gpu and torch.cuda.device_count() < group.ranks:
        found = torch.cuda.device_count()
        raise RefusedError(f"--ranks {group.ranks}: torch finds {found} GPUs here; use fewer, or --device cpu")
    torch.set_num_threads(settings.threads)
    _warm_up()
    torch.set_flush_denormal(True)  # denormal numbers are slow, and nothing here needs them
    torch.backends.cudnn.deterministic = True  # a training that was interrupted shall end as one that was not
    if not on_gpu:
        return torch.device("cpu")
    torch.cuda.set_device(group.rank)
    return torch.device("cuda", group.rank)


def _warm_up() -> None:
    # Starts the threads and imports what the first optimizer imports (a second's worth). Both end hard, or with errors
    # that say something else, when memory is short: this comes before there is a limit of it.
    torch.ones(1 << 20).exp_()
    nothing = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([nothing])
    optimizer.zero_grad()
    nothing.sum().backward()
    optimizer.step()


def train(settings: Settings, device: Any, group: Group, stop: Stop, checkpoint: protocol.Checkpoint) -> None:
    """Train up to the last step, an early stop or a request to stop, from the checkpoint on if there is one.

    Ranks but the first never return.

    Raises:
        RefusedError: the data or the checkpoint is not as it should be.
        DivergedError: a loss is no finite number.
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
        _report(progress.last)  # nothing is left to do, but the caller gets the figures
    unwritten = None
    while progress.epoch < last and progress.stale < settings.patience:
        began_s = time.perf_counter()
        figures = _epoch(learner, splits, progress.epoch + 1, stop)
        if figures is None:
            break
        progress = progress.after(figures, time.perf_counter() - began_s)
        _report(progress.last)
        # Kept even when it is not written now: in the middle of the next epoch it is too late to make it.
        unwritten = state.snapshot(learner.network, learner.optimizer, progress, identity)
        if progress.epoch % settings.checkpoint_every == 0:
            _write(checkpoint, unwritten)
            unwritten = None
    if unwritten is not None:
        _write(checkpoint, unwritten)
    _say_end(settings, progress, last)


def _say_end(settings: Settings, progress: Progress, last: int) -> None:
    if progress.best:
        print(json.dumps({"best": dict(progress.best)}), flush=True)
    if progress.stale >= settings.patience:
        print(json.dumps({"stopped": "early", "step": progress.epoch}), flush=True)
    elif progress.epoch < last:
        print(json.dumps({"stopped": "asked", "step": progress.epoch}), flush=True)


def _write(checkpoint: protocol.Checkpoint, content: bytes) -> None:
    # Not torch.save: that has errors of its own for a full disk.
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
    """Train on all windows once and validate; None when asked to stop before the end of it."""
    settings, group = learner.settings, learner.group
    # The order is a matter of seed and epoch alone: whatever was interrupted before, it is the same.
    order = np.random.default_rng([settings.seed, epoch]).permutation(len(splits.train))
    together = settings.batch_size * group.ranks
    # Of the last windows the answers are kept, as they were while it learnt: as many as the validation has, or a batch.
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
        # Who has no window of a last, small batch takes part in its sum with one that does not count.
        inputs, labels = splits.train.batch(chosen[mine] if len(mine) else chosen[:1])
        loss, logits = _learned(learner, inputs, labels, weight, epoch)
        total += len(mine) * loss
        if len(mine) and begin >= kept_from:
            seen.put(begin - kept_from + mine, logits, labels)
    group.average_statistics(learner.network)
    answers = _validated(learner, splits.validation, stop)
    if answers is None:
        return None
    judged, learnt = answers.of_all(group, learner.device), seen.of_all(group, learner.device)
    [train_loss] = group.sum(np.array([total]), learner.device) / len(order)
    if group.rank:
        return None
    found = metrics.figures(*judged, settings.auc_thresholds)
    return {
        **found,
        "val_loss": _finite("validation", found["val_loss"], epoch),
        "train_loss": float(train_loss),
        **_trained(*learnt, settings.auc_thresholds),
    }


def _trained(logits: Any, labels: Any, thresholds: int) -> dict[str, float]:
    """Return the `val_auc` of what was trained with, as `train_auc`; nothing where no base of it has label 1."""
    return {"train_auc": metrics.area(logits, labels, thresholds)} if labels.any() else {}


def _learned(learner: Learner, inputs: Any, labels: Any, weight: float, epoch: int) -> tuple[float, Any]:
    """Learn from one batch, whose gradients have this weight; return its mean loss, and the logits of before."""
    settings, model = learner.settings, learner.model
    learner.optimizer.zero_grad(set_to_none=True)
    mean, answers = 0.0, []
    batch = torch.from_numpy(inputs), torch.from_numpy(labels)
    for part, truth, share in micro_batches(model, settings.micro_batches, *batch):
        with kept(settings.activations, learner.device):
            logits = learner.logits(model, part)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, truth.to(learner.device))
        (weight * share * loss).backward()
        mean += share * float(loss.detach())
        answers.append(logits.detach())
    learner.optimizer.step()
    return _finite("training", mean, epoch), torch.cat(answers)


def _validated(learner: Learner, windows: data.Windows, stop: Stop) -> Answers | None:
    """Return this rank's answers to its share of the windows."""
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


def _finite(name: str, loss: float, epoch: int) -> float:
    if not math.isfinite(loss):
        raise DivergedError(f"the {name} loss is {loss} at step {epoch}")
    return loss
