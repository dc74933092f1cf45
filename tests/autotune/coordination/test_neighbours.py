"""Runs that were bound to the same cores at the same time count for nothing, and are made again."""

import json
from dataclasses import asdict, replace

import pytest

from autotune.coordination.neighbours import Neighbours
from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.errors import CannotRunHereError
from autotune.execution.task import Task
from autotune.records.series import TUNING, WARM_UP
from autotune.records.study import Purpose
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.study_store import StudyStore
from autotune.tuning.loop import TuningLoop
from launchers import Job, Usage
from launchers.batch.job_ends import GONE_FILE
from launchers.job import Affinity
from launchers.supervisor import AFFINITY_FILE, STATUS_FILE
from objectives.base import FailureKind
from tests.support.fakes import (
    ListDisplay,
    PaperExecutor,
    PaperObjective,
    definition,
    failed,
    small_space,
    study_file,
    took,
)
from tests.support.managers import managed


def bound(cpus, began_at, **changes):
    return Affinity(**({"node": "n1", "cpus": cpus, "node_cpus": 48, "began_at": began_at} | changes))


def ended(affinity, outcome=None):
    return replace(outcome or took(10.0), conditions=asdict(affinity))


def in_flight(folder, name="00002", series=TUNING):
    task = Task(2, Job(("paper",), folder / name, name=name), PaperObjective())
    return RunInFlight(PlannedRun(task, Purpose({}, 2, series)), "", {})


def begun(folder, name, affinity, ended_after_s=None):
    """Write what the supervisor of a run beside ours has written so far."""
    (folder / name).mkdir()
    (folder / name / AFFINITY_FILE).write_text(json.dumps(asdict(affinity)))
    if ended_after_s is not None:
        status = {"state": "ended", "reason": "exited", "exit_code": 0, "message": "", "affinity": asdict(affinity)}
        usage = {"elapsed_s": ended_after_s, "cpu_s": 0.0, "peak_memory_bytes": 0}
        (folder / name / STATUS_FILE).write_text(json.dumps(status | usage))
    return in_flight(folder, name)


@pytest.mark.parametrize(
    ("other", "ended_after_s", "counts"),
    [
        (bound("0-1", 105.0), None, False),
        (bound("0-1", 105.0), 1.0, False),
        (bound("2-3", 105.0), None, True),
        # It ended before, though the session has not collected it.
        (bound("0-1", 90.0), 5.0, True),
        (bound("0-1", 105.0, node="n2"), None, True),
        (bound("0-47", 105.0), None, True),
        # Another hardware thread of the same core.
        (bound("24", 105.0, threads="0,24"), None, False),
    ],
)
def test_a_run_that_shares_a_core_with_one_still_in_flight_does_not_count(tmp_path, other, ended_after_s, counts):
    neighbours, ours = Neighbours(), in_flight(tmp_path)
    neighbours.begin(ours)
    neighbours.begin(begun(tmp_path, "00001", other, ended_after_s))
    outcome = neighbours.end(ours, ended(bound("0", 100.0, threads="0,24")))
    assert outcome.complete is counts
    if not counts:
        assert outcome.retryable
        assert outcome.metrics == {}
        assert "same cores of n1 as run 00001" in outcome.message
        # The one beside it is disturbed just as well, when it ends.
        beside = neighbours.end(in_flight(tmp_path, "00001"), ended(other))
        assert "as run 00002" in beside.message


@pytest.mark.parametrize(("since", "counts"), [(105.0, False), (95.0, True)])
def test_a_run_shares_no_core_with_one_whose_job_is_gone(tmp_path, since, counts):
    # Its node has failed, or it was killed: the session waits minutes for its result file.
    neighbours, ours = Neighbours(), in_flight(tmp_path)
    neighbours.begin(begun(tmp_path, "00001", bound("0", 80.0)))
    (tmp_path / "00001" / GONE_FILE).write_text(f"17 {since}")
    assert neighbours.end(ours, ended(bound("0", 100.0))).complete is counts


def test_what_no_core_can_spoil_is_kept(tmp_path):
    neighbours = Neighbours()
    neighbours.begin(begun(tmp_path, "00001", bound("0", 105.0)))
    crashed = ended(bound("0", 100.0), failed(FailureKind.APPLICATION_ERROR))
    assert neighbours.end(in_flight(tmp_path), crashed) == crashed
    warm_up = ended(bound("0", 100.0))
    assert neighbours.end(in_flight(tmp_path, series=WARM_UP), warm_up) == warm_up
    late = ended(bound("0", 100.0), replace(failed(FailureKind.TIMED_OUT), usage=Usage(elapsed_s=10.0)))
    assert neighbours.end(in_flight(tmp_path), late).retryable


class OneCore(PaperExecutor):
    """A batch system that gives all jobs the same core, at the times of `begins`."""

    def __init__(self, begins):
        super().__init__(lambda _: ended(self._affinity, took(2.0)))
        self._begins = iter(begins)

    def submit(self, task):
        self._affinity = bound("0", next(self._begins))
        (task.job.folder / AFFINITY_FILE).write_text(json.dumps(asdict(self._affinity)))
        super().submit(task)


def tuned(folder, executor, trials):
    space, display = small_space(), ListDisplay()
    store = StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", "paper", definition(space))
    asker = Asker(store, ValidSetSampler(space, seed=0))
    study = study_file(budget={"trials": trials, "workers": 2})
    return store, display, TuningLoop(asker, managed(executor, folder / "runs", display=display), study)


def test_disturbed_runs_are_stored_aside_and_made_again(tmp_path):
    store, display, loop = tuned(tmp_path, OneCore([0.0, 10.0, 11.0, 20.0, 30.0]), trials=3)
    loop.tune()
    runs = [(run.trial, str(run.series), run.outcome.complete) for run in store.runs()]
    assert sorted(runs) == [
        (0, "", True),
        (1, "", True),
        (1, "aside:tuning", False),
        (2, "", True),
        (2, "aside:tuning", False),
    ]
    assert [len(trial.runs) for trial in store.trials()] == [1, 1, 1]
    assert sum("does not count; runs again" in line for line in display.lines) == 2


def test_where_everything_shares_a_core_the_study_ends_and_says_what_to_do(tmp_path):
    executor = OneCore([0.0, *(10.0 + 0.1 * k for k in range(100))])
    _, _, loop = tuned(tmp_path, executor, trials=30)
    with pytest.raises(CannotRunHereError, match=r"exclusive = true .*--workers 1\), then use the same command again"):
        loop.tune()
    assert len(executor.launched) < 15
    _, display, resumed = tuned(tmp_path, OneCore([1000.0 * k for k in range(1, 100)]), trials=3)
    resumed.tune()
    assert "trial 1: shared its cores with another run, runs again" in display.lines
