import csv
import io
from contextlib import suppress
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import ImportFileError
from autotune.performance.measurements.delimited import csv_table, read_table, row_table
from autotune.performance.measurements.files import read_any
from autotune.performance.measurements.mapping import check_mapping
from autotune.results.export import as_csv

MAPPING = {
    "program": "qe",
    "source": "a page",
    "machine": "gadi",
    "parameters": {"np": "ranks", "npool": "pools"},
    "metrics": [{"name": "wall_s", "unit": "s", "kind": "time", "column": "seconds"}],
    "workload": {"name": "CeO2", "facts": {"atoms": 24}},
    "csv": "runs.csv",
}


def place(machine, nodes):
    return machine.upper(), {"nodes": nodes, "cores_per_node": 4}


def read(text, **changes):
    return read_table(csv_table(text, "runs.csv"), check_mapping({**MAPPING, **changes}, "m.toml"), place, "m.toml")


def test_rows_of_a_csv_file_with_repeats_failures_and_what_says_nothing():
    text = (
        "# measured on a Sunday\nranks,pools,seconds,why,limit\n"
        "4,2,3.5,,\n4,2,2.5,,\n4,2,3.0,no,\n4,,2.0,,\n8,8,,out of memory,\n8,4,,,9.5\n8,2,,,\n"
    )
    metrics = [{**MAPPING["metrics"][0], "bound": "limit"}]
    found = read(text, failure="why", metrics=metrics)
    told = {tuple(one.configuration.items()): one for one in found.measured}
    assert told[("np", 4), ("npool", 2)].value == 3.0
    assert told[("np", 4), ("npool", 2)].runs == 3
    assert told[("np", 4),].value == 2.0
    assert told[("np", 8), ("npool", 8)].failure == "out of memory"
    assert told[("np", 8), ("npool", 8)].failed
    assert told[("np", 8), ("npool", 4)].bound == 9.5
    assert len(told) == 4
    assert found.left_out == ("1 x neither a value, nor a bound, nor a failure: line 8",)
    setting = found.measured[0].setting
    assert (setting.program, setting.machine, setting.workload, setting.source) == ("qe", "GADI", "CeO2", "a page")
    assert setting.workload_facts == {"atoms": 24}
    assert setting.machine_facts["cores_per_node"] == 4


def test_a_table_may_hold_the_times_of_a_programs_parts():
    text = "ranks,pools,seconds,fft,other part\n4,2,3.5,1.5,0\n4,1,3.0,,0.25\n8,2,2.0,,\n"
    found = read(text, parts={"fftw": "fft", "calbec": "other part"})
    assert [one.parts for one in found.measured] == [{"fftw": 1.5, "calbec": 0.0}, {"calbec": 0.25}, {}]
    with pytest.raises(ImportFileError, match="no column 'fft'"):
        read("ranks,pools,seconds\n4,2,3.5\n", parts=["fft"])
    for cell in ("-1", "inf", "long"):
        with pytest.raises(ImportFileError, match=r"line 2: '?\S+'? is no number of seconds"):
            read(f"ranks,pools,seconds,fft\n4,2,3.5,{cell}\n", parts=["fft"])


def test_machine_workload_nodes_and_runs_may_be_columns():
    text = "ranks,pools,seconds,host,case,cutoff,nodes,runs\n4,1,3,a,x,50,1,5\n96,1,2,a,x,50,2,1\n4,1,9,b,y,30,1,1\n"
    changes = {
        "machine": None,
        "machine_column": "host",
        "nodes_column": "nodes",
        "runs": "runs",
        "workload": {"columns": ["case"], "fact_columns": {"cutoff_ry": "cutoff"}},
    }
    found = read(text, **changes).measured
    assert [one.setting.key for one in found] == [
        ("qe", "A", "x", "wall_s"),
        ("qe", "A, 2 nodes", "x", "wall_s"),
        ("qe", "B", "y", "wall_s"),
    ]
    assert [one.setting.workload_facts for one in found] == [{"cutoff_ry": 50}, {"cutoff_ry": 50}, {"cutoff_ry": 30}]
    assert found[0].runs == 5


def test_values_that_no_ratio_can_compare_are_left_out_and_counted(tmp_path):
    (tmp_path / "r.csv").write_text("lr,loss\n0.1,-1.5\n0.2,0\n0.4,0.5\n", encoding="utf-8")
    (tmp_path / "m.toml").write_text(
        "program = 'mine'\nsource = 's'\ncsv = 'r.csv'\nmachine = 'm1'\nparameters = { lr = 'lr' }\n"
        "[[metrics]]\nname = 'loss'\nkind = 'other'\ncolumn = 'loss'\n[workload]\nname = 'w'\n",
        encoding="utf-8",
    )
    found = read_any(tmp_path / "m.toml", None, {}, lambda name, _: (name, {}))
    assert [one.value for one in found.measured] == [0.5]
    assert found.left_out == ("2 x loss is 0 or less, but values are compared by ratio: lr=0.1, lr=0.2",)


def test_whole_numbers_beside_empty_cells_as_other_programs_write_them():
    (first, second) = read("ranks,pools,seconds\n4.0,2.0,1\n8.0,,1\n").measured
    assert dict(first.configuration) == {"np": 4, "npool": 2}
    assert type(first.configuration["np"]) is int
    assert dict(second.configuration) == {"np": 8}


def test_several_metrics_a_factor_and_a_row_that_does_not_tell_all_of_them():
    metrics = [
        {"name": "rate", "unit": "B/s", "direction": "maximize", "kind": "rate", "column": "mib", "factor": 1024.0**2},
        {"name": "cpu_s", "unit": "s"},
    ]
    found = read("ranks,pools,mib,cpu_s\n4,1,2,7\n8,1,4,\n", metrics=metrics).measured
    assert [(one.setting.metric.name, one.value) for one in found] == [
        ("rate", 2 * 1024**2),
        ("cpu_s", 7.0),
        ("rate", 4 * 1024**2),
    ]


def test_all_mistakes_of_a_mapping_are_told_at_once_with_their_places():
    broken = {**MAPPING, "metrics": [{"name": "wall_s", "direction": "up"}], "sauce": "a page", "nodes": 0}
    del broken["source"]
    with pytest.raises(ImportFileError) as error:
        check_mapping(broken, "m.toml")
    said = str(error.value)
    assert said.startswith("m.toml: 4 errors")
    assert "required field missing @ source" in said
    assert "unknown key 'sauce': did you mean 'source'?" in said
    assert "@ metrics.0.direction" in said
    assert "got 0 @ nodes" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"machine": None}, "either machine, a name, or machine_column"),
        ({"csv": None}, "either csv, a file beside it, or"),
        ({"workload": {}}, "either a name or columns"),
        ({"parameters": []}, "@ parameters"),
        ({"metrics": [{"name": "wall_s", "unit": "s"}, {"name": "wall_s", "unit": "min"}]}, "has several units"),
        ({"metrics": [{"name": "wall_s", "facotr": 2.0}]}, "did you mean 'factor'?"),
        ({"workload": {"name": "x", "facts": {"sizes": [1, 2]}}}, "@ workload.facts.sizes"),
    ],
)
def test_a_mapping_that_is_wrong(changes, words):
    with pytest.raises(ImportFileError) as error:
        check_mapping({**MAPPING, **changes}, "m.toml")
    assert words in str(error.value)


def test_every_column_that_is_missing_and_every_line_that_is_wrong_is_named():
    with pytest.raises(ImportFileError) as error:
        read("np,seconds\n1,2\n")
    assert "'ranks'; its columns: np, seconds @ parameters.np" in str(error.value)
    assert "'pools'" in str(error.value)
    with pytest.raises(ImportFileError) as error:
        read("ranks,pools,seconds\n1,1,fast\n1,1,0\n1,1,-1\n2,1,3\n1,1,inf\n")
    said = str(error.value)
    assert said.startswith("m.toml: 4 errors")
    assert "line 2: 'fast' is no number @ seconds" in said
    assert "line 3: a time is more than 0" in said
    assert "line 6: 'inf' is no number" in said


@pytest.mark.parametrize("text", ["ranks,pools,seconds\n1,2\n", "ranks,pools,seconds\n", "", "ranks,ranks\n1,2\n"])
def test_a_file_that_is_no_table(text):
    with pytest.raises(ImportFileError):
        read(text)


def test_rows_of_two_installations_are_no_repeats():
    workload = {"name": "CeO2", "fact_columns": {"framework": "by"}}
    found = read("ranks,pools,seconds,by\n4,1,2.0,quick\n4,1,6.0,slow\n", workload=workload).measured
    assert {one.setting.workload_facts["framework"]: one.value for one in found} == {"quick": 2.0, "slow": 6.0}


def test_one_name_for_two_workloads_is_refused():
    workload = {"columns": ["case"], "fact_columns": {"cutoff_ry": "cutoff"}}
    with pytest.raises(ImportFileError, match="has other facts here than in an earlier row"):
        read("ranks,pools,seconds,case,cutoff\n1,1,1,x,50\n1,1,1,x,30\n", workload=workload)


def test_rows_in_the_mapping_itself_and_options_of_the_command_line(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'program = "qe"\nsource = "a page"\nmachine_column = "host"\nparameters = ["np"]\n'
        '[[metrics]]\nname = "wall_s"\nunit = "s"\nkind = "time"\n[workload]\ncolumns = ["case"]\n'
        '[[rows]]\nnp = 2\nwall_s = 3\n[[rows]]\nnp = 4\nwall_s = 2.5\nhost = "b"\n',
        encoding="utf-8",
    )
    given = {"machine": "gadi", "program": "cp", "workload": "water", "source": "me"}
    found = read_any(tmp_path / "mine.toml", None, given, place).measured
    assert [one.value for one in found] == [3.0, 2.5]
    setting = found[0].setting
    assert (setting.program, setting.machine, setting.workload, setting.source) == ("cp", "GADI", "water", "me")
    with pytest.raises(ImportFileError, match="row 0: it is empty, and a name is needed"):
        read_any(tmp_path / "mine.toml", None, {"workload": "water"}, place)


def test_a_csv_file_without_a_mapping_says_what_to_do(tmp_path):
    (tmp_path / "runs.csv").write_text("ranks,seconds\n1,2\n", encoding="utf-8")
    with pytest.raises(ImportFileError, match=r"--mapping FILE.*ranks,seconds"):
        read_any(tmp_path / "runs.csv", None, {}, place)


CELLS = st.one_of(st.none(), st.integers(1, 64))
ROWS = st.lists(st.tuples(CELLS, CELLS, st.floats(0.01, 100.0)), min_size=1, max_size=20)


@given(ROWS)
def test_whatever_is_written_is_read_back_and_grouped(rows):
    text = as_csv([dict(zip(("ranks", "pools", "seconds"), row, strict=True)) for row in rows])
    found = {tuple(sorted(one.configuration.items())): one for one in read(text).measured}
    expected = {}
    for ranks, pools, seconds in rows:
        key = tuple((name, value) for name, value in (("np", ranks), ("npool", pools)) if value is not None)
        expected.setdefault(key, []).append(seconds)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key].value == pytest.approx(median(values))
        assert found[key].runs == len(values)


@given(ROWS)
def test_rows_of_a_mapping_and_lines_of_a_file_say_the_same(rows):
    names = ("ranks", "pools", "seconds")
    tables = [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows]
    # A column that no row has would not be there at all.
    tables[0] |= {name: 1 for name in names if not any(name in row for row in tables)}
    written = io.StringIO()
    writer = csv.DictWriter(written, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(tables)
    mapping = check_mapping(MAPPING, "m.toml")
    assert read_table(row_table(tables), mapping, place, "m.toml").measured == read(written.getvalue()).measured


@given(st.text(max_size=50), st.text('0123456789.,-+einfa\n"', max_size=300))
def test_whatever_a_file_holds_is_read_or_refused_in_words(header, text):
    for whole in (header + text, "ranks,pools,seconds\n" + text):
        with suppress(ImportFileError):
            assert all(one.value is None or one.value > 0 for one in read(whole).measured)
