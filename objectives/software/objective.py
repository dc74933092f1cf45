"""An objective whose program comes from one of several places, which a parameter names."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from launchers import Job
from launchers.software.software import LoadedSoftware
from objectives.base import Context, Measurement, Metric, Objective, Output, ProgressReader
from spaces import Configuration

SOFTWARE = "software"
"""The parameter that names the software of a run."""


@dataclass(frozen=True)
class Variant:
    """One place where the program comes from: the software, and the objective as it was planned with it."""

    software: LoadedSoftware
    objective: Objective


@dataclass(frozen=True)
class SoftwareObjective:
    """Runs each configuration with the software that it names.

    What a run prints is read in the same way wherever its program comes from, so that the first variant reads it.
    """

    variants: Mapping[str, Variant]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the program."""
        return self._first.metrics

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the job of a configuration, started with its software."""
        variant = self.variants[str(configuration[SOFTWARE])]
        job = variant.objective.job(configuration, context)
        return with_software(job, variant.software)

    def progress_reader(self) -> ProgressReader:
        """Return a reader for the live output of one run."""
        return self._first.progress_reader()

    def measure(self, output: Output) -> Measurement:
        """Check that the run is valid, then read its metrics."""
        return self._first.measure(output)

    @property
    def _first(self) -> Objective:
        return next(iter(self.variants.values())).objective


def with_software(job: Job, software: LoadedSoftware) -> Job:
    """Return a job that is started with a software: its commands inside the image, if it is one."""
    return replace(
        job,
        argv=software.command(job.argv, job.folder),
        prepare=tuple(software.command(step, job.folder) for step in job.prepare),
        environment={**software.secrets, **software.variables, **job.environment},
        software=software,
    )
