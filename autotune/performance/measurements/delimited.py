"""Read tables of measurements, with a row for each run or configuration, by a mapping of their columns.

An empty cell is unset. Rows of one configuration are repeats and become their median. A row need not have every metric.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite

from autotune.errors import ImportFileError
from autotune.performance.measurements.imported import FindMachine, ImportedMeasurements, summarise_reasons
from autotune.performance.measurements.mapping import MappingFile, MetricSection, WorkloadSection
from autotune.performance.measurements.repeats import RepeatedMeasurement, aggregate
from autotune.records.measurement import Measured, Setting
from autotune.tomlfiles.reading import problems_error
from objectives.replay.delimited import find_line_error, parse_column, read_lines
from spaces import Value
from spaces.parameters.problem import Problem, ProblemsError

Cell = Value | None
Row = Mapping[str, Cell]

_NO_FAILURE = frozenset({"", "0", "false", "no", "none"})
_SHOWN = 10  # list at most this many lines with errors


@dataclass(frozen=True)
class DelimitedTable:
    """Rows with the columns of `header`; the first row is line `first` of a file."""

    header: Sequence[str]
    rows: Sequence[Row]
    first: int = 2
    noun: str = "line"

    def name(self, index: int) -> str:
        """Return the name of a row in messages."""
        return f"{self.noun} {index + self.first}"


def csv_table(text: str, path: str) -> DelimitedTable:
    """Parse a CSV file; each column gets the narrowest type that fits all of its cells.

    Raises:
        ImportFileError: The text is not a table.
    """
    try:
        header, lines = read_lines(text)
    except csv.Error as error:
        raise problems_error(path, [Problem(f"this is no CSV file: {error}")], ImportFileError) from None
    line_error = find_line_error(lines)
    twice = sorted({name for name in header if header.count(name) > 1})
    errors = ([line_error] if line_error else []) + [f"the header has {name!r} twice" for name in twice]
    if errors:
        raise problems_error(path, [Problem(error) for error in errors], ImportFileError)
    columns = [_whole(parse_column([line[name].strip() for line in lines])) for name in header]
    return DelimitedTable(header, [dict(zip(header, cells, strict=True)) for cells in zip(*columns, strict=True)])


def row_table(rows: Sequence[Row]) -> DelimitedTable:
    """Return a table of the rows that a mapping contains itself; a missing cell is unset."""
    header = list(dict.fromkeys(name for row in rows for name in row))
    filled = [{name: None if row.get(name) == "" else row.get(name) for name in header} for row in rows]
    return DelimitedTable(header, filled, first=0, noun="row")


def read_table(table: DelimitedTable, mapping: MappingFile, place: FindMachine, path: str) -> ImportedMeasurements:
    """Return the measurements of a table.

    Args:
        table: The rows.
        mapping: The meaning of the columns.
        place: Returns the facts of a machine.
        path: The table's name in errors.

    Raises:
        ImportFileError: The table lacks columns of the mapping, or has unreadable cells; the error lists all of them.
    """
    known = ", ".join(table.header) or "none"
    errors = [
        Problem(f"the table has no column {column!r}; its columns: {known}", where)
        for where, column in mapping.columns().items()
        if column not in table.header
    ]
    if errors:
        raise problems_error(path, errors, ImportFileError)
    reading = _Reading(mapping, place)
    for number, row in enumerate(table.rows):
        reading.take(row, table.name(number))
    if reading.errors:
        raise problems_error(path, reading.errors, ImportFileError, _SHOWN)
    says_nodes = mapping.nodes is not None or mapping.nodes_column is not None
    notes = () if says_nodes else ("one node each, since the mapping names neither nodes nor nodes_column",)
    return ImportedMeasurements("table", tuple(reading.measurements()), summarise_reasons(reading.left_out), notes)


class _RowError(ProblemsError):
    """A row cannot be read."""


@dataclass
class _Reading:
    """Collects the samples of each configuration in each setting."""

    mapping: MappingFile
    place: FindMachine
    errors: list[Problem] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    _settings: dict[tuple[object, ...], Setting] = field(default_factory=dict)
    _samples: dict[tuple[object, ...], list[RepeatedMeasurement]] = field(default_factory=dict)
    _of: dict[tuple[object, ...], tuple[Setting, dict[str, Value]]] = field(default_factory=dict)

    def take(self, row: Row, name: str) -> None:
        """Add the samples of one row."""
        try:
            samples = self._samples_of(row)
            if not samples:
                self.left_out.append(("neither a value, nor a bound, nor a failure", name))
            for metric, sample in samples:
                self._add(row, metric, sample)
        except _RowError as error:
            self.errors += [replace(problem, message=f"{name}: {problem.message}") for problem in error.problems]

    def measurements(self) -> list[Measured]:
        """Return one measurement for each configuration of each setting."""
        measurements = []
        for key, samples in self._samples.items():
            setting, configuration = self._of[key]
            aggregated = aggregate(samples, setting.metric)
            measurements.append(aggregated.measurement_of(setting, configuration))
        return measurements

    def _samples_of(self, row: Row) -> list[tuple[MetricSection, RepeatedMeasurement]]:
        runs = _count(row, self.mapping.runs, 1)
        why = "" if self.mapping.failure is None else _words(row[self.mapping.failure])
        if why.lower() not in _NO_FAILURE:
            sections = {metric.name: metric for metric in self.mapping.metrics}
            return [(metric, RepeatedMeasurement(runs=runs, failure=why)) for metric in sections.values()]
        parts = {name: time for name, column in self.mapping.parts.items() if (time := _time(row, column)) is not None}
        samples = []
        for metric in self.mapping.metrics:
            value, bound = _figure(row, metric, metric.cell), _figure(row, metric, metric.bound)
            if value is not None:
                samples.append((metric, RepeatedMeasurement(value, runs=runs, parts=parts)))
            elif bound is not None:
                samples.append((metric, RepeatedMeasurement(bound=bound, runs=runs)))
        return samples

    def _add(self, row: Row, metric: MetricSection, sample: RepeatedMeasurement) -> None:
        setting = self._setting(row, metric)
        cells = {name: row[column] for name, column in self.mapping.parameters.items()}
        configuration = {name: value for name, value in cells.items() if value is not None}
        key = (setting.key, setting.built, *((name, type(value), value) for name, value in configuration.items()))
        self._of.setdefault(key, (setting, configuration))
        self._samples.setdefault(key, []).append(sample)

    def _setting(self, row: Row, metric: MetricSection) -> Setting:
        mapping, workload = self.mapping, self.mapping.workload
        is_silent = mapping.nodes_column is not None and row[mapping.nodes_column] is None and mapping.nodes is None
        nodes = None if is_silent else _count(row, mapping.nodes_column, mapping.nodes or 1)
        machine, machine_facts = self.place(_name(row, mapping.machine_column, mapping.machine), nodes)
        facts = {name: row[column] for name, column in workload.fact_columns.items()}
        made = Setting(
            program=mapping.program,
            machine=machine,
            workload=_workload(row, workload),
            metric=metric.metric,
            machine_facts=machine_facts,
            workload_facts=workload.facts | {name: value for name, value in facts.items() if value is not None},
            source=mapping.source,
            nodes_known=nodes is not None,
        )
        known = self._settings.setdefault((made.key, made.built), made)
        if known.workload_facts != made.workload_facts:
            msg = (
                f"workload {made.workload!r} has other facts here than in an earlier row "
                f"({dict(made.workload_facts)}, {dict(known.workload_facts)}); name the workloads apart"
            )
            raise _RowError(msg)
        return known


def _figure(row: Row, metric: MetricSection, column: str | None) -> float | None:
    cell = None if column is None else row[column]
    if cell is None:
        return None
    number = _number(cell, float)
    if number is None or not isfinite(number):
        raise _RowError(Problem(f"{cell!r} is no number", column))
    if number <= 0 and metric.kind != "other":
        raise _RowError(Problem(f"a {metric.kind} is more than 0, got {cell!r}", column))
    return metric.factor * number


def _time(row: Row, column: str) -> float | None:
    """Return the seconds of a part of the program; 0 is valid, since a clock may round a short part to it."""
    cell = row[column]
    number = None if cell is None else _number(cell, float)
    if cell is not None and (number is None or not 0 <= number < inf):
        raise _RowError(Problem(f"{cell!r} is no number of seconds", column))
    return number


def _count(row: Row, column: str | None, otherwise: int) -> int:
    cell = None if column is None else row[column]
    if cell is None:
        return otherwise
    number = _number(cell, float)
    if number is None or number < 1 or number != int(number):
        raise _RowError(Problem(f"{cell!r} is no whole number from 1 up", column))
    return int(number)


def _number(cell: Value, read: Callable[[Value], float]) -> float | None:
    try:
        return None if isinstance(cell, bool) else read(cell)
    except (ValueError, OverflowError):
        return None


def _name(row: Row, column: str | None, otherwise: str | None) -> str:
    if column is None:
        return otherwise or ""
    if row[column] is None:
        raise _RowError(Problem("it is empty, and a name is needed", column))
    return _words(row[column])


def _workload(row: Row, workload: WorkloadSection) -> str:
    """Return the name of a row's workload: the text of its column, or `atoms=24, cutoff=50` for several columns."""
    if len(workload.columns) > 1:
        return ", ".join(f"{column}={_words(row[column])}" for column in workload.columns)
    return _name(row, next(iter(workload.columns), None), workload.name)


def _words(cell: Cell) -> str:
    if cell is None:
        return ""
    return " ".join((str(cell).lower() if isinstance(cell, bool) else str(cell)).split())


def _whole(cells: list[Cell]) -> list[Cell]:
    """Turn floats into integers in a column where `2.0` stands for 2 because some cells are empty."""
    numbers = [cell for cell in cells if cell is not None]
    if not all(isinstance(cell, float) and cell.is_integer() for cell in numbers):
        return cells
    return [None if cell is None else int(cell) for cell in cells]
