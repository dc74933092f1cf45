"""Parsing of what Grid Engine's qstat really printed."""

from launchers import JobState
from launchers.batch_systems.registry import BATCH_SYSTEMS

QUEUED, RUNNING = JobState.QUEUED, JobState.RUNNING
GRID_ENGINE = BATCH_SYSTEMS["grid-engine"].scheduler


# Printed by Son of Grid Engine 8.1.9, without lines that are not parsed.
QSTAT_XML = """\
<?xml version='1.0'?>
<job_info  xmlns:xsd="http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd">
  <queue_info>
    <job_list state="running">
      <JB_job_number>1</JB_job_number>
      <JB_name>autotune-x</JB_name>
      <state>r</state>
      <JAT_start_time>2026-11-22T17:45:37</JAT_start_time>
    </job_list>
    <job_list state="running">
      <JB_job_number>2</JB_job_number>
      <state>dr</state>
    </job_list>
    <job_list state="running">
      <JB_job_number>3</JB_job_number>
      <state>s</state>
    </job_list>
  </queue_info>
  <job_info>
    <job_list state="pending">
      <JB_job_number>4</JB_job_number>
      <state>qw</state>
    </job_list>
    <job_list state="pending">
      <JB_job_number>5</JB_job_number>
      <state>hqw</state>
    </job_list>
    <job_list state="pending">
      <JB_job_number>6</JB_job_number>
      <state>Eqw</state>
    </job_list>
  </job_info>
</job_info>
"""


def test_states_of_grid_engine_qstat():
    seen = GRID_ENGINE.states(QSTAT_XML, "", 0)
    assert {number: (one.state, one.suspended) for number, one in seen.items()} == {
        "1": (RUNNING, False),
        "2": (RUNNING, False),
        "3": (RUNNING, True),
        "4": (QUEUED, False),
        "5": (QUEUED, False),
        "6": (QUEUED, False),
    }
    assert "is held" in seen["5"].message
    assert "qmod -cj" in seen["6"].message
    assert GRID_ENGINE.states("", 'unable to send message to qmaster using port 36444 on host "vm"', 1) is None


QSTAT_J = """\
==============================================================
job_number:                 4
job_name:                   sleep
scheduling info:            queue instance "all.q@vm" dropped because it is full
                            All queues dropped because of overload or full
                            Job is in hold state
==============================================================
job_number:                 6
parallel environment:  smp range: 9
scheduling info:            queue instance "all.q@vm" dropped because it is full
                            cannot run in PE "smp" because it only offers 0 slots
==============================================================
job_number:                 8
cwd:                        /nope
error reason          1:      11/23/2026 07:57:49 [0:5918]: error: can't chdir to /nope: No such file or directory
scheduling info:            Job is in error state
==============================================================
job_number:                 9
scheduling info:            (Collecting of scheduler job information is turned off)
"""


def test_reasons_of_grid_engine():
    assert GRID_ENGINE.reasons.read(QSTAT_J) == {
        "6": 'cannot run in PE "smp" because it only offers 0 slots',
        "8": "error: can't chdir to /nope: No such file or directory",
    }
