"""A study of a training script that needs only Python and trains by arithmetic."""

import sys
from collections import Counter
from dataclasses import dataclass

from tests.support.chaos import ChaosStudy
from tests.support.quick_study import quick_sections

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
class TrainingStudy(ChaosStudy):
    """A study of a training script in a folder."""

    trials: int = 12
    rule: str = ""

    def write(self, *, mpi: bool = False) -> None:
        assert not mpi
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
