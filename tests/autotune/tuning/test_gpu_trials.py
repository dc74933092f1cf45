"""Trials on GPUs side by side, for real but for the cards: a stand-in of nvidia-smi lists two."""

import json
import os
import subprocess
import sys
from itertools import pairwise

import pytest

from tests.support.quick_study import quick_sections

pytestmark = [
    pytest.mark.full,
    pytest.mark.cores(2),
]

CARDS = {"GPU-aaaaaaaa-1", "GPU-bbbbbbbb-2"}
SMI = """#!/bin/sh
case "$*" in
  -L) echo "GPU 0: Card (UUID: GPU-aaaaaaaa-1)"; echo "GPU 1: Card (UUID: GPU-bbbbbbbb-2)" ;;
  "--query-gpu=uuid,pci.bus_id --format=csv,noheader") ;;
  *) exit 2 ;;
esac
"""
PROGRAM = """
import os, sys, time
from_s, card, x, seen = time.time(), os.environ["CUDA_VISIBLE_DEVICES"], int(sys.argv[1]), sys.argv[2]
open(os.path.join(seen, card), "w").close()
# The default runs alone; the others wait until two have run side by side.
while x > 1 and len(os.listdir(seen)) < 2:
    time.sleep(0.01)
print("seen", card, from_s, time.time())
print("value", x)
"""
STUDY = """
name = "cards"
objective = "command"
[options]
argv = ["{python}", "{program}", "{{x}}", "{seen}"]
gpus = 1
metrics = [{{ name = "value", pattern = "value (\\\\d+)" }}]
"""


def test_each_trial_sees_one_card_and_no_other_trial_has_it_meanwhile(tmp_path):
    smi, program, seen_cards = tmp_path / "bin" / "nvidia-smi", tmp_path / "program.py", tmp_path / "seen"
    smi.parent.mkdir()
    seen_cards.mkdir()
    smi.write_text(SMI)
    smi.chmod(0o755)
    program.write_text(PROGRAM)
    (tmp_path / "cards.toml").write_text(
        STUDY.format(python=sys.executable, program=program, seen=seen_cards)
        + quick_sections(trials=6, workers=2, high=6)
    )
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    environment["PATH"] = f"{smi.parent}:{environment['PATH']}"
    command = [sys.executable, "-m", "autotune", "study", "cards.toml", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 4}, done.stderr
    assert json.loads(done.stdout)
    seen = [
        line.split()[1:]
        for path in (tmp_path / "autotune-runs").rglob("stdout")
        for line in path.read_text().splitlines()
        if line.startswith("seen")
    ]
    assert {card for card, *_ in seen} == CARDS
    for card in CARDS:
        times = sorted((float(begin), float(end)) for name, begin, end in seen if name == card)
        assert all(before[1] <= after[0] for before, after in pairwise(times))
