"""Refusals of schedulers: which are temporary and which are permanent."""

import pytest

from launchers.batch_systems.base import Refusal
from launchers.batch_systems.registry import BATCH_SYSTEMS
from tests.launchers.fakes import pbs_answers, slurm_answers
from tests.launchers.fakes.pbs_answers import REFUSALS

SCHEDULERS = {name: system.scheduler for name, system in BATCH_SYSTEMS.items()}
PBS, SLURM = SCHEDULERS["pbs"], SCHEDULERS["slurm"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("slurm", "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"),
        ("pbs", "qsub: Maximum number of jobs in 'Q' state for user u already in queue workq"),
        (
            "grid-engine",
            "Unable to run job: job rejected: only 1 jobs are allowed per user (current job count: 1)\nExiting.",
        ),
        (
            "grid-engine",
            'Unable to run job: unable to send message to qmaster using port 36444 on host "vm": got send error.',
        ),
        ("lsf", "User <user>: Pending job threshold reached. Retrying in 60 seconds..."),
        ("lsf", "Cannot connect to LSF. Please wait ..."),
        ("flux", "flux-batch: ERROR: [Errno 22] user has max active jobs"),
    ],
)
def test_complaints_about_jobs_accepted_later(name, complaint):
    assert SCHEDULERS[name].can_wait(complaint)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("slurm", "sbatch: error: QOSMaxCpuPerUserLimit"),
        ("pbs", "qsub: Unknown resource Resource_List.storage"),
        ("pbs", "qsub: Job violates queue and/or server resource limits"),
        ("pbs", "qsub: Unknown queue"),
        ("grid-engine", 'Unable to run job: job rejected: the requested project "proj" does not exist\nExiting.'),
        ("grid-engine", "Unable to run job: error: no suitable queues\nExiting."),
        ("grid-engine", 'Unable to run job: unknown resource "nosuch"\nExiting.'),
        ("lsf", "99: Bad number of processors. Job not submitted."),
        ("flux", "flux-batch: ERROR: [Errno 22] cannot find user/bank or user/default bank entry for uid: 1000"),
    ],
)
def test_complaints_about_jobs_never_accepted(name, complaint):
    assert not SCHEDULERS[name].can_wait(complaint)


@pytest.mark.parametrize(
    ("name", "complaint", "kind"),
    [
        ("pbs", "qsub: would exceed per-user limit on resource ncpus in queue q7", Refusal.NO_ROOM),
        ("pbs", "qsub: would exceed complex's per-user limit", None),
        ("pbs", "qsub: Job violates queue and/or server resource limits", Refusal.TOO_LARGE),
        ("pbs", "qsub: Unknown resource Resource_List.qos", Refusal.ALL_JOBS),
        ("pbs", "qsub: Unknown queue", Refusal.ALL_JOBS),
        ("pbs", "qsub: hook error", None),
        ("slurm", "sbatch: error: Batch job submission failed: Invalid partition name specified", Refusal.ALL_JOBS),
        ("slurm", "sbatch: error: Batch job submission failed: Invalid license specification", Refusal.ALL_JOBS),
        ("slurm", "sbatch: error: Memory required by task is not available", Refusal.TOO_LARGE),
        (
            "slurm",
            "sbatch: error: Batch job submission failed: Requested node configuration is not available",
            Refusal.TOO_LARGE,
        ),
        ("flux", "flux-batch: ERROR: [Errno 22] user has max active jobs", None),
    ],
)
def test_kinds_of_refusal(name, complaint, kind):
    assert SCHEDULERS[name].refusal(complaint) is kind


@pytest.mark.parametrize("why", sorted(REFUSALS))
def test_every_pbs_refusal_is_temporary_or_permanent(why):
    text = pbs_answers.ANSWERS.text(why, None, queue="workq")
    assert PBS.can_wait(text) or PBS.refusal(text) is not None
    # Queues are disabled before every maintenance.
    if why in {
        "disabled",
        "shutting down",
        "connections",
        "no connection",
        "queue full",
        "queue limit",
        "queue limit of waiting",
        "credential",
        "message",
    }:
        assert PBS.can_wait(text)
        assert PBS.refusal(text) is None


@pytest.mark.parametrize("version", slurm_answers.VERSIONS)
def test_every_slurm_refusal_is_temporary_or_permanent(version):
    answers = slurm_answers.ANSWERS.of(version)
    for why in slurm_answers.PASSING & set(answers):
        assert SLURM.can_wait(answers[why].text), why
        assert SLURM.refusal(answers[why].text) is None, why
    for why in slurm_answers.FINAL & set(answers):
        assert not SLURM.can_wait(answers[why].text), why
        assert SLURM.refusal(answers[why].text) is not None, why
