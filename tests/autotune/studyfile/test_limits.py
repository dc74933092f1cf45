import pytest

from autotune.errors import StudyFileError
from autotune.machines.this_machine import this_machine
from autotune.studyfile.limits import limit_errors, limits_of
from autotune.studyfile.model import LimitSection
from autotune.studyfile.space import join_space
from objectives.base import Metric, Plan
from tests.support.fakes import SECONDS, PaperObjective, small_space, study_file

MEMORY, AUC, P99 = Metric("peak_memory_bytes", "B"), Metric("val_auc", "", "maximize"), Metric("p99", "ms")


def problems(limits, **sections):
    class Served(PaperObjective):
        metrics = (SECONDS, MEMORY, AUC, P99)

    plan = Plan(Served(), tuple(small_space().parameters), (), {}, {}, works_in_steps=True)
    with pytest.raises(StudyFileError) as caught:
        join_space(study_file(limits=limits, **sections), plan, this_machine().facts)
    return {problem.path: problem.message for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("metric", "written", "value"),
    [
        (MEMORY, "12 GiB", 12 * 2**30),
        (MEMORY, "500 MB", 5e8),
        (MEMORY, 1000, 1000.0),
        (P99, "0.02 s", 20.0),
        (P99, "20", 20.0),
        (SECONDS, "2 min", 120.0),
        (Metric("rate", "MiB/s"), "2 GiB/s", 2048.0),
        (AUC, "0.9", 0.9),
    ],
)
def test_limits_are_in_the_units_of_their_metrics(metric, written, value):
    (limit,) = limits_of({metric.name: LimitSection(max=written)}, [metric])
    assert limit.high == pytest.approx(value)
    assert limit.allows(value * 0.999)
    assert not limit.allows(value * 1.001)


def test_all_that_is_wrong_with_limits_is_said_at_once_with_its_path():
    wrong = problems(
        {
            "val_acu": {"min": 0.9},
            "val_auc": {"min": 0.9, "max": 0.8},
            "peak_memory_bytes": {"max": "12 GiBs"},
            "p99": {"max": "soon", "min": "nan"},
        }
    )
    assert wrong.keys() == {
        "limits.val_acu",
        "limits.val_auc",
        "limits.peak_memory_bytes.max",
        "limits.p99.max",
        "limits.p99.min",
    }
    assert "did you mean 'val_auc'" in wrong["limits.val_acu"]
    assert "min is 0.9, more than max, 0.8" in wrong["limits.val_auc"]
    assert "known: B, kB" in wrong["limits.peak_memory_bytes.max"]
    assert "a number with a unit" in wrong["limits.p99.max"]


@pytest.mark.parametrize(
    ("sections", "path"),
    [({"stopping": {"max_steps": 3}}, "limits"), ({"budget": {"trials": "auto"}}, "budget.trials")],
)
def test_what_limits_do_not_go_with_is_said(sections, path):
    assert path in problems({"p99": {"max": 20}}, **sections)


@pytest.mark.parametrize(("runs", "known"), [("launched", True), ("told", False)])
def test_what_is_measured_of_every_run_that_is_launched_may_be_limited_whatever_the_objective(runs, known):
    plan = Plan(PaperObjective(), tuple(small_space().parameters), (), {}, {}, runs=runs)
    errors = limit_errors(study_file(limits={"peak_memory_bytes": {"max": "1 GiB"}}), plan)
    assert bool(errors) is not known


def test_a_limit_without_an_end_is_none():
    with pytest.raises(ValueError, match="a min, a max, or both"):
        study_file(limits={"p99": {}})
