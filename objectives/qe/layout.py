"""How a configuration of pw.x divides the problem, in words: what a reader of the manual looks at first."""

from collections.abc import Mapping
from math import ceil

from objectives.qe.automatic_layout import automatic_ndiag, automatic_pools, chooses_layout
from spaces import Value


def layout(configuration: Mapping[str, Value], facts: Mapping[str, Value]) -> tuple[str, ...]:
    """Return a sentence for each level of parallelism; none about what is not known of the problem or the machine."""
    configuration, sentences = _with_chosen(configuration, facts)
    ranks, pools, groups, diagonal = (_count(configuration, name) for name in ("np", "npool", "nbgrp", "ndiag"))
    in_pool = ranks // pools
    if "kpoints" in facts:
        sentences.append(_divided(_count(facts, "kpoints"), "k-points", pools, "pool"))
    planes = _count(facts, "fft_smooth_z", _count(facts, "fft_dense_z"))
    if "fft_dense_z" in facts:
        own = in_pool // groups
        sentences.append(
            _divided(planes, "planes of the FFT grid", own, f"rank of a {'band group' if groups > 1 else 'pool'}")
        )
    if "cores_per_node" in facts:
        cores = in_pool * _count(configuration, "threads")
        nodes = cores / _count(facts, "cores_per_node")
        sentences.append(f"a pool has {cores} cores, {nodes:.3g} node{'s' * (nodes > 1)}")
    if diagonal > 1:
        sentences.append(f"{diagonal} of {in_pool} ranks solve the subspace problem")
    return tuple(sentences)


def _with_chosen(
    configuration: Mapping[str, Value], facts: Mapping[str, Value]
) -> tuple[Mapping[str, Value], list[str]]:
    """Return the configuration with what pw.x chooses where it is not told, and a sentence on that."""
    known = all(name in facts for name in ("kpoints", "bands", "fft_dense_z"))
    if "npool" in configuration or not known or not chooses_layout(str(facts.get("pw_version"))):
        return configuration, []
    ranks, planes = _count(configuration, "np"), _count(facts, "fft_smooth_z", _count(facts, "fft_dense_z"))
    pools = automatic_pools(ranks, _count(facts, "kpoints"), planes)
    ndiag = automatic_ndiag(ranks // pools, _count(facts, "bands"))
    return {**configuration, "npool": pools, "ndiag": ndiag}, [f"pw.x chooses npool={pools} ndiag={ndiag} itself"]


def _divided(amount: int, what: str, parts: int, part: str) -> str:
    most = ceil(amount / parts)
    if parts == 1:
        return f"{amount} {what} in one {part}"
    first, *rest = part.split(" ", 1)
    text = f"{amount} {what} over {parts} {' '.join([f'{first}s', *rest])}: {most} each"
    return text if amount % parts == 0 else f"{text} at most, {amount / parts / most:.0%} of the time is used"


def _count(values: Mapping[str, Value], name: str, default: int = 1) -> int:
    value = values.get(name, default)
    return int(value) if isinstance(value, int | float) else default
