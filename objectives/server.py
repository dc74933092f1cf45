"""The server that a command is the load of: checks of its options, its part of a job, and what its failures mean."""

import json
import re
import shutil
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from launchers import STDERR, EndReason, JobState, Server
from launchers.job import LoadSearch
from launchers.server import PORT, SERVER_LOG, STEPS_LOG, read_record
from launchers.software.digest import file_digest
from objectives.base import ApplicationError, InfrastructureError, InvalidResult, Output, RunFailure, TimedOut
from objectives.command_options import SEED, CommandOptions
from objectives.ending import check_ending
from objectives.figure import read_text
from objectives.mentions.templates import fill_in, names_in
from objectives.mentions.words import as_text, environment_text, fill_in_words, flatten, program_of, word_places
from objectives.patterns import NO_PATTERN, find_first
from objectives.server_options import HighestOptions, ServerOptions
from objectives.system_failures import last_words, shorten_words
from objectives.toml_text import quoted
from spaces import Configuration
from spaces.parameters.problem import Problem

NO_LOAD_KEPT = "no-load-kept"
"""The failure code of a configuration that keeps its limits at no load."""

PLACE = "options.server"
_LOGS = (SERVER_LOG, STEPS_LOG)
_GOLDEN = (5**0.5 - 1) / 2  # its multiples are spread evenly between whole numbers


def server_templates(server: ServerOptions) -> Iterator[tuple[str, str]]:
    """Yield the words with placeholders, each with its path."""
    yield from word_places(server.argv, f"{PLACE}.argv")
    for key, step in server.steps:
        yield from word_places(step, f"{PLACE}.{key}")
    for name, text in server.environment.items():
        yield f"{PLACE}.environment.{name}", text
    if server.ready.url is not None:
        yield f"{PLACE}.ready.url", server.ready.url


def server_problems(options: CommandOptions, server: ServerOptions, file_names: set[str]) -> Iterator[Problem]:
    """Yield what is wrong with the options of a server; `file_names` are the names that its files mention."""
    yield from _sign_problems(server, file_names)
    for key, step in server.steps:
        if not step:
            yield Problem("a command needs at least the name of a program", f"{PLACE}.{key}")
    if not server.stop.startswith("SIG") or not isinstance(getattr(signal, server.stop, None), signal.Signals):
        yield Problem(f"{quoted(server.stop)} is not the name of a signal, such as SIGTERM or SIGINT", f"{PLACE}.stop")
    patterns = [(f"{PLACE}.failure.{i}", text) for i, text in enumerate(server.failure)]
    for path, text in [*patterns, *([(f"{PLACE}.ready.line", server.ready.line)] if server.ready.line else [])]:
        try:
            re.compile(text)
        except NO_PATTERN as error:
            yield Problem(f"{quoted(text)} is not a regular expression: {error}", path)
    for i, step in enumerate(options.prepare):
        for path, text in word_places(step, f"options.prepare.{i}"):
            if early := _names(text) & {*server.run_values}:
                yield Problem(f"{quoted(text)}: {min(early)} is known only after prepare, when the server starts", path)
    yield from _file_problems(options, server)
    if server.highest is not None:
        yield from _search_problems(options, server, server.highest, file_names)


def _sign_problems(server: ServerOptions, file_names: set[str]) -> Iterator[Problem]:
    ready = server.ready
    if sum(sign is not None for sign in (ready.port, ready.url, ready.line)) != 1:
        wrong = "a server is ready by its port (port = true), by a url or by a line of its log: exactly one of them"
        yield Problem(wrong, f"{PLACE}.ready")
    if ready.url is not None and not _is_address(ready.url):
        wrong = f'the url begins with http://, as in "http://127.0.0.1:{{port}}/health"; got {quoted(ready.url)}'
        yield Problem(wrong, f"{PLACE}.ready.url")
    words = [*flatten(server.argv), *server.environment.values()]
    if ready.port and PORT not in file_names | {name for word in words for name in _names(word)}:
        wrong = "the server does not learn its port: {port} is in none of its argv, environment and files"
        yield Problem(wrong, f"{PLACE}.argv")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(re.sub(r"\{[^}]*\}", "1", url))
        return parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its port is no number
        return False


def _search_problems(
    options: CommandOptions, server: ServerOptions, highest: HighestOptions, file_names: set[str]
) -> Iterator[Problem]:
    place, name = f"{PLACE}.highest", highest.name
    metrics = [metric.name for metric in options.metrics]
    words = [*flatten(options.argv), *options.environment.values(), *(w for s in server.reset for w in flatten(s))]
    if not name.isidentifier() or name in {PORT, SEED}:
        wrong = f"a load cannot be called {name!r}: letters, digits and _, and neither {PORT} nor {SEED}"
        yield Problem(wrong, f"{place}.name")
    elif name in metrics:
        wrong = f"{name!r} is a metric already: the highest load becomes the first metric, by its own name"
        yield Problem(wrong, f"{place}.name")
    elif name not in file_names | {found for word in words for found in _names(word)}:
        yield Problem(f"no word of the load mentions {{{name}}}, so all loads would be the same", f"{place}.name")
    if highest.low >= highest.high:
        yield Problem(f"the search ends above its begin, from = {highest.low:g}; got {highest.high:g}", f"{place}.to")
    for kept in highest.keep:
        if kept not in metrics:
            wrong = f"no metric of options.metrics is called {kept!r}: they are {', '.join(metrics) or 'none'}"
            yield Problem(wrong, f"{place}.keep.{kept}")
    once = [pair for pair in server_templates(server) if not pair[0].startswith(f"{PLACE}.reset.")]
    for path, text in once:
        if name in _names(text):
            yield Problem(f"{quoted(text)}: the server starts once for all loads, so it has no {{{name}}}", path)
    if options.progress is not None:
        yield Problem("a search reads each load at its end: leave out progress", "options.progress")


def _file_problems(options: CommandOptions, server: ServerOptions) -> Iterator[Problem]:
    for i, file in enumerate(options.files):
        if file.name in _LOGS:
            yield Problem(f"the run writes {quoted(file.name)} itself: give another name", f"options.files.{i}.name")
    for path, name in _files_of_loads(options) if server.highest is not None else ():
        if name in _LOGS:
            wrong = (
                f"all loads of a search share {quoted(name)}: name a file that each load writes, or none for its output"
            )
            yield Problem(wrong, path)


def _names(text: str) -> set[str]:
    try:
        return names_in(text)
    except ValueError:  # reported as an error of the template
        return set()


def make_server(
    options: CommandOptions,
    server: ServerOptions,
    values: Configuration,
    files: tuple[str, ...],
    known: Mapping[str, float],
) -> Server:
    """Return the server of a run.

    Args:
        options: The options of the command.
        server: Those of its server.
        values: The configuration, with the seed of the run.
        files: The files with values that only the run knows.
        known: The metrics of an earlier run.
    """
    highest = server.highest
    environment = {name: fill_in(text, values) for name, text in server.environment.items()}
    kind, text = server.ready.sign
    return Server(
        argv=fill_in_words(server.argv, values),
        environment={name: value for name, value in environment.items() if value is not None},
        ready=(kind, fill_in(text, values) or "") if kind == "url" else (kind, text),
        ready_within_s=server.ready_within_s,
        warm_up=tuple(fill_in_words(step, values) for step in server.warm_up),
        reset=tuple(fill_in_words(step, values) for step in server.reset),
        stop=server.stop,
        stop_within_s=server.stop_within_s,
        failure=tuple(server.failure),
        files=files,
        search=None
        if highest is None
        else LoadSearch(
            highest.name,
            highest.low,
            highest.high,
            judge=str(Path(__file__).with_name("load_judge.py")),
            options=json.dumps({"load": _reading_of(options), "highest": highest.model_dump(by_alias=True)}),
            files=tuple(dict.fromkeys(file for _, file in _files_of_loads(options))),
            start=known.get(highest.name),
            # Without it all pairs of a verdict would run the same loads, and look surer than a search is.
            shift=(int(values[SEED]) * _GOLDEN + 0.5) % 1.0 - 0.5,
        ),
    )


def _files_of_loads(options: CommandOptions) -> Iterator[tuple[str, str]]:
    """Yield the files that the figures of a load are read from, each with its path in the options."""
    figures = [(f"options.metrics.{i}", one.figure) for i, one in enumerate(options.metrics)]
    figures += [("options.answer", options.answer.figure)] if options.answer is not None else []
    yield from ((f"{path}.file", figure.file) for path, figure in figures if figure.file is not None)


def _reading_of(options: CommandOptions) -> dict[str, Any]:
    """Return the options by which the output of one load is read."""
    read = {"metrics", "success", "failure", "outputs"}
    return {"argv": ["load"], **options.model_dump(mode="json", by_alias=True, include=read)}


def check_server(output: Output, server: ServerOptions) -> dict[str, Any]:
    """Check that the server of a run did not fail; return the record of what happened.

    Raises:
        RunFailure: It failed, or what warms it up or resets it; the message has the words of its log.
    """
    record = read_record(output.folder)
    status = output.status
    if status.state is not JobState.ENDED:
        return record
    if status.reason is EndReason.TIMED_OUT and (when := _phase_words(record)):
        words = "" if "loads" in record else f": {_words(output, SERVER_LOG)}"
        msg = f"was stopped at its time limit after {status.usage.elapsed_s:.1f} s, {when}{words}"
        raise TimedOut(msg, code="time-limit")
    if status.reason is not EndReason.EXITED:
        return record
    log = read_text(output.folder / SERVER_LOG) or ""
    for pattern in server.failure:
        if match := find_first(pattern, log):
            line = log[log.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
            raise ApplicationError(f"the server failed: {shorten_words(line)}", code="server-failure")
    failure = record.get("failure")
    if failure is None:
        return record
    code, exit_code = failure["code"], failure["exit_code"]
    if code in {"port-taken", "output-limit"}:
        error = InfrastructureError if code == "port-taken" else ApplicationError
        raise error(failure["message"], code=code)
    if code.startswith("server"):
        # Its log and its end show as much as those of any program: a lack of memory, a missing library.
        ended = replace(status, exit_code=1 if exit_code is None else exit_code or 1)
        try:
            check_ending(replace(output, stdout="", stderr=log, status=ended, job=None))
        except RunFailure as shown:
            msg = f"the server {failure['message']}: {shown}"
            raise type(shown)(msg, code=shown.code) from None
        raise ApplicationError(f"the server {failure['message']}: {_words(output, SERVER_LOG)}", code=code)
    words = _words(output, STDERR if code == "judge" else STEPS_LOG)
    raise ApplicationError(f"{code} of the server: {failure['message']}: {words}", code=code)


def _phase_words(record: Mapping[str, Any]) -> str | None:
    """Return when a run was stopped; None for its only load."""
    if "loads" in record:
        return f"during load {len(record['loads']) + 1} of its search"
    return {"start": "before the server was ready", "warm-up": "while the server warmed up"}.get(
        record.get("phase", "")
    )


def highest_load(record: Mapping[str, Any], highest: HighestOptions) -> float:
    """Return the highest load that keeps the limits.

    Raises:
        InvalidResult: No load did.
    """
    loads = record.get("loads") or []
    if not loads:
        msg = "the run left no record of its loads"
        raise InvalidResult(msg, code="no-load")
    reported = loads[record["reported"]]
    if reported["breaks"] is None:
        return float(record["highest"])
    msg = f"{reported['breaks']}, at {highest.name} = {reported[highest.name]:g}, the lowest load"
    raise InvalidResult(msg, code=NO_LOAD_KEPT)


def server_identity(server: ServerOptions) -> dict[str, str]:
    """Return what makes runs with servers comparable."""
    identity = {"server": as_text(server.argv), "server environment": environment_text(server.environment)}
    if (program := shutil.which(program_of(server.argv))) is not None:
        identity["server program"] = f"{Path(program).name} sha256:{file_digest(Path(program))}"
    if server.steps:
        identity["server steps"] = "; ".join(f"{key}: {as_text(step)}" for key, step in server.steps)
    if (highest := server.highest) is not None:
        limits = ", ".join(f"{name} {limit!r}" for name, limit in sorted(highest.keep.items()))
        identity["highest"] = f"{highest.name} from {highest.low!r} to {highest.high!r} with {limits}"
    return identity


def _words(output: Output, name: str) -> str:
    return last_words(read_text(output.folder / name) or "") or f"nothing in {name}"
