"""A Slurm from the system's packages that lives as long as a test session: a node, and for some jobs a second one.

Everything of it is private: folder, key, sockets, ports. Both nodes are this machine, so their jobs share its cores;
only the partition `pair` has the second one, which has less memory. There is no accounting: `sacct` knows nothing, and
`sacct --completion` reads a text file.
"""

import os
import socket
from collections.abc import Mapping

from tests.support import private_scheduler
from tests.support.private_scheduler import PrivateScheduler, find_program, free_ports, search_path
from tests.support.waiting import wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun")
CORES = 2
MEMORY_MIB = 4000

# States of a node that takes jobs now, or when its jobs have ended.
_SERVES = frozenset({"idle", "mixed", "allocated", "completing"})

# A job of `debug` takes the cores of those in `scavenge`, which are cancelled, and in `requeue`, which start again.
_CONFIGURATION = {
    "ClusterName": "autotune",
    "SlurmctldHost": "{host}(127.0.0.1)",
    "SlurmctldPort": "{controller_port}",
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "AuthType": "auth/munge",
    "AuthInfo": "socket={folder}/munge.sock",
    "CredType": "cred/munge",
    "StateSaveLocation": "{folder}/state",
    "SlurmdSpoolDir": "{folder}/spool-%n",
    "SlurmctldPidFile": "{folder}/slurmctld.pid",
    "SlurmdPidFile": "{folder}/slurmd-%n.pid",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/affinity",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core_Memory",
    "DefMemPerCPU": "500",
    "SwitchType": "switch/none",
    "MpiDefault": "none",
    "JobAcctGatherType": "jobacct_gather/linux",
    "JobAcctGatherFrequency": "task=1",
    "JobCompType": "jobcomp/filetxt",
    "JobCompLoc": "{folder}/completed",
    "PreemptType": "preempt/partition_prio",
    "PreemptMode": "REQUEUE",  # the most that a partition may ask for
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=1",
    "EnforcePartLimits": "ALL",
    "ReturnToService": "2",
    "KillWait": "5",
    "MinJobAge": "600",
    "SlurmdParameters": "config_overrides",  # whatever cores and memory the machine has
}
_EACH = f"NodeHostname={{host}} NodeAddr=127.0.0.1 CPUs={CORES} CoresPerSocket={CORES}"
_NODES = f"""
NodeName={{host}} {_EACH} RealMemory={MEMORY_MIB} Port={{node_port}} State=UNKNOWN
NodeName={{second}} {_EACH} RealMemory={MEMORY_MIB // 2} Port={{second_port}} State=UNKNOWN
PartitionName=debug Nodes={{host}} Default=YES PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=scavenge Nodes={{host}} PriorityTier=1 PreemptMode=CANCEL State=UP
PartitionName=requeue Nodes={{host}} PriorityTier=1 PreemptMode=REQUEUE State=UP
PartitionName=pair Nodes={{host}},{{second}} PriorityTier=10 PreemptMode=OFF State=UP
"""


def why_not() -> str | None:
    """Return why no Slurm can be started here; None if one can."""
    return private_scheduler.why_not("Slurm", PROGRAMS, "slurmctld slurmd slurm-client munge")


class RealSlurm(PrivateScheduler):
    """A running Slurm.

    Attributes:
        host: The name of its node.
        second: The name of its second node.
    """

    name = "Slurm"
    foreign = ("SLURM_", "SBATCH_", "SRUN_")

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """Prepare a Slurm; `settings` are lines of slurm.conf that differ from the usual ones here."""
        super().__init__()
        self.host = socket.gethostname().partition(".")[0]
        self.second = f"{self.host}-2"
        self._settings = _CONFIGURATION | dict(settings or {})

    def states(self) -> dict[str, str]:
        """Return the state of every job that Slurm remembers."""
        lines = self.call("squeue", "--noheader", "--states=all", "--format=%i %T").stdout.splitlines()
        return dict(line.split() for line in lines)

    def wait_for_state(self, job: str, *states: str) -> str:
        """Wait until a job is in one of the states, and return it.

        Raises:
            TimeoutError: It never was.
        """
        wait_for(lambda: self.states().get(job) in states, f"job {job} to be {' or '.join(states)}")
        return self.states()[job]

    def start(self, daemon: str) -> None:
        """Start or restart munged, slurmctld, slurmd, or the second node's `slurmd-2`."""
        argv = {
            "munged": [
                "--foreground",
                "--force",
                "--num-threads=2",
                "--origin=127.0.0.1",
                *(f"--{option}={self._folder}/munge.{name}" for option, name in _MUNGE_FILES.items()),
            ],
            "slurmctld": ["-D"],
            "slurmd": ["-D", "-N", self.host],
            "slurmd-2": ["-D", "-N", self.second],
        }[daemon]
        self._spawn(daemon, [str(find_program(daemon.partition("-")[0])), *argv])

    def wait_until_idle(self) -> None:
        """Wait until no job runs and both nodes are ready for one.

        Raises:
            TimeoutError: They never were.
        """
        wait_for(self._is_idle, "the nodes to be idle")

    def clear(self) -> None:
        """Start what was stopped, cancel all jobs and make the nodes ready again, for the next test."""
        for daemon in self.pids:
            if self.has_ended(daemon):
                self.start(daemon)
        self.call("scancel", "--me", check=False)
        # After an update a node must first answer the controller, which takes a second.
        if not self.node() <= _SERVES:
            for state in ("RESUME", "UNDRAIN"):  # Slurm refuses the one that is not needed
                self.call("scontrol", "update", f"NodeName={self.host},{self.second}", f"State={state}", check=False)
        self.wait_until_idle()

    def _is_idle(self) -> bool:
        for daemon in self.pids:
            if self.has_ended(daemon):
                raise TimeoutError(f"{daemon} has ended")
        return self.node() == {"idle"}

    def node(self) -> set[str]:
        """Return the states of the nodes, without repeats."""
        return set(self.call("sinfo", "--noheader", "--format=%T", check=False).stdout.split())

    def _start_all(self) -> None:
        self.environment = {"SLURM_CONF": str(self._folder / "slurm.conf"), "PATH": search_path()}
        ports = dict(zip(("controller_port", "node_port", "second_port"), free_ports(3), strict=True))
        names = {"folder": self._folder, "host": self.host, "second": self.second, **ports}
        lines = "".join(f"{name}={value}\n" for name, value in self._settings.items())
        (self._folder / "slurm.conf").write_text((lines + _NODES).format(**names))
        for name in ("state", f"spool-{self.host}", f"spool-{self.second}"):
            (self._folder / name).mkdir()
        key = self._folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        self.start("munged")
        wait_for((self._folder / "munge.sock").exists, "munged")
        self.start("slurmctld")
        self.start("slurmd")
        self.start("slurmd-2")
        self.wait_until_idle()


_MUNGE_FILES = {"socket": "sock", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
