"""Variables of UCX as a space, from the output of the installed UCX.

Every parameter is a variable by its own name, with UCX's own words as values; unset is the default. Some are chosen by
default (`spaces.ucx.picks`); a pattern can name any other. UCX silently accepts a misspelt variable, so names are
checked against its own list.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from spaces.parameters.constraint import Constraint
from spaces.parameters.errors import SpaceError, did_you_mean
from spaces.parameters.parameter import Choice, Parameter
from spaces.ucx.config import Variable
from spaces.ucx.picks import PICKS, Pick
from spaces.ucx.transports import between_nodes, combinations, maps_memory, readers_of
from spaces.ucx.values import size_bytes, values_of

TLS = "UCX_TLS"
DEVICES = "UCX_NET_DEVICES"
SCHEME = "UCX_RNDV_SCHEME"
_MAPPED = "rkey_ptr"


@dataclass(frozen=True)
class Selection:
    """A part of UCX's variables as a space.

    Args:
        parameters: The variables to tune, all unset by default.
        constraints: The combinations that cannot be set, with reasons.
        left_out: Variables that are not tuned here, with reasons.
    """

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    left_out: Mapping[str, str]


_GPU_ONLY = ("UCX_MEMTYPE_*", "UCX_RNDV_PIPELINE_*", "UCX_RNDV_FRAG_MEM_TYPE*", "*_CUDA_*", "*_ROCM_*", "*_GPU_*")
_PIPELINES = ("get_ppln", "put_ppln")  # through host memory: rendezvous schemes for memory of GPUs

# Variables that a pattern matches only by their full names: they change what is reported or what survives a failure,
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
    only: Sequence[str] | None = None,
    gpu: bool = False,
    automatic: Collection[str] | None = None,
    devices: Mapping[str, frozenset[str]] | None = None,
    nodes: int = 1,
) -> Selection:
    """Return the variables that are worth tuning here.

    Args:
        variables: All variables of the installed UCX.
        transports: The transports of this machine (`ucx_info -d`).
        patterns: More variables to tune, by name or shell pattern.
        only: Tune only variables that these name; None for no restriction.
        gpu: Whether messages are in the memory of GPUs.
        automatic: The transports that UCX itself chooses between the processes (`spaces.ucx.config.lanes`). Settings of
            others are then tuned only where UCX_TLS names them. None if unknown: any may be in use.
        devices: The network devices, with the transports that use each.
        nodes: The number of nodes on which the processes run.

    Raises:
        SpaceError: A pattern matches nothing, or the values of a named variable cannot be guessed.
    """
    chosen = _Chosen(variables, frozenset(transports), gpu)
    ways = combinations(transports, gpu=gpu, nodes=nodes)
    ways = {text: names for text, names in ways.items() if names != frozenset(automatic or ())}
    ways = ways if any(variable.name == TLS for variable in variables) and _is_wanted(TLS, only) else {}
    reading = _Reading(ways, None if automatic is None else frozenset(automatic))
    errors = chosen.add_patterns([*patterns, *(only or ())])
    if errors:
        raise SpaceError(errors)
    usable = dict(devices or {}) if nodes == 1 else between_nodes(devices or {})
    if len(usable) > 1:
        chosen.add_devices(usable)
    chosen.keep(only)
    tls = [_tls(variables, ways)] if ways else []
    parameters = (*tls, *(parameter for parameter in chosen.parameters if reading.ever(parameter.name)))
    unread = {p.name: reading.never(p.name) for p in chosen.parameters if not reading.ever(p.name)}
    rules = [rule for parameter in parameters for rule in reading.rules(parameter.name)]
    if any(parameter.name == SCHEME and _MAPPED in parameter.values for parameter in parameters):
        rules += reading.mapping()
    if DEVICES in {parameter.name for parameter in parameters}:
        rules += reading.devices(usable)
    return Selection(parameters, (*_conflicts(parameters, variables), *rules), {**chosen.left_out, **unread})


def unknown_names(names: Iterable[str], variables: Sequence[Variable]) -> list[str]:
    """Return a sentence for each of `names` that is neither a variable of this UCX nor an alias of some."""
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
        for pick in PICKS:
            self._add_pick(pick)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(self._found.values())

    def keep(self, only: Sequence[str] | None) -> None:
        """Drop variables that are not wanted."""
        for name in [name for name in self._found if not _is_wanted(name, only)]:
            del self._found[name]
            self.left_out[name] = "it was not asked for"

    def add_patterns(self, patterns: Iterable[str]) -> list[str]:
        """Add the variables that the patterns match; return the mistakes."""
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

    def add_devices(self, devices: Iterable[str]) -> None:
        """Add the choice of one network device instead of all."""
        variable = self._variables.get(DEVICES)
        if variable is not None:
            self._found[DEVICES] = Choice(DEVICES, tuple(devices), optional=True, help=variable.help)

    def _add_pick(self, pick: Pick) -> None:
        variable = self._variables.get(pick.name)
        if variable is None:
            self.left_out[pick.name] = "this UCX does not know it"
        elif pick.name not in self.left_out:
            values = values_of(variable, pick.factors)
            self._add(variable, tuple(value for value in values if not pick.only or value in pick.only))

    def _add_match(self, variable: Variable, pattern: str) -> str:
        """Add the variable unless it is there already; return why if it cannot be added."""
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
        if variable.name == SCHEME:
            values = tuple(value for value in values if self._is_possible(value))
        if values:
            self._found[variable.name] = Choice(variable.name, values, optional=True, help=variable.help)
        else:
            self.left_out.setdefault(variable.name, "it has no value worth trying other than its default")

    def _is_possible(self, scheme: str) -> bool:
        mapped = scheme != _MAPPED or maps_memory(self._transports)
        return scheme != "auto" and mapped and (self._gpu or scheme not in _PIPELINES)

    def _absent(self, name: str) -> str:
        """Return why nothing here reads the variable; empty if something does."""
        readers = readers_of(name)
        if readers and not readers & self._transports:
            return f"only {', '.join(sorted(readers))} would read it, and there is no such transport"
        if not self._gpu and any(fnmatchcase(name, pattern) for pattern in _GPU_ONLY):
            return "it is about memory of GPUs, which is not in use"
        return ""


@dataclass(frozen=True)
class _Reading:
    """The transports with which a variable is read: `ways` are values of UCX_TLS, `automatic` stands for unset."""

    ways: Mapping[str, frozenset[str]]
    automatic: frozenset[str] | None

    def ever(self, name: str) -> bool:
        return self._unset(name) or bool(self._with(name))

    def never(self, name: str) -> str:
        chosen = _join(self.automatic or ())
        return f"only {_join(readers_of(name))} would read it; UCX itself chooses {chosen} here"

    def rules(self, name: str) -> list[Constraint]:
        """Return where the variable may be set."""
        readers, found = _join(readers_of(name)), self._with(name)
        rules: list[Constraint] = []
        if name == TLS:
            return rules
        if not self._unset(name):
            reason = f"UCX itself chooses {_join(self.automatic or ())} here, and only {readers} would read it"
            rules.append(Constraint(f"{name} needs {TLS}", f"is_set({TLS}) or not is_set({name})", reason))
        if len(found) < len(self.ways):
            reason = f"only {readers} would read it, which {TLS} excludes"
            rules.append(Constraint(f"{name} is read", f"{_within(TLS, found)} or not is_set({name})", reason))
        return rules

    def mapping(self) -> list[Constraint]:
        """Return where another process's memory can be read in place."""
        fitting = [text for text, names in self.ways.items() if maps_memory(names)]
        if len(fitting) == len(self.ways):
            return []
        reason = f"{_MAPPED} reads memory that the processes share, which these transports do not"
        rule = f"{SCHEME} != {_MAPPED!r} or {_within(TLS, fitting)}"
        rules = [Constraint("shared memory is there to be read", rule, reason)]
        if self.automatic is not None and not maps_memory(self.automatic):
            rules.append(Constraint(f"{_MAPPED} needs {TLS}", f"is_set({TLS}) or {SCHEME} != {_MAPPED!r}", reason))
        return rules

    def devices(self, devices: Mapping[str, frozenset[str]]) -> list[Constraint]:
        """Return which devices a transport has, for those that cannot use all of them."""
        rules = []
        for text, names in self.ways.items():
            fitting = [device for device, transports in devices.items() if transports & names]
            if names & readers_of(DEVICES) and len(fitting) < len(devices):
                rule = f"{TLS} != {text!r} or not is_set({DEVICES}) or {_within(DEVICES, fitting)}"
                rules.append(Constraint(f"devices of {text}", rule, f"{text} does not use the other devices"))
        return rules

    def _with(self, name: str) -> list[str]:
        readers = readers_of(name)
        return [text for text, names in self.ways.items() if not readers or readers & names]

    def _unset(self, name: str) -> bool:
        readers = readers_of(name)
        return self.automatic is None or not readers or bool(readers & self.automatic)


def _is_wanted(name: str, only: Sequence[str] | None) -> bool:
    return only is None or any(fnmatchcase(name, pattern) for pattern in only)


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
    """Two sizes, the first never smaller than the second."""

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
                cases.append(f"({self.smaller} != {word!r} or {_within(self.larger, fitting)})")
        found = [Constraint(name, " and ".join(cases), self.reason)] if cases else []
        room, least = size_bytes(defaults[self.larger]), size_bytes(defaults[self.smaller])
        too_large = [word for word, size in small.items() if room is not None and size > room]
        too_small = [word for word, size in large.items() if least is not None and size < least]
        for other, bad, own in ((self.larger, too_large, self.smaller), (self.smaller, too_small, self.larger)):
            if bad:
                rule = f"is_set({other}) or {own} not in {_quote(bad)}"
                found.append(Constraint(f"{name}, {other} unset", rule, self.reason))
        return found


def _sizes(parameter: Parameter) -> dict[str, float]:
    known = ((str(value), size_bytes(str(value))) for value in parameter.values)
    return {word: size for word, size in known if size is not None}


def _within(name: str, words: Sequence[str]) -> str:
    """Return the rule that a variable has one of these values, or is unset if the list is empty."""
    return f"{name} in {_quote(words)}" if words else f"not is_set({name})"


def _quote(words: Iterable[str]) -> str:
    return "[" + ", ".join(repr(word) for word in words) + "]"


def _join(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
