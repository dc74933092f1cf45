"""Comparisons over several nodes: the node of each round, and configurations that are fast on one node only."""

from collections import Counter

import pytest

from autotune.comparison.confirm import confirm
from autotune.comparison.rounds import node_of
from autotune.coordination.nodes import Nodes
from autotune.errors import CannotRunHereError
from autotune.records.series import SeriesKind
from autotune.results.summary import summarise
from autotune.studyfile import VerdictSection
from objectives.base import FailureKind
from tests.support.contests import DEFAULT, SIMPLE, STUDY, add, manager, new_store, noisy, timed
from tests.support.fakes import PaperExecutor, failed, took

LUCKY = {"np": 7}
OVER_THREE = STUDY.model_copy(
    update={"verdict": VerdictSection(pairs=6, max_pairs=12, rounds=3, nodes=3, precision=0.5)}
)


class Cluster(PaperExecutor):
    """Runs on the requested node; on node `a` one configuration is much faster than on the others."""

    def __init__(self, fast_on_a):
        super().__init__(noisy())
        self.fast, self.node = fast_on_a, ""
        self._model = self.seconds

    def submit(self, task):
        (self.node,) = task.job.resources.hosts
        super().submit(task)

    def seconds(self, configuration):
        value = noisy()(configuration)
        return took(0.3 * timed(configuration)) if self.node == "a" and dict(configuration) == self.fast else value


def on_nodes(folder, names, fast=None):
    runs = manager(folder, Cluster(fast))
    runs.nodes = Nodes(lambda _: list(names))
    return runs


def hosts(store, kind):
    """Return the hosts of each round."""
    found = {}
    for run in store.runs():
        if run.series.kind is kind:
            found.setdefault(run.round, set()).add(run.host)
    return found


def test_each_round_is_on_one_node_and_all_nodes_have_their_share(tmp_path):
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8), ({"np": 4}, 0.9))
    verdict = confirm(store, on_nodes(tmp_path, "abc"), OVER_THREE)
    for kind in (SeriesKind.SELECT, SeriesKind.VERDICT):
        rounds = hosts(store, kind)
        assert all(len(nodes) == 1 for nodes in rounds.values())
        shares = Counter(node for nodes in rounds.values() for node in nodes)
        assert max(shares.values()) - min(shares.values()) <= 1
        assert set(shares) == set("abc")
    assert Counter(verdict.nodes) == Counter("aabbcc")
    assert "over 3 nodes" in summarise(store).best_text()


def test_a_configuration_fast_on_one_node_only_does_not_win(tmp_path):
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (LUCKY, 0.5), (SIMPLE, 0.8))
    assert confirm(store, on_nodes(tmp_path, "abc", LUCKY), OVER_THREE).winner == 2


def test_a_trial_recorded_on_one_node_does_not_compete(tmp_path):
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (LUCKY, 0.5), (SIMPLE, 0.8))
    runs = on_nodes(tmp_path, "abc")
    runs.nodes = Nodes(lambda configurations: ["a"] if LUCKY in map(dict, configurations) else ["a", "b", "c"])
    assert confirm(store, runs, OVER_THREE).winner == 2
    assert summarise(store).present_verdict is not None
    assert any("together with better trials: 1" in line for line in runs.display.lines)


def test_a_configuration_that_fails_on_one_node_does_not_win(tmp_path):
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8), ({"np": 4}, 0.9))
    runs = on_nodes(tmp_path, "abc")
    cluster = runs.executor

    def model(configuration):
        if cluster.node == "b" and dict(configuration) == SIMPLE:
            return failed(FailureKind.APPLICATION_ERROR)
        return noisy()(configuration)

    cluster._model = model
    assert confirm(store, runs, OVER_THREE).winner == 2


def test_a_pair_is_repeated_on_another_node_if_its_node_left(tmp_path):
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    names = ["a", "b", "c"]
    runs = on_nodes(tmp_path, names)
    ended = runs.store

    def leave(*of):
        if len(store.runs()) == 4:
            names.remove(store.runs()[-1].host)
        return ended(*of)

    runs.store = leave
    verdict = confirm(store, runs, STUDY)
    assert len(verdict.pairs) >= STUDY.verdict.pairs
    unpaired = [nodes for nodes in hosts(store, SeriesKind.VERDICT).values() if len(nodes) > 1]
    assert len(hosts(store, SeriesKind.VERDICT)) == len(verdict.pairs) + len(unpaired)


@pytest.mark.parametrize(("names", "says"), [("ab", "there are only 2 nodes: a, b"), ("", "cannot be placed on nodes")])
def test_too_many_nodes_are_refused_before_any_run(tmp_path, names, says):
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    before = len(store.runs())
    with pytest.raises(CannotRunHereError, match=f"--nodes-at-least 3.*{says}"):
        confirm(store, on_nodes(tmp_path, names), OVER_THREE)
    assert len(store.runs()) == before


def test_the_first_pairs_are_on_nodes_that_did_not_choose_the_winner(tmp_path):
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8), ({"np": 4}, 0.9))
    confirm(store, on_nodes(tmp_path, "abcdefgh"), OVER_THREE)
    chose, pairs = hosts(store, SeriesKind.SELECT), hosts(store, SeriesKind.VERDICT)
    assert not set.union(*chose.values()) & set.union(*(pairs[number] for number in range(5)))


def test_a_node_that_has_left_is_not_waited_for():
    assert node_of(0, {0: "gone"}, ["a"], seed=0) == "a"
    assert node_of(0, {0: "b"}, ["a", "b"], seed=0) == "b"
    assert node_of(3, {0: "a", 1: "b", 2: "a"}, ["a", "b"], seed=0) == "b"
