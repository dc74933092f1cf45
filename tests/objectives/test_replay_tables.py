import gzip
import json

import numpy as np
import pytest

from objectives.base import FailureKind, PlanError
from objectives.replay.delimited import parse_column
from objectives.replay.objective import ReplayObjective
from objectives.replay.options import ReplayOptions
from objectives.replay.plan import plan, read_table
from objectives.replay.table import TableRun


def read(text, **options):
    return read_table(text, ReplayOptions(table="here", **options))


def entry(x, time, **more):
    return {"x": x, "time": time, "compile_time": 500.0, "benchmark_time": 300.0, **more}


CACHE = {
    "device_name": "paper",
    "tune_params_keys": ["x"],
    "cache": {
        "1": entry(1, 20.0, times=[10.0, 30.0], **{"GFLOP/s": 7.0}),
        "2": entry(2, "RuntimeFailedConfig", times=[1.0]),
        "3": entry(3, "CompilationFailedConfig", benchmark_time=0),
    },
}


def test_words_of_digits_are_no_numbers():
    assert parse_column(["1_12", "11_2", "8_8"]) == ["1_12", "11_2", "8_8"]
    assert parse_column(["1", "12"]) == [1, 12]
    assert parse_column(["1e3", "2.5"]) == [1000.0, 2.5]


def test_a_cache_of_kernel_tuner_in_seconds():
    table = read(json.dumps(CACHE))
    assert (table.parameters, table.metric.name, table.metric.unit, table.metric.kind) == (("x",), "time", "s", "time")
    good = table.recordings[1,]
    assert good.setup_s == pytest.approx(0.5)
    assert [run.value for run in good.runs] == pytest.approx([0.01, 0.03])
    # A run costs its share of the time of all executions, not the kernel's own time.
    assert [run.elapsed_s for run in good.runs] == pytest.approx([0.15, 0.15])
    assert (table.true_metrics({"x": 1})["time"], table.best) == (pytest.approx(0.02), pytest.approx(0.02))


def test_a_failure_of_kernel_tuner_stays_one_even_with_times():
    table = read(json.dumps(CACHE))
    (runtime,), (compiled,) = table.recordings[2,].runs, table.recordings[3,].runs
    assert (runtime.failure, runtime.code) == (FailureKind.APPLICATION_ERROR, "runtime")
    assert "RuntimeFailedConfig" in runtime.message
    assert runtime.elapsed_s == pytest.approx(0.3)
    assert (compiled.code, compiled.elapsed_s, table.recordings[3,].setup_s) == ("compile", 0.0, pytest.approx(0.5))


def test_without_repeats_a_configuration_has_the_run_that_kernel_tuner_counts():
    (run,) = read(json.dumps(CACHE), repeats=False).recordings[1,].runs
    assert (run.value, run.elapsed_s) == (pytest.approx(0.02), pytest.approx(0.3))


def test_another_figure_of_a_cache():
    whole = {**CACHE, "cache": {"1": CACHE["cache"]["1"]}}
    table = read(json.dumps(whole), metric="GFLOP/s", kind="rate", unit="GFLOP/s")
    assert (table.metric.direction, table.metric.unit, table.best) == ("maximize", "GFLOP/s", 7.0)


def test_a_cache_that_was_not_closed():
    text = json.dumps(CACHE)
    assert read(text.removesuffix("}}") + ",\n").recordings.keys() == read(text).recordings.keys()


def result(x, runtimes, invalidity="correct", **more):
    times = {"compilation_time": 2.0, "runtimes": runtimes}
    correctness = int(invalidity != "correctness")
    return {"configuration": {"x": x}, "times": times, "invalidity": invalidity, "correctness": correctness, **more}


def test_results_of_t4():
    document = {
        "schema_version": "1.1.0",
        "metadata": {"timeunit": "microseconds"},
        "results": [
            result(1, [10.0, 20.0], objectives=["time"]),
            result(1, [30.0]),
            result(2, [], "timeout"),
            result(3, [5.0], "correctness"),
            result(4, [], "compile"),
        ],
    }
    table = read(json.dumps(document))
    assert (table.metric.name, table.metric.unit) == ("time", "s")
    assert [run.value for run in table.recordings[1,].runs] == pytest.approx([1e-5, 2e-5, 3e-5])
    assert table.recordings[1,].setup_s == pytest.approx(2e-6)
    kinds = [table.recordings[x,].runs[0].failure for x in (2, 3, 4)]
    assert kinds == [FailureKind.TIMED_OUT, FailureKind.INVALID_RESULT, FailureKind.APPLICATION_ERROR]


def test_a_metric_that_t4_results_do_not_have_is_refused_and_another_time_is_no_run_time():
    more = {"objectives": ["time"], "measurements": [{"name": "transfer_time", "value": 7.0, "unit": ""}]}
    text = json.dumps({"results": [result(1, [0.7, 0.9], **more)]})
    with pytest.raises(PlanError, match=r"no 'tiem'; they have time, transfer_time @ options.metric"):
        read(text, metric="tiem")
    table = read(text, metric="transfer_time", unit="ms")
    assert [run.value for run in table.recordings[1,].runs] == pytest.approx([0.007])


@pytest.mark.parametrize("name", ["samples_per_s", "bytes_per_sec", "latency_min"])
def test_no_unit_of_time_is_guessed_where_there_may_be_none(name):
    table = read(f"x,{name}\n1,10\n2,20\n", metric=name, parameters=["x"])
    assert (table.metric.kind, table.metric.unit) == ("other", "")


CSV = """# a remark
n,rate,word,on,wall_ms,why,took_s,stopped
1,0.5,a,true,100,,2.5,
1,0.5,a,true,300,,3.5,
2,,b,false,,out of memory: no more,1.5,
3,0.25,,false,,,4.0,250
"""
COLUMNS = {"metric": "wall_ms", "parameters": ["n", "rate", "word", "on"]}


def test_a_csv_file_with_typed_columns_and_repeats():
    table = read(CSV, **COLUMNS, failure="why", elapsed="took_s", bound="stopped")
    assert list(table.recordings) == [(1, 0.5, "a", True), (2, None, "b", False), (3, 0.25, None, False)]
    first, failed, stopped = table.recordings.values()
    assert first.runs == (TableRun(2.5, pytest.approx(0.1)), TableRun(3.5, pytest.approx(0.3)))
    assert (failed.runs[0].failure, failed.runs[0].message) == (FailureKind.OUT_OF_MEMORY, "no more")
    assert (stopped.runs[0].bound, stopped.runs[0].elapsed_s) == (pytest.approx(0.25), 4.0)


def test_a_time_is_what_a_run_took_where_nothing_else_is_said():
    assert [run.elapsed_s for run in read(CSV, **COLUMNS).recordings[1, 0.5, "a", True].runs] == pytest.approx(
        [0.1, 0.3]
    )


def test_an_infrastructure_error_is_not_told_as_one():
    text = "n,wall_s,why\n1,,infrastructure error: node died\n2,1,\n"
    (run,) = read(text, metric="wall_s", parameters=["n"], failure="why").recordings[1,].runs
    assert run.failure is FailureKind.APPLICATION_ERROR


def test_a_run_that_was_not_done_failed():
    table = read("n,wall_s,done\n1,4,1\n2,5,0\n", metric="wall_s", parameters=["n"], done="done")
    assert [recording.runs[0].failure for recording in table.recordings.values()] == [
        None,
        FailureKind.APPLICATION_ERROR,
    ]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (CSV, {}, ["needs metric", "needs parameters", "wall_ms"]),
        (CSV, {"metric": "wal", "parameters": ["m"]}, ["no column 'wal'", "no column 'm'", "@ options.parameters.0"]),
        ("n,wall_s\n1,2,3\n", {"metric": "wall_s", "parameters": ["n"]}, ["line 2"]),
        ("n,wall_s\n", {"metric": "wall_s", "parameters": ["n"]}, ["no line"]),
        ("n,wall\n1,2\n", {"metric": "wall", "parameters": ["n"], "kind": "time"}, ["unit of a time", "options.unit"]),
        ('{"a": 1}', {}, ["neither `cache`"]),
        ('{"cache": {}}', {"parameters": ["x"]}, ["column of a CSV file"]),
        (
            "n,wall_s\n1,2\n",
            {"metric": "wall_s", "parameters": ["n"], "metrics": ["memory", "n"]},
            ["no column 'memory'", "@ options.metrics.0", "'n' is a parameter", "@ options.metrics.1"],
        ),
        ("n,wall_s\n1,2\n", {"metric": "wall_s", "parameters": ["n"], "metrics": ["wall_s"]}, ["occurs twice"]),
        ("{", {}, ["not JSON"]),
        ('{"cache": {"1": {"y": 1}}, "tune_params_keys": ["x"]}', {}, ["entry '1'"]),
    ],
)
def test_what_is_wrong_is_said_all_at_once(text, options, words):
    with pytest.raises(PlanError, match=r".") as caught:
        read(text, **options)
    for word in words:
        assert word in str(caught.value)


def test_a_compressed_file_is_the_same_table(tmp_path):
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    made = [
        plan({"table": str(tmp_path / name), **COLUMNS}, machine={}, run_job=lambda job: None, folder=tmp_path)
        for name in ("a.csv", "a.csv.gz")
    ]
    assert made[0].identity == made[1].identity
    assert made[0].objective == made[1].objective


def test_other_columns_are_metrics_in_their_own_units_and_may_be_missing():
    text = "n,wall_ms,p99_ms,peak_mib,util\n1,100,20,512,0.5\n1,300,30,,0.7\n"
    others = ["p99_ms", "peak_mib", {"name": "util", "unit": "1", "direction": "maximize"}]
    table = read(text, metric="wall_ms", parameters=["n"], metrics=others)
    assert [(one.name, one.unit, one.direction) for one in table.others] == [
        ("p99_ms", "ms", "minimize"),
        ("peak_mib", "MiB", "minimize"),
        ("util", "1", "maximize"),
    ]
    runs = table.recordings[1,].runs
    assert [run.others for run in runs] == [{"p99_ms": 20, "peak_mib": 512, "util": 0.5}, {"p99_ms": 30, "util": 0.7}]
    assert table.true_metrics({"n": 1}) == pytest.approx({"wall_ms": 0.2, "p99_ms": 25, "peak_mib": 512, "util": 0.6})
    together = read(text, metric="wall_ms", parameters=["n"], metrics=others, repeats=False)
    assert together.recordings[1,].runs[0].others == pytest.approx({"p99_ms": 25, "peak_mib": 512, "util": 0.6})


def test_other_figures_of_caches_and_results():
    entry = {"x": 1, "time": 2.0, "times": [1.0, 3.0], "power": 50}
    cache = {"cache": {"1": entry}, "tune_params_keys": ["x"]}
    table = read(json.dumps(cache), metrics=["power"])
    assert [run.others for run in table.recordings[1,].runs] == [{"power": 50}] * 2
    with pytest.raises(PlanError, match=r"no entry of the cache has 'watts'; numbers that they have: .*power"):
        read(json.dumps(cache), metrics=["watts"])
    result = {
        "configuration": {"x": 1},
        "times": {"runtimes": [1.0, 3.0], "compilation_time": 0},
        "invalidity": "correct",
        "correctness": 1,
        "objectives": ["time"],
        "measurements": [{"name": "power", "value": [40, 60], "unit": "W"}],
    }
    table = read(json.dumps({"results": [result]}), metrics=["power"])
    assert (table.others[0].unit, table.true_metrics({"x": 1})["power"]) == ("W", 50)
    with pytest.raises(PlanError, match=r"no measurements 'watts'; they have power"):
        read(json.dumps({"results": [result]}), metrics=["watts"])


def test_what_autotune_exported_names_its_other_metrics_whatever_follows_them():
    text = "trial,series,n,wall_s,memory_bytes,job_s,cores,failure,bound,taken_share\n0,tuning,1,2,64,3,4,,,0.1\n"
    table = read(text, metric="wall_s")
    assert (table.parameters, [one.unit for one in table.others]) == (("n",), ["B"])
    (run,) = table.recordings[1,].runs
    assert (run.elapsed_s, run.others) == (3, {"memory_bytes": 64})


def test_runs_of_a_worker_are_told_again_as_that_workers():
    text = "x,node,t_s\n1,a,1.0\n1,b,2.0\n2,b,3.0\n"
    table = read(text, metric="t_s", parameters=["x"], worker="node")
    assert table.workers([{"x": 1}]) == ["a", "b"]
    assert table.workers([{"x": 1}, {"x": 2}]) == ["b"]
    objective, rng = ReplayObjective(table), np.random.default_rng(0)
    told = [objective.draw({"x": 1}, rng, "b") for _ in range(5)]
    assert {(run.worker, json.loads(run.lines[0][1])["t_s"]) for run in told} == {("b", 2.0)}
    assert "not recorded on a" in objective.draw({"x": 2}, rng, "a").lines[0][1]
    assert {objective.draw({"x": 1}, rng).worker for _ in range(20)} == {"a", "b"}
    with pytest.raises(PlanError, match="no column 'host'"):
        read(text, metric="t_s", parameters=["x"], worker="host")
