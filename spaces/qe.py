"""The parallel options of pw.x (Quantum ESPRESSO), from facts about the machine, the program and the workload.

The default configuration is what users type: `mpirun -np CORES pw.x -inp FILE`, with all requested cores and everything
else left to pw.x. If pw.x would stop with that, the default has the fewest pools with which it runs. An option is a
parameter only if the program has a choice, so that two configurations never mean the same run. But if pw.x chooses
pools itself, its own choice is a value beside the others. See the user's guide of PWscf, "Parallelization".
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from spaces.parameters.constraint import Constraint
from spaces.parameters.parameter import Choice, Float, Integer, Parameter, Value

DIAGONALIZATIONS = ("david", "cg", "ppcg", "paro")
MIXING_MODES = ("plain", "TF", "local-TF")
STARTING_WAVEFUNCTIONS = ("atomic+random", "atomic", "random")
SCRATCH_LEVELS = ("medium", "nowf", "none")

_MOST_TASK_GROUPS = (
    16  # pw.x never takes more by itself (`setup_para`): each group has its own copy of the grid's planes
)
_BOUND_ANYWAY = 2  # by default Open MPI binds each rank to a core up to this number of ranks


@dataclass(frozen=True)
class QeFacts:
    """The facts that bound the space.

    Args:
        cores: Cores that one run may use, on all nodes.
        cores_per_node: Cores of a node; more ranks than that fill whole nodes.
        kpoints: The k-points after symmetry.
        has_pools: Whether the input lets pools share the k-points.
        max_ranks: The largest number of ranks; None for the number of cores.
        bands: The bands of each k-point; None if unknown.
        planes: The planes of the FFT grid along its third axis, which the ranks of a pool share.
        chooses_layout: Whether pw.x chooses pools, task groups and `ndiag` itself by default (version 7.1 and later).
        scalapack: Whether pw.x can distribute the subspace problem over ranks (`-ndiag`).
        blas: BLAS libraries that pw.x can use instead of its own.
        threaded_blas: Those of them that use threads.
        threads_by_default: Whether pw.x uses threads with its own BLAS as well (an OpenMP build, a threaded BLAS).
        transports: Ways for ranks to exchange data that were found to work here.
        allocators: Ways for the C library to manage memory.
        sockets: Sockets (or NUMA domains) of a node.
        oversubscribe: Whether more ranks than cores are allowed, up to `max_ranks`.
        change_path: Whether to include options that change the path to the solution.
        change_output: Whether to include options that change which scratch files are written.
        shared_nodes: Whether jobs on a part of a node may use the same cores.
        inputs: The values of these options in the input file, in lower case.
        node_memory_bytes: Memory of a node; 0 if unknown.
        pool_bytes: The memory that every pool needs, by pw.x's own estimate; 0 if unknown.
        shared_bytes: The memory that the pools share between them.
    """

    cores: int
    cores_per_node: int
    kpoints: int
    has_pools: bool = True
    max_ranks: int | None = None
    bands: int | None = None
    planes: int | None = None
    chooses_layout: bool = False
    scalapack: bool = False
    blas: tuple[str, ...] = ()
    threaded_blas: tuple[str, ...] = ()
    threads_by_default: bool = False
    transports: tuple[str, ...] = ()
    allocators: tuple[str, ...] = ()
    sockets: int = 1
    oversubscribe: bool = False
    change_path: bool = False
    change_output: bool = False
    shared_nodes: bool = False
    inputs: Mapping[str, str] = field(default_factory=dict)
    node_memory_bytes: int = 0
    pool_bytes: int = 0
    shared_bytes: int = 0

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return -(-self.cores // self.cores_per_node)

    @property
    def most_pools(self) -> int:
        """The largest number of pools."""
        return self.kpoints if self.has_pools else 1

    @property
    def memory_may_lack(self) -> bool:
        """Whether a configuration might need more memory than a node has, with a copy of everything for each rank."""
        most = max(self.cores_per_node, -(-self.rank_limit // self.nodes)) * (self.pool_bytes + self.shared_bytes)
        return 0 < self.node_memory_bytes < most

    @property
    def rank_limit(self) -> int:
        """The largest number of ranks."""
        limit = self.cores if self.max_ranks is None else self.max_ranks
        return limit if self.oversubscribe else min(limit, self.cores)

    @property
    def has_threads(self) -> bool:
        """Whether some configuration can use more than one thread per rank."""
        return self.cores_per_node > 1 and (self.threads_by_default or bool(self.threaded_blas))


def rule_facts(facts: QeFacts) -> dict[str, Value]:
    """Return the facts that the constraints mention."""
    return {
        "cores": facts.cores,
        "cores_per_node": facts.cores_per_node,
        "kpoints": facts.kpoints,
        "planes": facts.planes or facts.rank_limit,
    }


def memory_of_node(facts: QeFacts, configuration: Mapping[str, Value]) -> float | None:
    """Return the bytes that a run needs on its fullest node by pw.x's own estimates, which are somewhat low.

    The ranks of a pool share its memory; band groups have copies; more ranks than cores are spread over all nodes. None
    if pw.x has not reported it, or chooses the pools itself.
    """
    ranks, pools = configuration["np"], configuration.get("npool", None if facts.most_pools > 1 else 1)
    groups, threads = configuration.get("nbgrp", 1), configuration.get("threads", 1)
    if not facts.pool_bytes + facts.shared_bytes or not (
        isinstance(ranks, int) and isinstance(pools, int) and isinstance(groups, int) and isinstance(threads, int)
    ):
        return None
    of_node = max(min(ranks, max(1, facts.cores_per_node // threads)), -(-ranks // facts.nodes))
    return of_node * groups / ranks * (facts.pool_bytes * pools + facts.shared_bytes)


def default_lacks_memory(facts: QeFacts) -> bool:
    """Return whether even the default configuration lacks memory by that estimate."""
    default = {parameter.name: parameter.default for parameter in parameters(facts) if parameter.default is not None}
    return facts.memory_may_lack and (memory_of_node(facts, default) or 0.0) > facts.node_memory_bytes


def parameters(facts: QeFacts) -> tuple[Parameter, ...]:
    """Return the options that have a choice here."""
    ranks = rank_counts(facts)
    default_ranks = max(n for n in ranks if _may_be_default(n, facts))
    return (
        Integer("np", ranks, default=default_ranks, help="MPI ranks (mpirun -np)"),
        *_decomposition(facts, ranks, default_ranks),
        *_threads_and_libraries(facts),
        *_placement(facts, ranks),
        *(_path(facts) if facts.change_path else ()),
        *(_output(facts) if facts.change_output else ()),
    )


def constraints(facts: QeFacts) -> tuple[Constraint, ...]:
    """Return the rules between the options of `parameters(facts)`."""
    names = {parameter.name for parameter in parameters(facts)}
    rules = _RULES if "npool" in names else _rules_of_one_pool(facts)
    return tuple(rule for needs, rule in rules if needs <= names) + _machine_rules(facts, names)


def rank_counts(facts: QeFacts) -> tuple[int, ...]:
    """Return the numbers of ranks: 1, 2, ... on one node; beyond it those that fill whole nodes."""
    limit = facts.rank_limit
    counts = set(range(1, min(limit, facts.cores_per_node) + 1))
    if facts.oversubscribe and facts.cores <= facts.cores_per_node:
        counts |= set(range(1, limit + 1))
    for threads in thread_counts(facts) if facts.has_threads else (1,):
        step = facts.cores_per_node // math.gcd(facts.cores_per_node, threads)
        counts |= {n for n in range(step, limit + 1, step) if n * threads <= max(facts.cores, limit)}
    return tuple(sorted(counts))


def _may_be_default(ranks: int, facts: QeFacts) -> bool:
    fills_nodes = ranks <= facts.cores_per_node or ranks % facts.cores_per_node == 0
    return fills_nodes and ranks <= facts.cores and (facts.chooses_layout or _fewest_pools(ranks, facts) is not None)


def _fewest_pools(ranks: int, facts: QeFacts) -> int | None:
    """Return the fewest pools that give each rank a plane of the FFT grid, without which pw.x stops before 7.1."""
    counts = (n for n in range(1, min(ranks, facts.most_pools) + 1) if ranks % n == 0)
    return next((n for n in counts if ranks // n <= (facts.planes or ranks)), None)


def thread_counts(facts: QeFacts) -> tuple[int, ...]:
    """Return the numbers of threads per rank that fill a node without remainder."""
    return tuple(n for n in range(1, facts.cores_per_node + 1) if facts.cores_per_node % n == 0)


def _decomposition(facts: QeFacts, ranks: tuple[int, ...], default_ranks: int) -> list[Parameter]:
    most = ranks[-1]
    found: list[Parameter] = []
    pools = _divisors(ranks, min(most, facts.most_pools))
    groups = _divisors(ranks, most)
    if len(pools) > 1:
        words = "pools that share the k-points (-npool)"
        found.append(_division("npool", pools, _fewest_pools(default_ranks, facts) or 1, words, facts))
    if len(groups) > 1:
        found.append(Integer("nbgrp", groups, default=1, help="groups that share the bands (-nbgrp)"))
        tasks = _divisors(ranks, min(most, _MOST_TASK_GROUPS))
        found.append(_division("ntg", tasks, 1, "task groups that share the FFTs of several bands (-ntg)", facts))
    # Each rank of a row or column needs a band; pw.x stops otherwise.
    side = math.isqrt(most) if facts.bands is None else min(math.isqrt(most), facts.bands)
    squares = tuple(k * k for k in range(1, side + 1))
    if facts.scalapack and len(squares) > 1:
        words = "ranks that share the subspace diagonalisation (-ndiag)"
        found.append(Integer("ndiag", squares, optional=True, help=words))
    return found


def _division(name: str, values: tuple[int, ...], default: int, words: str, facts: QeFacts) -> Integer:
    if facts.chooses_layout:
        return Integer(name, values, optional=True, help=f"{words}; unset: pw.x chooses")
    return Integer(name, values, default=default, help=words)


def _threads_and_libraries(facts: QeFacts) -> list[Parameter]:
    found: list[Parameter] = []
    if facts.blas:
        found.append(Choice("blas", facts.blas, optional=True, help="BLAS library; unset: the system's own"))
    if facts.has_threads:
        words = "threads a rank, of OpenMP and of the BLAS library"
        found.append(Integer("threads", thread_counts(facts), default=1, help=words))
    if facts.allocators:
        words = "how the C library manages memory; unset: as the system does"
        found.append(Choice("malloc", facts.allocators, optional=True, help=words))
    return found


def _placement(facts: QeFacts, ranks: tuple[int, ...]) -> list[Parameter]:
    found: list[Parameter] = []
    if facts.cores_per_node > 1:
        choices = ("none", "core") if ranks[-1] > _BOUND_ANYWAY else ("none",)
        found.append(Choice("bind_to", choices, optional=True, help="what each rank is bound to"))
    if facts.sockets > 1:
        words = "over what the ranks are dealt out in turn"
        found.append(Choice("map_by", ("core", "numa", "socket"), optional=True, help=words))
    if facts.transports and ranks[-1] > 1:
        words = "how ranks of one node exchange data; unset: as MPI finds best"
        found.append(Choice("transport", facts.transports, optional=True, when="np > 1", help=words))
    return found


def _path(facts: QeFacts) -> list[Parameter]:
    """Return the options of the input that lead to the same solution by another path."""
    own = facts.inputs
    sizes = tuple(n for n in (2, 3, 4, 6, 8) if str(n) != own.get("diago_david_ndim", "2"))
    depths = tuple(n for n in (4, 6, 8, 10, 12) if str(n) != own.get("mixing_ndim", "8"))
    return [
        Choice("diagonalization", _others(DIAGONALIZATIONS, own.get("diagonalization", "david")), optional=True),
        Integer("diago_david_ndim", sizes, optional=True, help="size of the Davidson workspace, in bands"),
        Choice("mixing_mode", _others(MIXING_MODES, own.get("mixing_mode", "plain")), optional=True),
        Float("mixing_beta", 0.1, 0.8, points=8, optional=True, help="share of the new density that is mixed in"),
        Integer("mixing_ndim", depths, optional=True, help="iterations that the mixing remembers"),
        Choice("startingwfc", _others(STARTING_WAVEFUNCTIONS, own.get("startingwfc", "atomic+random")), optional=True),
    ]


def _output(facts: QeFacts) -> list[Parameter]:
    words = "how much pw.x keeps on disk; nowf and none leave no wavefunctions to continue from"
    return [Choice("disk_io", _others(SCRATCH_LEVELS, facts.inputs.get("disk_io", "low")), optional=True, help=words)]


_RULES: tuple[tuple[frozenset[str], Constraint], ...] = tuple(
    (frozenset(names.split()), Constraint(name, rule, reason))
    for names, name, rule, reason in (
        (
            "npool",
            "pools divide ranks",
            "np % npool == 0",
            "every pool has the same number of ranks; pw.x stops otherwise",
        ),
        ("npool", "pools have k-points", "npool <= kpoints", "a pool without a k-point has nothing to do"),
        (
            "npool nbgrp",
            "band groups divide pools",
            "np // npool % nbgrp == 0",
            "a pool's ranks are shared evenly between its band groups",
        ),
        (
            "npool ntg",
            "task groups divide pools",
            "np // npool // nbgrp % ntg == 0",
            "a band group's ranks are shared evenly between its task groups",
        ),
        (
            "npool nbgrp",
            "ranks have planes",
            "np // npool // nbgrp <= planes",
            "each rank of a band group holds at least one plane of the FFT grid",
        ),
        (
            "npool ndiag",
            "diagonalisation fits",
            "ndiag <= np // npool // nbgrp",
            "pw.x diagonalises on a square of a band group's ranks, and falls back to one rank where it does not fit",
        ),
        (
            "npool ndiag",
            "diagonalisation has a choice",
            "not is_set(ndiag) or np // npool // nbgrp >= 4",
            "with fewer than four ranks there is only the serial algorithm",
        ),
        (
            "map_by bind_to",
            "a mapping needs a binding",
            "not is_set(map_by) or bind_to != 'none'",
            "where a rank starts means nothing if it may move",
        ),
    )
)


def _rules_of_one_pool(facts: QeFacts) -> Iterator[tuple[frozenset[str], Constraint]]:
    """Yield the rules for a single pool, as with one k-point."""
    for needs, rule in _RULES:
        others = needs - {"npool"}
        text = rule.rule.replace(" // npool", "")
        if facts.chooses_layout and "planes" in text:
            # With task groups, which pw.x chooses, a rank may be without a plane.
            text = f"nbgrp == 1 and not is_set(ntg) or {text}"
        if others:
            yield others, replace(rule, rule=text)


def _machine_rules(facts: QeFacts, names: set[str]) -> tuple[Constraint, ...]:
    used = "np * threads" if "threads" in names else "np"
    rules = []
    if facts.chooses_layout and "npool" in names:
        divided = " and ".join(f"not is_set({name})" for name in ("ntg", "ndiag") if name in names)
        rule = f"is_set(npool) or nbgrp == 1 and {divided}"
        rules.append(Constraint("pw.x chooses all", rule, "what would be divided is not known before it has the pools"))
    if not facts.oversubscribe:
        rules.append(Constraint("cores", f"{used} <= cores", "every thread has a core to itself"))
    elif "bind_to" in names:
        words = "more ranks than cores cannot be bound to one core each"
        rules.append(Constraint("binding fits", f"bind_to == 'none' or {used} <= cores", words))
    if facts.cores > facts.cores_per_node:
        rule = f"{used} <= cores_per_node or {used} % cores_per_node == 0"
        rules.append(Constraint("whole nodes", rule, "beyond one node, nodes are used whole"))
    if facts.shared_nodes and facts.rank_limit > _BOUND_ANYWAY:
        rule = f"bind_to != 'core' or {used} % cores_per_node == 0"
        words = "two jobs on one node would bind their ranks to the same cores (exclusive = true in the site file)"
        rules.append(Constraint("bound ranks fill nodes", rule, words))
    if facts.memory_may_lack:
        rules.append(_memory_rule(facts, names))
    if "threads" in names:
        rules.extend(_thread_rules(facts))
    if "diago_david_ndim" in names:
        rules.extend(_davidson_rules(facts))
    return tuple(rules)


def _memory_rule(facts: QeFacts, names: set[str]) -> Constraint:
    """Return the rule that `memory_of_node` is at most what a node has, in GiB."""
    node, pool, shared = (
        f"{amount / 2**30:.4g}" for amount in (facts.node_memory_bytes, facts.pool_bytes, facts.shared_bytes)
    )
    of_node = "min(np, cores_per_node // threads)" if "threads" in names else "min(np, cores_per_node)"
    if facts.oversubscribe:
        of_node = f"max({of_node}, (np + {facts.nodes - 1}) // {facts.nodes})"
    pools = f"{pool} * npool" if "npool" in names else pool
    rule = f"{of_node} * nbgrp * ({pools} + {shared}) <= np * {node}"
    return Constraint("memory", rule, "by pw.x's own estimate the ranks of a node need more memory (GiB) than it has")


def _thread_rules(facts: QeFacts) -> list[Constraint]:
    words = "threads need a library (or a build of pw.x) that uses them"
    rules = []
    if not facts.threads_by_default:
        rules.append(Constraint("threads need a BLAS", "threads == 1 or is_set(blas)", words))
        serial = tuple(name for name in facts.blas if name not in facts.threaded_blas)
        if serial:
            listed = ", ".join(f"'{name}'" for name in serial)
            rules.append(Constraint("threads need a threaded BLAS", f"threads == 1 or not (blas in [{listed}])", words))
    if facts.rank_limit > _BOUND_ANYWAY:
        reason = "the threads of a rank that is bound to one core take turns on it"
        rules.append(Constraint("threads are not bound to one core", "threads == 1 or bind_to != 'core'", reason))
    return rules


def _davidson_rules(facts: QeFacts) -> list[Constraint]:
    words = "only the Davidson method has this workspace"
    if facts.inputs.get("diagonalization", "david") == "david":
        rule = "not is_set(diago_david_ndim) or not is_set(diagonalization)"
        return [Constraint("the workspace is Davidson's", rule, words)]
    return [
        Constraint("the workspace needs Davidson", "not is_set(diago_david_ndim) or is_set(diagonalization)", words),
        Constraint("the workspace is Davidson's", "not is_set(diago_david_ndim) or diagonalization == 'david'", words),
    ]


def _divisors(ranks: tuple[int, ...], limit: int) -> tuple[int, ...]:
    return tuple(n for n in range(1, limit + 1) if any(count % n == 0 for count in ranks))


def _others(values: tuple[str, ...], own: str) -> tuple[str, ...]:
    return tuple(value for value in values if value.lower() != own.lower())
