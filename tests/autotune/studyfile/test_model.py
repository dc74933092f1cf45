from pathlib import Path

import pytest

from autotune import studyfile
from autotune.errors import StudyFileError


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_name_is_that_of_the_file_unless_said(tmp_path):
    assert studyfile.load(write(tmp_path, "objective = 'command'")).name == "mine"
    assert studyfile.load(write(tmp_path, "objective = 'command'\nname = 'other'")).name == "other"


def test_all_errors_at_once_each_with_its_path(tmp_path):
    path = write(
        tmp_path,
        """
        objectiv = "qe"
        [budget]
        trials = 0
        worker = 2
        [verdict]
        pairs = "five"
        """,
    )
    with pytest.raises(StudyFileError) as caught:
        studyfile.load(path)
    text = str(caught.value)
    assert "5 errors" in text
    assert "required field missing @ objective" in text
    assert "unknown key 'objectiv': did you mean 'objective'?" in text
    assert "got 0 @ budget.trials" in text
    assert "unknown key 'worker' in [budget]: did you mean 'workers'?" in text
    assert "must be a whole number, got 'five' @ verdict.pairs" in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('verdict.precision = "0.05"', "must be a number, got '0.05': leave out the quotes @ verdict.precision"),
        ('verdict.precision = "5 %"', "must be a number, got '5 %' @ verdict.precision"),
        ("verdict.of_gain = -1", "must be at least 0, got -1 @ verdict.of_gain"),
        ('verdict.mode = "both"', "must be 'interleaved', 'duet' or 'auto', got 'both' @ verdict.mode"),
        ("budget = 3", "must be a table, got 3 @ budget"),
    ],
)
def test_a_wrong_value_is_reported_in_plain_words(tmp_path, line, message):
    with pytest.raises(StudyFileError) as caught:
        studyfile.load(write(tmp_path, f'objective = "command"\n{line}\n'))
    assert str(caught.value).splitlines()[1] == f"  {message}"


def test_overrides_have_dotted_keys_and_toml_values(tmp_path):
    path = write(tmp_path, "objective = 'command'")
    study = studyfile.load(
        path, ["budget.trials=7", "options.input=a b.in", "options.deep.flag=true", "sampler.name=random"]
    )
    assert study.budget.trials == 7
    assert study.options == {"input": "a b.in", "deep": {"flag": True}}
    assert study.sampler.name == "random"


@pytest.mark.parametrize("override", ["budget.trials", "=3", "budget..trials=3", "objective.x=1"])
def test_an_override_that_is_none_is_refused(tmp_path, override):
    with pytest.raises(StudyFileError, match="--set"):
        studyfile.load(write(tmp_path, "objective = 'command'"), [override])


def test_a_misspelt_override_is_found(tmp_path):
    with pytest.raises(StudyFileError, match="did you mean 'trials'"):
        studyfile.load(write(tmp_path, "objective = 'command'"), ["budget.trails=3"])


def test_a_file_that_is_not_toml_says_where(tmp_path):
    with pytest.raises(StudyFileError, match=r"not a TOML file.*line 2"):
        studyfile.load(write(tmp_path, "objective = 'qe'\n[budget\n"))


def test_a_misspelt_name_gets_a_suggestion():
    with pytest.raises(StudyFileError, match="did you mean 'qe'"):
        studyfile.find("qee")


def test_a_path_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(StudyFileError, match="no study file at"):
        studyfile.find(str(tmp_path / "none.toml"))


def test_the_number_of_trials_may_be_left_to_the_study(tmp_path):
    path = write(tmp_path, "objective = 'command'")
    budget = studyfile.load(path, ["budget.trials=auto", "budget.max_trials=70"]).budget
    assert (budget.auto, budget.most) == (True, 70)
    budget = studyfile.load(path, ["budget.trials=30", "budget.max_trials=70"]).budget
    assert (budget.auto, budget.most) == (False, 30)


@pytest.mark.parametrize("wrong", ["0", "-3", "2.5", "true", "automatic", "'20'"])
def test_a_number_of_trials_that_is_none_is_refused(tmp_path, wrong):
    with pytest.raises(StudyFileError, match=r"must be a whole number from 1 up, or 'auto', got .* @ budget.trials"):
        studyfile.load(write(tmp_path, "objective = 'command'"), [f"budget.trials={wrong}"])
