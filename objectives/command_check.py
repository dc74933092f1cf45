"""Check the options of a command: report all errors at once, each with its path in the study file."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from launchers import STDERR, STDOUT
from objectives.command_facts import fact_errors
from objectives.command_options import AnswerOptions, CommandOptions, MetricOptions
from objectives.figure import UNIT_GROUP
from objectives.file_options import RunFile, find_repeated_names, making_programs, mentions_in_files, read_run_files
from objectives.mentions.count import count_mentions
from objectives.mentions.templates import mentions_in, template_errors
from objectives.mentions.words import CommandLine, flatten, missing_program, program_of, word_places
from objectives.patterns import NO_PATTERN
from objectives.run_files import name_error
from objectives.server import server_problems, server_templates
from objectives.toml_text import quoted
from objectives.validation import problems_in
from spaces.mention import Mention
from spaces.parameters.problem import Problem

# OpenMP of any compiler, of GCC and of Intel; Open MPI 4 and 5, Intel MPI, MVAPICH; Slurm.
_BINDING_VARIABLE = re.compile(
    r"OMP_PROC_BIND|OMP_PLACES|GOMP_CPU_AFFINITY|KMP_AFFINITY|OMPI_MCA_hwloc_base_binding_policy"
    r"|PRTE_MCA_hwloc_default_binding_policy|I_MPI_PIN\w*|MV2_CPU_(?:BINDING_POLICY|MAPPING)|SLURM_CPU_BIND"
)
_NO_BINDING = frozenset({"false", "none", "no", "off", "0", "disabled"})
_BINDING_WORDS = re.compile(
    r"(?:^|[\s/])(taskset|likwid-pin|likwid-mpirun|numactl(?=.* (?:-[CN]|--physcpubind|--cpunodebind))"
    r"|-pin on|--bind-to (?!none)\S+|--cpu-bind=(?!none|no\b)\S+)(?=[\s=]|$)"
)


def read_command_options(
    options: Mapping[str, Any], *, make: bool = True, read: bool = True
) -> tuple[CommandOptions | None, tuple[RunFile, ...], list[Problem]]:
    """Return the options, the files that they describe, and what is wrong; None if the command itself cannot be read.

    Options without errors are checked further, even if others have errors.

    Args:
        options: The `[options]` of the study file.
        make: Make the files that are made once; not needed if nothing will run.
        read: Read the files that they name.
    """
    errors: list[Problem] = []
    left: dict[str, Any] | None = dict(options)
    while left is not None:
        try:
            checked = CommandOptions.model_validate(left)
        except ValidationError as error:
            errors += problems_in(error, CommandOptions, left, "options")
            left = _leave_out_wrong(left, error)
            continue
        files, unreadable = read_run_files(checked.files, make=make) if read else ((), [])
        if checked.server is not None:
            in_files: set[str] = set()
            with suppress(ValueError):  # an unreadable template is reported already
                in_files = {name for one in mentions_in_files(checked.files, files) for name in one.names}
            errors += server_problems(checked, checked.server, in_files)
        return checked, files, [*errors, *_find_problems(checked), *unreadable]
    return None, (), errors


def _leave_out_wrong(options: Mapping[str, Any], error: ValidationError) -> dict[str, Any] | None:
    """Return the options without the wrong ones; None if the others alone could seem wrong."""
    left = dict(options)
    for name, *inner in (tuple(map(str, item["loc"])) for item in error.errors()):
        if name == "server" and inner and inner[0] not in {"argv", "ready"}:
            left[name] = {key: value for key, value in left[name].items() if key != inner[0]}
        elif name not in options or name in {"argv", "prepare", "server"}:
            return None
        else:
            left.pop(name, None)
    return left


def find_mentions(options: CommandOptions, files: tuple[RunFile, ...]) -> tuple[Mention, ...]:
    """Return what the options and their files mention, each with the path of its first place."""
    found = [mention for place, text in _templates(options) for mention in mentions_in(text, place)]
    found += mentions_in_files(options.files, files)
    found = [mention for mention in found if mention.text not in options.run_values]
    found += count_mentions(**options.counts)
    first: dict[tuple[str, int | None], Mention] = {}
    for mention in found:
        first.setdefault((mention.key, mention.least), mention)
    return tuple(first.values())


def find_binding(options: CommandOptions) -> str | None:
    """Return what binds a command to cores by their numbers, a variable or a word of it; None if nothing does."""
    for name, value in options.environment.items():
        if _BINDING_VARIABLE.fullmatch(name) and value.strip().lower() not in _NO_BINDING:
            return name
    for argv in (options.argv, *([options.server.argv] if options.server else [])):
        words = flatten(argv)
        if match := _BINDING_WORDS.search(" ".join([Path(words[0]).name, *words[1:]])):
            return match[1]
    return None


def missing_programs(options: CommandOptions) -> list[Problem]:
    """Return a problem for each program that this machine lacks.

    A program with a parameter in its name is known only per configuration, and one in the run's folder is made there.
    """
    called = [
        ("argv.0", program_of(options.argv)),
        *((f"prepare.{i}.0", program_of(step)) for i, step in enumerate(options.prepare) if step),
        *((f"server.{key}.0", program_of(step)) for key, step in _server_commands(options) if step),
        *making_programs(options.files),
    ]
    first = {program: place for place, program in reversed(called)}
    return [
        Problem(why, f"options.{place}")
        for program, place in reversed(first.items())
        if "{" not in program and not is_made_by_run(options, program) and (why := missing_program(program))
    ]


def is_made_by_run(options: CommandOptions, program: str) -> bool:
    """Whether `prepare` makes this program in the run's folder."""
    return bool(options.prepare) and "/" in program and not Path(program).is_absolute()


def _find_problems(options: CommandOptions) -> Iterator[Problem]:
    yield from _pattern_errors(options)
    yield from _figure_errors(options)
    yield from template_errors(_templates(options))
    yield from fact_errors(options.facts)
    for i, step in enumerate(options.prepare):
        if not step:
            yield Problem("a command needs at least the name of a program", f"options.prepare.{i}")
    yield from find_repeated_names("options.metrics", [metric.name for metric in options.metrics])


def _templates(options: CommandOptions) -> Iterator[tuple[str, str]]:
    """Yield the words with placeholders, each with its path."""
    yield from word_places(options.argv, "options.argv")
    for i, step in enumerate(options.prepare):
        yield from word_places(step, f"options.prepare.{i}")
    for name, text in options.environment.items():
        yield f"options.environment.{name}", text
    if options.server is not None:
        yield from server_templates(options.server)


def _server_commands(options: CommandOptions) -> list[tuple[str, CommandLine]]:
    return [] if options.server is None else [("argv", options.server.argv), *options.server.steps]


def _pattern_errors(options: CommandOptions) -> Iterator[Problem]:
    read = [(f"{place}.pattern", one.pattern, 1) for place, one in _figures_read(options) if one.pattern]
    patterns = [
        *((f"options.success.{i}", text, 0) for i, text in enumerate(options.success)),
        *((f"options.failure.{i}", text, 0) for i, text in enumerate(options.failure)),
        *read,
        *([("options.progress", options.progress_pattern, 1)] if options.progress_pattern else []),
        *((f"options.unused.{i}", text, 1) for i, text in enumerate(options.unused)),
    ]
    for path, text, groups in patterns:
        try:
            compiled = re.compile(text)
        except NO_PATTERN as error:
            yield Problem(f"{quoted(text)} is not a regular expression: {error}", path)
            continue
        own = compiled.groups - (UNIT_GROUP in compiled.groupindex)
        if groups and own != groups:
            besides = f", besides (?P<{UNIT_GROUP}>...)" if own < compiled.groups else ""
            yield Problem(f"{quoted(text)} needs exactly one group, around the number{besides}; it has {own}", path)
    for place, one in _figures_read(options):
        if one.pattern and f"(?P<{UNIT_GROUP}>" in one.pattern and not one.unit:
            yield Problem("declare the unit to which values are converted, unit = 's' for example", f"{place}.unit")


def _figures_read(options: CommandOptions) -> list[tuple[str, MetricOptions | AnswerOptions]]:
    """Return what is read from a run's output, each with its path."""
    return [
        *((f"options.metrics.{i}", metric) for i, metric in enumerate(options.metrics)),
        *([("options.answer", options.answer)] if options.answer else []),
    ]


def _figure_errors(options: CommandOptions) -> Iterator[Problem]:
    for place, one in _figures_read(options):
        if not one.pattern and not one.json_path:
            yield Problem(
                f"{one.name} needs a pattern, or a path into JSON as json, by which it is read", f"{place}.pattern"
            )
        elif one.pattern and one.json_path:
            yield Problem(f"{one.name} is read by its pattern or as json: leave one of the two out", f"{place}.json")
        if one.file is not None and (error := name_error(one.file)):
            yield Problem(error, f"{place}.file")
    answer = options.answer
    if answer is not None and answer.tolerance is None and answer.relative_tolerance is None:
        wrong = "an answer needs tolerance, relative_tolerance (1e-6) or both: how far it may be from the default's"
        yield Problem(wrong, "options.answer.tolerance")
    for i, name in enumerate(options.outputs):
        if error := name_error(name):
            yield Problem(error, f"options.outputs.{i}")
    followed = options.progress_file
    if followed not in {STDOUT, STDERR} and (error := name_error(followed)):
        yield Problem(error, "options.progress.file")
    if options.input is not None and options.input not in {file.name for file in options.files}:
        yield Problem(f"no file of options.files is called {options.input!r}", "options.input")
