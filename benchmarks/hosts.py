"""A command on emulated hosts: network namespaces of this machine, with a slow link between each and a switch.

    python -m benchmarks.hosts --rate 100mbit -- mpirun -np 2 hostname
    python -m benchmarks.hosts --hosts 4 --rate 1gbit -- autotune study collectives --set options.ranks=[4]

The command runs on the first host. What it starts by Open MPI 4's mpirun goes to all of them, `--slots` ranks on each
and more where more are asked for; so do the runs of a study that is started there. The hosts share this machine's cores
and file system: what is emulated is the network alone, its rate in both directions, and with `--delay-us` how much
longer a packet takes. The delay needs a kernel with netem. Needs root, iproute2 and util-linux; nothing is left behind.
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
# Packets that a link holds back, rather than losing them: TCP would measure its own retries.
_QUEUE_BYTES = 4 * 2**20
_AT_ONCE_BYTES = 16 * 2**10
PARAMETERS = "OMPI_MCA_mca_base_param_files"


class EmulationError(Exception):
    """There can be no such hosts here."""


@contextmanager
def hosts(number: int, link: list[str], slots: int, folder: Path) -> Iterator[list[str]]:
    """Make hosts, each with a link to a switch; give the words that start a command on the first of them.

    Args:
        number: How many hosts.
        link: What `tc qdisc add dev DEVICE root` is told.
        slots: How many ranks Open MPI gives a host before it goes to the next one.
        folder: Where the files are that tell Open MPI of them.

    Raises:
        EmulationError: a program is missing, this is not root, or the kernel has no such link.
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
            # Programs that ask for a way to anywhere are told of this one.
            _inside(host, "ip", "route", "add", "default", "dev", "eth0")
            if link:
                _inside(host, "tc", "qdisc", "add", "dev", "eth0", "root", *link)
                _inside(switch, "tc", "qdisc", "add", "dev", f"to{place}", "root", *link)
        first, *_ = found.values()
        parameters = _told_to_open_mpi(found, slots, folder)
        yield [*_enter(first), "env", f"{PARAMETERS}={parameters}"]
    finally:
        for process in made:
            process.communicate()


def link_words(rate: str, delay_us: int) -> list[str]:
    """Return what `tc` is told of a link: a queue that lets `rate` through, or that and a delay of each packet."""
    if delay_us:
        return ["netem", "delay", f"{delay_us}us", *(["rate", rate] if rate else []), "limit", "100000"]
    if not rate:
        return []
    return ["tbf", "rate", rate, "burst", str(_AT_ONCE_BYTES), "limit", str(_QUEUE_BYTES)]


def _namespace(made: list["subprocess.Popen[bytes]"]) -> int:
    """Return the id of a process in namespaces of its own, which ends with this one."""
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


def _told_to_open_mpi(found: dict[str, int], slots: int, folder: Path) -> Path:
    """Write what Open MPI reads: its hosts, and a program in place of ssh; return the file that names them.

    By a file, since what Open MPI is told of hosts by variables is not passed on to the runs of a study.
    """
    listed, agent, parameters = folder / "hosts", folder / "agent", folder / "openmpi-mca-params.conf"
    listed.write_text("".join(f"{address} slots={slots}\n" for address in found))
    cases = "".join(f"{address}) process={process} ;;\n" for address, process in found.items())
    # As ssh does: the words of the command line are joined and read by a shell.
    agent.write_text(
        f'#!/bin/sh\ncase $1 in\n{cases}esac\nshift\nexec nsenter --target="$process" --net --uts sh -c "$*"\n'
    )
    agent.chmod(0o700)
    told = {"plm_rsh_agent": agent, "orte_default_hostfile": listed, "orte_tmpdir_base": folder}
    told |= dict.fromkeys(("btl_tcp_if_include", "oob_tcp_if_include"), Path("eth0"))
    parameters.write_text("".join(f"{name} = {value}\n" for name, value in told.items()))
    return parameters


def main() -> int:
    """Run a command on emulated hosts; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--slots", type=int, default=1, help="ranks on a host before the next one gets any")
    parser.add_argument("--rate", default="", help="of each link, as tc says it: 100mbit, 1gbit; no limit without")
    parser.add_argument("--delay-us", type=int, default=0, help="of each packet, twice on its way")
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
            print(f"no emulated hosts here: {error}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
