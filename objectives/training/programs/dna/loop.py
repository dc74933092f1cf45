"""The training: epochs of batches, a validation after each, until there is nothing to gain or nobody wants more."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import protocol
import torch

from . import data, metrics, state
from .network import Shape, UNet
from .progress import Progress
from .refusal import DivergedError, RefusedError
from .settings import Settings


@dataclass(frozen=True)
class Learner:
    """What learns, on its device."""

    network: Any
    optimizer: Any
    device: Any
    precision: str

    def logits(self, inputs: Any) -> Any:
        """Return the network's answer to an array of windows."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            found = self.network(torch.from_numpy(inputs).to(self.device))
        return found.float()  # the loss of rare sites needs the digits


def prepare(settings: Settings) -> Any:
    """Set torch up, and return the device.

    Raises:
        RefusedError: there is no such device.
    """
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise RefusedError("--device cuda: torch finds no GPU here; use auto or cpu")
    torch.set_num_threads(settings.threads)
    _warm_up()
    torch.set_flush_denormal(True)  # denormal numbers are slow, and nothing here needs them
    torch.backends.cudnn.deterministic = True  # a training that was interrupted shall end as one that was not
    on_gpu = settings.device != "cpu" and torch.cuda.is_available()
    return torch.device("cuda" if on_gpu else "cpu")


def _warm_up() -> None:
    # Starts the threads and imports what the first optimizer imports (a second's worth). Both end hard, or with errors
    # that say something else, when memory is short: this comes before there is a limit of it.
    torch.ones(1 << 20).exp_()
    nothing = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([nothing])
    optimizer.zero_grad()
    nothing.sum().backward()
    optimizer.step()


def train(settings: Settings, device: Any, stop: protocol.StopRequest, checkpoint: protocol.Checkpoint) -> None:
    """Train up to the last step, an early stop or a request to stop, from the checkpoint on if there is one.

    Raises:
        RefusedError: the data or the checkpoint is not as it should be.
        DivergedError: a loss is no finite number.
    """
    last = protocol.last_step(settings.epochs)
    splits = data.load(settings)
    identity = _identity(settings, splits)
    learner = _learner(settings, device)
    progress = Progress()
    if checkpoint.exists():
        progress = state.restore(checkpoint.path, learner.network, learner.optimizer, identity)
        if progress.epoch >= last or progress.stale >= settings.patience:
            _report(progress.last)  # nothing is left to do, but the caller gets the figures
    unwritten = None
    while progress.epoch < last and progress.stale < settings.patience:
        began_s = time.perf_counter()
        figures = _epoch(settings, learner, splits, progress.epoch + 1, stop)
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
        "seed": settings.seed,
        "precision": settings.precision,
        "filters": settings.filters,
        "batch norm momentum": settings.batch_norm_momentum,
        "data": splits.identity,
    }


def _learner(settings: Settings, device: Any) -> Learner:
    torch.manual_seed(settings.seed)
    network = UNet(Shape(filters=settings.filters, momentum=settings.batch_norm_momentum)).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    return Learner(network, optimizer, device, settings.precision)


def _epoch(
    settings: Settings, learner: Learner, splits: data.Splits, epoch: int, stop: protocol.StopRequest
) -> dict[str, float] | None:
    """Train on all windows once and validate; None when asked to stop before the end of it."""
    # The order is a matter of seed and epoch alone: whatever was interrupted before, it is the same.
    order = np.random.default_rng([settings.seed, epoch]).permutation(len(splits.train))
    # Of the last windows the answers are kept, as they were while it learnt: as many as the validation has, or a batch.
    kept_from = len(order) - len(splits.validation)
    learner.network.train()
    total = 0.0
    seen: list[tuple[Any, Any]] = []
    for begin in range(0, len(order), settings.batch_size):
        if stop.asked:
            return None
        chosen = order[begin : begin + settings.batch_size]
        inputs, labels = splits.train.batch(chosen)
        loss, logits = _learned(learner, inputs, labels, epoch)
        total += len(chosen) * loss
        if begin + len(chosen) > kept_from:
            seen.append((logits.cpu().numpy().ravel(), labels.ravel()))
    answers = _validated(learner, splits.validation, settings.batch_size, stop)
    if answers is None:
        return None
    found = metrics.figures(*answers, settings.auc_thresholds)
    return {
        **found,
        "val_loss": _finite("validation", found["val_loss"], epoch),
        "train_loss": total / len(order),
        **_trained(seen, settings.auc_thresholds),
    }


def _trained(seen: Sequence[tuple[Any, Any]], thresholds: int) -> dict[str, float]:
    """Return the `val_auc` of what was trained with, as `train_auc`; nothing where no base of it has label 1."""
    logits, labels = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    return {"train_auc": metrics.area(logits, labels, thresholds)} if labels.any() else {}


def _learned(learner: Learner, inputs: Any, labels: Any, epoch: int) -> tuple[float, Any]:
    """Learn from one batch; return its mean loss, and the logits of before."""
    learner.optimizer.zero_grad(set_to_none=True)
    truth = torch.from_numpy(labels).to(learner.device)
    logits = learner.logits(inputs)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, truth)
    loss.backward()
    learner.optimizer.step()
    return _finite("training", float(loss.detach()), epoch), logits.detach()


def _validated(
    learner: Learner, windows: data.Windows, batch_size: int, stop: protocol.StopRequest
) -> tuple[Any, Any] | None:
    """Return the logits and labels of all bases."""
    learner.network.eval()
    logits, labels = [], []
    with torch.inference_mode():
        for begin in range(0, len(windows), batch_size):
            if stop.asked:
                return None
            inputs, truth = windows.batch(np.arange(begin, min(begin + batch_size, len(windows))))
            logits.append(learner.logits(inputs).cpu().numpy().ravel())
            labels.append(truth.ravel())
    return np.concatenate(logits), np.concatenate(labels)


def _finite(name: str, loss: float, epoch: int) -> float:
    if not math.isfinite(loss):
        raise DivergedError(f"the {name} loss is {loss} at step {epoch}")
    return loss
