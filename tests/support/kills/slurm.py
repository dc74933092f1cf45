"""A real Slurm whose controller is killed or stopped and restarted, and whose sbatch loses answers."""

import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.support import real_slurm
from tests.support.faults.sessions import NAME, command, note_acknowledged
from tests.support.kills.sessions import Session, write_study
from tests.support.private_scheduler import find_program
from tests.support.processes import command_line, living
from tests.support.real_slurm import RealSlurm

CONTROLLER = "slurmctld"
_BIN = "bin"
# The shell `answer-of-sbatch` waits between the submission and its answer. If it is killed, the answer is lost: sbatch
# is killed, too, or prints nothing, or prints an error of Slurm.
_SBATCH = """#!/bin/sh
answer=$({sbatch} "$@") || exit
if sh -c 'sleep 0.4; :' answer-of-sbatch; then echo "$answer"; exit; fi
case $((${{answer##*[!0-9]}} % 3)) in
0) kill -9 $$ ;;
1) exit 0 ;;
*) echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1 ;;
esac
"""
_AWAY_S = 5.0
_LOOK_S = 0.05
_WATCH_S = 0.5
# A controller that was killed just after it heard of a job's end still lists the job as running. It keeps the job's
# cores until it misses the job on its node, which took up to 4 min, and other jobs wait.
_ENDS_S = 600.0


class Slurm(Session):
    """`autotune study` with a real Slurm whose controller and answers come and go."""

    name = "slurm"
    roles = ("slurmctld", "slurmctld, asked", "answer", "coordinator")

    def __init__(self) -> None:
        self._token = ""

    @classmethod
    def why_not(cls) -> str | None:
        """Return why there can be no Slurm here."""
        return real_slurm.why_not()

    def prepare(self, folder: Path, token: str) -> None:
        """Write the program, the study file, and an sbatch that answers after a moment."""
        self._token = token
        write_study(folder, token, 0.05)
        site = 'base = "slurm"\nqueue = "debug"\nwalltime = "5m"\npoll_s = 0.2\nworkers = 1\n'
        (folder / "site.toml").write_text(site)
        bin_folder = folder.parent / _BIN
        bin_folder.mkdir()
        (bin_folder / "sbatch").write_text(_SBATCH.format(sbatch=find_program("sbatch")))
        (bin_folder / "sbatch").chmod(0o755)

    def run(self) -> int:
        """Tune to the verdict, a job a run."""
        from launchers.batch import launcher

        # A job that Slurm has forgotten, or whose supervisor was killed, has no status: wait ten seconds for one.
        launcher.BatchLauncher.__init__.__defaults__ = (None, time.monotonic, 10.0, "")
        os.environ["PATH"] = os.pathsep.join([str(Path.cwd().parent / _BIN), os.environ["PATH"]])
        note_acknowledged()
        return command("study", f"./{NAME}.toml", "--warm-start", "off", "--launcher", "slurm", "--site", "./site.toml")

    def left(self) -> list[str]:
        """Return the jobs and their processes that still run after a generous wait."""
        give_up_at = time.monotonic() + _ENDS_S
        while (left := [*_jobs(), *self._programs()]) and time.monotonic() < give_up_at:
            time.sleep(_LOOK_S)
        return left

    def clear(self) -> None:
        """End all jobs."""
        with suppress(subprocess.CalledProcessError):
            subprocess.run(["scancel", "--me"], check=True, capture_output=True)
        self.left()

    def _programs(self) -> list[str]:
        def is_program(process: psutil.Process) -> bool:
            words = process.cmdline()
            return self._token in words and any(word.endswith("/work.py") for word in words)

        return [f"process {command_line(process)}" for process in living(is_program)]


def _jobs() -> list[str]:
    """Return the jobs that wait or run.

    A job that only the controller believes to run has no process on its node, and its run ended by the job's own files,
    so it does not count.
    """
    shown = subprocess.run(["squeue", "--noheader", "--format=%i %T %r"], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        return [shown.stderr.strip()]
    steps = " ".join(map(command_line, living(lambda process: "slurmstepd" in command_line(process))))
    jobs = [line.split(maxsplit=2) for line in shown.stdout.splitlines()]
    there = [(job, state, why) for job, state, why in jobs if state == "PENDING" or f"slurmstepd: [{job}." in steps]
    return [f"job {job} {state} {why}" for job, state, why in there]


def controller() -> int | None:
    """Return the process of the controller; None while there is none."""
    with suppress(OSError, ValueError):
        pid = int(Path(os.environ["SLURM_CONF"]).with_name(f"{CONTROLLER}.pid").read_text())
        with suppress(psutil.Error):
            return pid if psutil.Process(pid).name() == CONTROLLER else None
    return None


@contextmanager
def serving() -> Iterator[dict[str, str]]:
    """Start a Slurm whose controller is restarted some seconds after it has ended; provide its environment.

    A killed controller may start a job twice. The node takes it once, and is drained until it is resumed.
    """
    over = threading.Event()
    with RealSlurm() as slurm:

        def bring_back() -> None:
            while not over.wait(_WATCH_S):
                if slurm.has_ended(CONTROLLER):
                    over.wait(random.uniform(0.0, _AWAY_S))
                    slurm.start(CONTROLLER)
                elif any(state.startswith(("drain", "down")) for state in slurm.node()):
                    nodes = f"NodeName={slurm.host},{slurm.second}"
                    slurm.call("scontrol", "update", nodes, "State=RESUME", check=False)

        bringing = threading.Thread(target=bring_back)
        bringing.start()
        try:
            yield slurm.environment
        finally:
            over.set()
            bringing.join()
