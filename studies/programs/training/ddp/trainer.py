"""The training of one worker."""

import math
import multiprocessing
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import protocol
import torch
from activations import recompute, store_activations
from microbatches import micro_batches
from orphans import end_loader_with_parent
from parallel import data_parallel, join
from rate import learning_rate, scale_of

from . import checkpoint
from .data import Batches
from .exposure import DeviceExposure, Exposure, HostExposure
from .failure import DivergedError
from .hooks import register
from .lars import Lars
from .messages import Ended, Ready, Reported, Shared, Validated
from .models import loss_of, network, parameter_count, parts_of, samples_of
from .options import DEFAULT_BUCKET_MIB, Settings
from .timing import Interval

_MOMENTUM, _WEIGHT_DECAY = 0.9, 1e-4  # of Goyal et al. 2017, section 5.1


class Trainer:
    """One worker: its network, its share of the data, and the first one's checkpoints.

    Each worker keeps its own running means of batch normalisations (the first one's are in the checkpoint): training
    does not use them, and exchanging them would be communication inside the forward pass.
    """

    def __init__(self, rank: int, settings: Settings, shared: Shared, meeting: Path) -> None:
        torch.set_num_threads(settings.threads)
        torch.set_num_interop_threads(1)
        self._rank, self._settings, self._shared = rank, settings, shared
        self._file = protocol.Checkpoint()
        saved = checkpoint.read(self._file.path, settings) if self._file.path and self._file.exists() else None
        self._step = self._saved_step = saved.step if saved else 0
        self._trained_s = saved.trained_s if saved else 0.0
        self._reported = saved.reported if saved else Reported()
        self._checkpoint_s = 0.0
        # First, since loader processes are forked, and should not inherit connections or threads. They wait until the
        # training begins: batches made before would seem to take no time.
        self._begun = multiprocessing.get_context("fork").Event()
        self._batches = _batches(rank, settings, self._step, self._begun)
        torch.manual_seed(settings.seed)
        on_gpus = torch.cuda.is_available() and torch.cuda.device_count() >= settings.workers
        self._device = torch.device("cuda", rank) if on_gpus else torch.device("cpu")
        if on_gpus:
            torch.cuda.set_device(self._device)
        self._layout = torch.channels_last if settings.channels_last else torch.contiguous_format
        self._network = network(settings.model, settings.channels, settings.classes)
        self._network.to(device=self._device, memory_format=self._layout)
        if settings.activations == "recompute":
            recompute(parts_of(self._network))
        optimizer = {"sgd": torch.optim.SGD, "lars": Lars}[settings.optimizer]
        self._optimizer = optimizer(
            self._network.parameters(), lr=settings.base_rate, momentum=_MOMENTUM, weight_decay=_WEIGHT_DECAY
        )
        # Scaling keeps small gradients from vanishing in 16 bits. A step whose gradients overflow is skipped on every
        # worker, since all have the same sums.
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=settings.precision == "float16")
        if saved:
            self._network.load_state_dict(saved.network)
            self._optimizer.load_state_dict(saved.optimizer)
            self._scaler.load_state_dict(saved.scaler)
            torch.set_rng_state(saved.random)
        # A sign of life per layer, since a step of a large network may take minutes on a slow core.
        for parameter in self._network.parameters():
            parameter.register_post_accumulate_grad_hook(self._beat)
        kind = DeviceExposure if on_gpus else HostExposure
        self._exposure: Exposure = kind(self._network.parameters())
        join(meeting, rank, settings.workers, self._device, patience_s=settings.patience_s)
        # Compile inside DistributedDataParallel, not around it: torch.compile does not enter torch's own functions, so
        # a network of torch's layers in that wrapper would not be compiled at all. Buckets still split the graph.
        compiled = torch.compile(self._network, dynamic=False) if settings.compile else self._network
        self._model = data_parallel(
            compiled,
            self._device,
            bucket_cap_mb=None if settings.bucket_mib == DEFAULT_BUCKET_MIB else settings.bucket_mib,
            gradient_as_bucket_view=settings.gradient_as_bucket_view,
            static_graph=settings.static_graph,
        )
        register(self._model, settings)

    def ready(self) -> Ready:
        """Return the state of this worker."""
        return Ready(self._step, self._trained_s, self._reported, parameter_count(self._network))

    def set_reported(self, reported: Reported) -> None:
        """Keep the last report, for the checkpoint."""
        self._reported = reported

    def interval(self) -> Interval | None:
        """Train until the next report is due; return None if the brake ended it before."""
        every = self._settings.report_every
        due = (self._step // every + 1) * every
        losses = []
        useful_s = data_s = communicate_s = 0.0
        self._begun.set()
        began = time.perf_counter()
        before_s = self._trained_s
        while self._step < due:
            if self._rank == 0:
                self._shared.brake.decide(self._step)
            asked = time.perf_counter()
            batch = next(self._batches)
            data_s += time.perf_counter() - asked
            loss, step_useful_s = self._train(*batch)
            losses.append(loss)
            useful_s += step_useful_s
            communicate_s += self._exposure.seconds()
            ended = self._shared.brake.ends_after(self._step)
            self._step += 1
            self._trained_s = before_s + time.perf_counter() - began
            if self._settings.checkpoint_every and self._step % self._settings.checkpoint_every == 0:
                self._save()
            if ended and self._step < due:
                return None
        wall_s = time.perf_counter() - began
        self._trained_s = before_s + wall_s
        loss = sum(losses) / len(losses)
        return Interval(self._step, len(losses), wall_s, min(useful_s, wall_s), loss, data_s, communicate_s)

    def end(self, *, complete: bool) -> Ended:
        """Write the last checkpoint, and validate a `complete` training."""
        self._begun.set()
        if self._step > self._saved_step:
            self._save()
        return Ended(self._checkpoint_s, self._validate() if complete and self._settings.validation_samples else None)

    def _validate(self) -> Validated:
        """Validate on this worker's share of the samples after the training samples."""
        settings, began = self._settings, time.perf_counter()
        samples, first = samples_of(settings), settings.samples
        mine = range(first + self._rank, first + settings.validation_samples, settings.workers)
        loss_sum = 0.0
        self._network.eval()
        with torch.inference_mode():
            for at in range(0, len(mine), settings.local_batch):
                chosen = mine[at : at + settings.local_batch]
                inputs, labels = torch.utils.data.default_collate([samples[index] for index in chosen])
                outputs = self._predict(self._network, inputs)
                loss_sum += len(chosen) * float(loss_of(settings, outputs, labels.to(self._device)))
                self._beat()
        return Validated(len(mine), loss_sum, time.perf_counter() - began)

    def _beat(self, _parameter: Any = None) -> None:
        self._shared.pulse.beat(self._rank)

    def _predict(self, network: Any, inputs: Any) -> Any:
        """Return the outputs of a network for a batch, in the requested precision."""
        settings = self._settings
        layout = self._layout if inputs.dim() == 4 else torch.preserve_format
        inputs = inputs.to(self._device, memory_format=layout, non_blocking=settings.pin_memory)
        narrow = getattr(torch, settings.precision)
        with torch.autocast(self._device.type, narrow, enabled=narrow is not torch.float32):
            return network(inputs)

    def _train(self, inputs: Any, labels: Any) -> tuple[float, float]:
        """Train for one step; return the loss, and the useful seconds (see `timing`)."""
        settings = self._settings
        began = time.perf_counter()
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(
                self._step,
                base=settings.base_rate,
                scale=scale_of(settings.rate_scaling, settings.batch_size / settings.reference_batch),
                warm_up_steps=settings.warm_up_steps,
            )
        self._optimizer.zero_grad(set_to_none=True)
        mean = 0.0
        for part, truth, share in micro_batches(self._model, settings.micro_batches, inputs, labels):
            with store_activations(settings.activations, self._device):
                loss = loss_of(settings, self._predict(self._model, part), truth.to(self._device))
            mean += share * float(loss.item())
            if not math.isfinite(mean):
                raise DivergedError(f"the loss is {mean} in step {self._step + 1}: try a smaller --learning-rate")
            self._scaler.scale(share * loss).backward()
        self._exposure.end_backward()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return mean, max(0.0, time.perf_counter() - began - self._exposure.seconds())

    def _save(self) -> None:
        if self._rank or not self._file.path:
            return
        began = time.perf_counter()
        saved = checkpoint.Saved(
            self._step,
            self._trained_s,
            self._reported,
            self._network.state_dict(),
            self._optimizer.state_dict(),
            self._scaler.state_dict(),
            torch.get_rng_state(),
        )
        self._file.write(lambda path: checkpoint.write(path, saved, self._settings))
        self._saved_step = self._step
        self._checkpoint_s += time.perf_counter() - began


def _batches(rank: int, settings: Settings, step: int, begun: Any) -> Iterator[Any]:
    share = slice(rank * settings.local_batch, (rank + 1) * settings.local_batch)
    steps = range(step, settings.reports * settings.report_every)
    order = Batches(settings.seed, settings.samples, settings.batch_size, share, steps)
    processes: dict[str, Any] = {}
    if settings.loader_workers:
        processes = {
            "multiprocessing_context": "fork",
            "worker_init_fn": partial(_wait, begun),
            "prefetch_factor": settings.prefetch,
        }
    return iter(
        torch.utils.data.DataLoader(
            samples_of(settings),
            batch_sampler=order,
            num_workers=settings.loader_workers,
            pin_memory=settings.pin_memory and torch.cuda.is_available(),
            **processes,
        )
    )


def _wait(begun: Any, number: int) -> None:
    end_loader_with_parent(number)
    begun.wait()
