"""Suite files: the studies that they name, and every mistake at once."""

import pytest

from autotune import studyfile
from autotune.errors import StudyFileError
from autotune.studyfile.suite import load_suite, suites


@pytest.fixture
def loaded(tmp_path):
    def load(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return load_suite(str(path))

    return load


def test_a_member_is_a_name_or_a_table(loaded):
    suite = loaded("[suite]\nmembers = ['stream', { study = 'fftw', weight = 2, reference = 1.5 }]\n")
    assert suite.name == "mine"
    assert [(one.study, one.weight, one.reference) for one in suite.members] == [("stream", 1, None), ("fftw", 2, 1.5)]


def test_the_path_of_a_member_leads_from_the_suite_file(loaded, tmp_path):
    suite = loaded("[suite]\nmembers = ['./a.toml', 'b.toml', 'deep/c.toml', '/abs/d.toml', 'stream']\n")
    assert [one.study for one in suite.members] == [
        *(str(tmp_path / name) for name in ("a.toml", "b.toml", "deep/c.toml")),
        "/abs/d.toml",
        "stream",
    ]


def test_all_mistakes_are_said_at_once_each_with_its_place(loaded):
    text = """
    nmae = "x"
    [suite]
    members = ["stream", { study = "fftw", wieght = 2 }, { weight = 0 }, { study = "hpl", reference = -1.0 }, 7]
    """
    with pytest.raises(StudyFileError) as caught:
        loaded(text)
    places = {problem.path for problem in caught.value.problems}
    assert places >= {
        "nmae",
        "suite.members.1.wieght",
        "suite.members.2.study",
        "suite.members.2.weight",
        "suite.members.3.reference",
    }
    assert any(place.startswith("suite.members.4") for place in places)
    assert "did you mean 'weight'?" in str(caught.value)


@pytest.mark.parametrize("text", ["", "[suite]\n", "[suite]\nmembers = []\n", "[suite]\nmembers = 'stream'\n"])
def test_a_suite_has_studies(loaded, text):
    with pytest.raises(StudyFileError, match="@ suite"):
        loaded(text)


def test_a_weight_is_a_finite_number(loaded):
    with pytest.raises(StudyFileError, match=r"suite\.members\.0\.weight"):
        loaded("[suite]\nmembers = [{ study = 'stream', weight = inf }]\n")


def test_a_suite_that_is_not_there_is_said_with_those_that_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = next(iter(suites()))
    with pytest.raises(StudyFileError, match=f"no suite is called '{known}x'.*did you mean '{known}'"):
        load_suite(f"{known}x")
    with pytest.raises(StudyFileError, match=r"no suite file at \./nothing\.toml"):
        load_suite("./nothing.toml")


@pytest.mark.parametrize("name", suites())
def test_a_suite_that_ships_says_what_it_is_and_has_studies_that_ship(name):
    suite = load_suite(name)
    assert suite.name == name
    assert suite.description
    assert {member.study for member in suite.members} <= studyfile.catalogue().keys()
