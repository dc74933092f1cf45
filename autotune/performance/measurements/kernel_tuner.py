"""Read caches of Kernel Tuner and results of the schema T4 as measurements; `objectives.replay` parses the formats."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from autotune.errors import ImportFileError
from autotune.performance.measurements.imported import FindMachine, ImportedMeasurements
from autotune.performance.measurements.repeats import RepeatedMeasurement, aggregate
from autotune.records.measurement import Facts, Setting
from autotune.tomlfiles.reading import problems_error
from objectives.base import Metric, PlanError
from objectives.replay.options import ReplayOptions
from objectives.replay.plan import read_document
from objectives.replay.plan import read_table as read_recorded
from objectives.replay.table import Recording
from spaces import Value
from spaces.parameters.problem import Problem


def read_tuned(text: str, path: str, given: Mapping[str, str | None], place: FindMachine) -> ImportedMeasurements:
    """Return the measurements of a cache or of T4 results, with failed configurations as failures.

    Args:
        text: The file's text.
        path: Its name in errors.
        given: Program, machine, workload or source from the command line, which replace the file's kernel, device and
            problem size.
        place: Returns the facts of a machine.

    Raises:
        ImportFileError: The text is in neither format, or neither the file nor `given` names the machine.
    """
    try:
        document = read_document(text, "table")
        table = read_recorded(text, ReplayOptions(table=path))
    except PlanError as error:
        # Drop the paths of the problems: they point into a study file's options.
        raise problems_error(
            path, [replace(problem, path=None) for problem in error.problems], ImportFileError
        ) from None
    except ValueError as error:
        raise problems_error(path, [Problem(str(error))], ImportFileError) from None
    except (AttributeError, TypeError, IndexError, RuntimeError, csv.Error) as error:
        # The reader does not check each part of a foreign file, so a wrong form raises one of these errors.
        raise problems_error(
            path, [Problem(f"it does not have the form of its format: {error}")], ImportFileError
        ) from None
    machine, facts = place(given.get("machine") or _device(document, path), 1)
    setting = Setting(
        program=given.get("program") or _word(document.get("kernel_name")) or "kernel",
        machine=machine,
        workload=given.get("workload") or _problem(document) or "default",
        metric=table.metric,
        machine_facts=facts,
        workload_facts=_sizes(document),
        source=given.get("source") or path,
    )
    measured = tuple(
        _together(recording, table.metric).measurement_of(setting, table.configuration(key))
        for key, recording in table.recordings.items()
    )
    return ImportedMeasurements("Kernel Tuner cache" if "cache" in document else "T4 results", measured)


def _together(recording: Recording, metric: Metric) -> RepeatedMeasurement:
    samples = [RepeatedMeasurement(run.value, run.bound, failure=run.message) for run in recording.runs]
    return aggregate(samples, metric)


def _device(document: Mapping[str, Any], path: str) -> str:
    device = _word(document.get("device_name")) or _word(_metadata(document).get("device"))
    if not device:
        msg = f"{path} does not say on what device it was made; say where with --machine NAME"
        raise ImportFileError(msg)
    return device


def _metadata(document: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _word(given: object) -> str:
    return given.strip() if isinstance(given, str) else ""


def _problem(document: Mapping[str, Any]) -> str:
    return " x ".join(str(size) for size in _problem_sizes(document))


def _sizes(document: Mapping[str, Any]) -> Facts:
    sizes: dict[str, Value] = {
        f"problem_size_{axis}": n for axis, n in zip("xyz", _problem_sizes(document), strict=False)
    }
    return sizes


def _problem_sizes(document: Mapping[str, Any]) -> Sequence[int]:
    given = document.get("problem_size")
    sizes = given if isinstance(given, list) else [given]
    return [size for size in sizes if isinstance(size, int) and not isinstance(size, bool)]
