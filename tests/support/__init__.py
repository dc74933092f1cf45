"""Helpers that tests of several rooms share.

- `fakes`: small spaces, definitions, runs and displays for unit tests; `contests`, `noise`: stores with known winners.
- `simulated`, `training`, `quick_training`: whole sessions over a table, or over a training program that takes seconds.
- `warm`: the command `autotune` without its start-up time; `asking`: clients of an open study.
- `kills`, `chaos`: studies that are killed. `hosts`, `pbs_study`, `machines`: several hosts, a fake PBS, invented ones.
- `postgres`, `real_slurm`, `real_grid_engine`: real servers of the tests' own; `keeper` ends whatever they started.
"""
