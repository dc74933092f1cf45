"""The executor of a session on a Ray cluster, which the session joins.

Ray only counts cores. The coordinator chooses the cores of a task (`autotune.execution.node_pool`), and the launcher
enforces them. When the coordinator ends, also by being killed, the workers of its tasks end, with their jobs.

The nodes of a cluster must be started with `RAY_worker_niceness=0` in their environment, as `ray_node` does, or other
processes there have priority. They must see the study's folder and autotune's Python under the same paths.
"""

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

# Ray reads these when it is imported: send no usage statistics, and make no copy of the environment.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")

import ray
from ray._private import worker as ray_worker
from ray.exceptions import LocalRayletDiedError, NodeDiedError, RayError, RayTaskError, TaskUnschedulableError
from ray.job_config import JobConfig
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from autotune.errors import BusyError, CannotRunHereError
from autotune.execution.executor import Executor
from autotune.execution.node_pool import Agent, Node, NodeFacts, NodePool, gpus_per_node, overdue
from autotune.execution.ray_node import answers
from autotune.execution.signals import stop_at_sigterm
from autotune.execution.task import Task, fault_outcome, lost_outcome, run_task
from autotune.machines.this_machine import Machine
from autotune.records.outcome import Outcome
from launchers import Launcher

_LOOK_S = 0.2
_LOOK_EVERY_S = 2.0
# After this time in seconds, Ray knows whether a node has died (five failed health checks of 3 to 13 seconds each).
_DOUBT_S = 70.0


class ClusterExecutor(Executor):
    """Runs tasks as Ray tasks on the nodes that a pool assigned, and keeps the pool's nodes up to date."""

    def __init__(self, cluster: "RayCluster", launcher: Launcher) -> None:
        """Use the cluster that this process has joined."""
        self._cluster = cluster
        self._launcher = launcher
        self._remote = ray.remote(max_retries=0)(run_task)
        self._running: dict[ray.ObjectRef[Outcome], Task] = {}
        self._where: dict[ray.ObjectRef[Outcome], str] = {}
        self._lost: list[tuple[Task, Outcome]] = []

    def submit(self, task: Task) -> None:
        """Start a task on the first of its hosts."""
        wanted = task.job.resources
        node = self._cluster.pool.find(wanted.hosts[0])
        if node is None:
            self._lost.append((task, lost_outcome(task, f"{wanted.hosts[0]} has left the Ray cluster")))
            return
        strategy = NodeAffinitySchedulingStrategy(node.key, soft=False)
        options = {"num_cpus": len(wanted.cpus), "num_gpus": gpus_per_node(wanted), "scheduling_strategy": strategy}
        reference = self._remote.options(**options).remote(task, self._launcher)
        self._running[reference] = task
        self._where[reference] = node.key

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        """Return the tasks that ended since the last call, after at most `timeout_s`.

        Raises:
            CannotRunHereError: The cluster does not answer any more.
        """
        ready: list[ray.ObjectRef[Outcome]] = []
        if self._running and not self._lost:
            ready, _ = ray.wait(list(self._running), num_returns=1, timeout=timeout_s)
        elif not self._lost:
            time.sleep(timeout_s)
        ended, self._lost = self._lost, []
        for reference in ready:
            key = self._where[reference]
            task = self._forget(reference)
            outcome, node_is_gone = _outcome(reference, task)
            if node_is_gone:
                self._cluster.suspect(key)
            ended.append((task, outcome))
        self._cluster.update()
        for reference in overdue(self._where, self._cluster.gone_since, time.monotonic()):
            with suppress(RayError):
                ray.cancel(reference, force=True)
            task = self._forget(reference)
            ended.append((task, lost_outcome(task, f"{task.job.resources.hosts[0]} has left the Ray cluster")))
        return ended

    def leave(self) -> None:
        """Stop all running tasks: none can do without this process."""
        self.cancel_all()

    def cancel_all(self) -> None:
        """Stop all running tasks; a worker that is killed takes its job with it."""
        for reference in self._running:
            with suppress(RayError):
                ray.cancel(reference, force=True)
        self._running.clear()
        self._where.clear()

    def _forget(self, reference: "ray.ObjectRef[Outcome]") -> Task:
        del self._where[reference]
        return self._running.pop(reference)


def _outcome(reference: "ray.ObjectRef[Outcome]", task: Task) -> tuple[Outcome, bool]:
    """Return the outcome of a task, and whether Ray reports that its node is gone."""
    try:
        return ray.get(reference), False
    except RayTaskError as error:
        return fault_outcome(task, error.cause), False
    except (NodeDiedError, LocalRayletDiedError, TaskUnschedulableError) as error:
        where = "".join(f", {host}," for host in task.job.resources.hosts[:1])
        return lost_outcome(task, f"the node that ran the trial{where} is gone: {_first_sentence(error)}"), True
    except RayError as error:
        return lost_outcome(task, f"the worker that ran the trial is gone: {_first_sentence(error)}"), False


def _first_sentence(error: Exception) -> str:
    """Return the first sentence of a Ray error; the rest only helps experts on Ray."""
    return str(error).partition("\n")[0].partition(". ")[0]


class RayCluster:
    """A Ray cluster that this process has joined, and its nodes, which come and go."""

    def __init__(self, runs: Path, say: Callable[[str], None]) -> None:
        """Start without nodes; `runs` is the folder of the study's runs, and `say` gets messages for the user."""
        self._runs = runs.resolve()
        self.pool = NodePool(())
        self.gone_since: dict[str, float] = {}
        self._say = say
        self._model: Machine | None = None
        self._agents: dict[str, Any] = {}
        self._asked: dict[str, ray.ObjectRef[NodeFacts]] = {}
        self._nodes: dict[str, Node] = {}
        self._doubted: dict[str, tuple[Node, float]] = {}
        self._looked_at = 0.0

    @property
    def machine(self) -> Machine:
        """The nodes as one machine: those like the first."""
        assert self._model is not None
        return replace(self._model, nodes=len(self.pool.nodes))

    def open(self, expected: int, patience_s: float) -> None:
        """Wait up to `patience_s` seconds for the `expected` number of nodes, and add them.

        Raises:
            CannotRunHereError: Too few nodes joined in time, or none of them has cores or can run autotune.
            BusyError: Another study uses the cores of a node.
        """
        give_up_at = time.monotonic() + patience_s
        while len(present := _present()) < expected:
            if time.monotonic() >= give_up_at:
                names = ", ".join(sorted(str(info["NodeManagerHostname"]) for info in present.values())) or "none"
                msg = (
                    f"{len(present)} of {expected} nodes have joined the Ray cluster in {patience_s:g} s ({names}); "
                    "the logs of the others' `ray start` say why"
                )
                raise CannotRunHereError(msg)
            time.sleep(_LOOK_S)
        if not present:
            msg = "the Ray cluster has no node with cores: start some with `ray start --address=... --num-cpus=CORES`"
            raise CannotRunHereError(msg)
        self._start_agents(present)
        # Start with this host, since the study is usually about its kind of node.
        here = ray.get_runtime_context().get_node_id()
        first = here if here in present else min(present)
        for key in sorted(present, key=lambda key: key != first):
            try:
                self._add_node(key, present[key], ray.get(self._asked.pop(key), timeout=patience_s))
            except RayError as error:
                self._say(f"{present[key]['NodeManagerHostname']} is left out: {str(error).splitlines()[0]}")
        if self._model is None:
            msg = "no node of the Ray cluster can run autotune: all must see its Python under the same path"
            raise CannotRunHereError(msg)
        self.pool.update(self._nodes.values())

    def suspect(self, key: str) -> None:
        """Stop using a node that lost a task until it has proved alive; Ray lists dead nodes for a while."""
        if key in self._nodes:
            self._doubted[key] = self._nodes.pop(key), time.monotonic()
            self.pool.update(self._nodes.values())

    def update(self) -> None:
        """Remove nodes that are gone and add new ones, at most every few seconds.

        Raises:
            CannotRunHereError: The cluster does not answer any more.
        """
        now_s = time.monotonic()
        if now_s - self._looked_at < _LOOK_EVERY_S:
            return
        self._looked_at = now_s
        present = _present()
        for key, (node, since_s) in list(self._doubted.items()):
            if key not in present or now_s - since_s > _DOUBT_S:
                del self._doubted[key]
                self._nodes[key] = node
        for key in self._nodes.keys() - present.keys():
            node = self._nodes.pop(key)
            self.gone_since[key] = now_s
            self._say(f"{node.name} has left the Ray cluster; left: {_count(len(self._nodes), 'node')}")
        self._start_agents({key: info for key, info in present.items() if key not in self._agents})
        for key, pending_facts in list(self._asked.items()):
            if key not in present:
                del self._asked[key]
            elif ray.wait([pending_facts], timeout=0)[0]:
                del self._asked[key]
                try:
                    self._add_node(key, present[key], ray.get(pending_facts))
                except (RayError, BusyError) as error:
                    self._say(f"{present[key]['NodeManagerHostname']} is left out: {str(error).splitlines()[0]}")
        self.pool.update(self._nodes.values())

    def _start_agents(self, present: dict[str, dict[str, Any]]) -> None:
        for key in present:
            strategy = NodeAffinitySchedulingStrategy(key, soft=False)
            agent: Any = ray.remote(Agent).options(num_cpus=0, scheduling_strategy=strategy).remote()
            self._agents[key] = agent
            self._asked[key] = agent.facts.remote()

    def _add_node(self, key: str, info: dict[str, Any], facts: NodeFacts) -> None:
        cpus = facts.machine.cpus[: int(info["Resources"].get("CPU", 0))]
        taken = Counter(node.name for node in self._nodes.values())
        name = facts.name if not taken[facts.name] else str(info["NodeManagerAddress"])
        if self._model is not None and len(cpus) != self._model.cores_per_node:
            self._say(f"{name} is left out: it has {len(cpus)} cores, the others have {self._model.cores_per_node}")
            return
        refused = ray.get(self._agents[key].claim.remote(cpus, self._runs))
        if refused:
            raise BusyError(f"{name}: {refused}")
        self._model = self._model or replace(facts.machine, cpus=cpus)
        gpus = int(info["Resources"].get("GPU", 0))
        if self._looked_at:
            self._say(f"{name} has joined the Ray cluster")
        self._nodes[key] = Node(key, name, cpus, gpus)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _present() -> dict[str, dict[str, Any]]:
    """Return Ray's description of each living node with cores, by id.

    Raises:
        CannotRunHereError: The cluster does not answer any more.
    """
    try:
        known = ray.nodes()  # type: ignore[no-untyped-call]
        return {node["NodeID"]: node for node in known if node["Alive"] and node["Resources"].get("CPU", 0) >= 1}
    except RayError as error:
        msg = f"the Ray cluster does not answer any more: {str(error).splitlines()[0]}"
        raise CannotRunHereError(msg) from error


class _OwnPaths(JobConfig):
    """The settings of our tasks: workers import modules from their own search path only.

    `ray.init` adds this process's current folder and its program's folder, in front of everything else.
    """

    def _serialize(self) -> str:
        self._py_driver_sys_path = []
        return super()._serialize()


@contextmanager
def join_cluster(
    address: str, runs: Path, say: Callable[[str], None], expected: int = 1, patience_s: float = 120.0
) -> Iterator[RayCluster]:
    """Join the Ray cluster at `address` (`HOST:PORT`, or `auto`: the one on this host) while the context lasts.

    Args:
        address: The address of the cluster.
        runs: The folder of the study's runs, which all nodes must see.
        say: Gets messages for the user.
        expected: The number of nodes to wait for.
        patience_s: How long to wait for them, in seconds.

    Raises:
        CannotRunHereError: The cluster cannot be joined, or has too few nodes in time.
        BusyError: Another study uses the cores of one of its nodes.
    """
    _silence_ray()
    try:
        # Checked first, since Ray itself would try for minutes.
        if address != "auto" and not answers(address):
            raise ConnectionError("nobody listens there")  # noqa: TRY301  said as Ray's own errors are
        ray.init(
            address=address,
            job_config=_OwnPaths(),
            log_to_driver=False,
            configure_logging=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        said = " ".join(str(error).split())[:400]
        msg = (
            f"cannot join the Ray cluster at {address}: {said}\na node of it must run on this host; its token is the "
            "file that RAY_AUTH_TOKEN_PATH names (with RAY_AUTH_MODE=token), or ~/.ray/auth_token"
        )
        raise CannotRunHereError(msg) from error
    try:
        stop_at_sigterm()
        cluster = RayCluster(runs, say)
        cluster.open(expected, patience_s)
        yield cluster
    finally:
        ray.shutdown()


def _silence_ray() -> None:
    """Keep Ray from writing to the terminal, since standard output may be JSON."""
    # Ray logs at every start that a token protects it.
    logging.getLogger("ray").setLevel(logging.ERROR)
    # It prints events of nodes in spite of the log settings.
    ray_worker.print_to_stdstream = lambda data, ignore_prefix: None  # noqa: ARG005  Ray's own names
