"""A node of a private Ray cluster: run `python -m autotune.execution.ray_node FOLDER [--head]` once on every host.

All hosts see the folder. The head writes its address there, the others wait for it, and all end when a file `stop`
appears. Ports are chosen among the free ones, so that other Ray instances on the host do not matter. Sockets are in a
folder of the host with a short path. All processes end with this one, also when it is killed.
"""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import CannotRunHereError
from autotune.execution.ray_access import with_token, write_token
from autotune.execution.ray_room import OBJECT_STORE_BYTES, SHARED_MEMORY, check_room
from autotune.execution.user_folder import RAY_FOLDER, private_folder, user_folder
from autotune.files import replace_file
from autotune.held_folders import held_folder
from autotune.machines.this_machine import this_machine
from launchers.local import end_with_this_process
from launchers.own_python import own_python

ADDRESS = "address"
STOP = "stop"

# Ray's processes read these when they start.
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # By default Ray gives its workers, and so the measured runs, a lower priority than other processes.
    "RAY_worker_niceness": "0",
}
_LOOK_S = 0.2
_ASK_S = 2.0
_ANSWER_S = 5.0
_LAST_PORT = 65535


@dataclass(frozen=True)
class RayNode:
    """The settings of `ray start`.

    Attributes:
        head: The address of the head's control store.
        address: The address of this host.
        is_head: Whether this node is the head.
        cpus: The number of its cores.
        gpus: The number of its GPUs; Ray counts them if None.
        folder: The folder of Ray's sockets and logs.
        store: The folder of its object store.
    """

    head: str
    address: str
    is_head: bool
    cpus: int
    gpus: int | None
    folder: Path
    store: Path = SHARED_MEMORY

    def argv(self, python: str = sys.executable) -> list[str]:
        """Return the command that starts Ray on this host and ends when Ray ends."""
        where = ["--head", f"--port={self.head.rpartition(':')[2]}"] if self.is_head else [f"--address={self.head}"]
        # The other nodes get these settings from the head.
        own = [f"--temp-dir={self.folder}", "--include-dashboard=false"] if self.is_head else []
        gpus = [] if self.gpus is None else [f"--num-gpus={self.gpus}"]
        return [
            *own_python("ray.scripts.scripts", "start", *where, *own, python=python),
            f"--node-ip-address={self.address}",
            f"--num-cpus={self.cpus}",
            *gpus,
            f"--object-store-memory={OBJECT_STORE_BYTES}",
            f"--plasma-directory={self.store}",
            *("--min-worker-port=0", "--max-worker-port=0", "--disable-usage-stats", "--block"),
        ]


def ray_environment(caller: Mapping[str, str], meeting: Path) -> dict[str, str]:
    """Return the environment of Ray's processes: the folder's token, and the caller's variables over our defaults.

    Raises:
        CannotRunHereError: The caller's environment would let every user in.
    """
    return with_token(_SETTINGS | dict(caller), meeting)


def own_address(towards: str | None = None) -> str:
    """Return this host's address on the route to another host; without one, the address of its host name."""
    if towards is None:
        try:
            address = socket.gethostbyname(socket.gethostname())
        except OSError:
            address = "127.0.0.1"
        if not address.startswith("127."):
            return address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # This sends nothing; it only makes the system choose a route.
            probe.connect((towards or "192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def free_port(address: str) -> int:
    """Return a free port of this host."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def wait_for_address(folder: Path, patience_s: float) -> str:
    """Return the address that the head wrote into a folder.

    Raises:
        TimeoutError: The head wrote none within `patience_s` seconds.
    """
    give_up_at = time.monotonic() + patience_s
    while True:
        # Listing the folder makes a network file system refresh it.
        if ADDRESS in os.listdir(folder):  # noqa: PTH208
            return (folder / ADDRESS).read_text(encoding="ascii").strip()
        if time.monotonic() >= give_up_at:
            msg = f"no Ray head wrote its address into {folder} in {patience_s:g} s; do all hosts see that folder?"
            raise TimeoutError(msg)
        time.sleep(_LOOK_S)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a node until Ray ends, a file `stop` appears, or this process gets a signal to end."""
    parser = argparse.ArgumentParser(prog="autotune.execution.ray_node")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--head", action="store_true")
    parser.add_argument("--node-ip-address")
    parser.add_argument("--num-cpus", type=int)
    parser.add_argument("--num-gpus", type=int)
    parser.add_argument("--patience-s", type=float, default=120.0)
    parser.add_argument("--lost-after-s", type=float, default=60.0)
    options = parser.parse_args(arguments)
    try:
        return _run_node(options)
    except CannotRunHereError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


def _run_node(options: argparse.Namespace) -> int:
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    meeting = private_folder(options.folder).resolve()
    if options.head:
        write_token(meeting)
        address = options.node_ip_address or own_address()
        head = f"{address}:{free_port(address)}"
    else:
        head = wait_for_address(meeting, options.patience_s)
        address = options.node_ip_address or own_address(head.rpartition(":")[0])
    cpus = this_machine().cores if options.num_cpus is None else options.num_cpus
    # Ray puts sockets there, whose paths must stay under 107 bytes.
    with held_folder(user_folder(), RAY_FOLDER, f"{zlib.crc32(head.encode()):08x}") as folder:
        node = RayNode(head, address, options.head, cpus, options.num_gpus, folder, check_room(folder))
        return _run(node, meeting, options.lost_after_s)


def _run(node: RayNode, meeting: Path, lost_after_s: float) -> int:
    end_with_this_process()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    environment = ray_environment(os.environ, meeting)
    with subprocess.Popen(node.argv(), env=environment, stdin=subprocess.DEVNULL) as ray:
        try:
            lost = watch(node, meeting, ray, lost_after_s)
        except KeyboardInterrupt:
            lost = False
        ended = lost or ray.poll() is not None
        ray.terminate()
        try:
            ray.wait(10.0)
        except subprocess.TimeoutExpired:
            ray.kill()
    return 1 if ended else 0


def watch(node: RayNode, meeting: Path, ray: "subprocess.Popen[bytes]", lost_after_s: float) -> bool:
    """Wait until Ray has ended or the file `stop` appears; the head writes its address once it listens.

    Another node also stops waiting, and returns True, when the head has not answered for `lost_after_s` seconds: Ray
    does not notice a lost head while no message is sent, and the node's jobs have been restarted elsewhere.
    """
    announced, answered_at = False, time.monotonic()
    while ray.poll() is None and not (meeting / STOP).exists():
        if (not announced or not node.is_head) and answers(node.head):
            answered_at = time.monotonic()
            if node.is_head:
                replace_file(meeting / ADDRESS, f"{node.head}\n", private=True)
            announced = True
        if not node.is_head and time.monotonic() - answered_at > lost_after_s:
            sys.stderr.write(f"the head {node.head} has not answered for {lost_after_s:g} s: this node ends\n")
            return True
        time.sleep(_LOOK_S if node.is_head else _ASK_S)
    return False


def host_and_port(address: str) -> tuple[str, int]:
    """Return the two parts of `HOST:PORT`.

    Raises:
        ValueError: The text is not such an address.
    """
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[^\s/:]+|\[[0-9a-fA-F:]+\]", host) or not re.fullmatch(r"[0-9]{1,5}", port):
        msg = f"{address!r} is not an address: write HOST:PORT, such as 10.0.0.1:6379"
        raise ValueError(msg)
    if not 0 < int(port) <= _LAST_PORT:
        msg = f"{address!r} is not an address: ports go from 1 to {_LAST_PORT}"
        raise ValueError(msg)
    return host.strip("[]"), int(port)


def answers(address: str) -> bool:
    """Return whether a process listens at `HOST:PORT`.

    Raises:
        ValueError: The text is not such an address.
    """
    host, number = host_and_port(address)
    try:
        socket.create_connection((host, number), timeout=_ANSWER_S).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
