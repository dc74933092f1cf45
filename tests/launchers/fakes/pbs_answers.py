"""PBS's texts, each with its source: files and issues of openpbs/openpbs, or a real server.

A command passes the number of its error to `exit`, which takes it modulo 256; `src/include/pbs_error.h` has the
numbers.

PBS Professional 2020 is OpenPBS 20.0, and 2022.1 is 22.05. There is no public source of PBS Professional 2021 and of
versions after 2022.1; their texts come from users.
"""

from collections.abc import Mapping

from tests.launchers.fakes.answers import Answer, Answers

SEEN = "seen on OpenPBS 23.06.06"
_BY_USERS = "seen by users of PBS 2022.1.7"
_MESSAGES = "src/lib/Liblog/pbs_messages.c"
_CONNECTING = "src/lib/Libcmds/cnt2server.c"
_QSTAT = "src/cmds/qstat.c"

_OLDEST, _OLD, _SINCE, NEWEST = "14.1", "20.0", "22.05", "23.06"
VERSIONS = (_OLDEST, _OLD, _SINCE, NEWEST)

WITHOUT_E = frozenset({_OLDEST})
"""Versions whose qstat has no `-E`: src/cmds/qstat.c."""

ONE_BY_ONE = frozenset({_OLDEST, _OLD})
"""Versions whose qdel opens a connection for each job: src/cmds/qdel.c."""

ANSWERS = Answers(
    VERSIONS,
    {
        # Of all commands.
        "away": (
            Answer(
                "Connection refused\n{command}: cannot connect to server {server} (errno=111)",
                111,
                "issue 2070 of openpbs/openpbs",
                until=_OLD,
            ),
            Answer(
                "Connection refused\n{command}: cannot connect to server {server} (errno=15010)",
                15010,
                SEEN,
                since=_SINCE,
            ),
        ),
        "silent": Answer(
            "Connection timed out\n{command}: cannot connect to server {server} (errno=15010)",
            15010,
            _BY_USERS,
            since=_SINCE,
        ),
        "no such host": Answer(
            "Unknown Host.\n{command}: cannot connect to server {server} (errno=15008)", 15008, _CONNECTING
        ),
        "system": Answer(
            "System call failure.\n{command}: cannot connect to server {server} (errno=15010)",
            15010,
            _CONNECTING,
            since=_SINCE,
        ),
        "qdel away": (
            Answer(
                "Connection refused\nqdel: cannot connect to server {server} (errno=111)",
                111,
                "src/cmds/qdel.c",
                until=_OLD,
            ),
            Answer("Connection refused\nCouldn't connect to cluster: {server}", 15010, "src/cmds/qdel.c", since=_SINCE),
        ),
        "qstat away": (
            Answer("Connection refused\nqstat: cannot connect to server {server} (errno=111)", 255, _QSTAT, until=_OLD),
            Answer(
                "Connection refused\nqstat: cannot connect to server {server} (errno=15010)", 255, SEEN, since=_SINCE
            ),
        ),
        # The ports below 1024 of the host, which prove who one is, are all in use.
        "qstat unproved": Answer(
            "pbs_iff: cannot connect to host\npbs_iff: all reserved ports in use\nqstat: Invalid credential {job}",
            15019,
            "issue 7357 of equinor/ert",
        ),
        "usage": Answer("{command}: invalid option -- '{option}'\nusage: {command} ...", 2, "getopt(3)"),
        "unknown job": Answer("{command}: Unknown Job Id {job}", 15001, _MESSAGES),
        # Of qstat; without a history it complains and ends well.
        "no history": Answer("qstat: PBS is not configured to maintain job history {job}", 0, _QSTAT),
        "finished": Answer(
            "qstat: {job} Job has finished, use -x or -H to obtain historical job information",
            15139,
            _QSTAT,
        ),
        # Of qdel.
        "deleted before": Answer("qdel: Job has finished {job}", 15139, _MESSAGES),
        "not the owner": Answer("qdel: Unauthorized Request  {job}", 15007, SEEN),
        # In the output of the job.
        "wall time": Answer(
            "=>> PBS: job killed: walltime {seconds} exceeded limit {seconds}", 0, "src/resmom/mom_main.c"
        ),
        # Of pbsnodes, shortened.
        "a host": Answer(
            "{host}\n     Mom = {host}.cluster\n     ntype = PBS\n     state = free\n     pcpus = {cores}\n"
            "     resources_available.host = {host}\n     resources_available.ncpus = {cores}\n"
            "     resources_assigned.ncpus = 0\n",
            0,
            "issue 427 of radical-cybertools/radical.saga",
        ),
        # Of qsub itself.
        "no script": Answer("qsub: script file:: {path}: No such file or directory", 1, "src/cmds/qsub.c"),
        "directive": Answer("qsub: directive error: {line} ", 2, "src/cmds/qsub.c"),
        "illegal": Answer("qsub: illegal -{option} value", 2, "src/cmds/qsub.c"),
        # Of the server, to a submission.
        "resource": Answer("qsub: Unknown resource Resource_List.{name}", 15035, _MESSAGES),
        "resource beside select": Answer(
            'qsub: "-lresource=" cannot be used with "select" or "place", resource is: {name}', 15109, _MESSAGES
        ),
        "value": Answer("qsub: Illegal attribute or resource value Resource_List.{name}", 15014, _MESSAGES),
        "queue limit": Answer("qsub: would exceed queue {queue}'s per-user limit", 15142, _MESSAGES),
        "queue limit of waiting": Answer(
            "qsub: would exceed queue {queue}'s per-user limit of jobs in 'Q' state", 15142, _MESSAGES
        ),
        "queue full": Answer("qsub: Maximum number of jobs already in queue {queue}", 15142, _MESSAGES),
        "resource limit": Answer(
            "qsub: would exceed per-user limit on resource ncpus in queue {queue}", 15143, _MESSAGES
        ),
        "limits": Answer("qsub: Job violates queue and/or server resource limits", 15036, _MESSAGES),
        "account": Answer("qsub: Invalid Account", 15049, _MESSAGES),
        "permission": Answer("qsub: Unauthorized Request ", 15007, _MESSAGES),
        "unknown queue": Answer("qsub: Unknown queue", 15018, _MESSAGES),
        "access": Answer("qsub: Access to queue is denied", 15022, _MESSAGES),
        "disabled": Answer("qsub: Queue is not enabled", 15021, _MESSAGES),
        "shutting down": Answer("qsub: Request not allowed: Server shutting down", 15060, _MESSAGES),
        "connections": Answer("qsub: Server connection table full", 15117, _MESSAGES),
        "no connection": Answer("qsub: No free connections", 15033, _MESSAGES),
        "credential": Answer("qsub: Invalid credential", 15019, _MESSAGES),
        "message": Answer("qsub: Premature end of message", 15031, "issue 2623 of openpbs/openpbs"),
        "host": Answer("qsub: Access from host not allowed, or unknown host", 15008, _MESSAGES),
    },
)

REFUSALS = frozenset(
    {"queue limit", "queue limit of waiting", "queue full", "resource limit", "limits", "account", "permission"}
    | {"unknown queue", "access", "disabled", "shutting down", "connections", "no connection", "host"}
    | {"credential", "message"}
)
"""A server's possible answers to a correct submission."""

_RAN = "Job run at Sun Nov 22 at 15:41 on (node1:ncpus={cores})"

COMMENTS = Answers(
    VERSIONS,
    {
        "queued": Answer("Not Running: Not enough free nodes available", 0, SEEN),
        "queue stopped": Answer("Not Running: Queue not started.", 0, SEEN),
        "never": Answer("Can Never Run: Insufficient amount of resource: vnode (nosuch != node1,node2)", 0, SEEN),
        "held by the user": Answer("Job held by {user} on Sun Nov 22 at 15:41", 0, SEEN),
        "deleted before": Answer(
            "Not Running: Not enough free nodes available and terminated", 0, "issue 340 of argonne-lcf/user-guides"
        ),
        "running": Answer(_RAN, 0, SEEN),
        "finished": Answer(f"{_RAN} and finished", 0, SEEN),
        "failed": Answer(f"{_RAN} and failed", 0, SEEN),
        "cancelled": Answer(f"{_RAN} and terminated by {{user}}@{{server}}", 0, SEEN),
        "preempted": Answer(f"{_RAN} and terminated by Scheduler@{{server}}", 0, SEEN),
        "timed out": Answer(f"{_RAN} and exceeded resource walltime", 0, SEEN),
        "node failed": Answer(_RAN, 0, SEEN),
    },
)

HELD = {"held by the user": "u"}
"""The `Hold_Types` of a job that waits for this reason."""

ENDS: Mapping[str, Mapping[str, str]] = {
    "cancelled": {"Exit_status": "271", "substate": "91"},
    "preempted": {"Exit_status": "271", "substate": "91"},
    "timed out": {"Exit_status": "-29", "substate": "93"},
    "node failed": {"Exit_status": "-20", "substate": "93"},
    "killed": {"Exit_status": "265", "substate": "93"},
}
"""How a job that did not end by itself is shown; all of it was seen on OpenPBS 23.06.06."""
