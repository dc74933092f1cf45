"""Studies whose runs are jobs of a stand-in for PBS, at a site like Gadi: failures of tuner, jobs and server."""

import signal
import time

import pytest

from autotune.execution.segments import curve_of
from autotune.records.outcome import Outcome
from tests.launchers.fakes.cluster import FakeCluster
from tests.support.pbs_study import PbsStudy
from tests.support.quick_training import TrainingStudy
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = [pytest.mark.slow]


@pytest.fixture
def cluster():
    with FakeCluster("pbs") as found:
        yield found


@pytest.fixture
def study(cluster, tmp_path):
    found = PbsStudy(tmp_path, cluster)
    found.write()
    yield found
    found.close()


# A training waits before a step.
HELD = """
import pathlib, sys
def held(step):
    log = pathlib.Path(sys.argv[2])
    try:
        waits = step == int(log.with_name("hold").read_text())
    except FileNotFoundError:
        return False
    if waits:
        log.with_name(f"held-{step}").touch()
    return waits
"""
OTHERS = "0000[1-9]"


@pytest.mark.full
@pytest.mark.parametrize("history", [True, False])
def test_a_tuner_that_is_killed_finds_its_jobs_again(cluster, study, history):
    cluster.switch("history", "" if history else None)
    cluster.switch("slots", "2")
    study.hold(OTHERS)
    first = study.start()
    wait_for(lambda: len(study.active()) == 3 and len(study.launches()) == 3)
    left = study.active()
    study.kill(first)
    # A job ends while no tuner runs, which makes room for the waiting job.
    study.hold("0000[2-9]")
    wait_for(lambda: len(study.active()) == 2)
    second = study.start()
    wait_for(lambda: study.log.count("resumes a job of an earlier session") == 3)
    study.hold(None)
    assert second.wait(PATIENCE_S) == 0, study.log
    study.check()
    assert left <= {job for _, job, _ in study.launches("end")}
    assert len({name for _, _, name in study.launches()}) == len(study.launches())


@pytest.mark.full
@pytest.mark.parametrize(
    "lines",
    [
        pytest.param('qsub "$@"; kill -9 $PPID', id="before it knows the number"),
        pytest.param("kill -9 $PPID", id="before there is a job"),
    ],
)
def test_a_tuner_that_is_killed_while_it_submits_finds_the_job(study, lines):
    study.wrap_qsub(lines)
    assert study.start().wait(PATIENCE_S) == -signal.SIGKILL
    study.run()
    study.check()
    assert len({name for _, _, name in study.launches()}) == len(study.launches())


@pytest.mark.full
def test_a_submission_that_outlives_its_tuner_is_waited_for(study):
    # The server has accepted the job, but its answer is slow.
    study.wrap_qsub('number=$(qsub "$@"); kill -9 $PPID; while ! [ -e "$study/go" ]; do sleep 0.05; done; echo $number')
    assert study.start().wait(PATIENCE_S) == -signal.SIGKILL
    second = study.start()
    wait_for(lambda: study.log.count("space:") == 2)
    time.sleep(1.0)  # a tuner that does not wait would submit the run again in this time
    (study.folder / "go").touch()
    assert second.wait(PATIENCE_S) == 0, study.log
    study.check()
    assert len({name for _, _, name in study.launches()}) == len(study.launches())


@pytest.mark.full
def test_a_tuner_that_is_killed_while_it_submits_once_more_finds_the_new_job(cluster, study):
    study.hold("00000")
    first = study.start()
    wait_for(study.launches)
    study.wrap_qsub('qsub "$@"; kill -9 $PPID')
    cluster.preempt(study.launches()[0][1])
    wait_for(lambda: first.poll() is not None)
    second = study.start()
    wait_for(lambda: "resumes a job of an earlier session" in study.log)
    time.sleep(1.0)  # long enough to ask for the job, and to find that the old one has ended
    study.hold(None)
    assert second.wait(PATIENCE_S) == 0, study.log
    study.check()
    assert len(study.launches(folder="00000")) == 2


@pytest.mark.full
def test_a_server_that_is_away_is_waited_for(cluster, study):
    study.hold(OTHERS)
    session = study.start()
    wait_for(lambda: len(study.launches()) == 4)
    cluster.switch("away")
    wait_for(lambda: "the scheduler does not answer" in study.log)
    study.hold(None)
    wait_for(lambda: "does not take the job" in study.log)
    cluster.switch("away", None)
    assert session.wait(PATIENCE_S) == 0, study.log
    study.check()
    assert study.log.count("the scheduler does not answer") == 1
    assert study.log.count("does not take the job") == 1


@pytest.mark.full
def test_a_queue_that_takes_few_jobs_is_filled_as_they_end(cluster, study):
    cluster.switch("limit", "2")
    study.run()
    study.check()
    assert study.log.count("would exceed") == 1


def test_a_queue_that_there_is_not_is_asked_for_once(cluster, study):
    cluster.switch("refuse", "unknown queue")
    session = study.start()
    assert session.wait(PATIENCE_S) == 3
    assert study.log.count("Unknown queue") == 1


def outcomes(study: PbsStudy, trial: int) -> list[Outcome]:
    return [run.outcome for run in study.store.runs() if run.trial == trial and run.series.is_tuning]


@pytest.mark.full
def test_what_happens_to_a_job_is_not_held_against_its_configuration(cluster, study):
    study.hold(OTHERS)
    session = study.start()

    def strike(do, trial, nth):
        wait_for(lambda: len(study.launches(folder=trial)) == nth)
        do(study.launches(folder=trial)[-1][1])

    for nth in (1, 2, 3):
        # A preempted run does not count as a try, however often it happens.
        strike(cluster.preempt, "00001", nth)
    for nth in (1, 2):
        strike(cluster.fail_node, "00002", nth)
    for nth in (1, 2, 3):
        strike(cluster.cancel, "00003", nth)
    wait_for(lambda: "trial 3: could not be run" in study.log)
    study.hold(None)
    assert session.wait(PATIENCE_S) == 0, study.log
    assert "preempted" in study.log
    assert "its node failed" in study.log
    assert "deleted with qdel by user@pbshost" in study.log
    assert len(study.launches(folder="00003")) == 3
    assert outcomes(study, 3) == []
    # The next session counts its own tries.
    study.run()
    study.check()
    assert [[one.attempts for one in outcomes(study, trial)] for trial in (1, 2, 3)] == [[1], [3], [1]]


@pytest.mark.full
def test_cancelling_stops_the_tuner_and_leaves_no_job(cluster, study):
    cluster.switch("slots", "2")
    study.hold(OTHERS)
    session = study.start()
    wait_for(lambda: len(study.active()) == 3 and len(study.launches()) == 3)
    cluster.switch("away")
    away = study.asked("cancel", "mine")
    assert session.wait(PATIENCE_S) == 130
    assert (away.returncode, away.stdout) == (3, "")
    assert "cannot connect to server" in away.stderr
    assert "repeat the command" in away.stderr
    assert len(study.active()) == 3
    # A job that has ended by itself is measured, not lost.
    study.hold("0000[2-9]")
    wait_for(lambda: len(study.launches("end", "00001")) == 1 and len(study.active()) == 2)
    cluster.switch("away", None)
    cancelled = study.asked("cancel", "mine")
    assert (cancelled.returncode, cancelled.stderr) == (0, "")
    assert "cancelled 2 jobs" in cancelled.stdout
    assert study.active() == set()
    assert study.asked("cancel", "mine").stdout.startswith("already ended: 1 job")
    study.hold(None)
    study.run()
    study.check()
    assert len(study.launches(folder="00001")) == 1


@pytest.mark.full
def test_the_jobs_of_a_comparison_are_found_again(study):
    study.write(trials=3, best=1000)
    study.hold("verdict")
    first = study.start()
    wait_for(lambda: len(study.launches(folder="verdict")) == 3)
    left = study.active()
    study.kill(first)
    second = study.start()
    wait_for(lambda: "confirming" in study.log or study.log.count("tuning ended") == 2)
    study.hold(None)
    assert second.wait(PATIENCE_S) == 0, study.log
    study.check(trials=3)
    assert len(study.launches(folder="verdict")) == 6
    assert left <= {job for _, job, _ in study.launches("end", "verdict")}


@pytest.mark.full
def test_a_training_goes_on_from_where_it_was_taken_away_and_no_step_is_made_twice(cluster, study):
    training = TrainingStudy(study.folder)
    training.write()
    script = study.folder / "train.py"
    text = script.read_text()
    script.write_text(
        HELD + text.replace("    time.sleep(0.03)\n", "    while held(step):\n        time.sleep(0.02)\n")
    )
    study.hold("5")
    first = study.start()
    wait_for((study.folder / "held-5").exists)  # by then it has written its checkpoint
    assert {"4"} <= {step for _, step in training.trained()} <= {"1", "2", "3", "4"}
    wait_for(lambda: len(study.active()) == 1)  # the jobs of earlier rungs may not have ended yet
    (taken,) = study.active()
    cluster.preempt(taken)
    wait_for(lambda: study.active() not in ({taken}, set()))
    study.kill(first)
    # The job that resumes the training did not run the first steps.
    second = study.start()
    wait_for(lambda: "resumes a job of an earlier session" in study.log)
    study.hold("2")
    wait_for((study.folder / "held-2").exists)
    left = study.active()
    study.kill(second)
    study.hold(None)
    study.run()
    assert set(training.trained().values()) == {1}
    trials = study.store.trials()
    assert [step for step, _ in curve_of(trials[0].runs[-1].outcome)] == list(range(1, 10))
    assert len(trials) == training.trials
    assert left <= {job["id"] for job in cluster.state.jobs() if job["how"] == "exited"}


@pytest.mark.full
def test_runs_that_the_site_binds_to_one_core_are_made_again(cluster, study):
    cluster.switch("one core")
    study.hold(OTHERS)
    session = study.start()
    wait_for(lambda: len(study.launches(folder="0000")) == 4)
    cluster.switch("one core", None)
    study.hold(None)
    assert session.wait(PATIENCE_S) == 0, study.log
    assert study.log.count("this one does not count; runs again") == 3
    counted = {run.trial for run in study.store.runs() if run.series.is_tuning and run.outcome.complete}
    assert counted == set(range(5))
    shown = study.asked("trials", "mine", "--runs").stdout
    assert shown.count("(shared)") == shown.count("aside ") == 3
    assert "all were set aside" in " ".join(shown.split())
