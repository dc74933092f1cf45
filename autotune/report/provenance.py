"""The section of a report on provenance: machine, versions, commands, environment, sessions, dates."""

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from autotune import __version__
from autotune.batch.job_script import start_environment
from autotune.execution.task import job_from_description
from autotune.pictures.chart import Cell, Table
from autotune.pictures.labels import count_noun
from autotune.records.study import Run
from autotune.report.section import Code, Figures, Part, Section, Words
from autotune.results.summary import Summary
from launchers.mpi import recorded_flavour
from launchers.mpi_command import mpi_argv

_LETTERS = 300
_SESSIONS = 12


def provenance(summary: Summary, runs: Sequence[Run], used: Run | None) -> Section:
    """Return the section with everything needed to repeat the study; `used` is a run of the configuration to use."""
    definition = summary.definition
    parts: list[Part] = [Words(_dates(runs))]
    if not definition.replay:
        parts += _facts("Machine", definition.machine)
    parts += _facts("Program, input and what else makes measurements comparable", definition.identity)
    parts += _facts("Facts of the workload and the installation", definition.facts)
    parts += _sessions(runs)
    default = next((run for run in runs if summary.standings.default and _is_default(run, summary)), None)
    for about, run in (("default", default), ("configuration to use", used)):
        for job in () if run is None or definition.replay else run.job.get("parts") or [run.job]:
            if job.get("argv"):
                which = f"{about}, on input {job['name']}" if "name" in job else about
                flavour = recorded_flavour(job)
                command = mpi_argv(flavour, job_from_description(job))
                parts.append(Code(shlex.join(command), f"The command of the {which}"))
                if server := job.get("server"):
                    parts.append(Code(shlex.join(server["argv"]), f"The server of the {which}"))
                parts += _facts(f"Environment of the {which}", start_environment(job, flavour))
    return Section("provenance", "With what it was measured", tuple(parts))


def _is_default(run: Run, summary: Summary) -> bool:
    default = summary.standings.default
    return default is not None and run.trial == default.number and run.outcome.complete


def _dates(runs: Sequence[Run]) -> str:
    text = f"Report by autotune {__version__}. {count_noun(len(runs), 'run')}"
    counts = Counter(run.series.kind.purpose for run in runs)
    if len(counts) > 1:
        text += f": {', '.join(f'{count} for {what}' for what, count in counts.items())}"
    started = sorted(run.started for run in runs if run.started)
    if not started:
        return f"{text}."
    first, last = started[0][:16].replace("T", " "), started[-1][:16].replace("T", " ")
    return f"{text}. The first began at {first} UTC, the last at {last} UTC."


def _facts(caption: str, facts: Mapping[str, Any]) -> list[Part]:
    flat = _flat(facts)
    rows = tuple((name, _word(value)) for name, value in flat.items() if value not in ("", None))
    return [Figures(caption, Table(("what", "value"), rows))] if rows else []


def _flat(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested facts on one level; an outer fact replaces an inner one of the same name."""
    flat = {name: value for name, value in facts.items() if not isinstance(value, Mapping)}
    for inner in (value for value in facts.values() if isinstance(value, Mapping)):
        flat = {**inner, **flat}
    return {name: flat[name] for name in [*facts, *flat] if name in flat}


def _word(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}…"


def _sessions(runs: Sequence[Run]) -> list[Part]:
    """Return a table with a row for each different set of session facts, and a column for each known fact."""
    counts = Counter(tuple(sorted(run.session.items())) for run in runs if run.session)
    first: dict[tuple[tuple[str, str], ...], str] = {}
    for run in runs:
        first.setdefault(tuple(sorted(run.session.items())), run.started[:16].replace("T", " "))
    names = list(dict.fromkeys(name for facts in counts for name, value in facts if value))
    rows: list[tuple[Cell, ...]] = []
    for facts, count in list(counts.items())[:_SESSIONS]:
        known = dict(facts)
        rows.append((first[facts], count, *(known.get(name, "") for name in names)))
    if not rows:
        return []
    return [Figures("Sessions", Table(("first run (UTC)", "runs", *names), tuple(rows)))]
