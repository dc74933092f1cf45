"""How a configuration of pw.x divides the problem, in words: what a reader of the manual looks at first."""

from collections.abc import Mapping
from math import ceil

from spaces import Value


def layout(configuration: Mapping[str, Value], facts: Mapping[str, Value]) -> tuple[str, ...]:
    """Return a sentence for each level of parallelism; none about what is not known of the problem or the machine."""
    ranks, pools, groups, diagonal = (_count(configuration, name) for name in ("np", "npool", "nbgrp", "ndiag"))
    in_pool = ranks // pools
    sentences = []
    if "kpoints" in facts:
        sentences.append(_divided(_count(facts, "kpoints"), "k-points", pools, "pool"))
    planes = _count(facts, "fft_smooth_z") if "fft_smooth_z" in facts else _count(facts, "fft_dense_z")
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


def _divided(amount: int, what: str, parts: int, part: str) -> str:
    most = ceil(amount / parts)
    if parts == 1:
        return f"{amount} {what} in one {part}"
    first, *rest = part.split(" ", 1)
    text = f"{amount} {what} over {parts} {' '.join([f'{first}s', *rest])}: {most} each"
    return text if amount % parts == 0 else f"{text} at most, {amount / parts / most:.0%} of the time is used"


def _count(values: Mapping[str, Value], name: str) -> int:
    value = values.get(name, 1)
    return int(value) if isinstance(value, int | float) else 1
