"""A run's folder is its evidence until what it showed is stored, and is cleaned then."""

import json
from dataclasses import asdict, replace

import pytest

from autotune.coordination.cleaner import cleaner
from autotune.execution.batch_executor import BatchExecutor
from autotune.records.study import Purpose
from autotune.storage.study_store import StudyStore
from launchers import STDOUT
from launchers.supervisor import STATUS_FILE
from objectives.command import plan
from objectives.mix.objective import MixInput, MixObjective
from tests.autotune.execution.test_batch_executor import DONE, PaperQueue
from tests.support.fakes import definition, small_space, took
from tests.support.managers import managed

CONFIGURATION = small_space().default()
LONG = "time: 1.5\n" + f"{' ' * 2**20}\n" * 5


def objective_of(folder, **metric):
    metrics = [{"name": "time_s", "unit": "s", **metric}]
    return plan({"argv": ["true"], "metrics": metrics}, machine={}, run_job=lambda _: None, folder=folder).objective


def ended(folder):
    said = {"state": DONE.state, "reason": DONE.reason, "exit_code": 0, "message": ""} | asdict(DONE.usage)
    (folder / STATUS_FILE).write_text(json.dumps(said))


@pytest.mark.parametrize("kind", ["figure in a sub-folder", "figure early in much output", "part of a mix"])
def test_after_a_crash_before_it_is_stored_a_run_is_read_as_it_was(tmp_path, kind):
    in_folder = objective_of(tmp_path, file="results/out.json", json="t")
    objective = {
        "figure in a sub-folder": in_folder,
        "figure early in much output": objective_of(tmp_path, pattern=r"time: (\S+)"),
        "part of a mix": MixObjective((MixInput("a", 0.5, in_folder), MixInput("b", 0.5, in_folder))),
    }[kind]
    queue = PaperQueue()
    manager = managed(BatchExecutor(queue, lambda *_: True, print), tmp_path / "runs", objective=objective)
    started = manager.start(manager.prepare(0, Purpose(CONFIGURATION, 0), "00000-0"))
    job = started.task.job
    for one in (job, *job.parts):
        (one.folder / STDOUT).write_text(LONG)
        (one.folder / "results").mkdir()
        (one.folder / "results" / "out.json").write_text(json.dumps({"t": 2.0}))
        ended(one.folder)
    queue.says = {"paper:00000-0": DONE}
    ((task, first),) = manager.executor.wait(1.0)

    queue.says = {"paper:00000-0": DONE}
    manager.executor = BatchExecutor(queue, lambda *_: True, print)
    manager.executor.submit(replace(task, job_id="paper:00000-0"))
    ((_, second),) = manager.executor.wait(1.0)
    assert first.complete
    assert replace(second, timeline=first.timeline, conditions=first.conditions) == first

    store = StudyStore.create(f"sqlite:///{tmp_path}/a.db", "mine", definition(small_space()))
    with cleaner() as manager.cleaner:
        manager.store(store, [(started, manager.finish(started, second))])
    assert len(store.runs()) == 1
    folders = [one.folder for one in job.parts or (job,)]
    assert [(folder / "results").exists() for folder in folders] == [False] * len(folders)
    assert (folders[0] / STDOUT).stat().st_size < len(LONG)


def test_what_a_session_stored_and_was_killed_before_it_cleaned_is_cleaned_by_the_next(tmp_path):
    manager = managed(BatchExecutor(PaperQueue(), lambda *_: True, print), tmp_path / "runs")
    started = manager.start(manager.prepare(0, Purpose(CONFIGURATION, 0), "00000-0"))
    folder = started.task.job.folder
    scratch = folder / "scratch"
    scratch.mkdir()
    ended(folder)
    for usage, is_there in ((replace(DONE.usage, elapsed_s=99.0), True), (DONE.usage, False)):
        with cleaner() as cleaning:
            cleaning.catch_up([started.run_to_store(replace(took(1.0), usage=usage), started.job, {})])
        assert scratch.exists() == is_there, "of another run with the same name nothing is removed"
