"""Comparisons over nodes from a batch system: the requests for nodes, and the verdict if it gives fewer."""

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from autotune.comparison.confirm import confirm
from autotune.coordination.nodes import LentNodes, Nodes
from autotune.errors import CannotRunHereError
from autotune.execution.task import not_started
from autotune.records.series import SeriesKind
from autotune.results.summary import summarise
from autotune.studyfile import VerdictSection
from launchers import Place
from launchers.batch import RefusedError
from launchers.site import Site
from tests.autotune.comparison.test_nodes import hosts
from tests.support.contests import DEFAULT, SIMPLE, STUDY, add, manager, new_store, noisy, timed
from tests.support.fakes import PaperExecutor, took


def over(nodes: int):
    return STUDY.model_copy(
        update={"verdict": VerdictSection(pairs=6, max_pairs=12, rounds=3, nodes=nodes, precision=0.5)}
    )


class Lender(PaperExecutor):
    """A batch system that gives a job the first node that it may use, and refuses a job that may use no node."""

    def __init__(self, names, fast_on_n1=None, *, heeds=True) -> None:
        super().__init__(noisy())
        self.names, self.fast, self.heeds = list(names), fast_on_n1, heeds
        self.places: list[Place] = []

    def submit(self, task):
        place = task.job.place if self.heeds else Place()
        self.places.append(task.job.place)
        able = [name for name in self.names if place.host in {"", name} and name not in place.avoid]
        if not able:
            self._ended.append((task, not_started(task, RefusedError("Requested node configuration is not available"))))
            return
        super().submit(task)
        ended, outcome = self._ended.pop()
        if able[0] == "n1" and self.launched[-1][1] == self.fast:
            outcome = took(0.3 * timed(self.fast))
        self._ended.append((ended, replace(outcome, conditions={"host": able[0]})))


@dataclass
class Hosts:
    is_free: bool = True
    able: list[Place | None] = field(default_factory=list)

    def find_other(self, cores, known):
        assert cores >= 1
        return self.able.pop(0) if self.able else Place(avoid=tuple(sorted(known)))


@dataclass
class Queue:
    site: Site = field(default_factory=lambda: Site("slurm", cores_per_node=8))
    hosts: Hosts = field(default_factory=Hosts)


def lent(folder, executor, least, queue=None):
    runs = manager(folder, executor)
    runs.nodes = Nodes(lent=LentNodes(queue or Queue(), least, runs.display.line))
    return runs


def contested(folder, executor, least, *trials, queue=None):
    store = new_store(folder)
    add(store, (DEFAULT, 2.0), *(trials or ((SIMPLE, 0.8), ({"np": 4}, 0.9))))
    runs = lent(folder, executor, least, queue)
    return store, runs, confirm(store, runs, over(least))


def test_each_round_is_on_one_node_and_the_requested_nodes_have_equal_shares(tmp_path):
    store, runs, verdict = contested(tmp_path, Lender(["n1", "n2", "n3", "n4"]), 3)
    for kind in (SeriesKind.SELECT, SeriesKind.VERDICT):
        rounds = hosts(store, kind)
        assert all(len(nodes) == 1 for nodes in rounds.values())
        assert set().union(*rounds.values()) == {"n1", "n2", "n3"}
    assert set(Counter(verdict.nodes).values()) == {2}
    assert "over 3 nodes" in summarise(store).best_text()
    assert not any("asked for" in line for line in runs.display.lines)


def test_the_nodes_used_in_tuning_are_known(tmp_path):
    executor = Lender(["n1", "n2"])
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    runs = lent(tmp_path, executor, 2)
    runs.nodes.recall([replace(run, outcome=replace(run.outcome, conditions={"host": "n2"})) for run in store.runs()])
    confirm(store, runs, over(2))
    assert executor.places[0] == Place(avoid=("n2",))
    assert {place.host for place in executor.places[1:]} == {"n1", "n2"}


def test_the_verdict_says_that_there_were_fewer_nodes(tmp_path):
    store, runs, verdict = contested(tmp_path, Lender(["n1", "n2"]), 3)
    assert set(verdict.nodes) == {"n1", "n2"}
    (said,) = [line for line in runs.display.lines if "no other node" in line]
    why = "Requested node configuration is not available"
    assert said == f"slurm gives no other node than n1, n2: {why}; 3 were asked for"
    assert "it was asked for 3 nodes, and speaks for 2" in summarise(store).best_text()


def test_a_batch_system_without_host_names_is_asked_once(tmp_path):
    queue = Queue(hosts=Hosts(able=[Place("n2"), None]))
    _, runs, verdict = contested(tmp_path, Lender(["n1", "n2"]), 3, queue=queue)
    assert set(verdict.nodes) == {"n1", "n2"}
    assert sum("it names none that could start the job" in line for line in runs.display.lines) == 1


def test_a_node_that_is_no_longer_given_is_left_out(tmp_path):
    executor = Lender(["n1", "n2", "n3"])
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    runs = lent(tmp_path, executor, 2)
    ended = runs.store

    def leave(*of):
        if len(store.runs()) == 6:
            executor.names.remove("n2")
        return ended(*of)

    runs.store = leave
    verdict = confirm(store, runs, over(2))
    assert len(verdict.pairs) >= over(2).verdict.pairs
    assert any(line.startswith("slurm does not give node n2: ") for line in runs.display.lines)
    assert set(verdict.nodes) >= {"n1", "n3"}


def test_the_verdict_says_that_the_batch_system_chose_the_nodes(tmp_path):
    store, _, verdict = contested(tmp_path, Lender(["n1"], heeds=False), 2)
    assert len(verdict.pairs) >= over(2).verdict.pairs
    assert "it was asked for 2 nodes, and speaks for 1" in summarise(store).best_text()


@pytest.mark.parametrize(
    ("queue", "says"),
    [
        (Queue(hosts=Hosts(is_free=False)), "slurm cannot be told here on which node a job is to start"),
        (Queue(Site("slurm", nodes=2)), "a run may have several nodes at this site"),
    ],
)
def test_impossible_requests_are_refused_before_any_run(tmp_path, queue, says):
    with pytest.raises(CannotRunHereError, match=f"--nodes-at-least 2.*{says}"):
        contested(tmp_path, Lender(["n1"]), 2, queue=queue)
