"""Helpers that tests of several rooms share.

- `fakes`: small spaces, definitions, executors and displays for unit tests; `contests`, `noise`: known winners.
- `simulated`, `training`, `quick_training`: whole sessions over a table, or over a training program that takes seconds.
- `command_line`: the command `autotune` in this process; `warm`: in a process of its own, without its start-up time.
- `warm_torch`: a training program, without the time to import torch; `fork_server`: the server of both.
- `study_folder`: a study in a folder and its sessions; `quick_study`, `awk_study`: study files that few runs settle.
- `asking`: clients of an open study; `processes`: what runs on this machine; `structure`: which rooms import which.
- `kills`, `chaos`: studies that are killed. `hosts`, `pbs_study`, `machines`: several hosts, a fake PBS, invented ones.
- `postgres`, `real_slurm`, `real_grid_engine`: real servers of the tests' own; `keeper` ends whatever they started.
- `fuzzing`, `search_scores`, `simulated_clusters`: used by `benchmarks/`, too.
"""
