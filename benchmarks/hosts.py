"""Run a command on emulated hosts: network namespaces on this machine, each linked to a switch at a limited rate.

    python -m benchmarks.hosts --rate 100mbit -- mpirun -np 2 hostname
    python -m benchmarks.hosts --hosts 4 --rate 1gbit -- autotune study collectives --set options.ranks=[4]

The command runs on the first host. Open MPI 4's mpirun, called by the command or by the runs of a study, distributes
its ranks over all hosts: `--slots` on each, and more if it asks for more. The hosts share this machine's cores and file
system. Only the network is emulated: its rate in both directions, and with `--delay-us` an additional delay, which
needs a kernel with netem. Needs root, iproute2 and util-linux. Removes all namespaces at the end.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NETWORK = "10.77.0"
_PATIENCE_S = 10.0
# A link queues packets instead of dropping them; otherwise the benchmark would measure retransmissions of TCP.
_QUEUE_BYTES = 4 * 2**20
_AT_ONCE_BYTES = 16 * 2**10
PARAMETERS = "OMPI_MCA_mca_base_param_files"


class EmulationError(Exception):
    """This machine cannot emulate the hosts."""


@contextmanager
def hosts(number: int, link: list[str], slots: int, folder: Path) -> Iterator[list[str]]:
    """Create hosts, each linked to a switch; yield the command prefix that runs a program on the first one.

    Args:
        number: Number of hosts.
        link: Arguments of `tc qdisc add dev DEVICE root`.
        slots: Ranks that Open MPI places on a host before it uses the next one.
        folder: Folder for the configuration files of Open MPI.

    Raises:
        EmulationError: a program is missing, the user is not root, or the kernel does not support the link.
    """
    missing = [program for program in ("ip", "tc", "unshare", "nsenter") if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        msg = f"{', '.join(missing)} not installed: apt-get install iproute2 util-linux" if missing else "needs root"
        raise EmulationError(msg)
    made: list[subprocess.Popen[bytes]] = []
    try:
        switch = _namespace(made)
        _inside(switch, "ip", "link", "add", "br0", "type", "bridge")
        _inside(switch, "ip", "link", "set", "br0", "up")
        found = {}
        for place in range(1, number + 1):
            host = found[f"{_NETWORK}.{place}"] = _namespace(made)
            _inside(host, "hostname", f"node{place}")
            _inside(switch, "ip", "link", "add", f"to{place}", "type", "veth", "peer", "eth0", "netns", str(host))
            _inside(switch, "ip", "link", "set", f"to{place}", "master", "br0", "up")
            _inside(host, "ip", "address", "add", f"{_NETWORK}.{place}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _inside(host, "ip", "link", "set", device, "up")
            # Some programs look for a default route to find the network device.
            _inside(host, "ip", "route", "add", "default", "dev", "eth0")
            if link:
                _inside(host, "tc", "qdisc", "add", "dev", "eth0", "root", *link)
                _inside(switch, "tc", "qdisc", "add", "dev", f"to{place}", "root", *link)
        first, *_ = found.values()
        parameters = _configure_open_mpi(found, slots, folder)
        yield [*_enter(first), "env", f"{PARAMETERS}={parameters}"]
    finally:
        for process in made:
            process.communicate()


def link_words(rate: str, delay_us: int) -> list[str]:
    """Return the arguments of `tc` for a link with this rate and delay: `tbf`, or `netem` if there is a delay."""
    if delay_us:
        return ["netem", "delay", f"{delay_us}us", *(["rate", rate] if rate else []), "limit", "100000"]
    if not rate:
        return []
    return ["tbf", "rate", rate, "burst", str(_AT_ONCE_BYTES), "limit", str(_QUEUE_BYTES)]


def _namespace(made: list["subprocess.Popen[bytes]"]) -> int:
    """Start a process in its own namespaces, which ends with this process; return its id."""
    process = subprocess.Popen(["unshare", "--net", "--uts", "cat"], stdin=subprocess.PIPE)
    made.append(process)
    ours, theirs = Path("/proc/self/ns/uts"), Path(f"/proc/{process.pid}/ns/uts")
    give_up_at = time.monotonic() + _PATIENCE_S
    while process.poll() is None and theirs.readlink() == ours.readlink():
        if time.monotonic() > give_up_at:
            msg = f"no namespaces within {_PATIENCE_S:g} s"
            raise EmulationError(msg)
        time.sleep(0.01)
    if process.returncode is not None:
        msg = "the kernel refuses namespaces; containers need the right to make them (CAP_SYS_ADMIN)"
        raise EmulationError(msg)
    return process.pid


def _enter(process: int) -> list[str]:
    return ["nsenter", f"--target={process}", "--net", "--uts"]


def _inside(process: int, *argv: str) -> None:
    done = subprocess.run([*_enter(process), *argv], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = f"{' '.join(argv)}: {done.stderr.strip()}"
        hint = "; this kernel has no netem: leave --delay-us out" if "netem" in argv else ""
        raise EmulationError(words + hint)


def _configure_open_mpi(found: dict[str, int], slots: int, folder: Path) -> Path:
    """Write Open MPI's hostfile and a substitute for ssh; return the parameter file that names both.

    A parameter file, because a study does not pass Open MPI's environment variables about hosts to its runs.
    """
    listed, agent, parameters = folder / "hosts", folder / "agent", folder / "openmpi-mca-params.conf"
    listed.write_text("".join(f"{address} slots={slots}\n" for address in found))
    cases = "".join(f"{address}) process={process} ;;\n" for address, process in found.items())
    # Like ssh: join the words of the command line, and let a shell parse them.
    agent.write_text(
        f'#!/bin/sh\ncase $1 in\n{cases}esac\nshift\nexec nsenter --target="$process" --net --uts sh -c "$*"\n'
    )
    agent.chmod(0o700)
    settings = {"plm_rsh_agent": agent, "orte_default_hostfile": listed, "orte_tmpdir_base": folder}
    settings |= dict.fromkeys(("btl_tcp_if_include", "oob_tcp_if_include"), Path("eth0"))
    parameters.write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    return parameters


def main() -> int:
    """Run a command on emulated hosts; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--slots", type=int, default=1, help="ranks per host before the next host is used")
    parser.add_argument(
        "--rate", default="", help="rate of each link in tc's notation, e.g. 100mbit; default: no limit"
    )
    parser.add_argument("--delay-us", type=int, default=0, help="delay per link; a packet passes two links")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    link = link_words(given.rate, given.delay_us)
    with tempfile.TemporaryDirectory() as folder:
        try:
            with hosts(given.hosts, link, given.slots, Path(folder)) as begin:
                said = shlex.join(link) or "no limit"
                print(f"{given.hosts} emulated hosts on this machine, each link: {said}", file=sys.stderr)
                return subprocess.run([*begin, *given.command], check=False).returncode
        except EmulationError as error:
            print(f"cannot emulate hosts: {error}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
