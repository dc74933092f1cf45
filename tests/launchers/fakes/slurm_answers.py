"""Slurm's texts, from 20.11 to 25.05, each with its source: files of SchedMD/slurm, or a real one.

Changes between the versions are from NEWS (20.11 to 24.11) and CHANGELOG/slurm-25.05.md. Texts without `since` are in
the sources of 22.05.8 and of 24.11.5, and neither NEWS nor CHANGELOG mentions a change.
"""

from tests.launchers.fakes.answers import Answer, Answers

SEEN = "seen on Slurm 22.05.8"
_ERRORS = "src/common/slurm_errno.c"
_SBATCH = "src/sbatch/sbatch.c"
_STATES = "src/common/slurm_protocol_defs.c"
_REASONS = "src/common/job_state_reason.c"
_JOBS = "src/slurmctld/job_mgr.c"

VERSIONS = ("20.11", "21.08", "22.05", "23.02", "23.11", "24.05", "24.11", "25.05")

_AWAY = "Unable to contact slurm controller (connect failure)"
_FAILED = "sbatch: error: Batch job submission failed: "
_POLICY = f"{_FAILED}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
_USAGE = "{command}: unrecognized option '{{}}'\nTry \"{command} --help\" for more information"

ANSWERS = Answers(
    VERSIONS,
    {
        # Of the commands themselves.
        "usage of sbatch": Answer(_USAGE, 255, SEEN),
        "usage": Answer(_USAGE, 1, SEEN),
        "no file": Answer("sbatch: error: Unable to open file {path}", 1, SEEN),
        "no script": Answer(
            "sbatch: error: This does not look like a batch script.  The first\n"
            "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
            "sbatch: error: For instance: #!/bin/sh",
            1,
            SEEN,
        ),
        "directive": Answer("sbatch: error: Invalid directive found in batch script: {word}", 1, "src/sbatch/opt.c"),
        "number": Answer('sbatch: error: Invalid numeric value "{value}" for --{option}.', 1, SEEN),
        "time": Answer("sbatch: error: Invalid --time specification", 255, SEEN),
        "submitted": Answer("Submitted batch job {job}", 0, _SBATCH),
        "job ids": Answer("squeue: error: Invalid job id: {jobs}", 1, SEEN),
        "job id": Answer("scancel: error: Invalid job id {job}", 1, SEEN),
        "unknown job": Answer("slurm_load_jobs error: Invalid job id specified", 1, SEEN),
        # A controller that is away.
        "away": Answer(f"{_FAILED}{_AWAY}", 1, SEEN),
        "squeue away": Answer(f"slurm_load_jobs error: {_AWAY}", 1, SEEN),
        "scancel away": Answer(f"scancel: error: Kill job error on job id {{job}}: {_AWAY}", 8, SEEN),
        "not the owner": Answer("scancel: error: Kill job error on job id {job}: Access/permission denied", 1, SEEN),
        # Refusals that pass. sbatch itself tries again for two minutes where a text says so.
        "queue limit": Answer(f"sbatch: error: AssocMaxSubmitJobLimit\n{_POLICY}", 1, _JOBS),
        "QOS limit": Answer(f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{_POLICY}", 1, _JOBS),
        "full": Answer(
            "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n"
            f"{_FAILED}Resource temporarily unavailable",
            1,
            _SBATCH,
        ),
        "no record": Answer(
            "sbatch: error: Slurm job queue full, sleeping and retrying\n"
            f"{_FAILED}Unable to create job record, try again",
            1,
            _SBATCH,
        ),
        "busy": Answer(
            f"sbatch: Job creation temporarily disabled, retrying\n{_FAILED}Requested nodes are busy", 1, _SBATCH
        ),
        "rate": Answer(f"{_FAILED}Rate limit exceeded, please retry momentarily", 1, _ERRORS, since="23.02"),
        "rate for long": Answer(f"{_FAILED}Rate limit exceeded, please retry later", 1, _ERRORS, since="24.11"),
        "timeout": Answer(f"{_FAILED}Socket timed out on send/recv operation", 1, _ERRORS),
        "standby": Answer(f"{_FAILED}Slurm backup controller in standby mode", 1, _ERRORS),
        "other controller": Answer(
            f"{_FAILED}Controller is in standby mode, try a different controller", 1, _ERRORS, since="22.05"
        ),
        "disabled": Answer(f"{_FAILED}System submissions disabled", 1, _ERRORS),
        "partition down": Answer(f"{_FAILED}Partition in DOWN state", 1, _ERRORS),
        "partition inactive": Answer(f"{_FAILED}Required partition not available (inactive or drain)", 1, _ERRORS),
        # Refusals for good.
        "processors": Answer(f"{_FAILED}More processors requested than permitted", 1, SEEN),
        "nodes": Answer(f"{_FAILED}Requested node configuration is not available", 1, _ERRORS),
        "memory": Answer(
            "sbatch: error: Memory specification can not be satisfied\n"
            f"{_FAILED}Requested node configuration is not available",
            1,
            SEEN,
        ),
        "time limit": Answer(f"{_FAILED}Requested time limit is invalid (missing or exceeds some limit)", 1, _ERRORS),
        "account": Answer(f"{_FAILED}Invalid account or account/partition combination specified", 1, _ERRORS),
        "partition": Answer(
            f"sbatch: error: invalid partition specified: nosuch\n{_FAILED}Invalid partition name specified", 1, SEEN
        ),
        "group": Answer(f"{_FAILED}User's group not permitted to use this partition", 1, _ERRORS),
        "quality": Answer(f"{_FAILED}Invalid qos specification", 1, _ERRORS),
        "reservation": Answer(f"{_FAILED}Requested reservation is invalid", 1, SEEN),
        "feature": Answer(f"{_FAILED}Invalid feature specification", 1, SEEN),
        "licence": Answer(f"{_FAILED}Invalid license specification", 1, SEEN),
        "gres": Answer("sbatch: error: Invalid generic resource (gres) specification", 1, SEEN),
    },
)

PASSING = frozenset(
    {"queue limit", "QOS limit", "full", "no record", "busy", "rate", "rate for long", "timeout", "standby"}
    | {"other controller", "disabled", "partition down", "partition inactive"}
)
FINAL = frozenset(
    {"processors", "nodes", "memory", "time limit", "account", "partition", "group", "quality", "reservation"}
    | {"feature", "licence", "gres"}
)
"""A controller's possible answers to a correct submission: temporary refusals and permanent ones."""

SHOWN = Answers(
    VERSIONS,
    {
        "queued": Answer("PENDING|Resources", 0, _REASONS),
        "running": Answer("RUNNING|None", 0, SEEN),
        "ending": Answer("COMPLETING|None", 0, SEEN),
        "finished": Answer("COMPLETED|None", 0, SEEN),
        "failed": Answer("FAILED|NonZeroExitCode", 0, SEEN),
        "cancelled": Answer("CANCELLED|None", 0, SEEN),
        "timed out": Answer("TIMEOUT|TimeLimit", 0, SEEN),
        "preempted": Answer("PREEMPTED|None", 0, SEEN),
        "node failed": Answer("NODE_FAIL|NodeDown", 0, _STATES),
        "out of memory": Answer("OUT_OF_MEMORY|OutOfMemory", 0, _STATES),
        # Jobs that wait; `scontrol` puts them there, or Slurm when a node could not start them.
        "held": Answer("PENDING|JobHeldUser", 0, SEEN),
        "requeued": Answer("PENDING|job requeued in held state", 0, SEEN),
        "special exit": Answer("SPECIAL_EXIT|job requeued in held state", 0, SEEN),
        "reservation deleted": Answer("RESV_DEL_HOLD|ReservationDeleted", 0, _STATES),
        "elsewhere": Answer("REQUEUE_FED|None", 0, _STATES),
        "launch failed": Answer("PENDING|launch failed requeued held", 0, _JOBS),
        "often failed": Answer("PENDING|launch failure limit exceeded requeued held", 0, _JOBS, since="23.02"),
        "no environment": Answer(
            "PENDING|user_env_retrieval_failed_requeued_held", 0, "seen by users of Slurm 25.05", since="25.05"
        ),
        "constraints": (
            Answer("PENDING|BadConstraints", 0, _REASONS, until="23.02"),
            Answer("PENDING|Constraints", 0, _REASONS, since="23.11"),
        ),
    },
)
"""What `squeue --format=%T|%r` shows of a job."""

WAITING = frozenset(
    {"queued", "held", "requeued", "special exit", "reservation deleted", "elsewhere", "launch failed"}
    | {"often failed", "no environment", "constraints"}
)

HIDDEN = frozenset({"RESV_DEL_HOLD", "REQUEUE_FED", "REQUEUE_HOLD", "REQUEUED", "RESIZING", "STAGE_OUT", "STOPPED"})
"""States that `--states=all` hides before 22.05 (src/squeue/opts.c, `_build_all_states_list`; NEWS of 22.05.0)."""
