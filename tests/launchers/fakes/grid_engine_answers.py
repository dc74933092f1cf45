"""Grid Engine's texts, each with its source: a real one, or a file of Debian's Son of Grid Engine 8.1.9.

Open Cluster Scheduler continues Univa's Open Core Grid Engine; its source has the same texts for submitted and deleted
jobs. Univa's own Grid Engine (now Altair's) has no public source.
"""

from tests.launchers.fakes.answers import Answer, Answers

SEEN = "seen on Son of Grid Engine 8.1.9"
_MASTER = "source/daemons/qmaster/msg_qmaster.h"

_CONNECTION = "error: commlib error: got select error (Connection refused)"
_UNSENT = 'unable to send message to qmaster using port 6444 on host "master": got send error'


def _refused(why: str) -> str:
    return f"Unable to run job: {why}\nExiting."


ANSWERS = Answers(
    ("8.1.9",),
    {
        # Of qsub itself.
        "option": Answer('qsub: invalid option argument "{word}"', 2, SEEN),
        "no file": Answer(
            "Unable to read script file because of error: error opening {path}: No such file or directory", 14, SEEN
        ),
        "directive": Answer('Unable to read script file because of error: invalid option argument "{word}"', 2, SEEN),
        # Of the master, to a submission.
        "submitted": Answer('Your job {job} ("{name}") has been submitted', 0, SEEN),
        "name": Answer(_refused('denied: "{name}" is not a valid object name (cannot start with a digit)'), 1, SEEN),
        "resource": Answer(_refused('unknown resource "{name}"'), 1, SEEN),
        "environment": Answer(
            _refused('job rejected: the requested parallel environment "{name}" does not exist'), 1, SEEN
        ),
        "queue limit": Answer(
            _refused("job rejected: only 1 jobs are allowed per user (current job count: 1)"), 1, _MASTER
        ),
        "cluster limit": Answer(
            _refused("job rejected: only 1 jobs are allowed per cluster (current job count: 1)"), 1, _MASTER
        ),
        "account": Answer(_refused('job rejected: the requested project "proj" does not exist'), 1, SEEN),
        "queue": Answer(_refused('Job was rejected because job requests unknown queue "nosuch.q"'), 1, SEEN),
        # Of a master that is away; qdel says the second half of it to standard output.
        "away": Answer(f"{_CONNECTION}\n{_refused(_UNSENT)}", 1, SEEN),
        "qstat away": Answer(f"{_CONNECTION}\nerror: {_UNSENT}", 1, SEEN),
        "qdel away": Answer(_UNSENT, 1, SEEN),
        "connection": Answer(_CONNECTION, 1, SEEN),
        # Of qstat -xml, shortened.
        "list": Answer("<?xml version='1.0'?>\n<job_info>\n  <queue_info>", 0, SEEN),
        "listed": Answer(
            '    <job_list state="{kind}">\n'
            "      <JB_job_number>{job}</JB_job_number>\n"
            "      <JAT_prio>0.50000</JAT_prio>\n"
            "      <JB_name>{name}</JB_name>\n"
            "      <state>{letters}</state>\n"
            "      <slots>{slots}</slots>\n"
            "    </job_list>",
            0,
            SEEN,
        ),
        "list of waiting": Answer("  </queue_info>\n  <job_info>", 0, SEEN),
        "end of list": Answer("  </job_info>\n</job_info>", 0, SEEN),
        # Of qstat -j, shortened.
        "details": Answer(
            "==============================================================\n"
            "job_number:                 {job}\n"
            "owner:                      root\n"
            "job_name:                   {name}\n"
            "binding:                    NONE\n"
            'scheduling info:            queue instance "all.q@node1" dropped because it is full\n'
            "                            All queues dropped because of overload or full\n",
            0,
            SEEN,
        ),
        # Of qdel, to standard output.
        "unknown job": Answer('denied: job "{job}" does not exist', 1, SEEN),
        "again": Answer("job {job} is already in deletion", 0, _MASTER),
        "registered": Answer("root has registered the job {job} for deletion", 0, SEEN),
        "deleted": Answer("root has deleted job {job}", 0, SEEN),
    },
)
