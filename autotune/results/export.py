"""Export the runs of a stored study as a table, to read elsewhere or to replay."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.errors import CannotRunHereError, StudyFileError
from autotune.execution.run_folder import fresh_folder
from autotune.formatting import plain_line
from autotune.records.series import SeriesKind
from autotune.records.study import Run
from autotune.storage.address import storage_url
from autotune.studyfile.definition import Definition
from objectives.base import FailureKind
from objectives.replay.options import RecordedMetric, ReplayOptions
from spaces import Space, SpaceError
from spaces.parameters.problem import Problem

if TYPE_CHECKING:
    from autotune.storage.study_store import StudyStore

# The columns beside parameters and metrics.
_TRIAL, _SERIES, _JOB_S, _CORES, _FAILURE, _BOUND = "trial", "series", "job_s", "cores", "failure", "bound"
_TAKEN = "taken_share"
# Series whose runs do not measure a configuration alone on the study's own workload.
_OTHER_SERIES = frozenset(
    {
        SeriesKind.WARM_UP,
        SeriesKind.WORKLOAD,
        SeriesKind.WATCH,
        SeriesKind.ASIDE,
        SeriesKind.DUET,
    }
)


def run_rows(store: "StudyStore") -> list[dict[str, Any]]:
    """Return every run of a study that counts, as a flat row; all rows have the same columns, None for no value.

    The columns are `trial`, `series`, the parameters, the metrics, `job_s` (the time of the job in seconds), `cores`,
    `failure` (kind and message), `bound` (a capped run was not better than this), `steps` and `of` for programs that
    work in steps, and `taken_share` (the share of its time that other processes took) if it is known for any run.
    A column ends with `_` if a parameter or a metric has the same name.
    """
    definition, runs = store.definition, counting_runs(store)
    parameters = [parameter["name"] for parameter in definition.space["parameters"]]
    in_steps = any(run.steps is not None for run in runs)
    known = any(run.outcome.disturbance.taken_share is not None for run in runs)
    return [_row(run, definition, parameters, in_steps=in_steps, taken=known) for run in runs]


def counting_runs(store: "StudyStore") -> list[Run]:
    """Return every run that measures a configuration on the study's own workload, except faults of the machine."""
    return [run for run in store.runs() if _counts(run)]


def as_csv(rows: Sequence[Mapping[str, Any]], *, exact: bool = False) -> str:
    """Return rows as CSV with a header and empty cells for missing columns; empty without rows.

    Args:
        rows: The rows.
        exact: Keep line feeds and invisible characters of texts, for a table that is replayed.
    """
    if not rows:
        return ""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    lines = [columns, *([_cell_text(row.get(name)) for name in columns] for row in rows)]
    writer.writerows(lines if exact else [[plain_line(cell) for cell in line] for line in lines])
    return out.getvalue()


def resolve_replay(options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Write the runs and the space of a stored study into `folder` and return the options of a replay from there.

    Options without `study` are returned as they are.

    Raises:
        StorageError: The storage or the study does not exist.
        CannotRunHereError: The runs of the study cannot be replayed one by one.
    """
    from autotune.storage.study_store import StudyStore  # noqa: PLC0415  importing Optuna takes a while

    if options.get("study") is None:
        return dict(options)
    if not isinstance(options["study"], str) or not isinstance(options.get("table"), str):
        msg = "a replay of a stored study needs its storage as `table` and its name as `study`, both text"
        raise StudyFileError(Problem(msg, "options"))
    store = StudyStore.read(storage_url(options["table"]), options["study"])
    definition = store.definition
    rows = run_rows(store)
    _check(store.name, definition, rows)
    recorded_folder = fresh_folder(folder / "recorded")
    (recorded_folder / f"{store.name}.csv").write_text(as_csv(rows, exact=True), encoding="utf-8")
    (recorded_folder / "space.json").write_text(json.dumps(definition.space), encoding="utf-8")
    names = _names(definition)
    target = definition.target
    own = ReplayOptions(
        table=str(recorded_folder / f"{store.name}.csv"),
        metric=target.name,
        unit=target.unit,
        direction=target.direction,
        kind=target.kind,
        metrics=_others(definition),
        parameters=[parameter["name"] for parameter in definition.space["parameters"]],
        elapsed=names[_JOB_S],
        failure=names[_FAILURE],
        bound=names[_BOUND],
        cores=names[_CORES],
        space=str(recorded_folder / "space.json"),
        unrecorded="leave-out",
        default=_default(definition),
    )
    given = {key: value for key, value in options.items() if key not in {"table", "study"}}
    return {**own.model_dump(exclude_none=True), **given}


def _check(name: str, definition: Definition, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        msg = f"study {name!r} has no run to replay"
        raise CannotRunHereError(msg)
    if definition.study_file.stopping is not None:
        msg = (
            f"study {name!r} works in steps ([stopping]): its runs continue one another, so they cannot be replayed "
            "one by one; `autotune trials --runs --format csv` prints them"
        )
        raise CannotRunHereError(msg)


def _others(definition: Definition) -> list[RecordedMetric] | None:
    """Return the metrics beside the optimised one."""
    others = [metric for metric in definition.metrics if metric.name != definition.target.name]
    return [RecordedMetric(name=other.name, unit=other.unit, direction=other.direction) for other in others] or None


def _default(definition: Definition) -> dict[str, Any] | None:
    try:
        return dict(Space.from_dict(definition.space).default())
    except SpaceError:
        return None


def _counts(run: Run) -> bool:
    # A fault of the machine does not measure the configuration.
    fault = run.outcome.failure is FailureKind.INFRASTRUCTURE_ERROR
    return run.series.kind not in _OTHER_SERIES and not fault


def _names(definition: Definition) -> dict[str, str]:
    """Return the names of the columns beside parameters and metrics."""
    taken = {parameter["name"] for parameter in definition.space["parameters"]}
    taken |= {metric.name for metric in definition.metrics}
    names = {}
    for name in (_TRIAL, _SERIES, _JOB_S, _CORES, _FAILURE, _BOUND, "steps", "of", _TAKEN):
        names[name] = name
        while names[name] in taken:
            names[name] += "_"
    return names


def _row(run: Run, definition: Definition, parameters: Sequence[str], *, in_steps: bool, taken: bool) -> dict[str, Any]:
    names, outcome = _names(definition), run.outcome
    said = outcome.failure and f"{outcome.failure.value}: {' '.join(outcome.message.split())}"
    row: dict[str, Any] = {names[_TRIAL]: run.trial, names[_SERIES]: run.series.kind.label}
    row |= {name: run.configuration.get(name) for name in parameters}
    row |= {metric.name: outcome.metrics.get(metric.name) for metric in definition.metrics}
    row |= {
        names[_JOB_S]: outcome.usage.elapsed_s,
        names[_CORES]: run.cores,
        names[_FAILURE]: said,
        names[_BOUND]: outcome.bound,
    }
    row |= {names["steps"]: run.steps, names["of"]: run.of} if in_steps else {}
    return row | ({names[_TAKEN]: outcome.disturbance.taken_share} if taken else {})


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
