import pytest

from autotune.errors import StudyFileError
from autotune.studyfile import parse
from autotune.studyfile.space import joined
from objectives.base import Context
from objectives.registry import plan

FIDELITY = {"parameter": "steps", "low": 10, "high": 100}
STUDY = {
    "name": "t",
    "objective": "command",
    "options": {"argv": ["true", "{steps}", "{= 2 * steps}", "{np}"]},
    "fidelity": FIDELITY,
    "space": {"parameters": {"np": {"type": "integer", "low": 1, "high": 4, "default": 1}}},
}


def ready(tmp_path, **sections):
    study = parse({**STUDY, **sections}, source="t")
    planned = plan("command", study.options, machine={}, run_job=None, folder=tmp_path)
    return joined(study, planned, {})


def problems(tmp_path, **sections):
    with pytest.raises(StudyFileError) as caught:
        ready(tmp_path, **sections)
    return {problem.path: problem.message for problem in caught.value.problems}


def test_whole_runs_have_the_high_length_and_short_ones_the_low_one(tmp_path):
    ended, space = ready(tmp_path)
    configuration = space.default()
    assert ended.objective.job(configuration, Context(tmp_path)).argv == ("true", "100", "200", "1")
    assert ended.objective.job(configuration, Context(tmp_path, steps=10)).argv == ("true", "10", "20", "1")


def test_the_length_takes_the_place_of_a_derived_value(tmp_path):
    space = {**STUDY["space"], "derived": {"steps": "-2", "twice": "2 * steps"}}
    options = {"argv": ["true", "{twice}"]}
    ended, space = ready(tmp_path, space=space, options=options)
    assert ended.objective.job(space.default(), Context(tmp_path, steps=10)).argv == ("true", "20")
    assert ended.objective.job(space.default(), Context(tmp_path)).argv == ("true", "200")


@pytest.mark.parametrize(
    ("sections", "path", "said"),
    [
        ({"fidelity": {**FIDELITY, "parameter": "step"}}, "fidelity.parameter", "did you mean 'steps'"),
        ({"fidelity": {**FIDELITY, "parameter": "np"}}, "fidelity.parameter", "is a parameter that is tuned"),
        ({"limits": {"elapsed_s": {"max": 3}}}, "limits", "whether a limit is kept"),
        (
            {"options": {**STUDY["options"], "metrics": [{"name": "quality", "pattern": "(.)"}]}},
            "fidelity",
            "quality is neither",
        ),
    ],
)
def test_mistakes_are_told_with_their_path(tmp_path, sections, path, said):
    assert said in problems(tmp_path, **sections)[path]


def test_a_short_run_is_shorter():
    with pytest.raises(StudyFileError, match=r"low is 100, no less than high"):
        parse({**STUDY, "fidelity": {**FIDELITY, "low": 100}}, source="t")
