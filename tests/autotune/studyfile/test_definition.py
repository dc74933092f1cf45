"""The definition of a study: whether two sessions belong to one study, and its study file, read leniently."""

from dataclasses import replace

import pytest

from spaces import Constraint, Integer, Space
from tests.support.fakes import definition, small_space, study_file

DEFINITION = definition(small_space())
FACTS = {"cores": 4, "memory_bytes": 2**33}


def of(facts, *rules):
    return definition(Space([Integer.range("x", 1, 3, default=1)], [Constraint(rule, rule) for rule in rules], facts))


def test_a_fact_that_a_later_version_adds_keeps_a_study_going():
    earlier, later = of(FACTS, "x <= cores"), of({**FACTS, "threads_per_core": 2}, "x <= cores")
    assert earlier.differences(later) == later.differences(earlier) == []


def test_a_fact_that_changed_and_a_rule_that_names_a_new_one_make_another_space():
    stored = of(FACTS, "x <= cores")
    new = {**FACTS, "threads_per_core": 2}
    for other in (of({**FACTS, "cores": 2}, "x <= cores"), of(new, "x <= threads_per_core")):
        assert stored.differences(other) == ["the space: its parameters, values or constraints have changed"]


@pytest.mark.parametrize(
    ("there", "here", "same"),
    [("15", "16", True), ("503", "510", True), ("4", "5", False), ("16", "32", False), ("503", "515", False)],
)
def test_a_little_more_memory_is_no_other_machine(there, here, same):
    stored, other = (
        definition(
            Space([Integer("x", (1, 2), default=1)], facts={"memory_bytes": int(gib) * 2**30}),
            machine_identity={"memory_gib": gib},
        )
        for gib in (there, here)
    )
    said = [] if same else [f"machine memory_gib: {there} there, {here} here"]
    assert stored.differences(other) == said
    assert bool(other.differences(stored)) != same


def test_a_stored_study_file_is_read_as_it_was():
    study = study_file(verdict={"pairs": 12}, decisions={"over": ["np"]}, runs={"keep_days": 30.0})
    assert replace(DEFINITION, study=study.model_dump(mode="json")).study_file == study


def test_what_is_not_stored_is_as_by_default():
    study = replace(DEFINITION, study={"verdict": {"pairs": 12}}).study_file
    assert (study.verdict.pairs, study.budget.most, study.name) == (12, 50, "")


def test_a_section_that_cannot_be_read_here_has_its_default_and_is_named_once(caplog):
    stored = replace(DEFINITION, study={"launcher": {"kind": "abacus"}, "verdict": {"pairs": 12}, "gone": 1})
    for _ in range(2):
        study = stored.study_file
        assert (study.launcher.kind, study.verdict.pairs) == (None, 12)
    (warning,) = caplog.messages
    assert "cannot read 'launcher' as stored, so its default is used" in warning
