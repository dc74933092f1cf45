"""Files of reference figures, and every mistake at once."""

import pytest

from autotune import studyfile
from autotune.errors import StudyFileError
from autotune.studyfile.references import load_references, reference_files


@pytest.fixture
def loaded(tmp_path):
    def load(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return load_references(str(path))

    return load


def test_figures_are_by_study_and_metric(loaded):
    found = loaded("description = 'the old machine'\n[references]\ngz.elapsed_s = 0.25\nhpl.gflops = 90\n")
    assert found.references == {"gz": {"elapsed_s": 0.25}, "hpl": {"gflops": 90.0}}


def test_all_mistakes_are_said_at_once_each_with_its_place(loaded):
    with pytest.raises(StudyFileError) as caught:
        loaded("[references]\na.elapsed_s = 0\nb.elapsed_s = inf\nc = 7\n[refs]\n")
    places = {problem.path for problem in caught.value.problems}
    assert {"description", "refs", "references.a.elapsed_s", "references.b.elapsed_s", "references.c"} <= places


def test_a_name_that_does_not_ship_is_said_with_those_that_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyFileError, match=r"no reference is called 'sumit'.*did you mean 'summit'"):
        load_references("sumit")


@pytest.mark.parametrize("name", reference_files())
def test_references_that_ship_are_of_metrics_of_studies_that_ship(name):
    for study, figures in load_references(name).references.items():
        known = studyfile.load(studyfile.find(study)).options["metrics"]
        assert figures.keys() <= {metric["name"] for metric in known}
