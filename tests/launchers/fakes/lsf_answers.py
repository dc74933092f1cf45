"""LSF's texts, each with its source: IBM's manual, or users who saw them. LSF itself has no public source."""

from tests.launchers.fakes.answers import Answer, Answers

VERSIONS = ("10.1",)
_MANUAL = "manual of IBM Spectrum LSF 10.1"
_BY_USERS = "seen by users of LSF 10.1"

ANSWERS = Answers(
    VERSIONS,
    {
        "submitted": Answer("Job <{job}> is submitted to default queue <normal>.", 0, _MANUAL),
        # LSF's commands keep trying; here they give up at once.
        "away": Answer("LSF is down. Please wait ...", 255, "issue 9185 of equinor/ert"),
        "busy": Answer("Cannot connect to LSF. Please wait ...", 255, "issue 3097 of DataBiosphere/toil"),
        "queue limit": Answer("User <user>: Pending job threshold reached. Retrying in 60 seconds...", 255, _BY_USERS),
        # For any refusal that stays.
        "account": Answer("Bad argument for option -n. Job not submitted.", 255, "issue 1453 of Ensembles/ert"),
        # Of bjobs; with LSB_BJOBS_CONSISTENT_EXIT_CODE=N it ends with 0.
        "unknown job": Answer("Job <{job}> is not found", 255, _MANUAL),
        # Of bkill.
        "killed": Answer("Job <{job}> is being terminated", 0, _MANUAL),
        "not there": Answer("Job <{job}>: No matching job found", 255, _BY_USERS),
        "over": Answer("Job <{job}>: Job has already finished", 255, _BY_USERS),
    },
)

SHOWN = Answers(
    VERSIONS,
    {
        "queued": Answer("PEND|-|-|Job slot limit reached;", 0, _MANUAL),
        "running": Answer("RUN|-|-|-", 0, _MANUAL),
        "finished": Answer("DONE|-|-|-", 0, _MANUAL),
        "failed": Answer("EXIT|{code}|-|-", 0, _MANUAL),
        "cancelled": Answer("EXIT|130|TERM_OWNER: job killed by owner|-", 0, _MANUAL),
        "timed out": Answer("EXIT|140|TERM_RUNLIMIT: job killed after reaching LSF run time limit|-", 0, _MANUAL),
        "preempted": Answer("EXIT|131|TERM_PREEMPT: job killed after preemption|-", 0, _MANUAL),
        "node failed": Answer("EXIT|255|TERM_UNKNOWN: LSF cannot determine a termination reason|-", 0, _MANUAL),
    },
)
"""What `bjobs -o "stat exit_code exit_reason pend_reason"` shows of a job."""
