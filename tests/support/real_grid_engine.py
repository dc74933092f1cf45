"""A real Grid Engine for tests: sge_qmaster and sge_execd on this machine alone, with a queue of two slots.

All of it lies in a folder of its own: the cell, the spool, the accounting.
"""

import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support import private_scheduler
from tests.support.private_scheduler import PrivateScheduler, find_program, free_ports, search_path
from tests.support.waiting import wait_for

PROGRAMS = ("sge_qmaster", "sge_execd", "qsub", "qstat", "qdel", "qconf")
SLOTS = 2

_SHARED = Path("/usr/share/gridengine")
_TOOLS = Path("/usr/lib/gridengine")
_INSTALLED = Path("/var/lib/gridengine")

# bootstrap(5), which only an installation writes.
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
# sge_conf(5): what differs from Debian's own. Without ENABLE_ADDGRP_KILL, processes that left their group survive.
_CONFIGURATION = {
    "execd_spool_dir": "{folder}/spool/execd",
    "mailer": "/bin/true",
    "min_uid": "0",
    "min_gid": "0",
    "load_report_time": "00:00:01",
    "execd_params": "ENABLE_ADDGRP_KILL=true",
    "shell_start_mode": "posix_compliant",
}
# sched_conf(5): jobs start and end at once, whatever the load of the machine.
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
    packages = "gridengine-master gridengine-exec gridengine-client"
    return private_scheduler.why_not("Grid Engine", PROGRAMS, packages)


class RealGridEngine(PrivateScheduler):
    """A running Grid Engine."""

    name = "Grid Engine"
    foreign = ("SGE_",)

    def jobs(self) -> dict[str, str]:
        """Return the state of every job in the queue."""
        lines = self.call("qstat").stdout.splitlines()[2:]
        return {words[0]: words[4] for words in (line.split() for line in lines)}

    def stop_master(self) -> None:
        """Stop the master; jobs continue."""
        os.kill(self.pids["sge_qmaster"], signal.SIGTERM)
        wait_for(lambda: self.has_ended("sge_qmaster"), "sge_qmaster to end")

    def clear(self) -> None:
        """Restart a stopped master and end all jobs, for the next test."""
        if self.has_ended("sge_qmaster"):
            self._start("sge_qmaster")
            wait_for(self._answers, "sge_qmaster")
        self.call("qdel", "-f", "-u", "*", check=False)
        wait_for(lambda: not self.jobs(), "the queue to be empty")

    @contextmanager
    def better_queue(self) -> Iterator[str]:
        """Add a queue whose jobs suspend those of the usual one, and provide its name."""
        queue = _settings(self.call("qconf", "-sq", "all.q").stdout)
        self._configure("-Aq", queue | {"qname": "better.q", "subordinate_list": "all.q=1"})
        try:
            yield "better.q"
        finally:
            self.clear()
            self.call("qconf", "-dq", "better.q")

    def _start_all(self) -> None:
        master_port, exec_port = free_ports(2)
        self.environment = {
            "SGE_ROOT": str(self._folder),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": str(master_port),
            "SGE_EXECD_PORT": str(exec_port),
            "PATH": search_path(),
        }
        host = self._write_cell()
        self._start("sge_qmaster")
        wait_for(self._answers, "sge_qmaster")
        self.call("qconf", "-as", host)
        self._configure("-Msconf", _settings(self.call("qconf", "-ssconf").stdout) | _SCHEDULING)
        self._configure("-Ap", _PARALLEL_ENVIRONMENT)
        self._start("sge_execd")
        wait_for(lambda: host in self.call("qconf", "-sel", check=False).stdout.split(), "sge_execd")
        queue = {name: value.format(host=host) for name, value in _QUEUE.items()}
        self._configure("-Aq", _settings(self.call("qconf", "-sq").stdout) | queue)
        # When one job has run, the host takes jobs.
        self.call("qsub", "-terse", "-sync", "y", "-b", "y", "-o", "/dev/null", "-j", "y", "true")

    def _write_cell(self) -> str:
        """Write what an installation writes, and return the name by which Grid Engine will know this host."""
        folder = self._folder
        common = folder / "default" / "common"
        common.mkdir(parents=True)
        for name in ("qmaster/job_scripts", "execd"):
            (folder / "spool" / name).mkdir(parents=True)
        for name in ("bin", "lib", "util", "utilbin"):
            (folder / name).symlink_to(_INSTALLED / name)
        host = socket.gethostname().partition(".")[0]
        # In containers the host's address may have other names, which come first.
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
        if self.has_ended("sge_qmaster"):
            raise TimeoutError("sge_qmaster has ended")
        return self.call("qconf", "-sh", check=False).returncode == 0

    def _start(self, daemon: str) -> None:
        """Start a daemon in the foreground."""
        self._spawn(daemon, [str(find_program(daemon))], SGE_ND="1")


def _settings(text: str) -> dict[str, str]:
    lines = (line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {name: value.strip() for name, value in lines}


def _text(settings: Mapping[str, str]) -> str:
    return "".join(f"{name} {value}\n" for name, value in settings.items())
