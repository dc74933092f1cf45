"""A whole study of a command whose runs may have two nodes: on a real Slurm, and on stand-ins for it and for PBS."""

import json
import os
from pathlib import Path

import pytest

from tests.launchers.fakes.cluster import FakeCluster
from tests.support.real_slurm import CORES
from tests.support.warm import autotune

pytestmark = pytest.mark.full

STUDY = """
objective = "command"

[options]
argv = ["sh", "-c", 'echo $SLURMD_NODENAME >> {folder}/hosts-$1; echo took $((20 - $1))', "", "{{np}}"]
ranks = "np"
metrics = [{{ name = "took_s", unit = "s", pattern = 'took (\\d+)' }}]

[budget]
trials = 3

[repeats]
max_runs = 1
warm_up_runs = 0
baseline_runs = 1

[space.parameters.np]
type = "integer"
values = [1, {cores}, {all_cores}]
default = {all_cores}
"""
SITE = """
scheduler = "{scheduler}"
machine = "{folder}/node.toml"
nodes = 2
workers = 1
poll_s = 0.2
walltime = "5m"
"""
NODE = """
name = "node"

[cpu]
cores_per_node = {cores}

[memory]
bytes = 4_000_000_000
"""
# Starts a single rank, whatever number is requested.
START = '#!/bin/sh\nwhile [ "$1" != sh ]; do shift; done\nexec "$@"\n'


def tuned(folder: Path, scheduler: str, *lines: str, path: str | None = None) -> None:
    """Tune to the end; the default has ranks on two nodes, and is the best."""
    (folder / "mine.toml").write_text(STUDY.format(folder=folder, cores=CORES, all_cores=2 * CORES))
    (folder / "node.toml").write_text(NODE.format(cores=CORES))
    (folder / "site.toml").write_text("\n".join((SITE.format(scheduler=scheduler, folder=folder), *lines)))
    words = ("study", "./mine.toml", "--launcher", scheduler, "--site", "./site.toml")
    ended = autotune(folder, *words, PATH=path or os.environ["PATH"])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    trials = json.loads(autotune(folder, "trials", "mine", "--json").stdout)
    assert {(trial["np"], trial["state"]) for trial in trials} == {(np, "complete") for np in (1, CORES, 2 * CORES)}


def test_on_a_real_slurm_the_ranks_are_on_both_nodes(slurm, tmp_path):
    tuned(tmp_path, "slurm", 'queue = "pair"', 'mpi = "Slurm srun"')
    hosts = (tmp_path / f"hosts-{2 * CORES}").read_text().split()
    assert hosts.count(slurm.host) == hosts.count(slurm.second) > 0
    assert set((tmp_path / f"hosts-{CORES}").read_text().split()) < {slurm.host, slurm.second}


@pytest.mark.parametrize(
    ("scheduler", "asked"),
    [
        ("slurm", f"#SBATCH --nodes=2\n#SBATCH --ntasks={2 * CORES}\n"),
        ("pbs", f"#PBS -l select=2:ncpus={CORES}:mpiprocs={CORES}"),
    ],
)
def test_on_a_stand_in_runs_ask_for_two_nodes(scheduler, asked, tmp_path):
    start = tmp_path / "ranks"
    start.write_text(START)
    start.chmod(0o755)
    with FakeCluster(scheduler) as cluster:
        tuned(tmp_path, scheduler, 'mpi = "MPICH"', f'start = "{start}"', path=cluster.path)
        scripts = [path.read_text() for path in (tmp_path / "autotune-runs").rglob(".autotune-job.sh")]
    assert sum(asked in script for script in scripts) == 1
    assert sum("nodes=1\n" in script or "select=1:" in script for script in scripts) == 2
