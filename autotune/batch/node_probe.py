"""The program that `autotune doctor --launcher` runs on a node: `python -I node_probe.py FOLDER NUMBER OF SUBMIT`.

`FOLDER` is the folder of all these jobs, by its path on the submitting host. Jobs `NUMBER` 0 to `OF` - 1 wait for each
other for a while, so that two of them on the same node can be compared. A job on several nodes tries every command that
might start a program on another node.
"""

import json
import os
import shutil
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from autotune.batch.allocation import read
from launchers.ask import ask
from launchers.cpus import CPUS, parse_cpu_list
from launchers.detect import detect

TOKEN_FILE = "token"  # noqa: S105  shows that the node sees the folder of the submitting host

# Commands that may start a program on another node of a job.
_STARTERS = {
    "srun": (
        "srun",
        "--overlap",
        "--mem=0",
        "--nodes=1",
        "--ntasks=1",
        "--cpu-bind=none",
        "--nodelist={host}",
        "hostname",
    ),
    "pbs_tmrsh": ("pbs_tmrsh", "{host}", "hostname"),
    "qrsh": ("qrsh", "-inherit", "{host}", "hostname"),
    "ssh": ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "{host}", "hostname"),
}
_TOGETHER_S, _SIDE_BY_SIDE_S, _LOOK_S, _PATIENCE_S = 10.0, 1.0, 0.1, 20.0


def main() -> None:
    """Print the properties of this node as JSON."""
    began = time.time()
    folder, number, together, submit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    sees = (folder / TOKEN_FILE).is_file()
    if sees and number < together:
        _begin_together(folder, number, together)
    allocation = read(os.environ)
    host = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    own = {host, host.partition(".")[0]}
    others = [other for other in allocation.hosts if not own & {other, other.partition(".")[0]}] if allocation else []
    flavour = detect()
    report = {
        "host": host,
        "cpus": sorted(os.sched_getaffinity(0)),
        "online": _online(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "sees_folder": sees,
        "can_submit": shutil.which(submit) is not None,
        "mpi": f"{flavour.kind} {'.'.join(map(str, flavour.version))}".strip() if flavour else "",
        "hosts": len(allocation.hosts) if allocation else 0,
        "starters": {name: _try_starter(words, others[0]) for name, words in _STARTERS.items()} if others else {},
        "began": began,
        "ended": time.time(),
    }
    sys.stdout.write(json.dumps(report))


def _begin_together(folder: Path, number: int, together: int) -> None:
    (folder / f"began-{number}").touch()
    give_up_at = time.monotonic() + _TOGETHER_S
    while time.monotonic() < give_up_at and len(list(folder.glob("began-*"))) < together:
        time.sleep(_LOOK_S)
    time.sleep(_SIDE_BY_SIDE_S)


def _online() -> list[int]:
    with suppress(OSError, ValueError):
        return sorted(parse_cpu_list(Path(CPUS, "online").read_text(encoding="ascii")))
    return []


def _try_starter(words: tuple[str, ...], host: str) -> str | None:
    """Return why a command cannot start a program on a host; empty if it can, None if it is not installed."""
    if shutil.which(words[0]) is None:
        return None
    try:
        done = ask([word.format(host=host) for word in words], _PATIENCE_S)
    except OSError as error:
        return type(error).__name__
    return "" if done.exit_code == 0 else " ".join(done.complaint.split())[:200] or f"exit code {done.exit_code}"


if __name__ == "__main__":
    main()
