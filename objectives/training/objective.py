"""A training script as an objective: its progress lines are its curve, and the best value on it is the metric."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from launchers import STDERR, STDOUT, EndReason, Job, Resources
from launchers.secret import placeholder_variables
from objectives.base import (
    CHECKPOINT_VARIABLE,
    CURVE,
    LAST_STEP,
    REMARK,
    SEED_VARIABLE,
    STEPS_VARIABLE,
    Context,
    InfrastructureError,
    InvalidResult,
    Measurement,
    Metric,
    Output,
    Progress,
    ProgressReader,
)
from objectives.ending import check_disk
from objectives.file_options import RunFile
from objectives.mentions.count import Count, evaluate_count
from objectives.mentions.nodes import Nodes
from objectives.mentions.templates import fill_in
from objectives.mentions.words import Word, fill_in_words
from objectives.patterns import SlowPatternError
from objectives.training.ending import check_training_end, last_line
from objectives.training.gap import GAP, gap, gap_metric, overfit_sentence
from objectives.training.lines import states
from objectives.training.pattern import pattern_reader, progress_in
from objectives.training.progress import ReaderKind, make_reader, shift_steps
from spaces import Configuration, Value

ELAPSED = Metric("elapsed_s", "s", kind="time")
TIME_TO_TARGET = Metric("time_to_target_s", "s")

STEPS, SEED, CHECKPOINT = "steps", "seed", "checkpoint"
"""Placeholders that every training may use for what `Context` asks of a run."""

_SHOWN_CHARACTERS = 120

PLACEHOLDERS = (STEPS, SEED, CHECKPOINT)
"""Placeholders of every training for what `Context` asks of a run, for scripts that take it on their command line."""


@dataclass(frozen=True)
class TrainingObjective:
    """Runs a training script.

    Args:
        argv: The command, a template of parameters and of `PLACEHOLDERS`.
        metric: The metric of the progress lines; its best value counts.
        more: Metrics that are recorded at the step of that best value.
        environment: Environment variables; templates, too.
        progress: The form of the progress lines, or patterns.
        cores: The cores of each rank.
        gpus: The GPUs of each rank.
        target: Optimise the time until `metric` reaches this, by `elapsed_s` in the progress lines.
        budget_s: Stop a run after this many seconds; what it has reached counts.
        files: Files that are written into the run's folder; templates, too.
        first_step: The number of the first step in the progress lines.
        nodes: The nodes of the machine.
        trained: `metric` on the training data; it is recorded, with the gap between both.
        ranks: The processes of a run.
        progress_file: The stream that has the progress lines, `stdout` or `stderr`.
    """

    argv: tuple[Word, ...]
    metric: Metric
    more: tuple[Metric, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    progress: ReaderKind | tuple[str, ...] = "auto"
    cores: Count = 1
    gpus: int = 0
    target: float | None = None
    budget_s: float | None = None
    files: tuple[RunFile, ...] = ()
    first_step: int = 1
    nodes: Nodes = field(default_factory=Nodes)
    trained: Metric | None = None
    ranks: Count = 1
    progress_file: str = STDOUT

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The optimised metric, then the others."""
        first = (self.metric,) if self.target is None else (TIME_TO_TARGET, self.metric)
        both = (self.trained, gap_metric(self.metric)) if self.trained else ()
        return (*first, *self.more, *both, ELAPSED)

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the command with the values of the configuration and of the context in their places."""
        values = {**configuration, **_placeholder_values(context)}
        threads, ranks = evaluate_count(self.cores, values), evaluate_count(self.ranks, values)
        cores = ranks * threads
        variables = {name: fill_in(value, values) for name, value in self.environment.items()}
        for file in self.files:
            file.write(context.folder, values)
        protocol = {
            STEPS_VARIABLE: context.steps,
            CHECKPOINT_VARIABLE: context.checkpoint,
            SEED_VARIABLE: context.seed,
        }
        limits = [limit for limit in (context.time_limit_s, self.budget_s) if limit is not None]
        return Job(
            argv=fill_in_words(self.argv, values),
            folder=context.folder,
            environment={
                "OMP_NUM_THREADS": str(threads),
                "PYTHONUNBUFFERED": "1",
                **{name: str(value) for name, value in protocol.items() if value is not None},
                **{name: value for name, value in variables.items() if value is not None},
            },
            resources=Resources(cores, self.nodes.nodes_for(cores), ranks * self.gpus, context.cpus),
            time_limit_s=min(limits, default=None),
            progress_file=self.progress_file,
            tuned=placeholder_variables(self.environment),
        )

    def progress_reader(self) -> ProgressReader:
        """Return a reader of progress lines."""
        kind, names = self.progress, self._names
        read = make_reader(kind, self.metric.name) if isinstance(kind, str) else pattern_reader(kind, names)
        return shift_steps(self.first_step, read)

    def measure(self, output: Output) -> Measurement:
        """Check that the script ended normally; read its curve.

        Raises:
            RunFailure: It did not, or reported no value of the metric.
        """
        try:
            steps, seen = self._read_progress(output)
        except SlowPatternError as error:
            raise InfrastructureError(str(error), code=error.code) from error
        if not (seen and self._has_spent_budget(output)):
            check_training_end(output)
        # A script that does not know its number of steps may print one more before it is stopped; leave that out.
        budget = int(output.job.environment.get(STEPS_VARIABLE, 0)) if output.job is not None else 0
        seen = [progress for progress in seen if not budget or progress.step <= budget] or seen
        points = [(progress.step, progress.metrics[self.metric.name]) for progress in seen]
        if not points:
            check_disk(output)
            raise InvalidResult(self._no_metric_message(steps, output), code="no-progress")
        best = min(points, key=lambda point: self.metric.cost(point[1]))
        at_best = next(progress for progress in seen if progress.step == best[0])
        metrics = {self.metric.name: best[1], ELAPSED.name: output.status.usage.elapsed_s}
        metrics |= {name: at_best.metrics[name] for name in self._names[1:] if name in at_best.metrics}
        details: dict[str, object] = {CURVE: [list(point) for point in points], LAST_STEP: steps}
        if self.trained and self.trained.name in metrics:
            trained = metrics[self.trained.name]
            metrics[GAP] = gap(self.metric, trained, best[1])
            if remark := overfit_sentence(self.metric, self.trained.name, trained, best[1]):
                details[REMARK] = remark
        if self.target is not None:
            metrics[TIME_TO_TARGET.name] = self._time_to_target(seen)
        declared = {metric.name: metrics[metric.name] for metric in self.metrics if metric.name in metrics}
        return Measurement(declared, details=details)

    def _read_progress(self, output: Output) -> tuple[int, list[Progress]]:
        """Return the last step, and the last report of each step with the metric, in the order of the steps."""
        lines = self._followed(output).splitlines()
        read = self.progress_reader()
        if not isinstance(self.progress, str):
            # Searching all lines at once costs a fraction of one search for each, and raises if it takes too long.
            matches = progress_in(self.progress, self._names, lines)
            read = shift_steps(self.first_step, lambda _line: next(matches))
        reports = [progress for line in lines if (progress := read(line)) is not None]
        found = {progress.step: progress for progress in reports if self.metric.name in progress.metrics}
        return max((progress.step for progress in reports), default=0), [found[step] for step in sorted(found)]

    def _followed(self, output: Output) -> str:
        return output.stderr if self.progress_file == STDERR else output.stdout

    @property
    def _names(self) -> list[str]:
        return [metric.name for metric in (self.metric, *self.more, *([self.trained] if self.trained else []))]

    def _no_metric_message(self, steps: int, output: Output) -> str:
        name = self.metric.name
        if steps:
            found = sorted(
                {metric for progress in self._reports(self._followed(output)) for metric in progress.metrics}
            )
            others = f", only {', '.join(found[:8])}" if found else ""
            return (
                f"no progress line up to step {steps} has {name}{others}; if only some steps report it, "
                "stopping.min_steps must not be less than the first of these"
            )
        how = "" if isinstance(self.progress, str) else f" by {' or '.join(map(repr, self.progress))}"
        if self.progress_file == STDOUT and any(name in one.metrics for one in self._reports(output.stderr)):
            pattern = "" if isinstance(self.progress, str) else "pattern = ..., "
            remedy = f'write progress = {{ {pattern}file = "stderr" }}'
            return f"no progress line of standard output has {name}{how}, but lines of standard error have it: {remedy}"
        words = {name, name.replace("_", " ")}
        mentions = [line for line in self._followed(output).splitlines() if any(word in line for word in words)]
        if mentions and not how:
            shown = states(mentions[-1])[-1][:_SHOWN_CHARACTERS]
            return (
                f"no progress line has {name}: {shown!r} is about a part of a step, or of an unknown form; print it "
                "once for each whole step, or give progress a regular expression"
            )
        last = last_line(output)
        if last and not how:
            return f"no progress line has {name}: give progress a regular expression, if lines such as {last!r} have it"
        return f"no progress line has {name}{how}: {last or 'nothing was printed'}"

    def _reports(self, text: str) -> list[Progress]:
        """Return what the lines of a text report, one at a time."""
        read = self.progress_reader()
        return [progress for line in text.splitlines() if (progress := read(line)) is not None]

    def _has_spent_budget(self, output: Output) -> bool:
        status = output.status
        return (
            self.budget_s is not None
            and status.reason is EndReason.TIMED_OUT
            and status.usage.elapsed_s >= self.budget_s
        )

    def _time_to_target(self, seen: list[Progress]) -> float:
        assert self.target is not None
        for progress in seen:
            value = progress.metrics[self.metric.name]
            if self.metric.cost(value) <= self.metric.cost(self.target):
                if ELAPSED.name not in progress.metrics:
                    msg = f"the progress lines have no {ELAPSED.name}, so the time to the target is unknown"
                    raise InvalidResult(msg, code="no-time")
                return progress.metrics[ELAPSED.name]
        last = seen[-1]
        msg = (
            f"{self.metric.name} did not reach {self.target:g} in {last.step} steps: {last.metrics[self.metric.name]:g}"
        )
        raise InvalidResult(msg, code="target-not-reached")


def _placeholder_values(context: Context) -> dict[str, Value]:
    # Without a checkpoint folder to keep, use one in the run's folder, so that the script's command line is the same
    # in all runs.
    values: dict[str, Value] = {SEED: context.seed, CHECKPOINT: str(context.checkpoint or context.folder / CHECKPOINT)}
    return values if context.steps is None else {**values, STEPS: context.steps}
