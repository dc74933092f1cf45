"""A study whose verdict holds for several nodes of a batch system: on stand-ins, and on a real Slurm with two nodes."""

import json
import os
from collections import Counter

import pytest

from launchers.batch_systems.registry import BATCH_SYSTEMS
from tests.launchers.fakes.cluster import FakeCluster
from tests.support.warm import autotune

pytestmark = pytest.mark.full

STUDY = """
objective = "command"

[options]
argv = ["sh", "-c", 'sleep 0.05; echo took $((20 - $1)).0$$', "", "{x}"]
metrics = [{ name = "took_s", unit = "s", pattern = 'took ([\\d.]+)' }]

[budget]
trials = 2

[repeats]
max_runs = 1
warm_up_runs = 0
baseline_runs = 1

[verdict]
candidates = 1
rounds = 2
confidence = 0.75
pairs = 4
max_pairs = 4

[space.parameters.x]
type = "integer"
values = [1, 2, 3]
default = 1
"""
SITE = """
scheduler = "{scheduler}"
machine = "{folder}/node.toml"
workers = {workers}
poll_s = 0.2
walltime = "5m"
"""
NODE = 'name = "node"\n[cpu]\ncores_per_node = 2\n[memory]\nbytes = 4_000_000_000\n'
NODES = "--nodes-at-least"


def tuned(folder, scheduler, least, *lines, workers=2, path=None):
    """Tune to the end; return the output, and the hosts of each round of the verdict."""
    (folder / "mine.toml").write_text(STUDY)
    (folder / "node.toml").write_text(NODE)
    site = SITE.format(scheduler=scheduler, folder=folder, workers=workers)
    (folder / "site.toml").write_text("\n".join((site, *lines)))
    words = ("study", "./mine.toml", "--launcher", scheduler, "--site", "./site.toml", NODES, str(least))
    ended = autotune(folder, *words, PATH=path or os.environ["PATH"])
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0, said
    rounds: dict[int, list[str]] = {}
    for run in json.loads(autotune(folder, "trials", "mine", "--runs", "--json").stdout):
        if run["series"].startswith("verdict"):
            rounds.setdefault(run["round"], []).append(run["outcome"]["conditions"]["host"].partition(".")[0])
    assert all(len(nodes) == 2 and len(set(nodes)) == 1 for nodes in rounds.values()), rounds
    return said, Counter(nodes[0] for nodes in rounds.values())


@pytest.mark.parametrize("scheduler", [name for name in BATCH_SYSTEMS if name != "flux"])
def test_on_a_stand_in_each_pair_is_on_one_node_and_the_nodes_have_their_share(scheduler, tmp_path):
    with FakeCluster(scheduler) as cluster:
        cluster.switch("host names", "n1 n2 n3")
        said, pairs = tuned(tmp_path, scheduler, 2, path=cluster.path)
    assert pairs == {"n1": 2, "n2": 2}
    assert "over 2 nodes" in said


def test_on_a_real_slurm_the_pairs_are_on_all_nodes_and_the_verdict_says_that_they_are_too_few(slurm, tmp_path):
    said, pairs = tuned(tmp_path, "slurm", 3, 'queue = "pair"', workers=1)  # both nodes are this machine
    assert pairs == {slurm.host: 2, slurm.second: 2}
    assert "slurm gives no other node than" in said
    assert "it was asked for 3 nodes, and speaks for 2" in said
