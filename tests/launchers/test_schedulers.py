"""Parsing of what schedulers really printed."""

import pytest

from launchers import EndReason, JobState
from launchers.batch_systems.base import JobReport, every_line_matches
from launchers.batch_systems.registry import BATCH_SYSTEMS

QUEUED, RUNNING, ENDED, LOST = JobState.QUEUED, JobState.RUNNING, JobState.ENDED, JobState.LOST
SCHEDULERS = {name: system.scheduler for name, system in BATCH_SYSTEMS.items()}
SLURM, PBS, GRID_ENGINE, LSF, FLUX = (SCHEDULERS[name] for name in ("slurm", "pbs", "grid-engine", "lsf", "flux"))


@pytest.mark.parametrize(
    ("scheduler", "answer", "number"),
    [
        (SLURM, "17\n", "17"),
        (SLURM, "17;cluster2\n", "17"),
        (SLURM, "sbatch: warning about something\n17\n", "17"),
        (SLURM, "", None),
        (PBS, "7.pbshost\n", "7.pbshost"),
        (PBS, "123456.gadi-pbs\n", "123456.gadi-pbs"),
        (PBS, "You have 3 jobs and 200.5 KSU left.\n\n123456.gadi-pbs\n", "123456.gadi-pbs"),
        (PBS, "qsub: no\n", None),
        (GRID_ENGINE, "17\n", "17"),
        (GRID_ENGINE, "Unable to run job: error: no suitable queues\nExiting.\n", None),
        (LSF, "Job <771278> is submitted to default queue <short>.\n", "771278"),
        (LSF, "Job not submitted.\n", None),
        (FLUX, "\u0192iFkbMhFM\n", "fiFkbMhFM"),
        (FLUX, "fiFkbMhFM\n", "fiFkbMhFM"),
        (FLUX, "", None),
    ],
)
def test_number_of_a_submitted_job(scheduler, answer, number):
    assert scheduler.job_id(answer) == number


# What sites' own commands print around the number, with the answer for {}.
WRAPPED = [
    "{}\n",
    "\n\n{}\n\n",
    "\r\n  {}  \r\n",
    "*** Maintenance on 12 Dec 2026, 08:00 ***\n{}\n",
    "{}\nCharged to project ab12: 1.5 of 2000.25 hours left; 3 jobs in the queue\n",
    "\x1b[1;32m{}\x1b[0m\n",
    "\x1b]0;submitting\x07{}\n",
    "checking job... ok\n================\n{}\n================\nfinished\n",
]


@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize(
    ("scheduler", "answer", "number"),
    [
        (SLURM, "12", "12"),
        (SLURM, "12;x", "12"),
        (SLURM, "Submitted batch job 12", "12"),
        (SLURM, "Submitted batch job 12 on cluster x", "12"),
        (PBS, "123.server", "123.server"),
        (PBS, "123.pbs-1.site.edu", "123.pbs-1.site.edu"),
        (PBS, "123[].server", "123[].server"),
        (PBS, "4711.1srv", "4711.1srv"),
        (PBS, "123.10.0.0.1", "123.10.0.0.1"),
        (PBS, "Job 123.pbs.site.edu submitted.", "123.pbs.site.edu"),
        (GRID_ENGINE, "5", "5"),
        (GRID_ENGINE, 'Your job 5 ("name 7") has been submitted', "5"),
        (GRID_ENGINE, 'Your job-array 5.1-3:1 ("name") has been submitted', "5"),
        (LSF, "Job <12> is submitted to queue <q>.", "12"),
        (LSF, "Job <12> is submitted to default queue <q 7>.", "12"),
        (FLUX, "f1abc", "f1abc"),
        (FLUX, "\u01921abc", "f1abc"),
    ],
)
def test_number_is_found_among_what_a_site_prints(scheduler, answer, number, wrapped):
    assert scheduler.job_id(wrapped.format(answer)) == number


@pytest.mark.parametrize(
    ("scheduler", "answer"),
    [
        (SLURM, "5000\n12\n"),
        (SLURM, "Submitted batch job 12\nSubmitted batch job 13\n"),
        (SLURM, "job 12 was put into queue 3\n"),
        (PBS, "123.server\n124.server\n"),
        (PBS, "Your jobs 123.server and 124.server wait\n"),
        (PBS, "5000\n123\n"),
        (PBS, "Your job costs 1.5 units\n"),
        (GRID_ENGINE, 'Your job 5 ("a") has been submitted\nYour job 6 ("b") has been submitted\n'),
        (LSF, "Job <12> is submitted to queue <q>.\nJob <13> is submitted to queue <q>.\n"),
        (FLUX, "f1abc\nf2abc\n"),
        (FLUX, "finished\n"),
    ],
)
def test_no_number_is_guessed(scheduler, answer):
    assert scheduler.job_id(answer) is None


SQUEUE = """\
10|PENDING|Resources
34|PENDING|Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions
8|RUNNING|None
19|COMPLETING|None
1|COMPLETED|None
2|FAILED|NonZeroExitCode
15|CANCELLED|Priority
20|PREEMPTED|None
37|NODE_FAIL|NodeDown
40|TIMEOUT|TimeLimit
41|OUT_OF_MEMORY|OutOfMemory
"""


def test_states_of_squeue():
    seen = SLURM.states(SQUEUE, "", 0)
    assert {number: (one.state, one.reason) for number, one in seen.items()} == {
        "10": (QUEUED, None),
        "34": (QUEUED, None),
        "8": (RUNNING, None),
        "19": (RUNNING, None),
        "1": (ENDED, EndReason.EXITED),
        "2": (ENDED, EndReason.EXITED),
        "15": (ENDED, EndReason.CANCELLED),
        "20": (LOST, EndReason.PREEMPTED),
        "37": (LOST, None),
        "40": (ENDED, EndReason.TIMED_OUT),
        "41": (ENDED, EndReason.EXITED),
    }
    assert seen["34"].message.endswith("in higher priority partitions")


@pytest.mark.parametrize("state", ["SUSPENDED", "STOPPED"])
def test_suspended_states_of_squeue(state):
    assert SLURM.states(f"8|{state}|None\n", "", 0) == {"8": JobReport(RUNNING, suspended=True)}


@pytest.mark.parametrize(("state", "suspended"), [("USUSP", True), ("SSUSP", True), ("PSUSP", False), ("RUN", False)])
def test_suspended_states_of_bjobs(state, suspended):
    assert LSF.states(f"8|{state}|-|-|-\n", "", 0)["8"].suspended is suspended


@pytest.mark.parametrize(
    ("scheduler", "complaint", "over"),
    [
        (SLURM, "scancel: error: Kill job error on job id 8: Job/step already completing or completed\n", True),
        (SLURM, "scancel: error: Kill job error on job id 8: Unable to contact slurm controller\n", False),
        (PBS, "qdel: Job has finished 7.host\nqdel: Unknown Job Id 8.host\n", True),
        (PBS, "qdel: Request invalid for state of job 7.host\n", True),
        (PBS, "qdel: Job has finished 7.host\nqdel: Unauthorized Request  8.host\n", False),
        (GRID_ENGINE, 'denied: job "99" does not exist\nroot has deleted job 5\n', True),
        (GRID_ENGINE, "job 3 is already in deletion\nroot has registered the job 4 for deletion\n", True),
        (GRID_ENGINE, "error: commlib error: got select error (Connection refused)\n", False),
        (LSF, "Job <7>: Job has already finished\nJob <8>: No matching job found\n", True),
        (LSF, "Failed in an LSF library call: Master LIM is down. Please wait ...\n", False),
        (FLUX, "flux-cancel: ERROR: f7: job is inactive\n", True),
        (FLUX, "flux-cancel: ERROR: Unable to connect to Flux: [Errno 2] No such file or directory\n", False),
        (SLURM, "", False),
    ],
)
def test_complaints_about_jobs_that_have_ended(scheduler, complaint, over):
    assert every_line_matches(scheduler.nothing_to_end, complaint) is over


QSTAT = """\
Job Id: 7.pbshost
    Job_Name = at-1a2b3c4d-00012-1
    Job_Owner = user@login
    resources_used.walltime = 00:00:11
    job_state = R
    queue = workq
    comment = Job run at Sun Nov 22 at 02:00 on (node1:ncpus=2:mem=2097152kb) and
\t it goes on
    Variable_List = PBS_O_HOME=/home/user,PBS_O_WORKDIR=/scratch/odd
    job_state = F
    Exit_status = 0
,PBS_O_QUEUE=workq
    etime = Sun Nov 22 02:00:00 2026

"""


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("None", ""),
        ("Resources", "not enough of what it asks for is free (Resources)"),
        ("JobHeldUser", "is held by the user (scontrol release lets it go) (JobHeldUser)"),
        (
            "ReqNodeNotAvail, UnavailableNodes:n1",
            "nodes that it needs are down, or reserved (ReqNodeNotAvail, UnavailableNodes:n1)",
        ),
        (
            "QOSMaxJobsPerUserLimit",
            "a limit of its account, or of its quality of service, is reached (QOSMaxJobsPerUserLimit)",
        ),
        ("QOSNotAllowed", "its partition does not take its quality of service (QOSNotAllowed)"),
        ("SomethingNew", "SomethingNew"),
    ],
)
def test_reasons_of_slurm_in_words(reason, words):
    assert SLURM.states(f"7|PENDING|{reason}\n", "", 0) == {"7": JobReport(QUEUED, message=words)}


def pbs_job(number: int, **attributes: str) -> str:
    return f"Job Id: {number}.host\n" + "".join(f"    {key} = {value}\n" for key, value in attributes.items()) + "\n"


def test_multi_line_variable_does_not_set_the_jobs_state():
    assert PBS.states(QSTAT, "", 0) == {"7.pbshost": JobReport(RUNNING)}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"job_state": "Q", "comment": "Not Running: no room"}, JobReport(QUEUED, message="Not Running: no room")),
        ({"job_state": "H", "Hold_Types": "n"}, JobReport(QUEUED, message="is held")),
        ({"job_state": "H", "Hold_Types": "u"}, JobReport(QUEUED, message="is held by the user (qrls lets it go)")),
        (
            {"job_state": "H", "Hold_Types": "os", "comment": "not yet"},
            JobReport(QUEUED, message="is held by an operator and the system; not yet"),
        ),
        ({"job_state": "E"}, JobReport(RUNNING)),
        ({"job_state": "S"}, JobReport(RUNNING, suspended=True)),
        ({"job_state": "U"}, JobReport(RUNNING, suspended=True)),
        ({"job_state": "F", "Exit_status": "0", "substate": "92"}, JobReport(ENDED, EndReason.EXITED, 0)),
        ({"job_state": "F", "Exit_status": "3", "substate": "93"}, JobReport(ENDED, EndReason.EXITED, 3)),
        ({"job_state": "F", "Exit_status": "267", "substate": "93"}, JobReport(ENDED, EndReason.EXITED, -11)),
    ],
)
def test_states_of_pbs_qstat(attributes, expected):
    assert PBS.states(pbs_job(7, **attributes), "", 0) == {"7.host": expected}


@pytest.mark.parametrize(
    ("attributes", "state", "reason"),
    [
        ({"Exit_status": "271", "substate": "91"}, ENDED, EndReason.CANCELLED),
        ({"Exit_status": "265", "substate": "91"}, ENDED, EndReason.CANCELLED),
        ({"Exit_status": "271"}, ENDED, EndReason.CANCELLED),
        ({"substate": "91"}, ENDED, EndReason.CANCELLED),
        ({"Exit_status": "-29", "substate": "93"}, ENDED, EndReason.TIMED_OUT),
        ({"Exit_status": "-27", "substate": "93"}, ENDED, EndReason.EXITED),
        ({"Exit_status": "-3", "substate": "93"}, LOST, None),
        ({"Exit_status": "-20", "substate": "93"}, LOST, None),
    ],
)
def test_ends_of_pbs_jobs(attributes, state, reason):
    seen = PBS.states(pbs_job(7, job_state="F", **attributes), "", 0)["7.host"]
    assert (seen.state, seen.reason) == (state, reason)
    assert seen.message


RAN = "Job run at Sun Nov 22 at 15:41 on (node2:ncpus=1)"


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (
            {"Exit_status": "271", "substate": "91", "comment": f"{RAN} and terminated \n\tby Scheduler@pbshost"},
            JobReport(LOST, EndReason.PREEMPTED, message="was preempted: PBS deleted it for another job"),
        ),
        (
            {"Exit_status": "271", "substate": "91", "comment": f"{RAN} and terminated \n\tby ann@login1"},
            JobReport(ENDED, EndReason.CANCELLED, message="was deleted with qdel by ann@login1, not by autotune"),
        ),
        # PBS did not send this signal: an administrator did, or a node without memory.
        (
            {"Exit_status": "265", "substate": "93", "comment": f"{RAN} and failed"},
            JobReport(ENDED, EndReason.EXITED, -9),
        ),
        (
            {"Exit_status": "271", "substate": "93", "comment": f"{RAN} and failed"},
            JobReport(ENDED, EndReason.EXITED, -15),
        ),
        (
            {"Exit_status": "-20", "substate": "93", "comment": RAN},
            JobReport(LOST, message=f"its node failed, or PBS lost contact with it (Exit_status -20): {RAN}"),
        ),
    ],
)
def test_pbs_reports_who_ended_a_job(attributes, expected):
    assert PBS.states(pbs_job(7, job_state="F", **attributes), "", 0) == {"7.host": expected}


BJOBS = """\
1|PEND|-|-|Job slot limit reached;
2|RUN|-|-|-
3|SSUSP|-|-|-
4|DONE|-|-|-
5|EXIT|3|-|-
6|EXIT|140|TERM_RUNLIMIT: job killed after reaching LSF run time limit|-
7|EXIT|130|TERM_OWNER: job killed by owner|-
8|EXIT|131|TERM_PREEMPT: job killed after preemption|-
9|ZOMBI|-|-|-
"""


def test_states_of_bjobs():
    seen = LSF.states(BJOBS, "", 0)
    assert {number: (one.state, one.reason, one.exit_code) for number, one in seen.items()} == {
        "1": (QUEUED, None, None),
        "2": (RUNNING, None, None),
        "3": (RUNNING, None, None),
        "4": (ENDED, EndReason.EXITED, 0),
        "5": (ENDED, EndReason.EXITED, 3),
        "6": (ENDED, EndReason.TIMED_OUT, None),
        "7": (ENDED, EndReason.CANCELLED, None),
        "8": (LOST, EndReason.PREEMPTED, None),
        "9": (LOST, None, None),
    }


FLUX_JOBS = """\
fA1|SCHED|||
fA2|RUN|||
fA3|CLEANUP|||
fA4|INACTIVE|COMPLETED|0|
fA5|INACTIVE|FAILED|3|
fA6|INACTIVE|FAILED|139|
fA7|INACTIVE|CANCELED||cancel
fA8|INACTIVE|TIMEOUT|142|timeout
fA9|INACTIVE|FAILED||node-failure
"""


def test_states_of_flux_jobs():
    seen = FLUX.states(FLUX_JOBS, "", 0)
    assert {number: (one.state, one.reason, one.exit_code) for number, one in seen.items()} == {
        "fA1": (QUEUED, None, None),
        "fA2": (RUNNING, None, None),
        "fA3": (RUNNING, None, None),
        "fA4": (ENDED, EndReason.EXITED, 0),
        "fA5": (ENDED, EndReason.EXITED, 3),
        "fA6": (ENDED, EndReason.EXITED, -11),
        "fA7": (ENDED, EndReason.CANCELLED, None),
        "fA8": (ENDED, EndReason.TIMED_OUT, None),
        "fA9": (LOST, None, None),
    }


UNKNOWN = {
    "slurm": (1, "slurm_load_jobs error: Invalid job id specified"),
    "pbs": (153, "qstat: Unknown Job Id 8.host\nqstat: Unknown Job Id 9.host"),
    "lsf": (255, "Job <8> is not found\nJob <9> is not found"),
    "flux": (0, "JobID f8 unknown\nJobID f9 unknown"),
}
AWAY = {
    "slurm": (1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
    "pbs": (255, "Connection refused\nqstat: cannot connect to server pbshost (errno=15010)"),
    "lsf": (255, "Failed in an LSF library call: Master LIM is down. Please wait ..."),
    "flux": (1, "flux-jobs: ERROR: Unable to connect to Flux: broker socket /run/flux/local was not found"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_only_unknown_jobs_are_no_trouble(name):
    scheduler = SCHEDULERS[name]
    code, complaint = UNKNOWN[name]
    assert scheduler.states("", complaint, code) == {}
    assert scheduler.states("", AWAY[name][1], AWAY[name][0]) is None
    assert scheduler.states("", f"{complaint}\n{AWAY[name][1]}", code) is None
    assert scheduler.states("", "", code or 1) is None
    assert scheduler.states("", "Segmentation fault", 139) is None


def test_jobs_beside_an_unknown_one_are_reported():
    assert PBS.states(pbs_job(7, job_state="R"), UNKNOWN["pbs"][1], 153) == {"7.host": JobReport(RUNNING)}
    finished = "qstat: 8.host Job has finished, use -x or -H to obtain historical job information"
    assert PBS.states(pbs_job(7, job_state="R"), finished, 35) == {"7.host": JobReport(RUNNING)}


def test_complaint_of_a_server_without_history_selects_the_fallback():
    simpler = PBS.fallback("qstat: PBS is not configured to maintain job history 7.host")
    assert (simpler.status(["7.host"]), simpler.reports_ended) == (["qstat", "-E", "-f", "7.host"], False)
    assert PBS.fallback(AWAY["pbs"][1]) is None
    # qstat exits with 0 nevertheless.
    assert PBS.states("", "qstat: PBS is not configured to maintain job history 7.host\n", 0) is None
    assert SLURM.fallback("anything") is None


def test_pbs_comment_marks_a_job_that_never_starts():
    comment = "Can Never Run: Insufficient amount of resource: ncpus (R: 96 A: 48 T: 48)"
    assert PBS.states(pbs_job(7, job_state="Q", comment=comment), "", 0)["7.host"].never_starts
    assert not PBS.states(pbs_job(7, job_state="Q", comment="Not Running: no room"), "", 0)["7.host"].never_starts


def test_names_are_those_of_site_files():
    assert list(BATCH_SYSTEMS) == ["slurm", "pbs", "grid-engine", "lsf", "flux"]
    assert all(system.name == name for name, system in BATCH_SYSTEMS.items())
