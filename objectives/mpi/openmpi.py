"""Open MPI's variables of collective operations, as its `ompi_info` lists them.

Which algorithms read a segment size or a fan-out is in ompi/mca/coll/tuned/coll_tuned_*_decision.c (the calls in
`ompi_coll_tuned_*_intra_do_this`); the help of the variables only says that "some algorithms" do.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from objectives.mpi.knobs import OURS, RANKS, Knobs, only_for
from objectives.mpi.options import NONBLOCKING, Collective
from spaces import Choice, Configuration, Constraint, Integer, Parameter

PREFIX = "OMPI_MCA_"
DYNAMIC_RULES = "coll_tuned_use_dynamic_rules"

_SEGMENTED: Mapping[Collective, tuple[str, ...]] = {
    "allreduce": ("segmented_ring",),
    "bcast": ("chain", "pipeline", "split_binary_tree", "binary_tree", "binomial", "knomial"),
    "reduce": ("chain", "pipeline", "binary", "binomial", "in-order_binary"),
}
_SEGMENT_BYTES = (1024, 4096, 16_384, 65_536, 262_144)
_FANOUTS = {"chain_fanout": "chain", "knomial_radix": "knomial"}
_FANS = (2, 4, 8, 16)
_AUTOMATIC = "ignore"
_TWO = "two_proc"  # with another number of ranks this algorithm fails; the others fall back

_EAGER_BYTES = (1024, 2048, 8192, 16_384, 32_768, 65_536)
_FIRST = 100  # above the priority of every shipped component
_ADAPT = "coll_adapt_priority"
_COMPONENTS = ("han", "adapt", "sm", "xhc", "acoll")
_LINE = re.compile(r"mca:[^:]*:[^:]*:param:(\w+):(value|enumerator:value:-?\d+):(.*)")


@dataclass(frozen=True)
class Variable:
    """A variable of Open MPI: its default value, and the names of its values, by number."""

    value: str
    names: Mapping[int, str] = field(default_factory=dict)


def parse_variables(text: str) -> dict[str, Variable]:
    """Parse the output of `ompi_info --parsable`; other lines are skipped."""
    values: dict[str, str] = {}
    names: dict[str, dict[int, str]] = {}
    for line in text.splitlines():
        if not (match := _LINE.fullmatch(line.rstrip())):
            continue
        name, kind, text = match.groups()
        if kind == "value":
            values[name] = text
        else:
            names.setdefault(name, {})[int(kind.rpartition(":")[2])] = text
    return {name: Variable(value, names.get(name, {})) for name, value in values.items()}


def algorithm_variable(collective: Collective) -> str:
    """Return the variable that selects the algorithm of a collective."""
    return f"coll_{'libnbc' if collective in NONBLOCKING else 'tuned'}_{collective}_algorithm"


def algorithms(known: Mapping[str, Variable], collective: Collective) -> dict[str, int]:
    """Return the numbers of a collective's algorithms by name, without the library's own choice."""
    variable = known.get(algorithm_variable(collective))
    return {} if variable is None else {name: number for number, name in variable.names.items() if name != _AUTOMATIC}


def knobs(known: Mapping[str, Variable], collectives: Sequence[Collective], wanted: Sequence[str]) -> Knobs:
    """Return what is tuned of the `known` variables."""
    parameters: list[Parameter] = []
    constraints: list[Constraint] = []
    if "algorithms" in wanted:
        for collective in collectives:
            own = tuple(_algorithms(known, collective))
            parameters += own
            constraints += _two_rank_rules(own)
    if "components" in wanted:
        ours = _components(known, collectives)
        parameters += ours
        constraints += _exclusive_components(ours)
        constraints += _libnbc_rules(parameters)
    if "transport" in wanted:
        parameters += _transport(known)
    return Knobs(tuple(parameters), tuple(constraints), environment)


def _algorithms(known: Mapping[str, Variable], collective: Collective) -> Iterator[Parameter]:
    variable = algorithm_variable(collective)
    names = tuple(algorithms(known, collective))
    if not names:
        return
    help_ = f"how {collective} is done; unset: the library decides by size and ranks"
    yield Choice(variable, names, optional=True, when=only_for(collective), help=help_)
    segmented = [name for name in _SEGMENTED.get(collective, ()) if name in names]
    if segmented and f"{variable}_segmentsize" in known:
        when = " or ".join(f"{variable} == '{name}'" for name in segmented)
        help_ = "into pieces of how many bytes a message is cut; unset: it is not"
        yield Integer(f"{variable}_segmentsize", _SEGMENT_BYTES, optional=True, when=when, help=help_)
    for ending, name in _FANOUTS.items():
        if name in names and f"{variable}_{ending}" in known:
            when = f"{variable} == '{name}'"
            help_ = f"how many a rank of the {name} sends to"
            yield Integer(f"{variable}_{ending}", _FANS, optional=True, when=when, help=help_)


def _two_rank_rules(parameters: Sequence[Parameter]) -> Iterator[Constraint]:
    for parameter in parameters:
        if isinstance(parameter, Choice) and _TWO in parameter.values:
            rule = f"{parameter.name} != '{_TWO}' or {RANKS} == 2"
            yield Constraint(f"{parameter.name} of two ranks", rule, "this algorithm is for two ranks only")


def _components(known: Mapping[str, Variable], collectives: Sequence[Collective]) -> list[Parameter]:
    if collectives[0] in NONBLOCKING:
        # Besides libnbc only the component adapt has nonblocking operations, and only the broadcast of ours.
        if _ADAPT not in known or "ibcast" not in collectives:
            return []
        help_ = "the component `adapt` takes the place of `libnbc`"
        return [Integer(_ADAPT, (_FIRST,), optional=True, when=only_for("ibcast"), help=help_)]
    names = [f"coll_{name}_priority" for name in _COMPONENTS if f"coll_{name}_priority" in known]
    help_ = "takes the place of the component `tuned` for the collectives that it has"
    return [Integer(name, (_FIRST,), optional=True, help=help_) for name in names]


def _exclusive_components(parameters: Sequence[Parameter]) -> Iterator[Constraint]:
    names = [parameter.name for parameter in parameters]
    for number, name in enumerate(names):
        for other in names[number + 1 :]:
            rule = f"not (is_set({name}) and is_set({other}))"
            yield Constraint(f"{name} or {other}", rule, "one component is the first")


def _libnbc_rules(parameters: Sequence[Parameter]) -> Iterator[Constraint]:
    names = {parameter.name for parameter in parameters}
    algorithm = algorithm_variable("ibcast")
    if {_ADAPT, algorithm} <= names:
        rule = f"not (is_set({_ADAPT}) and is_set({algorithm}))"
        yield Constraint("algorithms of libnbc", rule, "adapt, which takes its place, does not read them")


def _transport(known: Mapping[str, Variable]) -> Iterator[Parameter]:
    # Open MPI 5 renamed vader to sm; both names work there.
    memory = next((name for name in ("btl_sm", "btl_vader") if f"{name}_eager_limit" in known), None)
    if memory is None:
        return
    usual = known[f"{memory}_eager_limit"].value
    sizes = tuple(size for size in _EAGER_BYTES if str(size) != usual)
    help_ = "up to how many bytes a message within the node is sent before the receiver asks for it"
    yield Integer(f"{memory}_eager_limit", sizes, optional=True, help=help_)
    copies = known.get(f"{memory}_single_copy_mechanism")
    names = tuple(copies.names.values()) if copies is not None else ()
    if copies is not None and len(names) > 1:
        help_ = "what copies a long message within the node in one go"
        others = tuple(name for name in names if name != copies.value)
        yield Choice(f"{memory}_single_copy_mechanism", others, optional=True, help=help_)
    elif "smsc" in known:
        yield Choice("smsc", ("^cma",), optional=True, help="without the copy of long messages in one go")


def environment(configuration: Configuration) -> dict[str, str]:
    """Return the variables of a run: what the configuration sets, and the variable that makes the library read it."""
    chosen = {PREFIX + name: str(value) for name, value in configuration.items() if name not in OURS}
    if any(name.startswith("coll_tuned_") for name in configuration):
        chosen[PREFIX + DYNAMIC_RULES] = "1"  # without it the library does not read which algorithm is wanted
    return chosen
