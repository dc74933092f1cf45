"""A study of a training script that needs only Python and trains by arithmetic."""

import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass

import psutil

from tests.support.processes import command_line, living
from tests.support.quick_study import quick_sections
from tests.support.study_folder import StudyFolder
from tests.support.waiting import PATIENCE_S

SCRIPT = """
import json, os, pathlib, sys, time
x, folder = float(sys.argv[1]), os.environ.get("AUTOTUNE_CHECKPOINT")
kept = pathlib.Path(folder, "step") if folder else None
first = int(kept.read_text()) if kept and kept.exists() else 0
log = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def tell(step):
    print(json.dumps({"step": step, "score": (1 - 0.7**step) / (1 + abs(x - 70)), "x": x}), flush=True)
for step in range(first + 1, int(os.environ["AUTOTUNE_STEPS"]) + 1):
    time.sleep(0.03)
    os.write(log, f"{sys.argv[1]} {step} {folder is None}\\n".encode())
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.with_suffix(".new").write_text(str(step))
        kept.with_suffix(".new").replace(kept)
    tell(step)
if first >= int(os.environ["AUTOTUNE_STEPS"]):
    tell(first)
"""
STUDY = """
objective = "training"

[options]
argv = ["{python}", "-I", "-S", "{folder}/train.py", "{{x}}", "{folder}/steps.log"]
metric = {{ name = "score" }}

[stopping]
max_steps = 9
{rule}
"""


@dataclass
class TrainingStudy(StudyFolder):
    """A study of a training script in a folder."""

    trials: int = 12
    rule: str = ""

    def write(self) -> None:
        """Write the script and the study file."""
        (self.folder / "train.py").write_text(SCRIPT, encoding="utf-8")
        text = STUDY.format(folder=self.folder, python=sys.executable, rule=self.rule)
        text += quick_sections(trials=self.trials, repeats="")
        (self.folder / "mine.toml").write_text(text, encoding="utf-8")

    def outcome(self) -> list[tuple[object, object]]:
        """Return x and the steps of every trial, in order. Numbers may be missing, of trials never launched."""
        rows = sorted(self.table(), key=lambda row: row["trial"])
        return [(row["x"], row.get("steps")) for row in rows]

    def trained(self) -> Counter[tuple[str, str]]:
        """Return how often tuning trained each step of each configuration."""
        path = self.folder / "steps.log"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return Counter((x, step) for x, step, confirming in lines if confirming == "False")

    def left(self) -> list[str]:
        """Return the running processes of this study."""
        return [line[:120] for process in living(self._belongs) if (line := command_line(process))]

    def _belongs(self, process: psutil.Process) -> bool:
        return any(str(self.folder) in text for text in (process.cwd(), *process.cmdline()))


def kill_once(study: TrainingStudy, rng: random.Random) -> int:
    """Run a session and kill its coordinator at a random instant; return 1, or 0 if the session ended before."""
    session = study.start()
    try:
        session.wait(rng.uniform(0.5, 9.0))
    except subprocess.TimeoutExpired:
        session.kill()
        session.wait()
        return 1
    return 0


def nothing_left(study: TrainingStudy) -> list[str]:
    """Return the processes that still run after a generous wait."""
    give_up_at = time.monotonic() + PATIENCE_S
    while (left := study.left()) and time.monotonic() < give_up_at:
        time.sleep(0.2)
    return left
