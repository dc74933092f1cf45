"""Helpers that tests of several rooms share.

- `fakes`: small spaces, definitions, executors and displays for unit tests; `contests`, `noise`: known winners.
- `simulated`, `training`, `quick_training`: whole sessions over a table, or over a training program that takes seconds.
- `command_line`: the command `autotune` in this process; `warm`: in another process, without its start-up time.
- `warm_torch`: a training program, without the time to import torch; `fork_server`: the server of both.
- `study_folder`: a study in a folder and its sessions; `quick_study`, `awk_study`: study files for a few runs.
- `asking`: clients of an open study; `processes`: processes of this machine; `structure`: imports between rooms.
- `waiting`: wait for a state.
- `faults`, `kills`: sessions that are disturbed or killed. `hosts`, `pbs_study`: several hosts, a fake PBS.
- `postgres`, `real_slurm`, `real_grid_engine`: private servers; `keeper` ends whatever they started.
- `fuzzing`, `search_scores`, `machines`, `simulated_clusters`: `benchmarks/` may use them, too.
"""
