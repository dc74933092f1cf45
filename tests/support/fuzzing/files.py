"""Parsers of files of users and other programs: studies, sites, machines, rules, tables."""

# ruff: noqa: PLC0415  imports wait until the fuzzer can instrument them

import shutil
from pathlib import Path

from tests.support.fuzzing.target import OUTPUTS, ROOT, Made, Target, folder, of_file, of_text


def _study_file() -> Made:
    from autotune.errors import StudyFileError
    from autotune.studyfile.loading import load

    return of_file(load, "study.toml", StudyFileError)


def _override() -> Made:
    from autotune.errors import StudyFileError
    from autotune.studyfile.loading import apply_overrides

    return of_text(lambda text: apply_overrides({"name": "s", "objective": "command"}, [text], "s"), StudyFileError)


def _site_file() -> Made:
    from autotune.batch.site_file import SiteError, find_cluster
    from autotune.errors import CannotRunHereError

    return of_file(lambda path: find_cluster(str(path)), "site.toml", SiteError, CannotRunHereError)


def _machine() -> Made:
    from autotune.machines.description import MachineError, load

    return of_file(load, "machine.toml", MachineError)


def _toml_lines() -> Made:
    import tomllib

    from objectives.toml_text import parse_toml

    return of_text(parse_toml, tomllib.TOMLDecodeError)


def _expression() -> Made:
    from spaces.expressions.constant import constant_value
    from spaces.parameters.errors import ExpressionError

    facts = {"cores": 8, "memory": 2.5e9, "name": "gpu", "has_gpu": True}
    return of_text(lambda text: constant_value(text, facts), ExpressionError)


def _rule() -> Made:
    from spaces import Choice, Constraint, Float, Integer, Space
    from spaces.parameters.errors import ExpressionError, SpaceError

    parameters = (
        Integer("n", (1, 2, 4, 8, 64), default=1),
        Integer("m", (-4, -1, 0, 3), default=0),
        Float("x", 0.5, 2.0, points=4, default=0.5),
        Choice("kind", ("a", "b"), default="a"),
    )

    def read(text: str) -> object:
        space = Space(parameters, (Constraint("rule", text, "a reason"),))
        return space.violations({"n": 4, "m": -1, "x": 0.5, "kind": "b"})

    return of_text(read, ExpressionError, SpaceError)


def _template() -> Made:
    from objectives.mentions import templates
    from spaces.parameters.errors import ExpressionError, SpaceError

    def read(text: str) -> object:
        if templates.template_errors([("command", text)]):
            return None
        return templates.mentions_in(text), templates.names_in(text), templates.fill_in(text, {"n": 4})

    return of_text(read, ExpressionError, SpaceError)


def _duration() -> Made:
    from autotune.durations import parse_duration_s

    return of_text(parse_duration_s, ValueError)


def _limit() -> Made:
    from autotune.studyfile.limits import in_unit
    from objectives.base import Metric

    metric = Metric("time", "s", "minimize", kind="time")
    return of_text(lambda text: in_unit(text, metric), ValueError)


def _run_name() -> Made:
    from autotune.records.series import RunId

    return of_text(lambda text: str(RunId.parse(text)), ValueError)


_COLUMNS = {"metric": "time_s", "parameters": ["n", "mode"]}


def _replayed_table() -> Made:
    from objectives.base import PlanError
    from objectives.replay.plan import plan

    def read(path: Path) -> object:
        return plan({"table": str(path), **_COLUMNS}, machine={"cores": 2}, run_job=_no_job, folder=path.parent)

    return of_file(read, "table", PlanError)


def _replayed_space() -> Made:
    from objectives.base import PlanError
    from objectives.replay.plan import plan

    table = folder() / "table.csv"
    table.write_text("n,mode,time_s\n1,a,2.5\n2,b,1.5\n4,a,1.0\n", encoding="utf-8")

    def read(path: Path) -> object:
        options = {"table": str(table), "space": str(path), **_COLUMNS}
        return plan(options, machine={"cores": 2}, run_job=_no_job, folder=path.parent)

    return of_file(read, "space.json", PlanError)


def _replayed_document() -> Made:
    from objectives.base import PlanError
    from objectives.replay.plan import plan

    def read(path: Path) -> object:
        return plan({"table": str(path)}, machine={"cores": 2}, run_job=_no_job, folder=path.parent)

    return of_file(read, "table.json", PlanError)


def _no_job(*_: object) -> object:
    raise AssertionError("a table starts no program")


def _imported_file() -> Made:
    from autotune.errors import AutotuneError
    from autotune.performance.measurements.files import read_any
    from autotune.performance.measurements.machine_names import find_machine_facts

    given = {"machine": "there", "program": "p", "workload": "w", "source": "s"}
    return of_file(lambda path: read_any(path, None, given, find_machine_facts), "found", AutotuneError)


def _imported_table() -> Made:
    from autotune.errors import AutotuneError
    from autotune.performance.measurements.files import read_any
    from autotune.performance.measurements.machine_names import find_machine_facts

    mapping = folder() / "mapping.toml"
    shutil.copy(ROOT / "studies/measurements/theta-qe.toml", mapping)
    given: dict[str, str | None] = {"machine": None, "program": None, "workload": None, "source": None}
    return of_file(lambda path: read_any(path, mapping, given, find_machine_facts), "theta-qe.csv", AutotuneError)


_TABLE = (
    "n,mode,time_s\n1,a,2.5\n2,b,1.5\n",
    (
        '{"device_name": "d", "kernel_name": "k", "tune_params_keys": ["n"], "tune_params": {"n": [1, 2]}, "cache": '
        '{"1": {"n": 1, "time": 2.5, "times": [2.5]}, "2": {"n": 2, "time": 1.5, "times": [1.5]}}}'
    ),
    (
        '{"schema_version": "1.0.0", "results": [{"configuration": {"n": 1}, "invalidity": "correct", "times": '
        '{"runtimes": [1.5]}, "measurements": [{"name": "time", "value": 1.5, "unit": "ms"}], "objectives": ["time"]}]}'
    ),
)


TARGETS = (
    Target("study file", _study_file, ("studies/*.toml",), most_bytes=8192),
    Target("value of --set", _override, words=("budget.trials=3", "space.fixed={a = 1}", 'options.command=["a", "b"]')),
    Target("TOML", _toml_lines, ("studies/sites/*.toml", "studies/measurements/theta-qe.toml")),
    Target("site file", _site_file, ("studies/sites/*.toml",)),
    Target("machine description", _machine, ("studies/machines/*.toml",)),
    Target(
        "expression",
        _expression,
        words=("cores * 2 // 3", "name == 'gpu' and not has_gpu", "2 ** cores"),
        most_bytes=2000,
    ),
    Target(
        "rule",
        _rule,
        words=("n % 2 == 0 or m < 3", "kind in ('a', 'b') and x > 1.0", "is_power_of_two(n) if m else True"),
        most_bytes=2000,
    ),
    Target("template", _template, words=("{n}", "-n {n * 2} {{x}} {min(n, 3)}"), most_bytes=2000),
    Target("duration", _duration, words=("1h30m", "90", "2d"), most_bytes=400),
    Target("limit", _limit, words=("12 GiB", "20 ms", "1e3"), most_bytes=400),
    Target("name of a run", _run_name, words=("00012-1", "verdict-12-03-1", "warm-up-a"), most_bytes=400),
    Target("replayed CSV", _replayed_table, words=_TABLE[:1]),
    Target("replayed JSON", _replayed_document, ("studies/tables/*.csv",), _TABLE[1:]),
    Target(
        "T1 space",
        _replayed_space,
        words=(
            (
                '{"ConfigurationSpace": {"TuningParameters": [{"Name": "n", "Type": "int", "Values": "[1, 2, 4]", '
                '"Default": 1}, {"Name": "mode", "Values": ["a", "b"]}], "Conditions": [{"Expression": "n > 0"}]}}'
            ),
            '{"parameters": [{"type": "integer", "name": "n", "values": [1, 2]}], "constraints": []}',
        ),
    ),
    Target("imported file", _imported_file, (OUTPUTS, "studies/measurements/*.toml"), _TABLE, most_bytes=16384),
    Target("imported table", _imported_table, ("studies/measurements/theta-qe.csv",)),
)
