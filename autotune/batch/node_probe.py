"""The program that `autotune doctor --launcher` runs on a node: `python -I node_probe.py FOLDER NUMBER OF SUBMIT`.

`FOLDER` is the folder of all these jobs, by its path on the submitting host. Jobs `NUMBER` 0 to `OF` - 1 wait for each
other for a while, so that two of them on the same node can be compared. A job on several nodes tries every command that
might start a program on another node, looks for the folder there, and starts two MPI ranks as a run would.
"""

import json
import os
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from autotune.batch.allocation import read
from launchers.cpus import CPUS, parse_cpu_list
from launchers.detect import detect, lacks_tm
from launchers.job import Job, Resources
from launchers.mpi import CannotStartRanksError, MpiFlavour, MpiStart, mpi_environment
from launchers.mpi_command import mpi_argv
from launchers.software.ask import ask

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
    ),
    "pbs_tmrsh": ("pbs_tmrsh", "{host}"),
    "qrsh": ("qrsh", "-inherit", "{host}"),
    "ssh": ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "{host}"),
}
_TOGETHER_S, _SIDE_BY_SIDE_S, _LOOK_S, _PATIENCE_S = 10.0, 1.0, 0.1, 10.0
_COMPLAINT_CHARACTERS = 200
# Programs started by Slurm may have the same host name on several of its nodes.
_RANK = "import os, socket; print('rank on', os.environ.get('SLURMD_NODENAME') or socket.gethostname())"


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
    starters = {name: _try_starter(words, others[0], "hostname") for name, words in _STARTERS.items()} if others else {}
    report = {
        "host": host,
        "cpus": sorted(os.sched_getaffinity(0)),
        "online": _online(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "sees_folder": sees,
        "can_submit": shutil.which(submit) is not None,
        "mpi": f"{flavour.kind} {'.'.join(map(str, flavour.version))}".strip() if flavour else "",
        "hosts": len(allocation.hosts) if allocation else 0,
        "other": others[0] if others else "",
        "other_sees_folder": _other_sees(folder, others[0], starters) if others else None,
        "starters": starters,
        "mpi_over_nodes": _try_ranks(flavour) if others and flavour else None,
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


def _try_starter(words: tuple[str, ...], host: str, *program: str) -> str | None:
    """Return why a command cannot run a program on a host; empty if it can, None if it is not installed."""
    if shutil.which(words[0]) is None:
        return None
    return _run([*(word.format(host=host) for word in words), *program])[0]


def _other_sees(folder: Path, host: str, starters: Mapping[str, str | None]) -> bool | None:
    """Return whether another host of the job sees the folder; None if no command reaches the host."""
    reaching = next((name for name, complaint in starters.items() if complaint == ""), None)
    if reaching is None:
        return None
    path = str(folder / TOKEN_FILE)
    # ssh and qrsh pass the words to a shell.
    words = shlex.quote(path) if reaching in {"ssh", "qrsh"} else path
    return _try_starter(_STARTERS[reaching], host, "test", "-f", words) == ""


def _try_ranks(flavour: MpiFlavour) -> str:
    """Return why two ranks cannot be started on two nodes as a run would start them; empty if they can."""
    program = (sys.executable, "-I", "-c", _RANK)
    try:
        job = Job(program, Path.cwd(), mpi=MpiStart(2), resources=Resources(cores=2, nodes=2))
        argv = mpi_argv(flavour, job)
    except CannotStartRanksError as error:
        return str(error)
    complaint, text = _run(argv, mpi_environment(flavour, user_id=os.geteuid()))
    hosts = {line for line in text.splitlines() if line.startswith("rank on ")}
    if not complaint and len(hosts) < 2:
        complaint = f"both ranks ran on {' '.join(hosts).removeprefix('rank on ') or 'no node'}"
    needs_tm = complaint and "PBS_JOBID" in os.environ and lacks_tm(flavour)
    return f"it was built without PBS (tm): {complaint}" if needs_tm else complaint


def _run(argv: Sequence[str], added: Mapping[str, str] = MappingProxyType({})) -> tuple[str, str]:
    """Run a command with more variables; return why it failed, empty if it did not, and its output."""
    try:
        done = ask(argv, _PATIENCE_S, environment={**os.environ, **added})
    except TimeoutError:
        return f"no answer within {_PATIENCE_S:g} s", ""
    except OSError as error:
        return error.strerror or type(error).__name__, ""
    if done.exit_code == 0:
        return "", done.text
    # MPI frames its messages with lines of signs.
    words = " ".join(word for word in done.complaint.split() if any(map(str.isalnum, word)))
    return words[:_COMPLAINT_CHARACTERS] or f"exit code {done.exit_code}", done.text


if __name__ == "__main__":
    main()
