"""The shares of time that other processes took from runs, in the order of time."""

from dataclasses import replace

import pytest

from autotune.execution.task import describe_job
from autotune.records.outcome import ANOTHER_PACE, DISTURBED
from autotune.records.series import TUNING, Series
from autotune.records.study import Run
from autotune.results.disturbed_runs import disturbance_sentence, taken_doubt, taken_shares
from autotune.results.summary import summarise
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from launchers import Job, Resources
from launchers.mpi import MpiFlavour, MpiStart
from launchers.mpi.intel_mpi import INTEL_MPI
from launchers.mpi.mpich import MPICH
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.mpi.srun import SRUN
from objectives.base import Metric
from tests.support.fakes import SECONDS, definition, small_space, took
from tests.support.stored import add_trial


@pytest.fixture(autouse=True)
def _ranks_spin(monkeypatch):
    """Take back the variable by which the ranks of all tests yield."""
    monkeypatch.delenv("OMPI_MCA_mpi_yield_when_idle")


def run(started, share=None, series=TUNING, trial=1):
    conditions = {} if share is None else {"taken_share": share}
    return Run({"np": 8}, trial, series, outcome=replace(took(1.0), conditions=conditions), started=started)


def test_shares_are_in_order_of_start_with_their_purpose():
    aside = run("2026-11-23T10:02:00+00:00", 0.5, Series.verdict(3).aside, trial=None)
    aside = replace(aside, outcome=aside.outcome.set_aside(DISTURBED, "was disturbed"))
    runs = [aside, run("2026-11-23T10:01:00+00:00", 0.1), run("2026-11-23T10:00:00+00:00"), run("yesterday", 0.9)]
    found = taken_shares(runs)
    assert [(one.at_s, one.share, one.trial, one.purpose, one.is_disturbed) for one in found] == [
        (0.0, 0.1, 1, "tuning", False),
        (60.0, 0.5, None, "verdict", True),
    ]
    assert (
        disturbance_sentence(found[:1]) == "others kept runs from running for 10.0% of their time (median), 10% at most"
    )
    assert disturbance_sentence(found).endswith("; of 2 runs, 1 set aside for that")
    assert disturbance_sentence(()) == ""


def test_runs_set_aside_for_the_pace_of_the_machine_are_not_disturbed():
    paced = run("2026-11-23T10:00:00+00:00", 0.01, TUNING.aside)
    paced = replace(paced, outcome=paced.outcome.set_aside(ANOTHER_PACE, "the machine was slower"))
    assert "set aside" not in disturbance_sentence(taken_shares([paced]))


VERDICT = Series.verdict(1)


def behind(*shares, series=VERDICT, **conditions):
    """Return runs of which others took these shares."""
    runs = [run(f"2026-11-23T10:00:0{second}+00:00", share, series) for second, share in enumerate(shares)]
    return [
        replace(one, outcome=replace(one.outcome, conditions={**one.outcome.conditions, **conditions})) for one in runs
    ]


def test_a_result_is_doubted_if_others_took_much_of_the_time_of_its_runs(tmp_path):
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "sumx", definition(small_space()))
    add_trial(store, small_space(), {"np": 8}, took(2.0), worth=Observation(value=2.0))
    for one in behind(0.78, 0.7, 0.8, series=TUNING):
        store.add_runs([replace(one, trial=0)])
    said = "doubt: others took 78% of these runs' time (median): its effect is subtracted, but on a quiet machine"
    more = "the gain may be another; programs with many threads lose most"
    assert f"{said} {more}" in summarise(store).best_text().splitlines()


def test_the_doubt_says_what_the_ratio_is_as_measured():
    pairs = [replace(one, trial=trial, round=0) for trial, one in enumerate(behind(0.3, 0.6))]
    pairs[1] = replace(pairs[1], outcome=replace(pairs[1].outcome, metrics={"wall_s": 4.0}))
    first = pairs[0].outcome.metrics["wall_s"]
    assert f"(as measured, the ratio is {first / 4.0:.3f})" in taken_doubt(pairs, SECONDS, VERDICT)
    assert "as measured" not in taken_doubt(pairs[:1], SECONDS, VERDICT)


def test_only_the_runs_behind_the_result_count():
    quiet, busy = behind(0.01, 0.02, 0.01), behind(0.4, 0.5, 0.6, series=TUNING)
    assert taken_doubt(quiet + busy, SECONDS, VERDICT) is None
    assert "took 50% of" in taken_doubt(quiet + busy, SECONDS, None)
    assert taken_doubt(busy, Metric("loss", ""), None) is None


def test_runs_of_which_nobody_knows_what_others_took_are_counted():
    unseen = behind(None, None, others_share=0.9)
    said = "what others took from 2 of 5 of these runs is not known"
    assert taken_doubt(behind(0.0, 0.0, 0.0) + unseen, SECONDS, VERDICT) == said
    assert taken_doubt(behind(None, others_share=0.01), SECONDS, VERDICT) is None


@pytest.mark.parametrize(
    ("kind", "ranks_on_cores", "environment", "variable"),
    [
        (OPEN_MPI, (2, 2), {}, "OMPI_MCA_mpi_yield_when_idle=1"),
        (INTEL_MPI, (2, 2), {}, "I_MPI_WAIT_MODE=1"),
        (OPEN_MPI, (1, 2), {}, ""),
        (OPEN_MPI, (2, 2), {"OMPI_MCA_mpi_yield_when_idle": "1"}, ""),
        # More ranks than cores: autotune itself lets them yield.
        (OPEN_MPI, (4, 2), {}, ""),
        # The start command does not say which MPI it starts, or no variable is known.
        (SRUN, (2, 2), {}, ""),
        (MPICH, (2, 2), {}, ""),
    ],
)
def test_the_doubt_offers_what_lets_spinning_ranks_yield(tmp_path, kind, ranks_on_cores, environment, variable):
    ranks, cores = ranks_on_cores
    job = Job(("solve",), tmp_path, environment, mpi=MpiStart(ranks), resources=Resources(cores))
    described = describe_job(job, MpiFlavour(kind))
    said = taken_doubt([replace(one, job=described) for one in behind(0.5, 0.5)], SECONDS, VERDICT)
    assert said.startswith("others took 50% of")
    assert ("ranks spin" in said, variable in said) == (bool(variable), True)
    # The trials with more ranks may have lost for it, and a default with one rank has won.
    lost = [replace(one, job=described) for one in behind(0.5, series=TUNING)]
    assert variable in taken_doubt(behind(0.5, 0.5) + lost, SECONDS, VERDICT)
    quiet = [replace(one, job=described) for one in behind(0.01, 0.01)]
    assert taken_doubt(quiet, SECONDS, VERDICT) is None


def test_yielding_that_the_users_own_environment_asks_for_is_not_offered(tmp_path, monkeypatch):
    job = describe_job(Job(("solve",), tmp_path, mpi=MpiStart(2), resources=Resources(2)), MpiFlavour(OPEN_MPI))
    runs = [replace(one, job=job) for one in behind(0.5, 0.5)]
    assert "ranks spin" in taken_doubt(runs, SECONDS, VERDICT)
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    assert "ranks spin" not in taken_doubt(runs, SECONDS, VERDICT)
