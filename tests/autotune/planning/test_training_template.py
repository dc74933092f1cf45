"""`autotune init` for the command line of a training."""

import shlex
import tomllib

import pytest

from autotune.planning.training_template import find_training, training_text
from tests.support.command_line import run_main

SCRIPT = """
import argparse
read = argparse.ArgumentParser()
for name, kind in (("--lr", float), ("--batch-size", int), ("--epochs", int), ("--seed", int)):
    read.add_argument(name, type=kind)
given = read.parse_args()
for epoch in range(1, given.epochs + 1):
    print(f"Epoch {epoch}/{given.epochs} val_loss={abs(given.lr - 0.05) + 1 / given.batch_size + 1 / epoch:.4f}")
"""


def written(command):
    words = shlex.split(command)
    return tomllib.loads(training_text(words, find_training(words, {})))


@pytest.mark.parametrize(
    ("command", "steps", "rates", "batches"),
    [
        ("python3 train.py --lr 3e-4 --batch-size 32 --epochs 9", "9", ["lr"], ["batch_size"]),
        ("torchrun t.py --lr=0.1 --epochs=90 --momentum 0.9 --weight-decay 1e-4", "90", ["lr", "weight_decay"], []),
        ("accelerate launch glue.py --learning_rate 2e-5 --num_train_epochs 3", "3", ["learning_rate"], []),
        (
            "./t --epochs 3 --per_device_train_batch_size 8 --eval_batch_size 64",
            "3",
            [],
            ["per_device_train_batch_size"],
        ),
        ("python3 train.py --max_iters=5000 --learning_rate=1e-3", "5000", ["learning_rate"], []),
        ("python3 main.py fit --trainer.max_epochs=10 --model.lr=1e-3", "10", ["model_lr"], []),
        ("./train --epochs 5", "5", [], []),
    ],
)
def test_what_is_taken_for_a_training(command, steps, rates, batches):
    found = find_training(shlex.split(command), {})
    assert found.steps.value == steps
    assert [[knob.name for knob in knobs] for knobs in (found.rates, found.batches)] == [rates, batches]


@pytest.mark.parametrize(
    "command",
    [
        "./solve --max-steps 100 --batch-size 4",
        "mpirun -np 4 ./train --epochs 5 --lr 0.1",
        "python3 train.py --epochs 5 --lr {lr=1,2}",
        "python3 train.py --epochs 0 --lr 0.1",
        "python3 train.py --epochs",
    ],
)
def test_what_is_not(command):
    assert find_training(shlex.split(command), {}) is None


def test_steps_and_seed_are_asked_for_and_everything_else_stays():
    study = written("A=2 torchrun --nproc_per_node=2 t.py --lr 1e-3 --epochs 9 --workers 4 --seed 7")
    argv = "torchrun --nproc_per_node=2 t.py --lr {lr} --epochs {steps} --workers 4 --seed {seed}"
    assert study["options"]["argv"] == argv.split()
    assert study["options"]["environment"] == {"A": "2"}
    assert study["options"]["cores"] == "min(2, cores_per_node)"
    assert study["stopping"] == {"max_steps": 9}
    assert study["space"]["parameters"]["lr"] == {
        "type": "float", "low": 1e-5, "high": 1e-2, "log": True, "points": 31, "default": 1e-3
    }  # fmt: skip


def test_the_smallest_batch_has_one_sample():
    assert written("./train --epochs 9 --lr 1 --batch-size 2")["space"]["parameters"]["batch_size"]["values"] == [
        1, 2, 4, 8
    ]  # fmt: skip


def test_what_init_writes_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    command = "python3 train.py --lr 0.1 --batch-size 32 --epochs 9 --seed 1"
    ended = run_main("init", "mine.toml", "--", *command.split())
    assert ended.returncode == 0
    assert "--epochs makes this a training" in ended.stderr
    ended = run_main("check", "./mine.toml", "--run")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "155 valid configurations" in ended.stdout
    assert "AUTOTUNE_STEPS=9" in ended.stdout
    assert "val_loss: 1.08" in ended.stdout
