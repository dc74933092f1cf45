"""The study file of a stored study, read leniently."""

from dataclasses import replace

from autotune.studyfile.stored import study_of
from tests.support.fakes import definition, small_space, study_file

DEFINITION = definition(small_space())


def test_a_stored_study_file_is_read_as_it_was():
    study = study_file(verdict={"pairs": 12}, decisions={"over": ["np"]}, runs={"keep_days": 30.0})
    assert study_of(replace(DEFINITION, study=study.model_dump(mode="json"))) == study


def test_what_is_not_stored_is_as_by_default():
    study = study_of(replace(DEFINITION, study={"verdict": {"pairs": 12}}))
    assert (study.verdict.pairs, study.budget.most, study.name) == (12, 50, "")


def test_a_section_that_cannot_be_read_here_has_its_default_and_is_named_once(caplog):
    stored = replace(DEFINITION, study={"launcher": {"kind": "abacus"}, "verdict": {"pairs": 12}, "gone": 1})
    for _ in range(2):
        study = study_of(stored)
        assert (study.launcher.kind, study.verdict.pairs) == (None, 12)
    (warning,) = caplog.messages
    assert "cannot read 'launcher' as stored, so its default is used" in warning
