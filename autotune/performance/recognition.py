"""Recognition: find the measurements of a setting, although other sources name its machine or problem differently.

A study names a machine by its processor, an import by the user's name for it; a study names a problem by a digest, an
import by its sizes. Equal facts show that they are the same.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isclose

from autotune.machines.this_machine import FACTS
from autotune.performance.installation import agree, is_same_hardware, with_installation_apart
from autotune.records.measurement import INSTALLATION, Facts, Measured, Setting, installation_of
from spaces import Value

# At least this many sizes must be equal if one side states more sizes than the other.
_LEAST_SIZES = 3
# The iterations after which runs of pw.x stop; runs without it go on until they converge.
_LENGTH = "scf_iterations"


@dataclass(frozen=True)
class KnownInstallation:
    """The installation of most measurements on a machine: `rows` of `total`, of the workload if it ran there."""

    facts: Facts
    rows: int
    total: int
    of_workload: bool


def of_program(measured: Iterable[Measured], setting: Setting) -> list[Measured]:
    """Return the measurements of the program of `setting`, under its name.

    A study of any command is named after its file. What it runs shows that two names are the same program.
    """
    marks = frozenset(setting.marks)
    own = []
    for row in measured:
        if row.setting.program == setting.program:
            own.append(row)
        elif not marks.isdisjoint(row.setting.marks):
            own.append(replace(row, setting=_called_like(row.setting, setting)))
    return own


def _called_like(known: Setting, setting: Setting) -> Setting:
    workload = f"{setting.program}{known.workload.removeprefix(known.program)}"
    return replace(known, program=setting.program, workload=workload)


def unify_names(measured: Sequence[Measured], setting: Setting) -> list[Measured]:
    """Return the measurements, renaming machines and workloads that are those of `setting` to its names.

    All facts of an installation become facts of the machine.
    """
    renamed: dict[int, Setting] = {}
    for row in measured:
        if id(row.setting) not in renamed:
            renamed[id(row.setting)] = _rename(row.setting, setting)
    return [
        row if renamed[id(row.setting)] is row.setting else replace(row, setting=renamed[id(row.setting)])
        for row in measured
    ]


def is_same_workload(one: Setting, other: Setting) -> bool:
    """Return whether two settings have the same problem: by name, or by the sizes that are known.

    A few equal sizes do not suffice if the identities of the problems are known to differ.
    """
    if one.workload == other.workload:
        return True
    sizes, others = _sizes(one), _sizes(other)
    if sizes.get(_LENGTH) != others.get(_LENGTH):
        return False
    shared = sizes.keys() & others.keys()
    if not all(_is_equal(sizes[name], others[name]) for name in shared):
        return False
    if len(shared) < _LEAST_SIZES and not one.may_be_identical(other):
        return False
    fewest, most = sorted((len(sizes), len(others)))
    is_part = len(shared) == fewest >= _LEAST_SIZES and 2 * fewest >= most
    return is_part or len(shared) == fewest == most > 0


def has_same_sizes(one: Setting, other: Setting) -> bool:
    """Return whether the problems have the same name or the same known sizes; without sizes, the same input."""
    same = _sizes(one) == _sizes(other) and (bool(_sizes(one)) or one.input == other.input)
    return one.workload == other.workload or same


def known_installation(setting: Setting, measured: Sequence[Measured]) -> KnownInstallation | None:
    """Return the installation of most measurements of the setting's program on its machine.

    Measurements of its workload and by its metric take precedence. Installations that contradict the setting's facts
    are left out; the result is None if no measurement adds a fact.
    """
    own = installation_of(setting)
    there = [
        row.setting
        for row in measured
        if row.setting.program == setting.program
        and is_same_hardware(row.setting, setting)
        and agree(installation_of(row.setting), own)
    ]
    of_workload = [other for other in there if is_same_workload(other, setting)]
    there = of_workload or there
    there = [other for other in there if other.metric.compares_with(setting.metric)] or there
    counts = Counter(frozenset(installation_of(other).items()) for other in there)
    facts: dict[str, Value] = dict(own)
    rows = 0
    # Complete the most frequent facts by rarer ones of the same build.
    for items, count in counts.most_common():
        if agree(dict(items), facts):
            facts = {**dict(sorted(items)), **facts}
            rows += count
    return KnownInstallation(facts, rows, len(there), bool(of_workload)) if facts != own else None


def _rename(known: Setting, setting: Setting) -> Setting:
    if known.program != setting.program:
        return known
    known = with_installation_apart(known)
    installation = installation_of(setting)
    if is_same_hardware(known, setting) and agree(installation_of(known), installation):
        facts = {**known.machine_facts, **installation}
        if known.nodes_known and known.nodes == setting.nodes:
            facts |= setting.machine_facts
        known = replace(known, machine=setting.machine, machine_facts=facts)
    if is_same_workload(known, setting):
        facts = {**setting.workload_facts, **known.workload_facts}
        known = replace(known, workload=setting.workload, workload_facts=facts)
    return known


def _sizes(setting: Setting) -> Facts:
    return {name: value for name, value in setting.workload_facts.items() if name not in INSTALLATION | FACTS}


def _is_equal(one: Value, other: Value) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return isclose(one, other, rel_tol=1e-6)
