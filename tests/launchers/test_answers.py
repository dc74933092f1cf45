"""Parsing of what batch systems of several versions print."""

import pytest

from launchers import JobState
from launchers.batch_systems.flux import FLUX
from launchers.batch_systems.pbs import PBS
from launchers.batch_systems.slurm import SLURM
from tests.launchers.fakes import flux_answers
from tests.launchers.fakes.pbs_answers import ANSWERS, VERSIONS
from tests.launchers.fakes.slurm_answers import SHOWN, WAITING
from tests.launchers.fakes.slurm_answers import VERSIONS as SLURM_VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["away", "silent", "no such host", "system"])
def test_pbs_that_cannot_be_reached_is_waited_for(version, name):
    if name in ANSWERS.of(version):
        assert PBS.scheduler.can_wait(ANSWERS.text(name, version, command="qsub", server="pbshost"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["qstat away", "qstat unproved"])
def test_failed_qstat_is_no_answer(version, name):
    answer = ANSWERS.of(version)[name]
    assert PBS.scheduler.states("", answer.text.format(server="pbshost", job="7.pbshost"), answer.number % 256) is None


@pytest.mark.parametrize("version", SLURM_VERSIONS)
def test_every_slurm_reason_has_words(version):
    shown = SHOWN.of(version)
    for name in WAITING & set(shown):
        seen = (SLURM.scheduler.states(f"7|{shown[name].text}\n", "", 0) or {})["7"]
        assert seen.state is JobState.QUEUED, name
        assert seen.message, name
    for name in set(shown) - WAITING:
        seen = (SLURM.scheduler.states(f"7|{shown[name].text}\n", "", 0) or {})["7"]
        assert seen.state is not JobState.QUEUED, name


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("launch failed requeued held", "its node could not start it"),
        ("launch_failed_requeued_held", "its node could not start it"),
        ("user_env_retrieval_failed_requeued_held", "its login shell"),
        ("job requeued in held state", "put back into the queue"),
    ],
)
def test_requeued_and_held_job_reports_the_command_that_releases_it(reason, words):
    (seen,) = (SLURM.scheduler.states(f"7|PENDING|{reason}\n", "", 0) or {}).values()
    assert words in seen.message
    assert "scontrol release" in seen.message
    assert reason in seen.message


def test_failed_flux_query_does_not_mean_that_jobs_are_unknown():
    answers = flux_answers.ANSWERS.of(None)
    assert FLUX.scheduler.states("", answers["no answer"].text, answers["no answer"].number) is None
    assert FLUX.scheduler.states("", answers["unknown job"].text.format(job="fA1"), answers["unknown job"].number) == {}
