"""Commands that prepare a run of a command: compile, then measure."""

import sys
from pathlib import Path

import pytest

from autotune.execution.task import Task, run_task
from launchers import EndReason, JobState, JobStatus, Usage
from launchers.local import LocalLauncher
from launchers.steps import STEPS_FILE
from objectives.base import ApplicationError, Context, FailureKind, Output, PlanError
from objectives.command import plan

PYTHON = [sys.executable, "-S", "-c"]
MAKE = "import os; open('program', 'w').write('#!/bin/sh\\necho value 4'); os.chmod('program', 0o755)"


def planned(**options):
    return plan(options, machine={}, run_job=lambda job: None, folder=Path("/nowhere"))


def test_golden_commands(tmp_path, monkeypatch):
    (tmp_path / "gcc").write_text("#!/bin/sh\n")
    (tmp_path / "gcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    prepare = [["gcc", "-O{level}", "{march}", "-o", "a", "a.c"], ["./a", "--warm-up"]]
    found = planned(argv=["./a", "{n}"], prepare=prepare)
    job = found.objective.job({"level": 2}, Context(tmp_path))
    assert job.prepare == (("gcc", "-O2", "-o", "a", "a.c"), ("./a", "--warm-up"))
    assert job.argv == ("./a",)
    assert {mention.text for mention in found.mentions} == {"level", "march", "n"}
    assert found.identity["prepare"] == "gcc -O{level} {march} -o a a.c; ./a --warm-up"
    assert found.identity["tools"].startswith("gcc sha256:")
    assert "program" not in found.identity


def test_the_program_of_a_prepared_run_is_that_of_the_runs_folder(tmp_path, monkeypatch):
    (tmp_path / "program").write_text("#!/bin/sh\necho value 1\n")
    (tmp_path / "program").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    found = planned(argv=["./program"], prepare=[[*PYTHON, MAKE]])
    (tmp_path / "run").mkdir()
    assert found.objective.job({}, Context(tmp_path / "run")).argv == ("./program",)


def test_a_prepared_run_from_its_start_to_its_measurement(tmp_path):
    metric = {"name": "value", "unit": "s", "pattern": r"^value (\d+)", "kind": "time"}
    objective = planned(argv=["./program"], prepare=[[*PYTHON, MAKE]], metrics=[metric]).objective
    outcome = run_task(Task(0, objective.job({}, Context(tmp_path)), objective), LocalLauncher())
    assert outcome.metrics == {"value": 4.0}, outcome.message
    assert outcome.details["prepared_s"] > 0


def test_the_time_of_a_run_is_without_what_prepared_it(tmp_path):
    objective = planned(argv=["./program"], prepare=[[*PYTHON, "import time; time.sleep(0.5)"]]).objective
    (tmp_path / STEPS_FILE).write_text('{"elapsed_s": 2.0, "failed": null}')
    status = JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(2.5))
    assert objective.measure(Output("", "", status, tmp_path)).metrics == {"elapsed_s": 0.5}


def test_no_time_is_a_bound_on_a_prepared_run():
    metrics = [
        {"name": "a", "unit": "s", "pattern": "(.)", "kind": "time"},
        {"name": "b", "unit": "1/s", "pattern": "(.)", "kind": "rate"},
    ]
    kinds = [metric.kind for metric in planned(argv=[sys.executable], metrics=metrics).objective.metrics]
    assert kinds == ["time", "rate"]
    prepared = planned(argv=[sys.executable], metrics=metrics, prepare=[[sys.executable, "-V"]]).objective
    assert [metric.kind for metric in prepared.metrics] == ["other", "rate"]
    assert [m.kind for m in planned(argv=["./x"], prepare=[[sys.executable]]).objective.metrics] == ["other"]


def test_what_a_compiler_says_is_why_a_run_failed(tmp_path):
    said = "a.c:1:5: error: expected ';'\n    1 | int x\ncompilation terminated.\n"
    code = f"import sys; print('fine'); sys.stderr.write({said!r}); sys.exit(1)"
    objective = planned(argv=["./program"], prepare=[[*PYTHON, "pass"], [*PYTHON, code]]).objective
    outcome = run_task(Task(0, objective.job({}, Context(tmp_path)), objective), LocalLauncher())
    assert (outcome.failure, outcome.code) == (FailureKind.APPLICATION_ERROR, "prepare")
    name = Path(sys.executable).name
    assert outcome.message == f"{name}, which prepares the run, ended with exit code 1: a.c:1:5: error: expected ';'"


CLANG = """In file included from mm.c:1:
mm.h:9:1: warning: no mistake
mm.c:3:10: fatal error: 'omp.h' file not found
mm.c:9:1: error: unknown type name 'omp_lock_t'
2 errors generated.
"""
MAKE_LINK = """/usr/bin/ld: /tmp/a.o: in function `main': a.c:(.text+0x5): undefined reference to `f'
collect2: error: ld returned 1 exit status
make: *** [Makefile:2: a] Error 1
"""


@pytest.mark.parametrize(
    ("output", "first"),
    [
        (CLANG, "mm.c:3:10: fatal error: 'omp.h' file not found"),
        (MAKE_LINK, MAKE_LINK.splitlines()[0]),
        ("a.f90(3): error #6404: no type\na.f90(4): error #5: more\n", "a.f90(3): error #6404: no type"),
        ("make: *** [Makefile:2: a] Error 1\nbye\n", "make: *** [Makefile:2: a] Error 1"),
        ("cannot\nbye\n", "bye"),
        ("", "no output"),
    ],
)
def test_the_first_error_of_a_compiler_is_why_a_run_failed_and_its_own_name_is_given(tmp_path, output, first):
    objective = planned(argv=["./program"], prepare=[["{cc}", "mm.c"]]).objective
    (tmp_path / STEPS_FILE).write_text('{"elapsed_s": 2.0, "failed": "/opt/bin/clang"}')
    status = JobStatus(JobState.ENDED, EndReason.EXITED, 1, Usage(2.5))
    with pytest.raises(ApplicationError) as caught:
        objective.measure(Output("", output, status, tmp_path))
    assert str(caught.value) == f"clang, which prepares the run, ended with exit code 1: {first}"


@pytest.mark.parametrize(
    ("prepare", "place"),
    [
        ([["no-such-compiler"]], "options.prepare.0.0"),
        ([[sys.executable], []], "options.prepare.1"),
        ([[sys.executable, "{"]], "options.prepare.0.1"),
        (["gcc"], "options.prepare.0"),
    ],
)
def test_commands_that_are_wrong(prepare, place):
    with pytest.raises(PlanError) as caught:
        planned(argv=["./program"], prepare=prepare)
    assert str(caught.value).endswith(f" @ {place}")


def test_without_preparation_a_program_must_be_there():
    with pytest.raises(PlanError, match=r"there is no file \./program"):
        planned(argv=["./program"])
