"""An objective whose jobs mention derived values, facts and expressions besides parameters."""

from dataclasses import dataclass, replace

from launchers import Job
from objectives.base import Context, Measurement, Metric, Objective, Output, ProgressReader
from spaces import Configuration
from spaces.mention import Values


@dataclass(frozen=True)
class ComputingObjective:
    """Passes the values that the space computes to the objective's jobs, together with those of the configuration."""

    objective: Objective
    values: Values

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the objective."""
        return self.objective.metrics

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the objective's job."""
        return self.objective.job({**configuration, **self.values.of(configuration)}, context)

    def progress_reader(self) -> ProgressReader:
        """Return the objective's reader."""
        return self.objective.progress_reader()

    def measure(self, output: Output) -> Measurement:
        """Return what the objective measures; an unused derived value stands for the parameters behind it."""
        measured = self.objective.measure(output)
        unused = {parameter for name in measured.unused for parameter in self.values.space.behind(name)}
        return replace(measured, unused=tuple(sorted(unused)))
