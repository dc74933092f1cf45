"""Write a study's measurements in the formats of other tuners: a cache file of Kernel Tuner, results in schema T4.

Sources: `process_cache` and `get_t4_results` of Kernel Tuner 1.5 (util.py, file_utils.py), and its schema T4. Both
formats have each configuration once, with its runs; times are in milliseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from autotune.errors import CannotRunHereError, NothingWorkedError
from autotune.records.study import Run
from autotune.results.export import counting_runs
from objectives.base import FailureKind, Metric

if TYPE_CHECKING:
    from autotune.storage.study_store import StudyStore

_MS_PER_S = 1e3
_TIME = "time"
_FAILED = "RuntimeFailedConfig"

_INVALIDITY = {
    FailureKind.INVALID_RESULT: "correctness",
    FailureKind.TIMED_OUT: "timeout",
}


@dataclass(frozen=True)
class _TestedConfiguration:
    """A configuration with its runs.

    Attributes:
        configuration: The configuration.
        values: The values of the objective: milliseconds for a time, else the metric's unit; empty if it failed.
        failure: How it failed; None if it did not.
        together_ms: The time of all its runs together, in milliseconds.
        started: When its first run began.
    """

    configuration: Mapping[str, Any]
    values: Sequence[float]
    failure: FailureKind | None
    together_ms: float
    started: str


def kernel_tuner_cache(store: "StudyStore") -> dict[str, Any]:
    """Return the measurements as a cache file of Kernel Tuner, for its simulation mode.

    Configurations with only a bound are left out. A parameter without a value is null.
    """
    definition, objective = store.definition, _objective(store.definition.target)
    values = {one["name"]: one["values"] for one in _domains(store)}
    names = list(values)
    cache = {}
    for tested in _configurations_of(store):
        entry: dict[str, Any] = {name: tested.configuration.get(name) for name in names}
        key = ",".join(str(value) for value in entry.values())
        if tested.failure is not None:
            entry |= {objective: _FAILED, "__error__": _FAILED}
        else:
            entry |= {objective: fmean(tested.values), "times": list(tested.values)}
        entry |= {"compile_time": 0.0, "verification_time": 0.0, "benchmark_time": tested.together_ms}
        cache[key] = {**entry, "timestamp": tested.started}
    return {
        "device_name": str(definition.machine.get("cpu") or definition.machine.get("host", "unknown")),
        "kernel_name": store.name,
        "tune_params_keys": names,
        "tune_params": values,
        "objective": [objective],
        "cache": cache,
    }


def t4_results(store: "StudyStore") -> dict[str, Any]:
    """Return the measurements as results of schema T4; configurations with only a bound are left out."""
    target = store.definition.target
    objective, names = _objective(target), [one["name"] for one in _domains(store)]
    is_time = objective == _TIME
    return {
        "schema_version": "1.0.0",
        "metadata": {"timeunit": "milliseconds"},
        "results": [
            {
                "timestamp": tested.started,
                "configuration": {name: tested.configuration.get(name) for name in names},
                "objectives": [objective],
                "times": {
                    "compilation_time": 0.0,
                    "framework": 0.0,
                    "search_algorithm": 0.0,
                    "validation": 0.0,
                    "runtimes": list(tested.values) if is_time else [tested.together_ms],
                },
                "invalidity": "correct" if tested.failure is None else _INVALIDITY.get(tested.failure, "runtime"),
                "correctness": 0 if tested.failure is FailureKind.INVALID_RESULT else 1,
                "measurements": [
                    {"name": objective, "value": fmean(tested.values), "unit": "ms" if is_time else target.unit}
                ]
                if tested.values
                else [],
            }
            for tested in _configurations_of(store)
        ],
    }


def check_exchangeable(store: "StudyStore") -> None:
    """Check that the runs of a study are measurements of whole configurations.

    Raises:
        CannotRunHereError: They are parts of trainings.
        NothingWorkedError: The study has no runs.
    """
    if store.definition.study_file.stopping is not None:
        msg = (
            f"study {store.name!r} works in steps ([stopping]): its runs are parts of trainings; "
            f"`autotune trials {store.name} --runs --format csv` prints them"
        )
        raise CannotRunHereError(msg)
    if not counting_runs(store):
        msg = f"study {store.name!r} has no run yet"
        raise NothingWorkedError(msg)


def _objective(target: Metric) -> str:
    """Return the name of the metric in these formats: `time`, in milliseconds, for a time in seconds."""
    return _TIME if target.is_seconds else target.name


def _domains(store: "StudyStore") -> Iterable[Mapping[str, Any]]:
    from spaces import Space  # noqa: PLC0415

    space = Space.from_dict(store.definition.space)
    for parameter in space.parameters:
        unset = [None] if parameter.optional else []
        yield {"name": parameter.name, "values": [*parameter.values, *unset]}


def _configurations_of(store: "StudyStore") -> Iterable[_TestedConfiguration]:
    target = store.definition.target
    factor = _MS_PER_S if _objective(target) == _TIME else 1.0
    runs_of: dict[tuple[Any, ...], list[Run]] = {}
    for run in counting_runs(store):
        runs_of.setdefault(tuple(sorted(run.configuration.items())), []).append(run)
    for runs in runs_of.values():
        values = [factor * run.outcome.metrics[target.name] for run in runs if target.name in run.outcome.metrics]
        failure = next((run.outcome.failure for run in runs if run.outcome.failure is not None), None)
        if not values and failure is None:
            continue
        together_ms = _MS_PER_S * sum(run.outcome.usage.elapsed_s for run in runs)
        yield _TestedConfiguration(
            runs[0].configuration, values, None if values else failure, together_ms, runs[0].started
        )
