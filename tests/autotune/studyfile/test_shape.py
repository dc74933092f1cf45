import pytest

from autotune.errors import StudyFileError
from autotune.machines.description import sections
from autotune.machines.facts import fact_name
from autotune.studyfile import StudyFile
from autotune.studyfile.space import join_space
from objectives import command
from objectives.shapes.shape import HARDWARE
from spaces.expressions.quantities import column_of

MACHINE = {"cores": 8, "nodes": 1, "cores_per_node": 8, "sockets": 1, "memory_bytes": 2**34}
PARAMETERS = {
    "np": {"type": "integer", "values": [1, 2, 4, 8], "default": 1},
    "tile": {"type": "integer", "values": [8, 64], "optional": True},
    "kind": {"type": "choice", "values": ["a", "b"], "default": "a"},
}
TOOK = {"name": "took_s", "unit": "s", "pattern": r"(\S+)"}


def planned(tmp_path, model=None, metric=TOOK, derived=None, **options):
    table = {
        "name": "solver",
        "objective": "command",
        "options": {"argv": ["awk", "{np}", "{tile}", "{kind}"], "metrics": [metric], **options},
        "space": {"parameters": PARAMETERS, "derived": derived or {}},
    }
    study = StudyFile.model_validate(table | ({} if model is None else {"model": model}))
    plan = command.plan(study.options, machine=MACHINE, run_job=lambda job: None, folder=tmp_path)
    return join_space(study, plan, MACHINE)[0]


def terms_of(plan, **columns):
    return plan.shape.term_values({name: column_of(values) for name, values in columns.items()})


def test_a_command_with_ranks_scales(tmp_path):
    plan = planned(tmp_path, ranks="np")
    assert terms_of(plan, np=[1, 4])["computing"].tolist() == [1.0, 0.25]


def test_what_is_neither_a_time_nor_a_rate_has_no_shape(tmp_path):
    loss = {"name": "loss", "pattern": r"(\S+)"}
    assert planned(tmp_path, metric=loss, ranks="np").shape is None
    rate = {"name": "speed", "unit": "steps/s", "direction": "maximize", "pattern": r"(\S+)"}
    assert planned(tmp_path, metric=rate, ranks="np").shape is not None


def test_without_ranks_and_threads_nothing_is_known(tmp_path):
    assert planned(tmp_path).shape is None
    assert planned(tmp_path, ranks=4, threads=2).shape is None


def test_the_terms_of_a_study_file_come_before_those_of_the_command(tmp_path):
    plan = planned(tmp_path, {"terms": ["work / np", "log2(np)", 3]}, derived={"work": "1e9 * cores"}, ranks="np")
    terms = terms_of(plan, np=[1, 8], cores=[8, 8])
    assert set(terms) == {"work / np", "log2(np)", "3"}
    assert terms["work / np"][0] == pytest.approx(8 * terms["work / np"][1])


def test_terms_of_any_unit_are_equal_parts_of_a_typical_time(tmp_path):
    terms = terms_of(planned(tmp_path, {"terms": ["1e9 / np", "1e-9 * np", 7]}), np=[1, 2, 4, 8])
    sizes = [(column[1] * column[2]) ** 0.5 for column in terms.values()]
    assert sizes == pytest.approx([1 / 3] * 3)


def test_terms_in_seconds_stay_as_they_are(tmp_path):
    plan = planned(tmp_path, {"terms": ["40 / np", "1e-3 * np"], "seconds": True})
    assert {name: column.tolist() for name, column in terms_of(plan, np=[4]).items()} == {
        "40 / np": [10.0],
        "1e-3 * np": [0.004],
    }
    assert plan.shape.level < 1.0


def test_terms_may_name_facts_that_only_a_description_knows(tmp_path):
    plan = planned(tmp_path, {"terms": ["work / gpu_flops_fp16", "1 / np"], "seconds": True}, derived={"work": "1e12"})
    assert terms_of(plan, np=[1], gpu_flops_fp16=[1e14])["work / gpu_flops_fp16"].tolist() == [0.01]
    assert plan.facts["work"] == 1e12, "what a term reads and no parameter changes is a size of the problem"
    with pytest.raises(StudyFileError, match=r"gpu_flops_fp16.*options\.ranks"):
        planned(tmp_path, ranks="gpu_flops_fp16")


def test_facts_that_terms_may_name_are_facts_of_descriptions():
    described = {fact_name(f"{name}.{key}") for name, section in sections().items() for key in section.model_fields}
    assert described >= HARDWARE


def test_all_errors_of_the_terms_at_once_each_with_its_path(tmp_path):
    wrong = ["2 - np", "1 / (np - 1)", "kind", "64 / tile", "np"]
    with pytest.raises(StudyFileError) as caught:
        planned(tmp_path, {"terms": wrong})
    problems = {problem.path: problem.message for problem in caught.value.problems}
    assert set(problems) == {f"model.terms.{index}" for index in range(4)}
    assert "as low as -6: write max(0, ...)" in problems["model.terms.0"]
    assert "divide by zero" in problems["model.terms.1"]
    assert "is a word" in problems["model.terms.2"]
    assert "is_set(tile)" in problems["model.terms.3"]


def test_a_term_needs_a_value_where_a_parameter_with_a_default_is_unset(tmp_path, monkeypatch):
    monkeypatch.setitem(PARAMETERS, "tile", {**PARAMETERS["tile"], "default": 8})
    with pytest.raises(StudyFileError, match=r"configurations that leave tile unset: write .* is_set\(tile\)"):
        planned(tmp_path, {"terms": ["1000 / np", "tile / np"]})
    assert planned(tmp_path, {"terms": ["1000 / np", "tile if is_set(tile) else 0"]}).shape is not None


def test_a_name_that_is_not_there_is_told_with_the_other_errors_of_the_file(tmp_path):
    with pytest.raises(StudyFileError) as caught:
        planned(tmp_path, {"terms": ["ranks / 2", "np +"]}, ranks="npp")
    problems = {problem.path: problem.message for problem in caught.value.problems}
    assert set(problems) == {"options.ranks", "model.terms.0", "model.terms.1"}
    assert "'ranks'" in problems["model.terms.0"]


def test_the_sum_is_the_inverse_of_what_is_maximised(tmp_path):
    rate = {"name": "speed", "unit": "steps/s", "direction": "maximize", "pattern": r"(\S+)"}
    assert planned(tmp_path, metric=rate, ranks="np").shape.inverse
    assert planned(tmp_path, {"terms": ["np"]}, metric=rate).shape.inverse
    assert not planned(tmp_path, ranks="np").shape.inverse


def test_a_size_of_which_each_run_is_told_tells_studies_apart_and_bounds_of_the_space_do_not(tmp_path):
    argv = ["awk", "{side}", "{np}", "{= np * half}"]

    def identity(side, derived):
        made = planned(tmp_path, derived={"side": side, "half": "side // 2", **derived}, argv=argv)
        assert made.facts["side"] == 2 * made.facts["half"] + made.facts["side"] % 2
        return made.identity

    large = identity("8 * cores", {"most": "2 * cores", "share": "cores // np"})
    assert large["space.derived.side"] == "64"
    assert large["space.derived.half"] == "32"
    assert not {"space.derived.most", "space.derived.share"} & large.keys()
    assert identity("64", {}) == large
    assert identity("65", {})["space.derived.side"] == "65"


def test_a_size_may_be_told_by_way_of_what_is_computed_from_it(tmp_path):
    derived = {"rows": "1000 * cores", "chunk": "rows // np", "most": "2 * cores"}
    made = planned(tmp_path, derived=derived, argv=["awk", "{chunk}"])
    assert made.facts == {"rows": 8000}
    assert made.identity["space.derived.rows"] == "8000"


def test_a_term_may_divide_by_a_root_of_what_is_never_zero(tmp_path):
    terms = ["cells / np", "cells ** (2 / 3) / np ** (2 / 3) if np > 1 else 0", "log2(np)", "1"]
    plan = planned(tmp_path, {"terms": terms, "seconds": True}, derived={"cells": "1000"})
    assert terms_of(plan, np=[1, 8])[terms[1]].tolist() == pytest.approx([0.0, 25.0])
