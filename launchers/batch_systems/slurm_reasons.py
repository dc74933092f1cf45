"""Why a job of Slurm's waits, in words (squeue(1), "JOB REASON CODES"; src/common/job_state_reason.c of Slurm)."""

_IN_WORDS = {
    "Priority": "jobs of a higher priority are before it",
    "Resources": "not enough of what it asks for is free",
    "Dependency": "another job has to end first",
    "DependencyNeverSatisfied": "the job that it depends on has failed: it will never start",
    "JobHeldUser": "is held by the user (scontrol release lets it go)",
    "JobHeldAdmin": "is held by an administrator",
    "JobHoldMaxRequeue": "is held: it was put back into the queue too often",
    "BeginTime": "its earliest start has not come yet",
    "Licenses": "no licence is free",
    "Reservation": "its reservation has not begun",
    "PartitionDown": "its partition is down: it takes jobs and starts none",
    "PartitionInactive": "its partition is not active",
    "PartitionNodeLimit": "it asks for more nodes than a job of its partition may have, or they are down",
    "PartitionTimeLimit": "it asks for more time than a job of its partition may have",
    "ReqNodeNotAvail": "nodes that it needs are down, or reserved",
    "NodeDown": "a node that it needs is down",
    "BadConstraints": "no nodes are as it asks for",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its quality of service is not valid",
    "AccountNotAllowed": "its partition does not take its account",
    "QOSNotAllowed": "its partition does not take its quality of service",
    "AccountingPolicy": "a limit of its account is reached",
    "PartitionConfig": "it asks for more than its partition may give",
    "ReservationDeleted": "its reservation is gone",
    "ReservationInvalid": "its reservation is not valid",
    "Constraints": "no nodes that are up are as it asks for",
    "SchedDefer": "it has to wait for the scheduler's next turn",
    "DeadLine": "it cannot end before its deadline any more",
    "BurstBufferResources": "not enough of the burst buffer is free",
    "BurstBufferStageIn": "its files are brought into the burst buffer",
    "FedJobLock": "another cluster of the federation decides on it",
    "Prolog": "its nodes are made ready",
    "Cleaning": "an earlier start of it is cleaned up",
}
# Of jobs that Slurm, or an administrator, put back into the queue (src/slurmctld/job_mgr.c); some write `_` for blanks.
_PUT_BACK = {
    "launch failed requeued held": "is held: its node could not start it",
    "launch failure limit exceeded requeued held": "is held: nodes could not start it too often",
    "user env retrieval failed requeued held": "is held: its login shell on the node failed or took too long",
    "job requeued in held state": "is held: it was put back into the queue",
    "job requeued in special exit state": "is held: it was put back into the queue",
}
_LET_GO = "scontrol release lets it go"
_LIMITS = ("Assoc", "QOS", "Max")
_NO_REASON = frozenset({"", "None", "(null)"})


def in_words(reason: str) -> str:
    """Return a reason in words, with Slurm's own word for it; empty if there is none, as it is if it is not known."""
    if (why := _PUT_BACK.get(reason.replace("_", " "))) is not None:
        return f"{why}; {_LET_GO} ({reason})"
    name, _, more = reason.partition(",")
    if name in _NO_REASON:
        return ""
    words = _IN_WORDS.get(name)
    if words is None and name.startswith(_LIMITS) and " " not in name:
        words = "a limit of its account, or of its quality of service, is reached"
    if words is None:
        return reason
    return f"{words} ({name}{',' if more else ''}{more})"
