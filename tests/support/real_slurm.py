"""A Slurm from the system's packages that lives as long as a test session: a node, and for some jobs a second one.

Everything of it is private: folder, key, sockets, ports. Its daemons are children of a *keeper*
(tests/support/keeper.py): when the tests end, however they do, it ends them and whatever they started (slurmstepd, jobs
that left their session), and removes the folder.

Both nodes are this machine, so that jobs of both share its cores; only the partition `pair` has the second one, which
has less memory.

There is no accounting: `sacct` knows nothing, `sacct --completion` reads a text file.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from launchers.process_tree import start_time
from tests.support.keeper import ask, started

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun")
CORES = 2
MEMORY_MIB = 4000

# A node that is slow to answer must not fail a test, only one that never does.
_PATIENCE_S = 60.0
_ATTEMPTS = 4
_LOOK_S = 0.05
# States of a node that takes jobs, or will when those have ended that it has.
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
    missing = [program for program in PROGRAMS if found(program) is None]
    if missing:
        return f"no Slurm to start, missing: {', '.join(missing)} (apt-get install slurmctld slurmd slurm-client munge)"
    return None if os.geteuid() == 0 else "only root can start a Slurm that runs jobs"


class RealSlurm:
    """A running Slurm; a context manager.

    Attributes:
        host: the name of its node; that of the second is `second`.
        environment: what its commands need: SLURM_CONF and PATH.
        pids: the process of each daemon, by its name.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """Prepare one; `settings` are lines of slurm.conf that differ from the usual ones here."""
        self.host = socket.gethostname().partition(".")[0]
        self.second = f"{self.host}-2"
        self._settings = _CONFIGURATION | dict(settings or {})
        self._folder = Path()
        self._keeper: subprocess.Popen[bytes] | None = None
        self.pids: dict[str, int] = {}
        self.environment: dict[str, str] = {}

    def __enter__(self) -> "RealSlurm":
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._start_all()
            except BaseException as error:
                logs = self._logs()
                self._end_all()
                # Somebody else may have taken a port since it was found to be free.
                if not isinstance(error, TimeoutError) or attempt == _ATTEMPTS:
                    raise RuntimeError(f"Slurm did not start: {error}\n{logs}") from error
            else:
                break
        return self

    def __exit__(self, *_: object) -> None:
        self._end_all()

    def call(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm's, as a user would who has only this Slurm.

        Raises:
            subprocess.CalledProcessError: it failed, and `check` is set.
        """
        environment = _own_environment() | self.environment
        return subprocess.run(
            argv,
            env=environment,
            capture_output=True,
            text=True,
            check=check,
            timeout=_PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )

    def states(self) -> dict[str, str]:
        """Return the state of every job that Slurm remembers."""
        lines = self.call("squeue", "--noheader", "--states=all", "--format=%i %T").stdout.splitlines()
        return dict(line.split() for line in lines)

    def wait_for_state(self, job: str, *states: str, patience_s: float = _PATIENCE_S) -> str:
        """Wait until a job is in one of the states, and return it.

        Raises:
            TimeoutError: it never was.
        """
        wait_until(lambda: self.states().get(job) in states, f"job {job} to be {' or '.join(states)}", patience_s)
        return self.states()[job]

    def start(self, daemon: str) -> None:
        """Start munged, slurmctld or slurmd (again); the second node's is `slurmd-2`."""
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
        program = str(found(daemon.partition("-")[0]))
        assert self._keeper is not None
        environment = _own_environment() | self.environment
        self.pids[daemon] = ask(self._keeper, [program, *argv], environment, self._folder / f"{daemon}.log")

    def stop(self, daemon: str, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop slurmctld or slurmd; jobs continue."""
        pid = self.pids[daemon]
        os.kill(pid, number)
        wait_until(lambda: start_time(pid) is None, f"{daemon} to end")

    def wait_until_idle(self) -> None:
        """Wait until no job runs and both nodes are ready for one.

        Raises:
            TimeoutError: it never was.
        """
        wait_until(self._is_idle, "the nodes to be idle")

    def clear(self) -> None:
        """Start what was stopped, cancel all jobs and make the nodes ready again, for the next test."""
        for daemon, pid in self.pids.items():
            if start_time(pid) is None:
                self.start(daemon)
        self.call("scancel", "--me", check=False)
        # After an update a node has to answer the controller first, which takes a second.
        if not self.node() <= _SERVES:
            for state in ("RESUME", "UNDRAIN"):  # each is refused where it is not needed
                self.call("scontrol", "update", f"NodeName={self.host},{self.second}", f"State={state}", check=False)
        self.wait_until_idle()

    def _is_idle(self) -> bool:
        for daemon, pid in self.pids.items():
            if start_time(pid) is None:
                raise TimeoutError(f"{daemon} has ended")
        return self.node() == {"idle"}

    def node(self) -> set[str]:
        """Return the states of the nodes, each once for all partitions and nodes that are so."""
        return set(self.call("sinfo", "--noheader", "--format=%T", check=False).stdout.split())

    def _start_all(self) -> None:
        # Not the tests' own folder: the path of a socket is at most 107 characters long.
        self._folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        self.pids = {}
        self.environment = {"SLURM_CONF": str(self._folder / "slurm.conf"), "PATH": _path()}
        self._keeper = started(self._folder)
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
        wait_until((self._folder / "munge.sock").exists, "munged")
        self.start("slurmctld")
        self.start("slurmd")
        self.start("slurmd-2")
        self.wait_until_idle()

    def _end_all(self) -> None:
        if self._keeper is None:
            return
        with self._keeper as keeper:  # closes its input
            keeper.communicate(timeout=_PATIENCE_S)
        self._keeper = None

    def _logs(self) -> str:
        logs = sorted(self._folder.glob("*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for log in logs)


_MUNGE_FILES = {"socket": "sock", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def found(program: str) -> str | None:
    return shutil.which(program, path=_path())


def _own_environment() -> dict[str, str]:
    """Return this environment without what another Slurm, whose job the tests may be, has set."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_", "SRUN_"))}


def free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def wait_until(what: Callable[[], object], name: str, patience_s: float = _PATIENCE_S) -> None:
    give_up_at = time.monotonic() + patience_s
    while not what():
        if time.monotonic() >= give_up_at:
            raise TimeoutError(f"waited {patience_s:g} s in vain for {name}")
        time.sleep(_LOOK_S)
