"""Problems as values, and how they are written."""

import pickle

import pytest

from autotune.errors import StudyFileError
from objectives.base import PlanError
from spaces import Constraint, Flag, Space, SpaceError
from spaces.parameters.problem import ConditionProblem, ConstraintProblem, Problem


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("wrong"), "wrong"),
        (Problem("wrong", "budget.trials"), "wrong @ budget.trials"),
        (Problem("wrong", "budget.trials", 3), "line 3: wrong @ budget.trials"),
        (Problem("cannot read this\n    a b\n      ^", "x"), "cannot read this @ x\n    a b\n      ^"),
    ],
)
def test_the_path_comes_after_the_first_line(problem, text):
    assert str(problem) == text


@pytest.mark.parametrize("error", [SpaceError, PlanError])
def test_an_error_shows_its_problems_one_per_line_and_keeps_them_between_processes(error):
    raised = error(["one", Problem("two", "a.b")])
    assert str(raised) == "one\ntwo @ a.b"
    assert raised.problems == (Problem("one"), Problem("two", "a.b"))
    assert pickle.loads(pickle.dumps(raised)).problems == raised.problems


def test_an_error_of_a_file_has_a_title_and_may_show_some_of_its_problems():
    problems = [Problem("one", "a"), Problem("two", "b"), Problem("three")]
    raised = StudyFileError("qe.toml: 3 errors", problems, shown=2)
    assert str(raised) == "qe.toml: 3 errors\n  one @ a\n  two @ b\n  ... and 1 more"
    assert raised.problems == tuple(problems)
    assert str(StudyFileError(problems[0])) == "one @ a"
    assert StudyFileError("no such file").problems == ()
    assert pickle.loads(pickle.dumps(raised)).problems == raised.problems


def test_rules_and_conditions_say_which_they_are():
    with pytest.raises(SpaceError) as caught:
        Space([Flag("a"), Flag("b", when="c")], [Constraint("r", "d")])
    condition, rule = caught.value.problems
    assert isinstance(condition, ConditionProblem)
    assert condition.parameter == "b"
    assert isinstance(rule, ConstraintProblem)
    assert rule.constraint == "r"
