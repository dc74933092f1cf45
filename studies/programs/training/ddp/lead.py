"""The leading process: starts the workers, prints their reports, and decides when to stop."""

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace

from protocol import StopRequest, last_step, report

from .messages import Brake, Ended, Pulse, Ready, Reported, Shared, Validated, Verdict
from .options import Settings
from .timing import Interval, efficiencies, mean_loss, phases, samples_per_s, wall_s
from .workers import WorkerError, Workers


class Progress:
    """All reports so far, also those of the runs that wrote the checkpoint."""

    def __init__(self, settings: Settings, ready: Ready) -> None:
        self._settings, self._ready = settings, ready
        self._steps, self._trained_s = ready.step, ready.trained_s
        self._intervals: list[Sequence[Interval]] = []
        self.reported = ready.reported

    def enough(self) -> bool:
        """Whether training is over."""
        target, loss = self._settings.target_loss, self.reported.loss
        reached = target is not None and loss is not None and loss <= target
        return reached or self._steps >= self._settings.reports * self._settings.report_every

    def add(self, seen: Sequence[Interval]) -> None:
        """Print the progress line of an interval."""
        self._intervals.append(seen)
        self._steps = seen[0].step
        self._trained_s += wall_s(seen)
        loss, target, reached_s = mean_loss(seen), self._settings.target_loss, self.reported.time_to_target_s
        if target is not None and reached_s is None and loss <= target:
            reached_s = self._trained_s
        self.reported = Reported(loss, reached_s)
        speed = samples_per_s(seen, self._settings.batch_size)
        report(self._steps // self._settings.report_every, samples_per_s=speed, loss=loss)

    def result(self, ended: Sequence[Ended]) -> dict[str, object]:
        """Return the figures of the run; they are null if nothing was left to train.

        The first intervals do not count, unless there are no others. `ended` has each worker's figures of the whole
        run.
        """
        counted = self._intervals[self._settings.warm_up_reports :] or self._intervals
        speeds = [samples_per_s(seen, self._settings.batch_size) for seen in counted]
        shares = efficiencies(counted) if counted else None
        spent = phases(counted) if counted else None
        validated = [one.validated for one in ended if one.validated]
        return {
            "samples_per_s": statistics.median(speeds) if speeds else None,
            "loss": self.reported.loss,
            "time_to_target_s": self.reported.time_to_target_s,
            "parallel_efficiency": shares and shares.parallel_efficiency,
            "load_balance": shares and shares.load_balance,
            "communication_efficiency": shares and shares.communication_efficiency,
            "data_s": spent and spent.data_s,
            "compute_s": spent and spent.compute_s,
            "communicate_s": spent and spent.communicate_s,
            **(_validation(validated) if validated else {}),
            "intervals": speeds,
            "parameters": self._ready.parameters,
            "batch_size": self._settings.batch_size,
            "seed": self._settings.seed,
            "checkpoint_s": ended[0].checkpoint_s,
        }


def _validation(found: Sequence[Validated]) -> dict[str, object]:
    samples = sum(one.samples for one in found)
    return {
        "validation_loss": sum(one.loss_sum for one in found) / samples,
        "validate_s": max(one.elapsed_s for one in found),
    }


def run(settings: Settings) -> int:
    """Train; return the exit code: 0, 1 for an error, 3 without a finite loss, 12 without memory."""
    stop, shared = StopRequest(), Shared(Brake(), Pulse(settings.workers))
    settings = replace(settings, reports=last_step(settings.reports))
    workers = Workers(settings, shared, stop)
    try:
        _lead(settings, workers, stop)
    except WorkerError as error:
        print(error.failure.message, file=sys.stderr)
        return error.failure.exit_code
    except KeyboardInterrupt:
        return 130
    finally:
        workers.end()
    return 0


def _lead(settings: Settings, workers: Workers, stop: StopRequest) -> None:
    ready = workers.collect(leave_when_asked=True)
    if not ready:
        return
    progress = Progress(settings, ready[0])
    while True:
        complete = progress.enough()
        workers.tell(Verdict(not stop.asked and not complete, complete, progress.reported))
        seen = workers.collect()
        if isinstance(seen[0], Ended):
            break
        progress.add(seen)
    if progress.enough():  # a run that was asked to stop has no result
        print(json.dumps({"result": progress.result(seen)}), flush=True)
