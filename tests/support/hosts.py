"""Hosts made of namespaces: each has its own network address, host name, processes and /tmp/autotune-UID.

They share the file system, as the nodes of a cluster do. Needs root, iproute2 and util-linux.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from autotune.execution.user_folder import user_folder
from tests.support.processes import command_line, living
from tests.support.waiting import wait_for

_INIT = """
mkdir -p "$2" && mount -t tmpfs tmpfs "$2" && chmod 700 "$2" && hostname "$1" && ip link set lo up || exit 1
sleep infinity & wait
"""
_SWITCH = "ip link add br0 type bridge && ip link set br0 up && echo ready && sleep infinity"


def why_not() -> str:
    """Return why this machine can have no such hosts; empty if it can."""
    if os.geteuid() != 0:
        return "only root makes namespaces"
    missing = [program for program in ("ip", "unshare", "nsenter") if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)} not installed"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "ip", "link", "add", "br0", "type", "bridge"],
        capture_output=True,
        text=True,
        check=False,
    )
    return tried.stderr.strip()


@dataclass(frozen=True)
class Host:
    """A host. All of its processes end with its first process, `init`."""

    name: str
    address: str
    init: int
    started: list[subprocess.Popen[bytes]]

    def start(self, argv: list[str], folder: Path, log: Path, **settings: str) -> subprocess.Popen[bytes]:
        """Start a program on the host."""
        inside = ["nsenter", f"--target={self.init}", "--net", "--uts", "--pid", "--mount"]
        with log.open("ab") as file:
            process = subprocess.Popen(
                [*inside, "env", f"--chdir={folder}", *argv],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={**os.environ, **settings},
            )
        self.started.append(process)
        return process

    def processes(self) -> list[psutil.Process]:
        """Return the processes of the host, without its first two."""
        namespace = _namespace(self.init)

        def is_ours(process: psutil.Process) -> bool:
            is_here = _namespace(process.pid) == namespace
            return is_here and process.pid != self.init and process.name() != "sleep"

        return living(is_ours)

    def running(self, words: str) -> list[psutil.Process]:
        """Return the processes with these words in their command."""
        return [process for process in self.processes() if words in command_line(process)]

    def kill(self) -> None:
        """Kill the host and everything on it."""
        psutil.Process(self.init).kill()

    def cut_off(self) -> None:
        """Disconnect the host from the network; its processes continue."""
        _checked("nsenter", f"--target={self.init}", "--net", "ip", "link", "set", "eth0", "down")


class Hosts:
    """Hosts on a network that nothing else can reach."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Hosts":
        switch = subprocess.Popen(["unshare", "--net", "sh", "-c", _SWITCH], stdout=subprocess.PIPE)
        self._processes.append(switch)
        assert switch.stdout is not None
        assert switch.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            for child in psutil.Process(process.pid).children():
                child.kill()
            process.kill()
            process.communicate()
        for process in self._started:
            process.wait(10)

    def add(self, name: str, address: str) -> Host:
        """Add a host."""
        switch = self._processes[0].pid
        namespaces = ["--net", "--uts", "--pid", "--mount", "--mount-proc", "--fork"]
        private = str(user_folder())
        command = ["unshare", *namespaces, "sh", "-c", _INIT, "host", name, private]
        made = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self._processes.append(made)
        inits = wait_for(lambda: living(_is_ready, psutil.Process(made.pid).children()), f"host {name}")
        init = inits[0].pid
        at_switch = ["nsenter", f"--target={switch}", "--net", "ip", "link"]
        _checked(*at_switch, "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", str(init))
        _checked(*at_switch, "set", f"to-{name}", "master", "br0", "up")
        on_host = ["nsenter", f"--target={init}", "--net", "ip"]
        _checked(*on_host, "address", "add", f"{address}/24", "dev", "eth0")
        _checked(*on_host, "link", "set", "eth0", "up")
        # Some programs find the network device by the default route.
        _checked(*on_host, "route", "add", "default", "dev", "eth0")
        return Host(name, address, init, self._started)


def ray_node(
    host: Host, meeting: Path, settings: Mapping[str, str], *more: str, head: bool = False, cpus: int = 2
) -> subprocess.Popen[bytes]:
    """Start a node of a Ray cluster."""
    argv = [sys.executable, "-m", "autotune.execution.ray_node", str(meeting), f"--node-ip-address={host.address}"]
    argv += [f"--num-cpus={cpus}", "--lost-after-s=5", *more]
    log = meeting.with_name(f"{host.name}.log")
    return host.start([*argv, *(["--head"] if head else [])], meeting.parent, log, **settings)


def _is_ready(init: psutil.Process) -> bool:
    """Whether a host has its name and folders: then it only sleeps."""
    return any(child.name() == "sleep" for child in init.children())


def _namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def _checked(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)
