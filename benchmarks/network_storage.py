"""Test a storage on a real NFS: its journal, the message about it, and whether studies end as on a local disk.

    apt-get install user-mode-linux nfs-kernel-server rpcbind kmod     # Debian
    python benchmarks/network_storage.py [--folder FOLDER]

Linux's own NFS 4.2 server and client run in a User-Mode Linux: a kernel that is a process of this machine. It can read
all files of this machine, but writes only to FOLDER. The programs must be in PATH, and the kernel's modules are found
relative to `linux.uml`. The exit code is 1 if a check fails.

Result on 23 November 2026 (Linux 6.1 in the guest): all checks passed. The storage uses a rollback journal and says so
once; winner and verdict are as on a local disk; a file with a write-ahead log is converted; nothing is lost while the
server is away for a minute; and a reader on a second mount, which shares no cache with the first, sees only complete
states that grow. By hand: a study that was killed six times was completed with its file intact, and of two sessions on
different mounts one was refused.
"""

import argparse
import ctypes
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from autotune.asktell import AskTell, FinishedError, RunReport
from tests.support.asking import external, seconds

ROOT = Path(__file__).resolve().parents[1]
STUDY = "replay"
ASKED = "mine"
ASKING = "--asking"
MESSAGE = "rollback journal"
# Paths in the guest, on a file system in memory.
_EXPORT, _HERE, _THERE, _OUT = (Path("/srv", name) for name in ("export", "here", "there", "out"))
_SERVER = ("rpc.nfsd", "-N", "3", "-G", "10", "-L", "10")
_AWAY_S = 60.0
# Runs of the program that asks and tells are long enough for its study to outlast the disturbance.
_RUN_S = 1.5
_NEEDED = ("linux.uml", "modprobe", "rpcbind", "rpc.mountd", "exportfs", "rpc.nfsd")
_POWER_OFF = 0x4321FEDC  # linux/reboot.h


def main() -> int:
    """Run the guest, and print its results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="folder for the guest's files; default: a temporary one")
    given = parser.parse_args()
    if missing := [name for name in _NEEDED if shutil.which(name) is None]:
        sys.exit(f"{', '.join(missing)}: not in PATH; apt-get install user-mode-linux nfs-kernel-server rpcbind kmod")
    folder = (given.folder or Path(tempfile.mkdtemp(prefix="autotune-nfs-"))).absolute()
    _link_modules(folder)
    out = folder / "out"
    out.mkdir(exist_ok=True)
    kernel = [
        *("linux.uml", "mem=1024M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"),
        *("con=null", "con0=null,fd:2", f"init={sys.executable}"),
        *("--", str(Path(__file__).resolve()), str(folder), os.environ["PATH"]),
        *filter(None, [os.environ.get("LD_LIBRARY_PATH")]),
    ]
    with (folder / "kernel.log").open("w") as log:
        subprocess.run(kernel, stdin=subprocess.DEVNULL, stderr=log, stdout=log, check=False)
    found = (out / "found").read_text() if (out / "found").exists() else "the guest did not start\n"
    print(found, end="")
    print(f"(logs of the guest: {folder})")
    return "WRONG" in found or not found.endswith("end\n")


def _link_modules(folder: Path) -> None:
    """Link the kernel's modules to the place where modprobe looks for them."""
    beside = Path(shutil.which("linux.uml") or "").resolve().parents[1] / "lib" / "uml" / "modules"
    target = folder / "lib" / "modules"
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.is_symlink():
        target.symlink_to(beside)


def run_guest(folder: Path) -> None:
    """Act as the guest's init process: mount the file systems, run all checks, and power off."""
    try:
        _mount(folder)
        with (_OUT / "found").open("w", buffering=1) as found:
            for what, is_right in _check_all():
                print(f"{'' if is_right else 'WRONG: '}{what}", file=found)
            print("end", file=found)
    except Exception:
        traceback.print_exc()
        raise
    finally:
        os.sync()
        ctypes.CDLL(None).reboot(_POWER_OFF)


def _mount(folder: Path) -> None:
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/srv"), ("tmpfs", "/var")):
        _do("mount", "-t", kind, kind, where)
    for path in (_EXPORT, _HERE, _THERE, _OUT):
        path.mkdir()
    _do("mount", "-t", "hostfs", "none", str(_OUT), "-o", str(folder / "out"))
    log = os.open(_OUT / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # Keep temporary files and locks in the guest; all other paths are those of this machine.
    os.environ |= {"TMPDIR": "/run", "XDG_RUNTIME_DIR": "/run", "HOME": "/run", "PYTHONDONTWRITEBYTECODE": "1"}
    os.environ |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    _do("mount", "-t", "tmpfs", "tmpfs", str(_EXPORT))
    for name in ("nfs/sm", "nfs/v4recovery", "nfs/rpc_pipefs", "nfs/nfsdcltrack", "nfs/nfsdcld"):
        Path("/var/lib", name).mkdir(parents=True)
    for name in ("etab", "rmtab"):
        Path("/var/lib/nfs", name).touch()
    Path("/run/rpcbind").mkdir()
    _do("ip", "link", "set", "lo", "up")
    for module in ("nfsd", "nfsv4"):
        _do("modprobe", "-d", str(folder), module)
    _do("mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd")
    _do("rpcbind", "-w")
    _do("rpc.mountd", "-N", "3")
    _do("exportfs", "-i", "-o", "rw,sync,no_root_squash,insecure,fsid=0,no_subtree_check", f"*:{_EXPORT}")
    _do(*_SERVER, "2")
    options = "vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1"
    _do("mount", "-i", "-t", "nfs4", "127.0.0.1:/", str(_HERE), "-o", options)
    # Without a shared cache, this mount has its own caches and locks, like a second machine.
    _do("mount", "-i", "-t", "nfs4", "127.0.0.1:/", str(_THERE), "-o", f"{options},nosharecache")
    for line in Path("/proc/mounts").read_text().splitlines():
        if " nfs4 " in line:
            print(line, flush=True)


def _do(*argv: str) -> None:
    subprocess.run(argv, check=True)


def _check_all() -> Iterator[tuple[str, bool]]:
    """Run all checks; yield each finding, and whether it is right."""
    yield from _check_undisturbed_study()
    yield from _check_conversion()
    yield from _check_server_outage()
    yield from _check_reader_on_second_mount()


def _check_undisturbed_study() -> Iterator[tuple[str, bool]]:
    here, twin = _folder("alone"), Path("/run/twin")
    twin.mkdir()
    first, again, local = _tune(here, 12), _tune(here, 14), _tune(twin, 12)
    _tune(twin, 14)
    yield f"a study ended with {first.returncode}, its twin on a local disk with {local.returncode}", _is_well(first)
    yield (
        f"message about the journal: {MESSAGE in first.stderr}, from the next command: {MESSAGE in again.stderr}",
        (MESSAGE in first.stderr and MESSAGE not in again.stderr),
    )
    yield f"journal and integrity: {_journal(here)}, twin {_journal(twin)}", _journal(here) == ("delete", "ok")
    beside = sorted(path.name for path in here.iterdir() if path.name.startswith("autotune.db-"))
    yield f"files left by SQLite: {beside}", not beside
    same = _best(here) == _best(twin) != ""
    yield f"winner and verdict equal the twin's: {same}", same


def _check_conversion() -> Iterator[tuple[str, bool]]:
    here = _folder("log")
    with closing(sqlite3.connect("/run/twin/autotune.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy("/run/twin/autotune.db", here)
    ended = _tune(here, 16)
    yield (
        f"a file with a write-ahead log is converted: {_journal(here)}, with a message: {MESSAGE in ended.stderr}",
        (_is_well(ended) and _journal(here) == ("delete", "ok") and MESSAGE in ended.stderr),
    )


def _check_server_outage() -> Iterator[tuple[str, bool]]:
    """Stop the server during a study, and restart it a minute later."""
    here, twin = _folder("away"), Path("/run/undisturbed")
    twin.mkdir()
    _begin(twin).wait()
    study = _begin(here)
    known = _wait_for_trials(here, at_least=3)
    _do("rpc.nfsd", "0")
    with suppress(subprocess.TimeoutExpired):
        study.wait(_AWAY_S)
    waited = study.poll() is None
    _do(*_SERVER, "2")
    yield f"after {known} trials the server was away for {_AWAY_S:.0f} s, and the study waited: {waited}", waited
    study.wait()
    yield (
        f"it ended with {study.returncode}; journal and integrity: {_journal(here)}",
        (study.returncode == 0 and _journal(here) == ("delete", "ok")),
    )
    same = _best(here, ASKED) == _best(twin, ASKED) != ""
    yield f"winner and verdict equal those of an undisturbed twin: {same}", same


def _check_reader_on_second_mount() -> Iterator[tuple[str, bool]]:
    """Read on the second mount while a study runs on the first."""
    here, there = _folder("read"), _THERE / "read"
    study = _begin(here)
    _wait_for_trials(here, at_least=1)
    seen: list[int] = []
    failed = 0
    while study.poll() is None:
        answer = _ask("trials", there, ASKED)
        failed += answer.returncode != 0
        if not answer.returncode:
            seen.append(len(json.loads(answer.stdout)))
    grows = seen == sorted(seen) and len(set(seen)) > 1
    yield f"{len(seen)} reads on the second mount, {failed} failed; trials seen: {seen}", grows and not failed
    same = _best(here, ASKED) == _best(there, ASKED) != ""
    yield f"winner and verdict are the same on both mounts: {same}", same


def _begin(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen((sys.executable, __file__, ASKING, str(folder)))


def ask_and_tell(folder: Path) -> None:
    """Ask, sleep in place of a run, and tell, until the study has its verdict."""
    with AskTell.open(external(), f"sqlite:///{folder / 'autotune.db'}") as study, suppress(FinishedError):
        while True:
            asked = study.ask(wait_s=60.0)
            if asked is not None:
                time.sleep(_RUN_S)
                study.tell(asked.lease, RunReport(value=seconds(asked.configuration)))


def _wait_for_trials(folder: Path, at_least: int) -> int:
    """Wait until at least that number of trials is stored; return the number stored."""
    while True:
        answer = _ask("trials", folder, ASKED)
        known = len(json.loads(answer.stdout)) if answer.returncode == 0 else 0
        if known >= at_least:
            return known


def _folder(name: str) -> Path:
    path = _HERE / name
    path.mkdir()
    return path


def _tune(folder: Path, trials: int) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-m", "autotune", "study", STUDY, "--trials", str(trials))
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def _is_well(ended: subprocess.CompletedProcess[str]) -> bool:
    if ended.returncode:
        print(ended.stdout, ended.stderr, flush=True)
    return ended.returncode == 0


def _ask(command: str, folder: Path, study: str) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-m", "autotune", command, study, "--json")
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def _best(folder: Path, study: str = STUDY) -> str:
    return _ask("best", folder, study).stdout


def _journal(folder: Path) -> tuple[str, str]:
    with closing(sqlite3.connect(folder / "autotune.db")) as connection:
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
        (whole,) = connection.execute("PRAGMA integrity_check").fetchone()
    return journal, whole


if __name__ == "__main__":
    if sys.argv[1:2] == [ASKING]:
        sys.exit(ask_and_tell(Path(sys.argv[2])))
    if os.getpid() == 1:
        os.environ["PATH"] = sys.argv[2]
        if sys.argv[3:]:
            os.environ["LD_LIBRARY_PATH"] = sys.argv[3]
        run_guest(Path(sys.argv[1]))
    sys.exit(main())
