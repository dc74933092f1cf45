"""Metrics of a whole job, whatever its program: resource usage, and the readings of its machine's meters."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from launchers import Job, JobStatus, Usage
from launchers.meters.figures import GPU_BUSY, UNITS
from objectives.base import Context, InvalidResult, Measurement, Metric, Objective, Output, ProgressReader
from spaces import Configuration

USED = (Metric("elapsed_s", "s", kind="time"), Metric("cpu_s", "s"), Metric("peak_memory_bytes", "B"))
"""Measured for every job."""

METERED = tuple(Metric(name, unit, "maximize" if name == GPU_BUSY else "minimize") for name, unit in UNITS.items())
"""Measured where the machine has the meters."""


def job_metrics(usage: Usage, metered: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of a job that were measured."""
    used = {metric.name: float(getattr(usage, metric.name)) for metric in USED}
    # The usage of a job whose end was not observed is 0, which means unknown.
    return {name: value for name, value in used.items() if value > 0.0} | dict(metered)


@dataclass(frozen=True)
class JobMetrics:
    """An objective with metrics of its whole job besides its own.

    Args:
        objective: The objective.
        metrics: All metrics, in the order of the study.
        demanded: The figures without which a run is invalid, since a limit on them could not be judged.
        meter: The user's command that prints an energy counter.
    """

    objective: Objective
    metrics: tuple[Metric, ...]
    demanded: tuple[str, ...] = ()
    meter: tuple[str, ...] = ()

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the objective's job with the meter."""
        return replace(self.objective.job(configuration, context), meter=self.meter)

    def progress_reader(self) -> ProgressReader:
        """Return the objective's reader."""
        return self.objective.progress_reader()

    def measure(self, output: Output) -> Measurement:
        """Return what the objective measures, with the figures of the job.

        Raises:
            InvalidResult: A wanted figure was not measured.
        """
        measured = self.objective.measure(output)
        known = job_metrics(output.status.usage, output.status.metered) | dict(measured.metrics)
        wanted = [metric.name for metric in self.metrics if metric not in self.objective.metrics]
        for name in (*wanted, *self.demanded):
            if name not in known:
                raise InvalidResult(_absent(output.status, name), code="no-meter")
        # Metrics of the objective that the study does not name are kept.
        return replace(measured, metrics={**measured.metrics, **{name: known[name] for name in wanted}})


def _absent(status: JobStatus, name: str) -> str:
    measured = f"they measure {', '.join(status.metered)}" if status.metered else "they measure nothing"
    return (
        f"no {name}: the meters of the run's node do not measure it ({measured}); run autotune doctor there to see "
        "which meters work, and why others do not"
    )
