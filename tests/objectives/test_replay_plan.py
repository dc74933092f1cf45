import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from autotune.execution.task import check_target
from launchers import EndReason, JobState, JobStatus, Usage
from objectives.base import ApplicationError, InvalidResult, Measurement, Output, PlanError
from objectives.replay import plan as replay_plan
from objectives.replay.domains import parameter_of, usable_names
from objectives.replay.plan import plan
from spaces import Choice, Flag, Float, Integer, Space

TABLE = "n,word,wall_s,stopped\n2,a,4,\n2,a,6,\n1,b,,\n4,a,1,\n8,b,,3\n"
OPTIONS = {"metric": "wall_s", "parameters": ["n", "word"], "bound": "stopped"}


def planned(folder, text=TABLE, machine=None, **options):
    (folder / "table.csv").write_text(text)
    given = {"table": str(folder / "table.csv"), **OPTIONS, **options}
    return plan(given, machine=machine or {}, run_job=lambda job: None, folder=folder)


def space_of(made):
    return Space(made.parameters, made.constraints, made.facts)


def measured(made, run):
    status = JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(run.elapsed_s))
    return made.objective.measure(Output("\n".join(line for _, line in run.lines), "", status, None)).metrics


def test_the_space_is_exactly_what_was_recorded(tmp_path):
    made = planned(tmp_path)
    rows = [tuple(one.values()) for one in space_of(made).configurations()]
    assert sorted(rows) == [(1, "b"), (2, "a"), (4, "a"), (8, "b")]
    assert made.space_size == 8
    assert any("4 of 8 combinations" in note for note in made.notes)


def test_a_table_of_the_whole_product_needs_no_constraint(tmp_path):
    text = "n,word,wall_s,stopped\n" + "".join(f"{n},{word},1,\n" for n in (1, 2) for word in "ab")
    assert planned(tmp_path, text).constraints == ()


def test_the_default_is_the_first_with_a_value_or_what_is_asked_for(tmp_path):
    made = planned(tmp_path)
    assert space_of(made).default() == {"n": 2, "word": "a"}
    assert any("the first of the table" in note for note in made.notes)
    assert space_of(planned(tmp_path, default={"n": 4, "word": "a"})).default() == {"n": 4, "word": "a"}
    with pytest.raises(PlanError, match=r"was not recorded @ options\.default"):
        planned(tmp_path, default={"n": 3, "word": "a"})
    with pytest.raises(PlanError, match="no parameter 'm'"):
        planned(tmp_path, default={"m": 3})


def test_each_recorded_run_is_as_likely_as_the_others(tmp_path):
    made = planned(tmp_path)
    rng = np.random.default_rng(0)
    drawn = Counter(measured(made, made.recorded({"n": 2, "word": "a"}, rng))["wall_s"] for _ in range(400))
    assert drawn.keys() == {4.0, 6.0}
    assert 150 < drawn[4.0] < 250


def test_what_was_not_recorded_fails_with_a_word(tmp_path):
    made = planned(tmp_path)
    run = made.recorded({"n": 1, "word": "a"}, np.random.default_rng(0))
    with pytest.raises(ApplicationError, match="not recorded") as caught:
        measured(made, run)
    assert caught.value.code == "not-recorded"


def test_a_bound_is_never_told_as_more_than_is_known(tmp_path):
    rng = np.random.default_rng(0)
    only = planned(tmp_path).recorded({"n": 8, "word": "b"}, rng)
    assert (only.bound, only.lines) == (3.0, ())
    mixed = planned(tmp_path, "n,word,wall_s,stopped\n1,a,2,\n1,a,5,\n1,a,,3\n")
    drawn = [measured(mixed, mixed.recorded({"n": 1, "word": "a"}, rng))["wall_s"] for _ in range(300)]
    # The stopped run was not better than 3, so it is replaced by the 5, which is drawn twice as often as the 2.
    assert Counter(drawn)[5.0] > 1.5 * Counter(drawn)[2.0]
    better = planned(tmp_path, "n,word,wall_s,stopped\n1,a,2,\n1,a,,3\n")
    values = {measured(better, better.recorded({"n": 1, "word": "a"}, rng))["wall_s"] for _ in range(50)}
    assert values == {2.0, 3.0}


def test_every_run_pays_for_its_compilation(tmp_path):
    made = planned(tmp_path, "n,word,wall_s,stopped,build\n1,a,2,,10\n", setup="build")
    assert made.recorded({"n": 1, "word": "a"}, np.random.default_rng(0)).elapsed_s == 12.0


def test_names_that_rules_cannot_use(tmp_path):
    names = ["block-size", "min", "2d", "cores", "class", "block_size"]
    found = usable_names(names, {"cores"})
    assert found["block_size"] == "block_size"
    assert len(set(found.values())) == len(names)
    assert all(name.isidentifier() for name in found.values())
    assert not {"min", "cores", "class"} & set(found.values())
    made = planned(
        tmp_path, "block-size,cores,wall_s\n1,2,3\n2,2,4\n", {"cores": 2}, parameters=names[:1] + names[3:4], bound=None
    )
    assert [parameter.name for parameter in made.parameters] == ["block_size", "cores_"]
    assert any("'block-size' is called block_size" in note for note in made.notes)
    assert measured(made, made.recorded({"block_size": 2, "cores_": 2}, np.random.default_rng(0))) == {"wall_s": 4.0}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([4, 1, 2], Integer),
        ([1.0, 2.0], Integer),
        ([0.1, 0.25, 0.5], Float),
        ([1e-4, 1e-3, 1e-2, 1e-1], Float),
        ([0.1, 3.14159265, 1e9], Float),
        ([0.5], Float),
        ([0.5, float("inf")], Choice),
        (["a", "b"], Choice),
        ([True, False], Flag),
        ([1, "auto"], Choice),
    ],
)
def test_a_column_becomes_a_parameter_that_has_its_values(values, kind):
    made = parameter_of("x", "x", [*values, None], values[0])
    assert isinstance(made, kind)
    assert made.optional
    held = {str(value) for value in made.values} | set(made.values)
    assert all(value in held or str(value) in held for value in values)


def test_numbers_of_a_random_search_keep_their_order_and_distances():
    made = parameter_of("x", "x", [3.1e-2, 1e-4, 9.7e-4], 1e-4)
    assert made.values == (1e-4, 9.7e-4, 3.1e-2)
    assert made.log


def test_a_table_of_floats_is_replayed_as_it_was(tmp_path):
    made = planned(tmp_path, "x,wall_s\n0.1,1\n0.3,2\n0.25,3\n", parameters=["x"], bound=None)
    found = list(space_of(made).configurations())
    assert [one["x"] for one in found] == pytest.approx([0.1, 0.25, 0.3])
    rng = np.random.default_rng(0)
    assert [measured(made, made.recorded(one, rng))["wall_s"] for one in found] == [1.0, 3.0, 2.0]


T1 = {
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "n", "Type": "int", "Values": "[1, 2, 4, 8]", "Default": 4},
            {"Name": "word", "Type": "string", "Values": '["a", "b"]', "Default": "a"},
        ],
        "Conditions": [{"Expression": "n < 8 or word == 'b'", "Parameters": ["n", "word"]}],
    }
}


def test_a_space_of_t1_says_how_much_of_it_was_recorded(tmp_path):
    (tmp_path / "space.json").write_text(json.dumps(T1))
    made = planned(tmp_path, space=str(tmp_path / "space.json"))
    space = space_of(made)
    assert (space.size.value, made.space_size) == (7, 7)
    assert space.default() == {"n": 4, "word": "a"}
    assert any("recorded: 4 of the 7 valid configurations" in note for note in made.notes)
    left = planned(tmp_path, space=str(tmp_path / "space.json"), unrecorded="leave-out")
    assert (space_of(left).size.value, left.space_size) == (4, 7)


def test_a_space_of_ours_and_one_of_something_else(tmp_path):
    own = Space([Integer("n", (1, 2, 4, 8), default=2), Choice("word", ("a", "b"), default="a")])
    (tmp_path / "own.json").write_text(json.dumps(own.to_dict()))
    made = planned(tmp_path, space=str(tmp_path / "own.json"))
    assert space_of(made) == own
    (tmp_path / "other.json").write_text(json.dumps(Space([Integer("m", (1,), default=1)]).to_dict()))
    with pytest.raises(PlanError, match=r"do not have the same parameters: m, n, word @ options\.space"):
        planned(tmp_path, space=str(tmp_path / "other.json"))


def test_mistakes_of_the_options(tmp_path):
    with pytest.raises(PlanError) as caught:
        planned(tmp_path, metrc="x", unrecorded="ignore")
    assert "did you mean 'metric'?" in str(caught.value)
    assert "@ options.unrecorded" in str(caught.value)
    with pytest.raises(PlanError, match=r"shipped tables: ucx-tcp @ options\.table"):
        planned(tmp_path, table="nowhere.csv")
    (tmp_path / "x.db").write_bytes(b"SQLite format 3\0more")
    with pytest.raises(PlanError, match="say which of its studies"):
        planned(tmp_path, table=str(tmp_path / "x.db"))


def test_another_table_is_another_identity(tmp_path):
    one = planned(tmp_path)
    assert planned(tmp_path, default={"n": 4, "word": "a"}).identity == one.identity
    assert planned(tmp_path, TABLE.replace("6", "7")).identity != one.identity
    assert planned(tmp_path, repeats=False).identity != one.identity


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_of_a_table_that_is_too_large_only_the_beginning_is_read(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(replay_plan, "_MOST_BYTES", 1000)
    path = tmp_path / f"table.csv{suffix}"
    content = b"np,t\n" + b"1,2\n" * 100_000
    path.write_bytes(gzip.compress(content) if suffix else content)
    if not suffix:
        monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail(f"{self} is read whole"))
    with pytest.raises(PlanError, match="which a table may have at most"):
        replay_plan._text(str(path), "table")


def test_values_that_a_study_would_refuse_are_failures_with_its_sentence(tmp_path):
    made = planned(tmp_path, "n,word,wall_s,stopped\n1,a,-1,\n2,a,0,\n4,a,3,\n8,a,,-2\n")
    table = made.objective.table
    assert table.best == 3.0
    kinds = [run.failure and run.failure.value for recording in table.recordings.values() for run in recording.runs]
    assert kinds == ["invalid result", "invalid result", None, "invalid result"]
    sentence = "wall_s is -1 s: what is optimised is compared by ratio, and must be positive and finite"
    assert f"3 recorded runs count as failed: {sentence}" in made.notes
    with pytest.raises(InvalidResult, match="is 0 s: what is optimised is compared by ratio"):
        check_target(Measurement({"wall_s": 0.0}), table.metric)


def test_a_column_of_too_many_words_is_refused(tmp_path):
    rows = "".join(f"{number % 9},w{number},1,\n" for number in range(6_000))
    with pytest.raises(PlanError, match=r"column 'word' has 6000 words.*at most 5000"):
        planned(tmp_path, f"n,word,wall_s,stopped\n{rows}")


def test_a_space_that_is_nested_too_deeply_is_refused_in_words(tmp_path):
    values = {"Name": "n", "Values": "-" * 200_000 + "1"}
    (tmp_path / "t1.json").write_text(json.dumps({"ConfigurationSpace": {"TuningParameters": [values]}}))
    with pytest.raises(PlanError, match="a parameter has `Name` and a list as `Values`") as caught:
        planned(tmp_path, space=str(tmp_path / "t1.json"))
    assert len(str(caught.value)) < 300
