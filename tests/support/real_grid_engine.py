"""A real Grid Engine for tests: sge_qmaster and sge_execd on this machine alone, with a queue of two slots.

All of it lies in a folder of its own: the cell, the spool, the accounting. `tests.support.keeper` starts the daemons,
ends them with all that their jobs started, and removes the folder. Only root can start one that runs jobs.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from launchers.process_tree import start_time
from tests.support.keeper import ask, started
from tests.support.real_slurm import free_ports, wait_until

PROGRAMS = ("sge_qmaster", "sge_execd", "qsub", "qstat", "qdel", "qconf")
SLOTS = 2

_SHARED = Path("/usr/share/gridengine")
_TOOLS = Path("/usr/lib/gridengine")
_INSTALLED = Path("/var/lib/gridengine")
_PATIENCE_S = 60.0
_ATTEMPTS = 3

# bootstrap(5), which only the installation writes.
_BOOTSTRAP = """\
admin_user none
default_domain none
ignore_fqdn true
spooling_method classic
spooling_lib libspoolc
spooling_params {folder}/default/common;{folder}/spool/qmaster
binary_path /usr/sbin
qmaster_spool_dir {folder}/spool/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
# sge_conf(5): what differs from Debian's own. Without ENABLE_ADDGRP_KILL what left its process group goes on.
_CONFIGURATION = {
    "execd_spool_dir": "{folder}/spool/execd",
    "mailer": "/bin/true",
    "min_uid": "0",
    "min_gid": "0",
    "load_report_time": "00:00:01",
    "execd_params": "ENABLE_ADDGRP_KILL=true",
    "shell_start_mode": "posix_compliant",
}
# sched_conf(5): jobs start and end at once, and the load of the machine is no reason to wait.
_SCHEDULING = {
    "schedule_interval": "0:0:1",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "job_load_adjustments": "NONE",
}
_QUEUE = {
    "qname": "all.q",
    "hostlist": "{host}",
    "load_thresholds": "NONE",
    "pe_list": "smp",
    "slots": str(SLOTS),
    "notify": "00:00:10",
    "shell_start_mode": "posix_compliant",
}
# sge_pe(5): all slots of a job on one host.
_PARALLEL_ENVIRONMENT = {
    "pe_name": "smp",
    "slots": "999",
    "user_lists": "NONE",
    "xuser_lists": "NONE",
    "start_proc_args": "NONE",
    "stop_proc_args": "NONE",
    "allocation_rule": "$pe_slots",
    "control_slaves": "TRUE",
    "job_is_first_task": "TRUE",
    "urgency_slots": "min",
    "accounting_summary": "FALSE",
    "qsort_args": "NONE",
}


def why_not() -> str | None:
    """Return why no Grid Engine can be started here; None if one can."""
    missing = [program for program in PROGRAMS if shutil.which(program, path=_path()) is None]
    if missing:
        packages = "gridengine-master gridengine-exec gridengine-client"
        return f"no Grid Engine to start, missing: {', '.join(missing)} (apt-get install {packages})"
    return None if os.geteuid() == 0 else "only root can start a Grid Engine that runs jobs"


class RealGridEngine:
    """A running Grid Engine; a context manager.

    Attributes:
        environment: what its commands need.
    """

    def __init__(self) -> None:
        self._folder = Path()
        self._keeper: subprocess.Popen[bytes] | None = None
        self._pids: dict[str, int] = {}
        self.environment: dict[str, str] = {}

    def __enter__(self) -> "RealGridEngine":
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._start_all()
            except BaseException as error:
                logs = self._logs()
                self._end_all()
                # Somebody else may have taken a port since it was found to be free.
                if not isinstance(error, TimeoutError) or attempt == _ATTEMPTS:
                    raise RuntimeError(f"Grid Engine did not start: {error}\n{logs}") from error
            else:
                break
        return self

    def __exit__(self, *_: object) -> None:
        self._end_all()

    def call(self, *argv: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command of Grid Engine's.

        Raises:
            subprocess.CalledProcessError: it failed, and `check` is set.
        """
        environment = _own_environment() | self.environment
        return subprocess.run(
            argv, env=environment, capture_output=True, text=True, check=check, timeout=_PATIENCE_S, **options
        )

    def jobs(self) -> dict[str, str]:
        """Return the state of every job in the queue."""
        lines = self.call("qstat").stdout.splitlines()[2:]
        return {words[0]: words[4] for words in (line.split() for line in lines)}

    def stop_master(self) -> None:
        """Stop the master; jobs continue."""
        pid = self._pids["sge_qmaster"]
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: start_time(pid) is None, "sge_qmaster to end")

    def clear(self) -> None:
        """Start what was stopped and end all jobs, for the next test."""
        if start_time(self._pids["sge_qmaster"]) is None:
            self._start("sge_qmaster")
            wait_until(self._answers, "sge_qmaster")
        self.call("qdel", "-f", "-u", "*", check=False)
        wait_until(lambda: not self.jobs(), "the queue to be empty")

    @contextmanager
    def better_queue(self) -> Iterator[str]:
        """Provide a queue, by its name, whose jobs suspend those of the usual one."""
        queue = _settings(self.call("qconf", "-sq", "all.q").stdout)
        self._configure("-Aq", queue | {"qname": "better.q", "subordinate_list": "all.q=1"})
        try:
            yield "better.q"
        finally:
            self.clear()
            self.call("qconf", "-dq", "better.q")

    def _start_all(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sge-", dir="/tmp"))
        self._folder.chmod(0o755)
        master_port, exec_port = free_ports(2)
        self.environment = {
            "SGE_ROOT": str(self._folder),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": str(master_port),
            "SGE_EXECD_PORT": str(exec_port),
            "PATH": _path(),
        }
        self._keeper = started(self._folder)
        host = self._write_cell()
        self._start("sge_qmaster")
        wait_until(self._answers, "sge_qmaster")
        self.call("qconf", "-as", host)
        self._configure("-Msconf", _settings(self.call("qconf", "-ssconf").stdout) | _SCHEDULING)
        self._configure("-Ap", _PARALLEL_ENVIRONMENT)
        self._start("sge_execd")
        wait_until(lambda: host in self.call("qconf", "-sel", check=False).stdout.split(), "sge_execd")
        queue = {name: value.format(host=host) for name, value in _QUEUE.items()}
        self._configure("-Aq", _settings(self.call("qconf", "-sq").stdout) | queue)
        # A job that has run shows that the host takes jobs.
        self.call("qsub", "-terse", "-sync", "y", "-b", "y", "-o", "/dev/null", "-j", "y", "true")

    def _write_cell(self) -> str:
        """Write what an installation writes, and return this host's name as Grid Engine will know it."""
        folder = self._folder
        common = folder / "default" / "common"
        common.mkdir(parents=True)
        for name in ("qmaster/job_scripts", "execd"):
            (folder / "spool" / name).mkdir(parents=True)
        for name in ("bin", "lib", "util", "utilbin"):
            (folder / name).symlink_to(_INSTALLED / name)
        host = socket.gethostname().partition(".")[0]
        # In containers the host's address may be one that has other names, which come first.
        others = {"localhost", socket.getfqdn(), *socket.gethostbyaddr("127.0.0.1")[1]} - {host}
        (common / "host_aliases").write_text(" ".join([host, *sorted(others)]) + "\n")
        (common / "bootstrap").write_text(_BOOTSTRAP.format(folder=folder))
        (common / "act_qmaster").write_text(f"{host}\n")
        usual = _settings((_SHARED / "default-configuration").read_text())
        settings = usual | {name: value.format(folder=folder) for name, value in _CONFIGURATION.items()}
        file = folder / "configuration"
        file.write_text(_text(settings))
        resources = _SHARED / "util" / "resources"
        self.call(str(_TOOLS / "spoolinit"), "classic", "libspoolc", f"{common};{folder}/spool/qmaster", "init")
        for what in (
            ("configuration", str(file)),
            ("complexes", str(resources / "centry")),
            ("usersets", str(resources / "usersets")),
            ("managers", "root"),
        ):
            self.call(str(_TOOLS / "spooldefaults"), *what)
        return host

    def _configure(self, option: str, settings: Mapping[str, str]) -> None:
        file = self._folder / "settings"
        file.write_text(_text(settings))
        self.call("qconf", option, str(file))

    def _answers(self) -> bool:
        if start_time(self._pids["sge_qmaster"]) is None:
            raise TimeoutError("sge_qmaster has ended")
        return self.call("qconf", "-sh", check=False).returncode == 0

    def _start(self, daemon: str) -> None:
        """Start a daemon in the foreground."""
        program = shutil.which(daemon, path=_path())
        environment = _own_environment() | self.environment | {"SGE_ND": "1"}
        assert self._keeper is not None
        self._pids[daemon] = ask(self._keeper, [program], environment, self._folder / f"{daemon}.log")

    def _end_all(self) -> None:
        if self._keeper is None:
            return
        with self._keeper as keeper:  # closes its input
            keeper.communicate(timeout=_PATIENCE_S)
        self._keeper = None

    def _logs(self) -> str:
        logs = sorted([*self._folder.glob("*.log"), *self._folder.glob("spool/**/messages")])
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for log in logs)


def _settings(text: str) -> dict[str, str]:
    lines = (line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {name: value.strip() for name, value in lines}


def _text(settings: Mapping[str, str]) -> str:
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def _own_environment() -> dict[str, str]:
    """Return this environment without what another Grid Engine has set."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SGE_")}
