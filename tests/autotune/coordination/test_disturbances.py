"""Runs that others disturb count for nothing and are made again, within a budget; then they count."""

from dataclasses import replace

import pytest

from autotune.coordination.disturbances import Disturbances, noise_mode
from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.errors import CannotRunHereError, StudyFileError
from autotune.execution.task import Task, describe_job
from autotune.records.outcome import DISTURBED
from autotune.records.series import TUNING, WARM_UP
from autotune.records.study import Purpose
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.study_store import StudyStore
from autotune.studyfile import NoiseSection
from autotune.tuning.loop import TuningLoop
from launchers import Job, Resources
from launchers.mpi import MpiFlavour, MpiStart
from launchers.mpi.open_mpi import OPEN_MPI
from objectives.base import FailureKind, Metric
from objectives.server import NO_LOAD_KEPT
from tests.support.contests import rounds_of
from tests.support.fakes import (
    SECONDS,
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


@pytest.fixture(autouse=True)
def _ranks_spin(monkeypatch):
    """Take back the variable by which the ranks of all tests yield."""
    monkeypatch.delenv("OMPI_MCA_mpi_yield_when_idle")


def taken(share, seconds=10.0):
    return replace(took(seconds), conditions={"taken_share": share, "others_share": 0.87})


def in_flight(folder, series=TUNING):
    task = Task(2, Job(("paper",), folder / "00002", name="00002"), PaperObjective())
    return RunInFlight(PlannedRun(task, Purpose({"np": 4}, 2, series)), "", {})


def test_a_disturbed_run_does_not_count_and_keeps_what_it_measured(tmp_path):
    judge = Disturbances(SECONDS, "wait")
    quiet = taken(0.001)
    assert judge.judge(in_flight(tmp_path), quiet) == quiet
    outcome = judge.judge(in_flight(tmp_path), taken(0.43))
    assert outcome.retryable
    assert outcome.disturbed
    assert (outcome.code, outcome.metrics) == (DISTURBED, {})
    assert outcome.details["measured"] == {"wall_s": 10.0}
    assert "others took 43% of its time and used 87% of its cores" in outcome.message


@pytest.mark.parametrize(
    ("failure", "code"), [(FailureKind.TIMED_OUT, "timed-out"), (FailureKind.INVALID_RESULT, NO_LOAD_KEPT)]
)
def test_a_run_that_was_too_slow_because_of_others_does_not_count(tmp_path, failure, code):
    outcome = Disturbances(SECONDS, "wait").judge(
        in_flight(tmp_path), replace(taken(0.43), metrics={}, failure=failure, code=code)
    )
    assert outcome.disturbed


@pytest.mark.parametrize(
    ("judge", "outcome", "series"),
    [
        (Disturbances(SECONDS, "accept"), taken(0.9), TUNING),
        (Disturbances(SECONDS, "wait"), took(10.0), TUNING),
        # 40 ms: somebody started a program.
        (Disturbances(SECONDS, "wait"), taken(0.4, seconds=0.1), TUNING),
        (Disturbances(SECONDS, "wait"), taken(0.9), WARM_UP),
        (Disturbances(Metric("auc", "", "maximize"), "wait"), replace(taken(0.9), metrics={"auc": 0.9}), TUNING),
        (Disturbances(SECONDS, "wait"), replace(failed(FailureKind.APPLICATION_ERROR), usage=took(9.0).usage), TUNING),
    ],
)
def test_what_others_cannot_spoil_and_what_is_accepted_counts(tmp_path, judge, outcome, series):
    assert judge.judge(in_flight(tmp_path, series), outcome) == outcome


def test_the_budget_of_tuning_is_half_of_the_runs_that_count_and_then_disturbed_ones_count(tmp_path):
    said = []
    judge = Disturbances(SECONDS, "wait", line=said.append)
    outcomes = [judge.judge(in_flight(tmp_path), taken(0.4 + 0.01 * k)) for k in range(20)]
    aside = sum(outcome.disturbed for outcome in outcomes)
    assert 3 <= aside <= 4 + 0.5 * (20 - aside)
    assert len(said) == 1
    assert "from now on, disturbed trials count" in said[0]
    # It means what it says.
    last = max(place for place, outcome in enumerate(outcomes) if outcome.disturbed)
    assert not any(outcome.disturbed for outcome in outcomes[last + 1 :])
    assert last < 6


def test_the_environment_says_what_to_do_where_the_study_does_not(monkeypatch):
    monkeypatch.setenv("AUTOTUNE_NOISE", "refuse")
    assert noise_mode(NoiseSection()) == "refuse"
    assert noise_mode(NoiseSection(mode="wait")) == "wait"
    monkeypatch.setenv("AUTOTUNE_NOISE", "loud")
    with pytest.raises(StudyFileError, match=r"AUTOTUNE_NOISE .* is 'loud', it must be one of accept, wait, refuse"):
        noise_mode(NoiseSection())
    monkeypatch.delenv("AUTOTUNE_NOISE")
    assert noise_mode(NoiseSection()) == "wait"


class Neighbour(PaperExecutor):
    """A machine on which others take these shares of the runs, in turns."""

    def __init__(self, shares):
        shares = iter(shares)
        super().__init__(lambda _: taken(next(shares)))


def store_in(folder):
    return StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", "paper", definition(small_space()))


def tuned(folder, shares, mode="wait"):
    store, display, executor = store_in(folder), ListDisplay(), Neighbour(shares)
    manager = managed(executor, folder / "runs", display=display)
    manager.disturbances = Disturbances.of(NoiseSection(mode=mode), SECONDS, store.runs(), display.line, 99)
    loop = TuningLoop(Asker(store, ValidSetSampler(small_space(), seed=0)), manager, study_file(budget={"trials": 4}))
    loop.tune()
    return store, display, executor


def test_a_disturbed_trial_is_stored_aside_and_made_again(tmp_path):
    store, display, _ = tuned(tmp_path, [0.0, 0.5, 0.0, 0.0, 0.0])
    assert sorted((run.trial, str(run.series), run.outcome.disturbed) for run in store.runs()) == [
        (0, "", False),
        (1, "", False),
        (1, "aside:tuning", True),
        (2, "", False),
        (3, "", False),
    ]
    assert display.lines.count("trial 1: set aside, taken 50%; runs again") == 1


def test_a_machine_that_is_never_quiet_is_tuned_on_within_the_budget_unless_that_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    store, _, executor = tuned(tmp_path / "a", [0.5] * 99)
    assert [len(trial.runs) for trial in store.trials()] == [1, 1, 1, 1]
    assert len(executor.launched) <= 4 + 3 + 2
    (tmp_path / "b").mkdir()
    with pytest.raises(CannotRunHereError, match="disturbed runs are refused on this machine"):
        tuned(tmp_path / "b", [0.5] * 99, mode="refuse")


def compared(folder, shares, mode):
    """Make eight pairs; return the table, the runs that were started and the lines."""
    store, display, executor = store_in(folder), ListDisplay(), Neighbour(shares)
    manager = managed(executor, folder / "runs", display=display)
    manager.disturbances = Disturbances(SECONDS, mode, again=1.0, line=display.line)
    table = rounds_of(store, manager).run_until(8)
    assert {str(run.series) for run in store.runs() if run.outcome.disturbed} == {"aside:verdict:1"}
    return table, executor.launched, display.lines


@pytest.mark.parametrize(("shares", "made", "gives_up"), [([0.0, 0.5] * 99, 31, False), ([0.5] * 99, 16 + 3, True)])
def test_a_comparison_ends_on_a_machine_that_is_never_quiet(tmp_path, shares, made, gives_up):
    table, launched, lines = compared(tmp_path, shares, "wait")
    assert (len(table.pairs(0, 1)), len(launched)) == (8, made)
    assert any("from now on, disturbed pairs count" in line for line in lines) is gives_up


def test_a_comparison_that_refuses_disturbed_runs_ends_with_a_sentence(tmp_path):
    with pytest.raises(CannotRunHereError, match=r"confirming cannot continue.*\n.*refused.*--noise wait"):
        compared(tmp_path, [0.5] * 99, "refuse")


@pytest.mark.parametrize(("ranks", "says"), [(1, False), (2, True)])
def test_a_run_of_spinning_ranks_that_timed_out_beside_others_says_so(tmp_path, ranks, says):
    job = Job(("paper",), tmp_path, mpi=MpiStart(ranks), resources=Resources(ranks))
    run = replace(in_flight(tmp_path), job=describe_job(job, MpiFlavour(OPEN_MPI)))
    ended = replace(failed(FailureKind.TIMED_OUT, "was stopped"), conditions={"taken_share": 0.8, "others_share": 0.87})
    message = Disturbances(SECONDS, "accept").judge(run, ended).message
    assert "was stopped; others took 80% of its time" in message
    assert ("mpi_yield_when_idle" in message) is says


@pytest.mark.parametrize(("ranks", "share", "said"), [(2, 0.5, 1), (1, 0.5, 0), (2, 0.01, 0)])
def test_what_lets_others_run_is_offered_once_when_spinning_ranks_are_disturbed(tmp_path, ranks, share, said):
    lines = []
    job = Job(("paper",), tmp_path, mpi=MpiStart(ranks), resources=Resources(ranks))
    run = replace(in_flight(tmp_path), job=describe_job(job, MpiFlavour(OPEN_MPI)))
    judge = Disturbances(SECONDS, "accept", line=lines.append)
    for _ in range(3):
        judge.judge(run, taken(share))
    assert sum("OMPI_MCA_mpi_yield_when_idle=1" in line for line in lines) == said


def test_what_load_cannot_change_is_never_disturbed(tmp_path):
    judge = Disturbances.of(NoiseSection(mode="wait"), Metric("loss", ""), (), lambda _: None, 9)
    assert (judge.mode, judge.patience) == ("accept", None)


@pytest.mark.parametrize("mode", ["wait", "accept"])
def test_a_machine_is_busy_if_others_disturb_most_runs(tmp_path, mode):
    judge = Disturbances(SECONDS, mode)
    for share, busy in ((0.0, False), (0.0, False), (0.5, False), (0.0, False), (0.5, False), (0.5, True)):
        judge.judge(in_flight(tmp_path), taken(share))
        assert judge.is_busy is busy
