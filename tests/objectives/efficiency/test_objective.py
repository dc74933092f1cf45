"""An objective whose runs are timed: what jobs preload, what is measured, and the remark if ranks wrote no times."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.errors import StudyFileError
from autotune.machines.this_machine import this_machine
from autotune.studyfile.space import join_space
from launchers import EndReason, Job, JobState, JobStatus, MpiStart
from launchers.software.changes import Changes
from launchers.software.software import LoadedSoftware
from objectives.base import REMARK, Context, Measurement, Metric, Output, Plan
from objectives.efficiency.library import FOLDER_VARIABLE, NAME, PRELOAD, without_library
from objectives.efficiency.objective import MPI_TIMES, TimedObjective, build_library, with_mpi_times
from objectives.efficiency.times import PREFIX
from tests.support.fakes import SECONDS, small_space, study_file


class Program:
    """Starts two ranks, and prints nothing that is read."""

    metrics = (SECONDS,)

    def __init__(self, environment=None, parts=()):
        self._environment, self._parts = environment or {}, parts

    def job(self, configuration, context):
        parts = tuple(Job(("part",), context.folder / name, name=name) for name in self._parts)
        return Job(("solve",), context.folder, self._environment, MpiStart(2), parts=parts)

    def progress_reader(self):
        raise AssertionError

    def measure(self, output):
        return Measurement({SECONDS.name: 2.0}, details={"seen": 1})


@pytest.fixture
def made(tmp_path):
    place = tmp_path / "cache" / NAME
    place.parent.mkdir()
    place.write_bytes(b"")
    return place


def ended(folder, job=None):
    return Output("", "", JobStatus(JobState.ENDED, EndReason.EXITED, 0), folder, job)


def write(folder, *ranks, size=None):
    told = [
        {
            "rank": n,
            "ranks": size or len(ranks),
            "started": 0,
            "elapsed_ns": 10,
            "mpi_ns": mpi_ns,
            "calls": 5,
            "calls_elsewhere": more,
        }
        for n, (mpi_ns, more) in enumerate(ranks)
    ]
    (folder / f"{PREFIX}host").write_text("".join(f"{json.dumps(one)}\n" for one in told))


def test_a_job_loads_the_library_after_its_own_and_tells_it_its_folder(made, tmp_path):
    objective = TimedObjective(Program({PRELOAD: "/opt/malloc.so", "A": "b"}), made)
    job = objective.job({}, Context(tmp_path))
    assert job.environment == {PRELOAD: f"/opt/malloc.so:{made}", "A": "b", FOLDER_VARIABLE: str(tmp_path)}
    assert without_library(job.environment) == {PRELOAD: "/opt/malloc.so", "A": "b"}
    alone = TimedObjective(Program(), made).job({}, Context(tmp_path)).environment
    assert alone[PRELOAD] == str(made)
    assert without_library(alone) == {}
    assert without_library({"A": "b"}) == {"A": "b"}


def test_what_a_module_loads_first_stays(made, tmp_path):
    software = LoadedSoftware(Changes({PRELOAD: "/opt/allocator.so"}))

    class Loaded(Program):
        def job(self, configuration, context):
            return replace(super().job(configuration, context), software=software)

    job = TimedObjective(Loaded(), made).job({}, Context(tmp_path))
    assert job.environment[PRELOAD] == f"/opt/allocator.so:{made}"


def test_what_the_objective_remarks_on_is_said_too(made, tmp_path):
    class Remarks(Program):
        def measure(self, output):
            return Measurement({SECONDS.name: 2.0}, details={REMARK: "overfits"})

    measured = TimedObjective(Remarks(), made).measure(ended(tmp_path))
    assert measured.details[REMARK].startswith("overfits; no efficiencies: ")


def test_each_part_tells_into_its_own_folder(made, tmp_path):
    job = TimedObjective(Program(parts=("one", "two")), made).job({}, Context(tmp_path))
    assert [part.environment[FOLDER_VARIABLE] for part in job.parts] == [
        str(tmp_path / name) for name in ("one", "two")
    ]
    assert PRELOAD not in job.environment


@pytest.mark.parametrize("library", [None, Path("/nowhere") / NAME])
def test_without_the_library_a_job_is_the_objectives_own(library, tmp_path):
    objective = TimedObjective(Program({"A": "b"}), library)
    assert objective.job({}, Context(tmp_path)) == Program({"A": "b"}).job({}, Context(tmp_path))


def test_efficiencies_are_metrics_beside_the_objectives_own(made, tmp_path):
    objective = TimedObjective(Program(), made)
    assert objective.metrics[0] == SECONDS
    write(tmp_path, (0, 0), (5, 0))
    measured = objective.measure(ended(tmp_path, objective.job({}, Context(tmp_path))))
    assert measured.metrics == pytest.approx(
        {"wall_s": 2.0, "parallel_efficiency": 0.75, "load_balance": 0.75, "communication_efficiency": 1.0}
    )
    assert measured.metrics.keys() == {metric.name for metric in objective.metrics}
    assert measured.details["seen"] == 1
    assert measured.details[MPI_TIMES]["ranks"] == 2
    assert measured.details[MPI_TIMES]["calls"] == 10
    assert REMARK not in measured.details


@pytest.mark.parametrize(
    ("ranks", "size", "why"),
    [
        ((), None, "no rank wrote how long it was in MPI"),
        (((0, 0),), 2, "1 of 2 ranks did not write"),
        (((0, 0),), 1, "2 ranks were started, and each found 1"),
    ],
)
def test_where_ranks_told_nothing_the_run_counts_and_says_so(made, tmp_path, ranks, size, why):
    objective = TimedObjective(Program(), made)
    write(tmp_path, *ranks, size=size)
    measured = objective.measure(ended(tmp_path, objective.job({}, Context(tmp_path))))
    assert measured.metrics == {"wall_s": 2.0}
    assert measured.details[REMARK].startswith(f"no efficiencies: {why}")


def test_calls_of_other_threads_are_told(made, tmp_path):
    write(tmp_path, (1, 0), (1, 10))
    measured = TimedObjective(Program(), made).measure(ended(tmp_path))
    assert measured.details[REMARK].startswith("10 of 20 MPI calls were not timed: other threads")


def test_a_study_that_asks_for_it_measures_it_and_is_another_study():
    plan = Plan(Program(), tuple(small_space().parameters), (), {}, {"input": "abc"})
    facts = this_machine().facts
    without_it, _ = join_space(study_file(), plan, facts)
    with_it, _ = join_space(study_file(efficiency={"mpi": True}, limits={"load_balance": {"min": 0.8}}), plan, facts)
    assert [metric.name for metric in without_it.objective.metrics] == ["wall_s"]
    assert [metric.name for metric in with_it.objective.metrics][1] == "parallel_efficiency"
    assert without_it.identity == {"input": "abc"}
    assert with_it.identity.keys() == {"input", "MPI calls"}


def test_what_cannot_be_timed_is_refused_with_its_place():
    plan = Plan(Program(), tuple(small_space().parameters), (), {}, {})
    with pytest.raises(StudyFileError, match="only in runs that autotune makes") as caught:
        join_space(study_file(efficiency={"mpi": True}), replace(plan, runs="recorded"), this_machine().facts)
    assert [problem.path for problem in caught.value.problems] == ["efficiency.mpi"]

    class Balanced(Program):
        metrics = (SECONDS, Metric("load_balance", "", "maximize"))

    with pytest.raises(StudyFileError, match="the program measures load_balance itself"):
        join_space(study_file(efficiency={"mpi": True}), replace(plan, objective=Balanced()), this_machine().facts)


def test_where_nothing_compiles_that_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    plan = with_mpi_times(Plan(Program(), tuple(small_space().parameters), (), {}, {}), "efficiency.mpi")
    (note,) = build_library(plan).notes
    assert note.startswith("no efficiencies: the library that times MPI calls cannot be built: there is no C comp")
    assert "none of cc, gcc, clang, mpicc is on the search path" in note
    assert plan.objective.job({}, Context(tmp_path)) == Program().job({}, Context(tmp_path))
    (tmp_path / "cc").write_text("#!/bin/sh\necho 'error: broken' >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    assert "ended with exit code 1: error: broken" in build_library(plan).notes[0]
