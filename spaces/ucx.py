"""Variables of UCX as a space, from what the installed UCX says of them.

Every parameter is a variable by its own name, with UCX's own words as values; unset is the default. Some are chosen by
default, below with the reason; any other can be named by a pattern. UCX accepts a misspelt variable without a word,
so names are checked against its own list.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from spaces.constraint import Constraint
from spaces.errors import SpaceError, did_you_mean
from spaces.parameter import Choice, Parameter
from spaces.ucx_config import Variable
from spaces.ucx_transports import combinations, maps_memory, readers_of
from spaces.ucx_values import size_bytes, values_of

TLS = "UCX_TLS"


@dataclass(frozen=True)
class Selection:
    """A part of UCX's variables as a space.

    Args:
        parameters: those that are tuned, all of them unset by default.
        constraints: what cannot be set together, with the reasons.
        left_out: variables that are not tuned here, and why.
    """

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class _Pick:
    """A variable that is tuned by default: `factors` of its default as values, or `only` these of its values."""

    name: str
    why: str
    factors: tuple[float, ...] = ()
    only: tuple[str, ...] = ()


_SEGMENT = "how much is copied at a time"
_POLL = "how long one connection is served before the others"
_GROWTH = "how often a pool of buffers has to grow"
_SOCKET = "how much is under way before a sender waits"
_FIFO = "how many messages wait before a sender does"
_QUEUE = "how many requests are under way"
_MATCHING = "the network card finds the receive that a message belongs to"
_AROUND = (1 / 4, 4)

_PICKS = (
    _Pick("UCX_RNDV_THRESH", "from which size on a handshake costs less than a copy; often the most there is to gain"),
    _Pick("UCX_RNDV_SCHEME", "who moves the data of a large message, and how"),
    _Pick("UCX_ZCOPY_THRESH", "from which size on registering memory costs less than a copy"),
    _Pick("UCX_PROTO_ENABLE", "the other of two ways to choose a protocol, which cuts messages elsewhere"),
    _Pick("UCX_MAX_RNDV_RAILS", "over how many devices a large message is spread", (1 / 2, 2)),
    _Pick("UCX_UNIFIED_MODE", "short cuts where all processes have the same devices"),
    _Pick("UCX_USE_MT_MUTEX", "threads that wait sleep instead of spinning"),
    _Pick("UCX_ADAPTIVE_PROGRESS", "whether idle devices are polled"),
    # Copies through the kernel's buffers: the sizes of the copies, and how rarely a system call is needed.
    _Pick("UCX_TCP_TX_SEG_SIZE", _SEGMENT, (1 / 2, 2, 4, 8, 16, 32)),
    _Pick("UCX_TCP_RX_SEG_SIZE", _SEGMENT, (1 / 4, 1 / 2, 2, 4, 8, 16)),
    _Pick("UCX_TCP_SNDBUF", _SOCKET),
    _Pick("UCX_TCP_RCVBUF", _SOCKET),
    _Pick("UCX_TCP_MAX_POLL", _POLL, _AROUND),
    _Pick("UCX_TCP_PUT_ENABLE", "large messages without a copy on the sender's side"),
    _Pick("UCX_TCP_TX_BUFS_GROW", _GROWTH, (2,)),
    _Pick("UCX_TCP_RX_BUFS_GROW", _GROWTH, (2,)),
    # Shared memory: a queue of small elements, and buffers for what does not fit into one. `y` of the huge pages
    # fails where the machine has none, and is `try` where it has.
    *(
        pick
        for start in ("UCX_SYSV_", "UCX_POSIX_")
        for pick in (
            _Pick(f"{start}FIFO_SIZE", _FIFO, (1 / 4, 4, 16)),
            _Pick(f"{start}SEG_SIZE", _SEGMENT, (1 / 4, 2, 4)),
            _Pick(f"{start}FIFO_ELEM_SIZE", "up to which size a message needs no buffer", (1 / 2, 2, 4)),
            _Pick(f"{start}FIFO_MAX_POLL", _POLL, _AROUND),
            _Pick(
                f"{start}HUGETLB_MODE", "huge pages are tried by default, at a cost where there are none", (), ("n",)
            ),
        )
    ),
    _Pick("UCX_CMA_SEG_SIZE", "how much the kernel copies between processes in a call"),
    _Pick("UCX_CMA_TX_QUOTA", "how many such calls are made before anything else"),
    # InfiniBand.
    _Pick("UCX_RC_MLX5_TM_ENABLE", _MATCHING),
    _Pick("UCX_DC_MLX5_TM_ENABLE", _MATCHING),
    _Pick("UCX_TM_THRESH", "from which size on the network card does so"),
    *(
        pick
        for start in ("UCX_RC_MLX5_", "UCX_DC_MLX5_", "UCX_RC_VERBS_")
        for pick in (
            _Pick(f"{start}TX_QUEUE_LEN", _QUEUE, _AROUND),
            _Pick(f"{start}RX_QUEUE_LEN", _QUEUE, (1 / 4, 2)),
            _Pick(f"{start}SEG_SIZE", _SEGMENT, (1 / 4, 4)),
        )
    ),
    _Pick("UCX_DC_MLX5_NUM_DCI", "how many peers are sent to at once"),
    _Pick("UCX_DC_MLX5_TX_POLICY", "which peer is served next"),
    _Pick("UCX_IB_REG_METHODS", "how memory is made known to the network card"),
    _Pick("UCX_IB_PCI_RELAXED_ORDERING", "whether writes to memory may overtake each other"),
    # GPUs.
    _Pick("UCX_IB_GPU_DIRECT_RDMA", "whether the network card reads a GPU's memory itself"),
    _Pick("UCX_MEMTYPE_CACHE", "whether it is remembered which memory is a GPU's"),
    _Pick("UCX_RNDV_PIPELINE_SEND_THRESH", "from which size on messages of GPUs go through the host in pieces"),
    _Pick("UCX_RNDV_PIPELINE_SHM_ENABLE", "whether they do so within a node"),
    _Pick("UCX_CUDA_COPY_MAX_POLL", _POLL, _AROUND),
    _Pick("UCX_CUDA_IPC_MAX_POLL", _POLL, _AROUND),
    _Pick("UCX_CUDA_IPC_CACHE", "whether mappings of another process's GPU memory are kept"),
)

_GPU_ONLY = ("UCX_MEMTYPE_*", "UCX_RNDV_PIPELINE_*", "UCX_RNDV_FRAG_MEM_TYPE*", "*_CUDA_*", "*_ROCM_*", "*_GPU_*")
_PIPELINES = ("get_ppln", "put_ppln")  # through host memory: rendezvous schemes for memory of GPUs

# What a pattern does not mean, unless it is the name itself: these change what is reported or what survives a failure,
# limit what may be used at all, or are set by the network's administration.
_NOT_SPEED = tuple(
    f"UCX_{pattern}"
    for pattern in (
        *("LOG_*", "*_LOG_LEVEL*", "*FAILURE", "*ERROR*", "WARN_*", "DEBUG_*", "*_DEBUG_*", "GDB_*", "*INFO*"),
        *("MEMTRACK_*", "PROFILE_*", "VFS_*", "STATS_*", "RCACHE_STAT_*", "MODULE*", "MEM_MODULE_*", "*SIGNO*"),
        *("*TIMEOUT*", "*RETR*", "*KEEP*", "*MAX_NUM_EPS", "*_IS_GLOBAL", "*HOP_LIMIT", "*ADDR_TYPE", "*_ROCE_*"),
        *("*_VERSION", "*REUSEADDR", "*FORK*", "*PRIV_DATA_LEN", "*_NUM_DEVICES", "MAX_WORKER_ADDRESS_NAME"),
    )
)

# The first is never smaller than the second: UCX 1.13 stops otherwise.
_AT_LEAST = (
    (
        "UCX_TCP_RX_SEG_SIZE",
        "UCX_TCP_TX_SEG_SIZE",
        "a receive buffer holds the greatest segment that is sent; UCX stops otherwise",
    ),
)


def select(  # noqa: PLR0913  facts of the machine and of the use, by keyword
    variables: Sequence[Variable],
    transports: Collection[str],
    *,
    patterns: Sequence[str] = (),
    gpu: bool = False,
    automatic: Collection[str] | None = None,
    nodes: int = 1,
) -> Selection:
    """Return what is worth tuning here.

    Args:
        variables: all that the installed UCX has.
        transports: those of this machine (`ucx_info -d`).
        patterns: further variables, by name or shell pattern.
        gpu: messages lie in the memory of GPUs.
        automatic: the transports that UCX itself chooses between the processes (`spaces.ucx_config.lanes`). Settings of
            others are then tuned only where UCX_TLS names them. None: unknown, any may be in use.
        nodes: how many nodes the processes run on.

    Raises:
        SpaceError: patterns that match nothing, and named variables whose values cannot be guessed.
    """
    chosen = _Chosen(variables, frozenset(transports), gpu)
    ways = combinations(transports, gpu=gpu, nodes=nodes)
    ways = {text: names for text, names in ways.items() if names != frozenset(automatic or ())}
    ways = ways if any(variable.name == TLS for variable in variables) else {}
    reading = _Reading(ways, None if automatic is None else frozenset(automatic))
    errors = chosen.add_patterns(patterns)
    if errors:
        raise SpaceError(errors)
    tls = [_tls(variables, ways)] if ways else []
    parameters = (*tls, *(parameter for parameter in chosen.parameters if reading.ever(parameter.name)))
    unread = {p.name: reading.never(p.name) for p in chosen.parameters if not reading.ever(p.name)}
    rules = [rule for parameter in parameters for rule in reading.rules(parameter.name)]
    return Selection(parameters, (*_conflicts(parameters, variables), *rules), {**chosen.left_out, **unread})


def unknown_names(names: Iterable[str], variables: Sequence[Variable]) -> list[str]:
    """Return a sentence for each of `names` that is no variable of this UCX, nor an alias of some."""
    known = {name for variable in variables for name in (variable.name, *variable.inherits)}
    return [
        f"{name} is not a variable of this UCX{did_you_mean(name, known)}; UCX itself would not complain"
        for name in names
        if name not in known
    ]


class _Chosen:
    """Collects parameters: those chosen by default, then those that patterns name."""

    def __init__(self, variables: Sequence[Variable], transports: frozenset[str], gpu: bool) -> None:
        self._variables = {variable.name: variable for variable in variables}
        self._transports = transports
        self._gpu = gpu
        self._found: dict[str, Parameter] = {}
        self.left_out = {name: why for name in self._variables if (why := self._absent(name))}
        for pick in _PICKS:
            self._add_pick(pick)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(self._found.values())

    def add_patterns(self, patterns: Iterable[str]) -> list[str]:
        """Add what the patterns name; return what is wrong with them."""
        errors = []
        for pattern in patterns:
            matches = [
                variable
                for variable in self._variables.values()
                if any(fnmatchcase(name, pattern) for name in (variable.name, *variable.inherits))
            ]
            if not matches:
                errors.append(f"{pattern} matches no variable of this UCX{did_you_mean(pattern, self._variables)}")
            errors += [error for variable in matches if (error := self._add_match(variable, pattern))]
        return errors

    def _add_pick(self, pick: _Pick) -> None:
        variable = self._variables.get(pick.name)
        if variable is None:
            self.left_out[pick.name] = "this UCX does not know it"
        elif pick.name not in self.left_out:
            values = values_of(variable, pick.factors)
            self._add(variable, tuple(value for value in values if not pick.only or value in pick.only))

    def _add_match(self, variable: Variable, pattern: str) -> str:
        """Add the variable unless it is there; return what is wrong if it cannot be."""
        name, by_name = variable.name, not any(sign in pattern for sign in "*?[")
        if name in self._found or name in self.left_out or name == TLS:
            return ""
        if not by_name and any(fnmatchcase(name, other) for other in _NOT_SPEED):
            self.left_out[name] = f"it is not about speed; name it in full, not by {pattern}, if you want it tuned"
            return ""
        values = values_of(variable)
        instead = f"give it values of its own in [space.parameters.{name}]"
        if not values and by_name:
            return (
                f"{name}: its values cannot be guessed ({variable.syntax}); take it out of the patterns, and {instead}"
            )
        if not values:
            self.left_out[name] = f"its values cannot be guessed ({variable.syntax}); {instead}"
        self._add(variable, values)
        return ""

    def _add(self, variable: Variable, values: tuple[str, ...]) -> None:
        if variable.name == "UCX_RNDV_SCHEME":
            values = tuple(value for value in values if self._is_possible(value))
        if values:
            self._found[variable.name] = Choice(variable.name, values, optional=True, help=variable.help)
        else:
            self.left_out.setdefault(variable.name, "it has no value worth trying other than its default")

    def _is_possible(self, scheme: str) -> bool:
        mapped = scheme != "rkey_ptr" or maps_memory(self._transports)
        return scheme != "auto" and mapped and (self._gpu or scheme not in _PIPELINES)

    def _absent(self, name: str) -> str:
        """Return why nothing here reads the variable, if so."""
        readers = readers_of(name)
        if readers and not readers & self._transports:
            return f"only {', '.join(sorted(readers))} would read it, and this machine has no such transport"
        if not self._gpu and any(fnmatchcase(name, pattern) for pattern in _GPU_ONLY):
            return "it is about memory of GPUs, and there is none in use"
        return ""


@dataclass(frozen=True)
class _Reading:
    """With which transports a variable is read: `ways` are the values of UCX_TLS, `automatic` what unset means."""

    ways: Mapping[str, frozenset[str]]
    automatic: frozenset[str] | None

    def ever(self, name: str) -> bool:
        return self._unset(name) or bool(self._with(name))

    def never(self, name: str) -> str:
        chosen = _listed(self.automatic or ())
        return f"only {_listed(readers_of(name))} would read it; UCX itself chooses {chosen} here"

    def rules(self, name: str) -> list[Constraint]:
        """Return where the variable may be set."""
        readers, found = _listed(readers_of(name)), self._with(name)
        rules: list[Constraint] = []
        if name == TLS:
            return rules
        if not self._unset(name):
            reason = f"UCX itself chooses {_listed(self.automatic or ())} here, and only {readers} would read it"
            rules.append(Constraint(f"{name} needs {TLS}", f"is_set({TLS}) or not is_set({name})", reason))
        if len(found) < len(self.ways):
            inside = f"{TLS} in {_quoted(found)}" if found else f"not is_set({TLS})"
            reason = f"only {readers} would read it, which {TLS} excludes"
            rules.append(Constraint(f"{name} is read", f"{inside} or not is_set({name})", reason))
        return rules

    def _with(self, name: str) -> list[str]:
        readers = readers_of(name)
        return [text for text, names in self.ways.items() if not readers or readers & names]

    def _unset(self, name: str) -> bool:
        readers = readers_of(name)
        return self.automatic is None or not readers or bool(readers & self.automatic)


def _tls(variables: Sequence[Variable], ways: Mapping[str, frozenset[str]]) -> Parameter:
    words = next(variable.help for variable in variables if variable.name == TLS)
    return Choice(TLS, tuple(ways), optional=True, help=words)


def _conflicts(parameters: Sequence[Parameter], variables: Sequence[Variable]) -> list[Constraint]:
    names = {parameter.name: parameter for parameter in parameters}
    found = []
    if {"UCX_UNIFIED_MODE", "UCX_RNDV_SCHEME"} <= names.keys() and "y" in names["UCX_UNIFIED_MODE"].values:
        rule = "UCX_UNIFIED_MODE != 'y' or not is_set(UCX_RNDV_SCHEME)"
        reason = "unified mode makes the same choice on both sides, which a rendezvous scheme of one's own contradicts"
        found.append(Constraint("unified mode chooses the scheme", rule, reason))
    matching = [name for name in names if name.endswith("_TM_ENABLE") and "y" in names[name].values]
    if "UCX_TM_THRESH" in names and matching:
        rule = " or ".join(f"is_set({name})" for name in matching) + " or not is_set(UCX_TM_THRESH)"
        found.append(
            Constraint("a threshold needs tag matching", rule, "it is that of the network card's tag matching")
        )
    defaults = {variable.name: variable.default for variable in variables}
    for larger, smaller, reason in _AT_LEAST:
        if larger in names and smaller in names:
            pair = _Pair(larger, smaller, reason)
            found += pair.rules(_sizes(names[larger]), _sizes(names[smaller]), defaults)
    return found


@dataclass(frozen=True)
class _Pair:
    """Two sizes, of which the first is never the smaller one."""

    larger: str
    smaller: str
    reason: str

    def rules(
        self, large: Mapping[str, float], small: Mapping[str, float], defaults: Mapping[str, str]
    ) -> list[Constraint]:
        """Return the rules where both are set, and where one is: values and their sizes in bytes."""
        name = f"{self.larger} holds {self.smaller}"
        cases = []
        for word, size in small.items():
            fitting = [other for other, room in large.items() if room >= size]
            if len(fitting) < len(large):
                cases.append(f"({self.smaller} != {word!r} or {self.larger} in {_quoted(fitting)})")
        found = [Constraint(name, " and ".join(cases), self.reason)] if cases else []
        room, least = size_bytes(defaults[self.larger]), size_bytes(defaults[self.smaller])
        too_large = [word for word, size in small.items() if room is not None and size > room]
        too_small = [word for word, size in large.items() if least is not None and size < least]
        for other, bad, own in ((self.larger, too_large, self.smaller), (self.smaller, too_small, self.larger)):
            if bad:
                rule = f"is_set({other}) or {own} not in {_quoted(bad)}"
                found.append(Constraint(f"{name}, {other} unset", rule, self.reason))
        return found


def _sizes(parameter: Parameter) -> dict[str, float]:
    known = ((str(value), size_bytes(str(value))) for value in parameter.values)
    return {word: size for word, size in known if size is not None}


def _quoted(words: Iterable[str]) -> str:
    return "[" + ", ".join(repr(word) for word in words) + "]"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
