"""Flux's texts, each with its source: files of flux-framework/flux-core, or of its flux-accounting."""

from tests.launchers.fakes.answers import Answer, Answers

VERSIONS = ("0.60",)
_ACCOUNTING = "src/plugins/mf_priority.cpp of flux-framework/flux-accounting"
_RAISE = "src/modules/job-manager/raise.c"
_LIST = "src/bindings/python/flux/job/list.py"
_INFO = "src/bindings/python/flux/job/info.py"

ANSWERS = Answers(
    VERSIONS,
    {
        "command": Answer("flux: `{name}' is not a flux command.  See 'flux --help'", 1, "src/cmd/flux.c"),
        "option": Answer("flux-{command}: error: unrecognized arguments: {option}", 2, "argparse"),
        "away": Answer(
            "flux-{command}: ERROR: Unable to connect to Flux: broker socket /run/flux/local was not found",
            1,
            "manual of flux-core",
        ),
        # Refusals of the accounting of a site.
        "queue limit": Answer("flux-batch: ERROR: [Errno 22] user has max active jobs", 1, _ACCOUNTING),
        "account": Answer(
            "flux-batch: ERROR: [Errno 22] cannot find user/bank or user/default bank entry for uid: 1000",
            1,
            _ACCOUNTING,
        ),
        # From flux jobs, which exits with 0 even if it could not find or query a job.
        "unknown job": Answer("JobID {job} unknown", 0, _LIST),
        "no answer": Answer("rpc: Connection reset by peer", 0, _LIST),
        # Of flux cancel.
        "not there": Answer("flux-cancel: ERROR: {job}: unknown job id", 1, _RAISE),
        "inactive": Answer("flux-cancel: ERROR: {job}: job is inactive", 1, _RAISE),
    },
)

SHOWN = Answers(
    VERSIONS,
    {
        "queued": Answer("SCHED|||", 0, _INFO),
        "running": Answer("RUN|||", 0, _INFO),
        "finished": Answer("INACTIVE|COMPLETED|{code}|", 0, _INFO),
        "failed": Answer("INACTIVE|FAILED|{code}|", 0, _INFO),
        "cancelled": Answer("INACTIVE|CANCELED||cancel", 0, _INFO),
        "timed out": Answer("INACTIVE|TIMEOUT|142|timeout", 0, _INFO),
        "node failed": Answer("INACTIVE|FAILED||node-failure", 0, "src/modules/job-exec/exec.c"),
    },
)
"""What `--format={state}|{result}|{returncode}|{exception.type}` shows of a job. Flux itself preempts no job."""
