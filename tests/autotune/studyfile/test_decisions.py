from math import inf

import pytest

from autotune.errors import StudyFileError
from autotune.studyfile import load, parse
from autotune.studyfile.space import join_space
from autotune.studyfile.weights import row_problem
from objectives.registry import plan

TABLE = {
    "name": "t",
    "objective": "external",
    "options": {"metrics": [{"name": "time_s", "unit": "s"}]},
    "space": {
        "parameters": {
            "size": {"type": "integer", "values": [1, 2, 4], "default": 1},
            "way": {"type": "choice", "values": ["a", "b"], "default": "a"},
        }
    },
}


def problems(tmp_path, **sections):
    study = parse({**TABLE, **sections}, source="t")
    planned = plan("external", study.options, machine={}, run_job=None, folder=tmp_path)
    with pytest.raises(StudyFileError) as caught:
        join_space(study, planned, {})
    return {(problem.path, problem.message) for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("over", "said"),
    [
        (["sise"], "did you mean 'size'"),
        (["size", "size"], "does 2 times"),
        (["size", "way"], "nothing is left to decide"),
    ],
)
def test_mistakes_are_told_with_their_path(tmp_path, over, said):
    ((path, message),) = problems(tmp_path, decisions={"over": over})
    assert path == "decisions.over"
    assert said in message


def test_what_has_no_place_beside_a_table_is_refused_all_at_once(tmp_path):
    found = problems(
        tmp_path,
        decisions={"over": ["size"]},
        limits={"time_s": {"max": 3}},
        budget={"trials": "auto"},
    )
    assert {"limits", "budget.trials"} <= {path for path, _ in found}


def test_a_section_needs_a_context():
    with pytest.raises(StudyFileError, match=r"decisions\.over"):
        parse({**TABLE, "decisions": {"over": []}}, source="t")


def test_weights_may_be_those_of_a_flag():
    rows = [{"gpu": True, "count": 3}, {"gpu": False, "count": 1.5}]
    assert parse({**TABLE, "decisions": {"over": ["gpu"], "weights": rows}}, source="t").decisions.rows == rows
    assert "a number from 0 up" in str(row_problem([{"gpu": True, "count": True}], ["gpu"]))


def test_weights_are_read_from_a_file_beside_the_study_and_kept_with_it(tmp_path):
    (tmp_path / "t.toml").write_text(
        'objective = "external"\n[options]\nmetrics = [{ name = "time_s", unit = "s" }]\n'
        '[space.parameters]\nop = { type = "choice", values = ["sum", "copy"], default = "sum" }\n'
        'way = { type = "choice", values = ["a", "b"], default = "a" }\n'
        '[decisions]\nover = ["op"]\npoints = "bytes"\nweights = "uses.csv"\n'
    )
    uses = tmp_path / "uses.csv"
    uses.write_text("op,bytes,count\nsum,8,3\ncopy,64,1\nsum,8,2\n")
    rows = load(tmp_path / "t.toml").decisions.rows
    assert rows == [{"op": "sum", "bytes": 8, "count": 5}, {"op": "copy", "bytes": 64, "count": 1}]
    for text, said in {
        "op,bytes\nsum,8\n": "needs a column 'count'",
        "op,count\nsum,8\n": "row 1 must have exactly the keys op, bytes, count",
        "op,bytes,count\nsum,8,many\n": "line 2: count must be a number",
        "op,bytes,count\nsum,8,0\n": "give at least one cell a larger count",
        "op,bytes,count\nsum,8,-1\n": "a number from 0 up",
        "op,bytes,count\nsum,8,inf\n": "line 2: count must be a number",
    }.items():
        uses.write_text(text)
        with pytest.raises(StudyFileError) as caught:
            load(tmp_path / "t.toml")
        assert said in str(caught.value), text
        assert caught.value.problems[0].path.startswith("decisions.weights")
    assert "a number from 0 up" in str(row_problem([{"op": "sum", "bytes": 8, "count": inf}], ["op", "bytes"]))
    uses.unlink()
    with pytest.raises(StudyFileError, match="cannot read"):
        load(tmp_path / "t.toml")
