"""Any command as an objective: the study file says how parameters reach it and how its output is read."""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import regex

from launchers import EndReason, Job, MpiStart, Resources
from launchers.secret import placeholder_options, placeholder_variables
from launchers.server import SERVER_LOG, mark_of
from launchers.software.digest import file_digest
from launchers.steps import read_steps
from objectives.base import (
    AT_END,
    REMARK,
    SEED_VARIABLE,
    Answer,
    ApplicationError,
    Context,
    InfrastructureError,
    InvalidResult,
    Measurement,
    Metric,
    Output,
    Plan,
    PlanError,
    Progress,
    ProgressReader,
    Reading,
    Readings,
    RunFailure,
    RunJob,
    no_progress,
)
from objectives.command_check import find_binding, find_mentions, is_made_by_run, missing_programs, read_command_options
from objectives.command_facts import read_facts
from objectives.command_options import SEED, AnswerOptions, CommandOptions
from objectives.ending import check_disk, check_ending
from objectives.figure import NOTHING_PRINTED, Figure, read_text
from objectives.file_options import RunFile, files_identity
from objectives.mentions.count import count_expressions, evaluate_count
from objectives.mentions.nodes import Nodes
from objectives.mentions.templates import fill_in, names_in
from objectives.mentions.words import Word, as_text, environment_text, fill_in_words, flatten, is_file, program_of
from objectives.patterns import SlowPatternError, UntilSlow, find_distinct, find_first
from objectives.program_marks import INTERPRETER
from objectives.quantity import to_number
from objectives.server import check_server, highest_load, make_server, server_identity
from objectives.shapes.scaling import strong_scaling
from objectives.shapes.shape import Shape
from objectives.system_failures import last_words
from objectives.toml_text import quoted
from spaces import Configuration

__all__ = ["CommandObjective", "CommandOptions", "make_plan", "plan"]

ELAPSED = Metric("elapsed_s", "s", kind="time")

# The length of a line in a message: a program that never ends its lines prints one of any length.
_MESSAGE_CHARACTERS = 400

# The lines to quote from a compiler's output: first those that give an error's place or cause, then any other error.
_ERRORS = (r"\berror(\s[\w#]+)?\s?:|undefined reference", r"\berror\b")


_NUMACTL = "numactl"
_SOURCE = re.compile(r"\.(?:c|cc|cpp|cxx|cu|hip|h|hpp|f|for|f\d\d|py|pyx|jl|rs|go|s|sh)", re.IGNORECASE)


@dataclass(frozen=True)
class CommandObjective:
    """Runs a command, and reads figures from what it prints or writes."""

    options: CommandOptions
    files: tuple[RunFile, ...] = ()
    nodes: Nodes = field(default_factory=Nodes)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the study file; without any, the time of the run."""
        declared = tuple(Metric(m.name, m.unit, m.direction, m.kind) for m in self.options.metrics) or (ELAPSED,)
        server = self.options.server
        if not self.options.prepare and server is None:
            return declared
        if server is not None and server.highest is not None:
            declared = (server.highest.metric, *declared)
        # The job's time includes that of `prepare` and of the server's start, so it bounds no metric of kind time.
        return tuple(replace(metric, kind="other") if metric.kind == "time" else metric for metric in declared)

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the command with the configuration's values in their places, and write its input files.

        `configuration` also holds derived values, facts and expressions that the command mentions; see
        `ComputingObjective`.
        """
        options, server = self.options, self.options.server
        late = () if server is None else server.run_values
        threads = evaluate_count(options.threads, configuration)
        ranks = None if options.ranks is None else evaluate_count(options.ranks, configuration)
        threads_per_core = evaluate_count(options.threads_per_core, configuration)
        cores = -(-threads * (ranks or 1) // threads_per_core)
        nodes = self.nodes.nodes_for(cores) if options.nodes is None else evaluate_count(options.nodes, configuration)
        gpus = 0 if options.gpus is None else evaluate_count(options.gpus, configuration, unset=0)
        if server is not None:
            configuration = {**configuration, SEED: context.seed}
        prepare = tuple(fill_in_words(step, configuration) for step in options.prepare)
        # The run itself fills these in.
        configuration = {**configuration, **{name: mark_of(name) for name in late}}
        environment = {name: fill_in(value, configuration) for name, value in options.environment.items()}
        late_files = tuple(file.name for file in self.files if any(one.text in late for one in file.mentions()))
        for file in self.files:
            file.write(context.folder, configuration)
        return Job(
            argv=fill_in_words(options.argv, configuration),
            folder=context.folder,
            environment={
                "OMP_NUM_THREADS": str(threads),
                SEED_VARIABLE: str(context.seed),
                **{name: value for name, value in environment.items() if value is not None},
            },
            mpi=None if ranks is None else MpiStart(ranks),
            resources=Resources(cores, nodes, gpus, context.cpus, threads_per_core=threads_per_core),
            time_limit_s=context.time_limit_s,
            prepare=prepare,
            server=None if server is None else make_server(options, server, configuration, late_files, context.known),
            copies=tuple((file.name, file.copied_from) for file in self.files if file.copied_from is not None),
            progress_file=options.progress_file,
            tuned=_names_filled_in(options),
        )

    def progress_reader(self) -> ProgressReader:
        """Return a reader of the number that the progress pattern finds in a line."""
        pattern = self.options.progress_pattern
        if not pattern:
            return no_progress

        def progress(line: str) -> Progress | None:
            match = find_first(pattern, line)
            step = to_number(match[1]) if match else None
            return Progress(int(step)) if step is not None and abs(step) < 2**53 else None

        return UntilSlow(progress)

    def measure(self, output: Output) -> Measurement:
        """Check the run, then read its figures."""
        try:
            record = {} if self.options.server is None else check_server(output, self.options.server)
            check_ending(output)
            return self._read(output, record)
        except InvalidResult:
            # Many programs do not notice that their output could not be written.
            check_disk(output)
            raise
        except SlowPatternError as error:
            raise InfrastructureError(str(error), code=error.code) from error

    def _read(self, output: Output, record: Mapping[str, Any]) -> Measurement:
        """Read the figures of a run; `record` is that of its server."""
        prepared_s = self._check(output)
        server = self.options.server
        details: dict[str, Any] = {"prepared_s": prepared_s} if self.options.prepare else {}
        figures: dict[str, float] = {}
        if server is not None and server.highest is not None:
            figures = {server.highest.name: highest_load(record, server.highest)}
        figures |= {metric.name: metric.figure.value(output) for metric in self.options.metrics}
        elapsed_s = max(0.0, output.status.usage.elapsed_s - prepared_s)
        if server is not None and server.highest is not None and figures[server.highest.name] == server.highest.high:
            details[REMARK] = AT_END
        if server is not None:
            elapsed_s = record.get("load_s", 0.0)
            details |= {key: record[key] for key in ("started_s", "load_s", "loads") if key in record}
        return Measurement(
            metrics=figures or {ELAPSED.name: elapsed_s},
            answer=self._answer(output),
            details=details,
            unused=self._parameters_without_effect(f"{output.stdout}\n{output.stderr}"),
        )

    def _parameters_without_effect(self, text: str) -> tuple[str, ...]:
        names = {name for pattern in self.options.unused for name in find_distinct(pattern, text)}
        # A program reports a variable by its name; return the parameters in that variable's template.
        behind = {name: names_in(template) for name, template in self.options.environment.items()}
        return tuple(sorted({parameter for name in names for parameter in behind.get(name, {name})}))

    def _answer(self, output: Output) -> Answer | None:
        wanted = self.options.answer
        if wanted is None:
            return None
        try:
            value = wanted.figure.value(output)
        except InvalidResult as error:
            msg = f"{error}; leave out the option `answer` to compare no answer"
            raise InvalidResult(msg, code=error.code) from None
        return Answer(wanted.name, value, wanted.tolerance or 0.0, wanted.unit, wanted.relative_tolerance or 0.0)

    def _preparation_s(self, output: Output) -> float:
        """Return how long the commands of `prepare` took, in seconds.

        Raises:
            ApplicationError: One of them failed.
        """
        if not self.options.prepare:
            return 0.0
        elapsed_s, failed = read_steps(output.folder)
        if not failed:
            return elapsed_s
        msg = f"{Path(failed).name}, which prepares the run, ended with exit code {output.status.exit_code}"
        raise ApplicationError(f"{msg}: {_first_error(output.stderr)}", code="prepare")

    def _check(self, output: Output) -> float:
        """Check that the run is valid; return how long its preparation took, in seconds."""
        prepared_s = self._preparation_s(output)
        written = (read_text(output.folder / name) or "" for name in self.options.outputs)
        text = "\n".join([*written, output.stdout, output.stderr])
        for pattern in self.options.failure:
            if match := find_first(pattern, text):
                raise ApplicationError(_line_of(match, text), code="failure-pattern")
        status = output.status
        if status.reason is EndReason.EXITED and status.exit_code != 0:
            msg = f"ended with exit code {status.exit_code}: {last_words(text) or 'no output'}"
            raise ApplicationError(msg, code="exit-code")
        for pattern in self.options.success:
            if find_first(pattern, text) is None:
                msg = f"the output has no match of {quoted(pattern)}, which a successful run prints"
                if not text.strip():
                    msg += f"; {NOTHING_PRINTED} in outputs = [...]"
                raise InvalidResult(msg, code="no-success-pattern")
        return prepared_s


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Check the options. The study file defines the space of a command.

    Raises:
        PlanError: The options have errors; all are reported, each with its path.
    """
    del run_job, folder
    is_elsewhere = bool(machine.get("described"))
    checked, files, errors = read_command_options(options, make=bool(machine.get("makes_files", True)))
    nodes = Nodes.of(machine)
    if checked is not None:
        errors += nodes.missing(checked.nodes, checked.threads_per_core)
        errors += [] if is_elsewhere else missing_programs(checked)
    if errors or checked is None:
        raise PlanError(errors)
    return make_plan(checked, files, nodes, is_elsewhere=is_elsewhere)


def make_plan(options: CommandOptions, files: tuple[RunFile, ...], nodes: Nodes, *, is_elsewhere: bool = False) -> Plan:
    """Return the plan for options without errors.

    Args:
        options: The options.
        files: The files that they describe.
        nodes: The nodes of the machine.
        is_elsewhere: The program is on another machine or inside an image, so it is not looked for here.
    """

    def find(argv: Sequence[Word]) -> str | None:
        program = program_of(argv)
        return None if is_elsewhere or "{" in program or is_made_by_run(options, program) else shutil.which(program)

    def absolute(argv: Sequence[Word], found: str | None) -> list[Word]:
        # Runs start in folders of their own, where a relative path would not be found.
        in_folder = "/" in program_of(argv) and found is not None
        return [str(Path(found or "").absolute()), *argv[1:]] if in_folder else list(argv)

    found, server = find(options.argv), options.server
    if server is not None:
        server = server.model_copy(update={"argv": absolute(server.argv, find(server.argv))})
    options = options.model_copy(update={"argv": absolute(options.argv, found), "server": server})
    objective = CommandObjective(options, files, nodes)
    is_one_process = options.ranks is None and options.nodes is None
    return Plan(
        objective=objective,
        parameters=(),
        constraints=(
            *nodes.rules(options.nodes, options.threads_per_core),
            *(nodes.rules_of_one_process(options.threads) if is_one_process else ()),
        ),
        facts=read_facts(options.facts, ask=not is_elsewhere),
        installation=tuple(options.facts),
        mentions=find_mentions(options, files),
        identity=_identity(options, files, found),
        reading=_reading_identity(options),
        notes=_binding_notes(options) if nodes.shared else (),
        output_files=_files_read(options),
        warnings=tuple(option_warnings(options, objective.metrics[0])),
        run_values=options.run_values,
        read_figures=partial(_read_figures, options),
        shape=_shape(options) if objective.metrics[0].is_pace else None,
    )


def _binding_notes(options: CommandOptions) -> tuple[str, ...]:
    binding = find_binding(options)
    if binding is None:
        return ()
    note = (
        f"{binding} binds the program to cores by number; two runs on parts of a node may get the same, unless the "
        "batch system keeps jobs apart: exclusive = true in the site file gives each run whole nodes"
    )
    return (note,)


def _shape(options: CommandOptions) -> Shape | None:
    """Return how a run time scales with ranks and threads, if configurations differ in them."""
    if not isinstance(options.ranks, str) and not isinstance(options.threads, str):
        return None
    ranks, threads, nodes = (
        None if one in {None, 1} else str(one) for one in (options.ranks, options.threads, options.nodes)
    )
    return strong_scaling(ranks, threads, nodes)


def _read_figures(options: CommandOptions, output: Output) -> Readings:
    answer = options.answer
    return Readings(
        tuple(_read_figure(metric.figure, metric.unit, output) for metric in options.metrics),
        None if answer is None else _read_figure(answer.figure, answer.unit, output),
    )


def _read_figure(figure: Figure, unit: str, output: Output) -> Reading:
    try:
        return Reading(figure.name, unit, figure.value(output))
    except (RunFailure, SlowPatternError) as error:
        return Reading(figure.name, unit, None, str(error))


def _identity(options: CommandOptions, files: tuple[RunFile, ...], program: str | None) -> dict[str, str]:
    """Return what makes runs comparable; `program` is the file that is run, None if it is not known before a run."""
    identity = {"command": as_text(options.argv)}
    if program is not None:
        identity["program"] = _digest(program)
    if (script := _script(options.argv)) is not None:
        identity["script"] = _digest(script)
    identity["metrics"] = ", ".join(f"{m.name} ({m.direction})" for m in options.metrics) or "none"
    # Always present, so that adding the first variable changes the identity.
    identity["environment"] = environment_text(options.environment)
    identity |= count_expressions(**options.counts)
    identity |= files_identity(files)
    if options.server is not None:
        identity |= server_identity(options.server)
    if options.prepare:
        identity["prepare"] = "; ".join(as_text(step) for step in options.prepare)
        tools = {path for step in options.prepare if (path := shutil.which(program_of(step))) is not None}
        identity["tools"] = ", ".join(sorted(map(_digest, tools)))
        words = {word for step in options.prepare for word in flatten(step)[1:]}
        if sources := {word for word in words if _SOURCE.fullmatch(Path(word).suffix) and _is_own_file(word)}:
            identity["sources"] = ", ".join(sorted(map(_digest, sources)))
    return identity


def _script(argv: Sequence[Word]) -> str | None:
    """Return the file that an interpreter or numactl runs. Other files in the command may be data or output."""
    name, words = Path(program_of(argv)).name, flatten(argv)[1:]
    if name == _NUMACTL:
        return next(filter(_is_own_file, words), None)
    if INTERPRETER.fullmatch(name) is None:
        return None
    first = next((index for index, word in enumerate(words) if not word.startswith("-")), len(words))
    if first == len(words) or {"-m", "-c", "-e"} & set(words[:first]):
        return None
    return words[first] if _is_own_file(words[first]) else None


def _is_own_file(word: str) -> bool:
    """Whether it is an absolute path of a file, which is the same from every run's folder."""
    return Path(word).is_absolute() and is_file(word)


def _reading_identity(options: CommandOptions) -> dict[str, str]:
    """Return how the output of a run is read, which is no part of the identity: it does not change what is run."""
    answer = options.answer
    reading = {
        "metrics": "; ".join(_source_of(metric.figure, metric.unit) for metric in options.metrics),
        "answer": "" if answer is None else f"{_source_of(answer.figure, answer.unit)}, {_within(answer)}",
        "success": "; ".join(options.success),
        "failure": "; ".join([*options.failure, *(options.server.failure if options.server else ())]),
        "outputs": ", ".join(options.outputs),
        "unused": "; ".join(options.unused),
    }
    kinds = {metric.name: metric.kind for metric in options.metrics if metric.kind != "other"}
    if kinds:
        reading["kinds"] = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
    return {name: how or "none" for name, how in reading.items()}


def _within(answer: AnswerOptions) -> str:
    relative = "" if answer.relative_tolerance is None else f" or {answer.relative_tolerance!r} of it"
    return f"within {answer.tolerance!r}{relative}"


def _files_read(options: CommandOptions) -> tuple[str, ...]:
    figures = [one.figure for one in (*options.metrics, *((options.answer,) if options.answer else ()))]
    log = [SERVER_LOG] if options.server is not None and options.server.failure else []
    return (*options.outputs, *(figure.file for figure in figures if figure.file is not None), *log)


def _names_filled_in(options: CommandOptions) -> frozenset[str]:
    """Return the names of variables and options that parameters fill in."""
    lines, environment = [options.argv, *options.prepare], options.environment
    if (server := options.server) is not None:
        lines += [server.argv, *server.warm_up, *server.reset]
        environment = {**environment, **server.environment}
    return placeholder_variables(environment) | placeholder_options([word for line in lines for word in line])


def _source_of(figure: Figure, unit: str) -> str:
    how = f"pattern {figure.pattern}" if figure.pattern is not None else f"json {'.'.join(map(str, figure.path))}"
    where = f" in {figure.file}" if figure.file is not None else ""
    return f"{figure.name}{f' [{unit}]' if unit else ''}: {how}{where}"


def _digest(program: str) -> str:
    return f"{Path(program).name} sha256:{file_digest(Path(program))}"


def _line_of(match: regex.Match[str], text: str) -> str:
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return text[start : end if end >= 0 else None].strip()[:_MESSAGE_CHARACTERS]


def _first_error(text: str) -> str:
    """Return the first error of a compiler or linker: later ones follow from it, and the last line only counts them."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for pattern in _ERRORS for line in lines if re.search(pattern, line, re.IGNORECASE)]
    return (errors or lines[-1:] or ["no output"])[0][:_MESSAGE_CHARACTERS]


def option_warnings(options: CommandOptions, target: Metric) -> Iterator[str]:
    """Yield a sentence for each option that is valid but unwise; `target` is the metric that is optimised."""
    if not options.metrics:
        yield "no metric is declared: the time of the whole run is optimised, including the start of the program"
    before = "`prepare`" if options.prepare else "the server's start" if options.server is not None else ""
    if options.server is not None and options.server.highest is not None:
        pass  # a search ends by itself
    elif before and any(metric.kind == "time" for metric in options.metrics[:1]) | (not options.metrics):
        yield f"runs that have lost are not stopped early, since the time of {before} does not count"
    elif target.kind == "other":
        yield (
            f"{target.name} has no kind: runs that have lost cannot be stopped early (kind = 'time' if it is the time "
            "of the run or of its main part, 'rate' if it is work per time, with progress)"
        )
    elif target.kind == "rate" and options.progress is None:
        yield f"{target.name} is a rate, and there is no progress: runs that have lost cannot be stopped early"
    if options.answer is None and options.success:
        yield "no answer is compared with the default's: only the success patterns would notice a fast wrong run"
    elif options.answer is None:
        yield "no answer is checked: a fast wrong run would not be noticed"
